"""Measurements of speed and quality."""
