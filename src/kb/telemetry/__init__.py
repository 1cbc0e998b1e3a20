"""Logs, traces and instruments."""
