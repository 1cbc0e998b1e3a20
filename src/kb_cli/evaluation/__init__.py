"""Measure the quality of searches."""
