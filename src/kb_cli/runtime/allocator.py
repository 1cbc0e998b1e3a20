"""What glibc's allocator keeps of what was freed. Other libraries have no such functions, and need none."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from typing import Final

M_ARENA_MAX: Final = -8
ARENAS: Final = 2
"""Each keeps what its threads have freed; more would let more threads allocate at once, which Python's lock forbids."""


def limit_arenas() -> None:
    """Keep few arenas; for a process that has no threads yet."""
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, ARENAS)


def trim() -> None:
    """Give back what was freed."""
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
