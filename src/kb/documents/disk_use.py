"""How much room the files of a folder take, which is looked at now and then."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from kb.api.errors import FilesUnavailable
from kb.blobs.protocol import KEPT, Blobs

FRESH_SECONDS: Final = 300
MOST_FILES: Final = 200_000
"""Of a folder with more of them the size is not known: the disk has better things to do."""

MOST_SECONDS: Final = 3
"""Likewise of one that takes longer to look through: someone waits for the page."""


class DiskUse:
    """The size of a folder, remembered for some minutes.

    Args:
        sizes: yields those of its files; None if there is none.
        most: files to look at.
        clock: the seconds that have passed since some moment.
    """

    def __init__(
        self,
        sizes: Callable[[], Iterable[int]] | None,
        most: int = MOST_FILES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sizes = sizes
        self._most = most
        self._clock = clock
        self._lock = threading.Lock()
        self._until = float("-inf")
        self._size: int | None = None

    def size(self) -> int | None:
        """Return its bytes, or None if it has too many files, takes too long, or is none.

        While someone else looks, what was known before is returned: who asks waits in a thread that others need.
        """
        if self._sizes is not None and self._lock.acquire(blocking=False):
            try:
                if self._clock() >= self._until:
                    self._size = self._measured(self._sizes)
                    self._until = self._clock() + FRESH_SECONDS
            finally:
                self._lock.release()
        return self._size

    def _measured(self, sizes: Callable[[], Iterable[int]]) -> int | None:
        total, end = 0, self._clock() + MOST_SECONDS
        try:
            for number, size in enumerate(sizes(), 1):
                if number > self._most or self._clock() > end:
                    return None
                total += size
        except FilesUnavailable:
            return None
        return total


def kept_sizes(blobs: Blobs) -> Iterator[int]:
    """Yield the size of each kept file."""
    return (blob.size for blob in blobs.list(KEPT))


def sizes(folder: str | Path) -> Iterator[int]:
    """Yield the size of each file below a folder; what goes or cannot be read meanwhile is left out."""
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                yield os.lstat(os.path.join(path, name)).st_size  # noqa: PTH118 - for each of very many
            except OSError:
                continue
