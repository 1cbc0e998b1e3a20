"""The disk space that the files of a folder use, measured from time to time."""

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from kb.api.errors import FilesUnavailable
from kb.blobs.protocol import KEPT, Blobs
from kb.folders.timed_reads import Latest

FRESH_SECONDS: Final = 300
MOST_FILES: Final = 200_000
"""The size of a folder with more files stays unknown, to spare the disk."""

MOST_SECONDS: Final = 3
"""The size of a folder that takes longer to measure stays unknown, because somebody waits for the page."""


class DiskUse:
    """The size of a folder, cached for some minutes.

    Args:
        sizes: yields the size of each file; None if the folder does not exist.
        most: the maximum number of files to measure.
        clock: a monotonic clock, in seconds.
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
        self._measuring = Latest(MOST_SECONDS)
        self._lock = threading.Lock()
        self._until = float("-inf")
        self._size: int | None = None

    def size(self) -> int | None:
        """Return the size in bytes; None if there are too many files, reading is slow, or the folder is missing.

        While another thread measures, the last known size is returned: the caller occupies a thread that others need.
        """
        if self._sizes is not None and self._lock.acquire(blocking=False):
            try:
                if self._clock() >= self._until:
                    self._size = self._in_time(self._sizes)
                    self._until = self._clock() + FRESH_SECONDS
            finally:
                self._lock.release()
        return self._size

    def _in_time(self, sizes: Callable[[], Iterable[int]]) -> int | None:
        with suppress(OSError):
            return self._measuring.of(partial(self._measured, sizes))
        return None

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
    return (blob.size for blob in blobs.list(KEPT))


def sizes(folder: str | Path) -> Iterator[int]:
    """Yield the size of each file below a folder; skip files that vanish or cannot be read."""
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                yield os.lstat(os.path.join(path, name)).st_size  # noqa: PTH118 - faster, for very many files
            except OSError:
                continue
