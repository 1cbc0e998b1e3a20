"""When indexes in memory drop the rows of deleted chunks: all at once, so that a mask over one fits the others."""

from __future__ import annotations

from typing import Final

MIN_DEAD: Final = 1000
MAX_DEAD: Final = 0.1
"""Rows of deleted chunks are dropped when they are more than so many, and more than this share."""


def is_due(dead: int, rows: int) -> bool:
    """Return whether so many of the rows are dead that the others had better get new numbers."""
    return dead > max(MIN_DEAD, MAX_DEAD * rows)
