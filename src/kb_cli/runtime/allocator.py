"""Limit the freed memory that glibc's allocator keeps. Other C libraries lack these functions and do not need them."""

import ctypes
from contextlib import suppress
from typing import Final

M_ARENA_MAX: Final = -8
ARENAS: Final = 2
"""Each arena keeps freed memory. More arenas allow parallel allocation, which Python's lock prevents anyway."""


def limit_arenas() -> None:
    """Limit the number of arenas; call before any thread starts."""
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, ARENAS)


def trim() -> None:
    """Return freed memory to the system."""
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
