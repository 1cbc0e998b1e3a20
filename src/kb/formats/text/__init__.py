"""Helpers of the readers for building text."""
