"""Tells about the steps that prepare a model while they run, because a first start takes up to a minute."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Final

log = logging.getLogger(__name__)

SECONDS: Final = 2.0
"""The time between two lines."""

MB: Final = 1_000_000


@contextmanager
def step(what: str, folder: Path | None = None, total_mb: int = 0) -> Iterator[None]:
    """Log that a step begins and, every two seconds, that it goes on: with the MB in its folder if it fills one."""
    ended = threading.Event()

    def tell() -> None:
        log.info("%s", what)
        for number in count(1):
            if ended.wait(SECONDS):
                return
            size = f": {min(_size(folder) // MB, total_mb)} of {total_mb} MB" if folder else ""
            log.info("%s%s, %.0f s", what, size, number * SECONDS)

    thread = threading.Thread(target=tell, name="kb steps", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _size(folder: Path) -> int:
    """Return the bytes of all files in a folder, to which another process writes."""
    size = 0
    with suppress(OSError):
        for file in folder.rglob("*"):
            with suppress(OSError):
                size += file.stat().st_size
    return size
