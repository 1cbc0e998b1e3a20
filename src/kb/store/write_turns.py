"""The order in which threads may write."""

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

    @property
    def has_urgent(self) -> bool:
        """Whether an urgent holder waits."""
        return self._waiting[True] > 0

    @contextmanager
    def turn(self, *, urgent: bool = False) -> Iterator[None]:
        """Hold the lock during the block."""
        self.acquire(urgent=urgent)
        try:
            yield
        finally:
            self.release()

    def acquire(self, *, urgent: bool = False, timeout: float | None = None) -> bool:
        """Take the lock; return whether that succeeded within `timeout` seconds."""
        with self._changed:
            self._waiting[urgent] += 1
            try:
                has_turn = self._changed.wait_for(lambda: self._may_begin(urgent=urgent), timeout)
            finally:
                self._waiting[urgent] -= 1
            if has_turn:
                self._is_taken = True
                self._in_a_row = self._in_a_row + 1 if urgent else 0
        return has_turn

    def release(self) -> None:
        """Let the next thread take the lock."""
        with self._changed:
            self._is_taken = False
            self._changed.notify_all()

    def _may_begin(self, *, urgent: bool) -> bool:
        if self._is_taken:
            return False
        is_ordinary_due = self._waiting[False] > 0 and (self._in_a_row >= MOST_URGENT or not self._waiting[True])
        return urgent != is_ordinary_due
