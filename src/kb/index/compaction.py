"""When in-memory indexes drop the rows of deleted chunks: all at once, so that a mask for one index fits the others."""

from typing import Final

MIN_DEAD: Final = 1000
MAX_DEAD: Final = 0.1
"""Rows of deleted chunks are dropped if both this number and this share are exceeded."""


def is_due(dead: int, rows: int) -> bool:
    """Return whether the index should be compacted because too many rows are dead."""
    return dead > max(MIN_DEAD, MAX_DEAD * rows)
