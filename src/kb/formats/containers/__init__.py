"""Containers that several formats share."""
