"""How much room the files of a folder take, which is looked at now and then."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

FRESH_SECONDS: Final = 300
MOST_FILES: Final = 200_000
"""Of a folder with more of them the size is not known: the disk has better things to do."""

MOST_SECONDS: Final = 3
"""Likewise of one that takes longer to look through: someone waits for the page."""


class DiskUse:
    """The size of a folder, remembered for some minutes.

    Args:
        folder: need not be there.
        most: files to look at.
        clock: the seconds that have passed since some moment.
    """

    def __init__(
        self, folder: Path | None, most: int = MOST_FILES, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._folder = folder
        self._most = most
        self._clock = clock
        self._lock = threading.Lock()
        self._until = float("-inf")
        self._size: int | None = None

    def size(self) -> int | None:
        """Return its bytes, or None if it has too many files, takes too long, or is none.

        While someone else looks, what was known before is returned: who asks waits in a thread that others need.
        """
        if self._folder is not None and self._lock.acquire(blocking=False):
            try:
                if self._clock() >= self._until:
                    self._size = self._measured(self._folder)
                    self._until = self._clock() + FRESH_SECONDS
            finally:
                self._lock.release()
        return self._size

    def _measured(self, folder: Path) -> int | None:
        total, end = 0, self._clock() + MOST_SECONDS
        for number, size in enumerate(sizes(folder), 1):
            if number > self._most or self._clock() > end:
                return None
            total += size
        return total


def sizes(folder: str | Path) -> Iterator[int]:
    """Yield the size of each file below a folder; what goes or cannot be read meanwhile is left out."""
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                yield os.lstat(os.path.join(path, name)).st_size  # noqa: PTH118 - for each of very many
            except OSError:
                continue
