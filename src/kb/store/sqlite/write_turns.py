"""The order in which threads may write."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

MOST_URGENT: Final = 4
"""How many urgent writes in a row may go before a waiting ordinary one."""


class WriteTurns:
    """A lock whose urgent holders, for whom somebody waits, go before ordinary ones, but not endlessly."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._is_taken = False
        self._waiting = {True: 0, False: 0}
        self._in_a_row = 0

    @contextmanager
    def turn(self, *, urgent: bool = False) -> Iterator[None]:
        """Hold the lock during the block."""
        with self._changed:
            self._waiting[urgent] += 1
            try:
                self._changed.wait_for(lambda: self._may_begin(urgent=urgent))
            finally:
                self._waiting[urgent] -= 1
            self._is_taken = True
            self._in_a_row = self._in_a_row + 1 if urgent else 0
        try:
            yield
        finally:
            with self._changed:
                self._is_taken = False
                self._changed.notify_all()

    def _may_begin(self, *, urgent: bool) -> bool:
        if self._is_taken:
            return False
        is_ordinary_due = self._waiting[False] > 0 and (self._in_a_row >= MOST_URGENT or not self._waiting[True])
        return urgent != is_ordinary_due
