"""Nearest vectors in memory; no database."""
