"""The files that the backups of a folder share: which of them are damaged."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

from filelock import FileLock, Timeout

from kb import clock
from kb.backup.storage import (
    DAMAGED,
    DIGITS,
    LOCK,
    MANIFEST,
    backup_folders,
    made_at,
    object_name,
    objects_in,
    stream_digest,
)
from kb.filesystem import open_regular

DAYS: Final = 28
"""The number of days in which each file is read at least once, however often kb makes backups."""


def damaged_objects(
    root: Path, size_of: Callable[[str], int | None], checkpoint: Callable[[], None] = lambda: None
) -> set[str]:
    """Return the digests of damaged files, so that a backup copies them again.

    It compares the sizes of all files, and reads files that changed since the last backup and a share of the others.

    Args:
        root: the folder of the backups.
        size_of: returns the size of the original by its digest, or None if it does not exist.
        checkpoint: is called before each file that is read, and may stop the work by raising an error.
    """
    turns, last_write = _turns(root), _last_write(root)
    damaged = set()
    for path in objects_in(root):
        if not DIGITS.fullmatch(path.name):
            continue
        found, size = path.lstat(), size_of(path.name)
        is_due = found.st_mtime > last_write or int(path.name[:8], 16) % DAYS in turns
        if is_due or (size is not None and size != found.st_size):
            checkpoint()
            if object_digest(path) != path.name:
                damaged.add(path.name)
    return damaged


def object_digest(path: Path) -> str | None:
    """Return the SHA-256 of a file; None if it cannot be read."""
    try:
        file: BinaryIO = open_regular(path)
        with file:
            return stream_digest(file)
    except OSError:
        return None


def set_aside(root: Path, digests: Collection[str]) -> None:
    """Rename damaged files, so that the next backup copies them again. While a backup is being made, do nothing."""
    with suppress(OSError, Timeout), FileLock(root / LOCK, timeout=0):
        for path in (root / object_name(digest) for digest in digests):
            if object_digest(path) not in (None, path.name):  # a backup may have replaced it
                path.rename(path.with_name(f"{path.name}{DAMAGED}"))


def _turns(root: Path) -> Collection[int]:
    """Return the shares of the files whose turn it is: one per day since the last backup."""
    today = clock.own.now().toordinal()
    folders = backup_folders(root)
    since = made_at(folders[-1]).toordinal() if folders else 0
    return {day % DAYS for day in range(max(since, today - DAYS) + 1, today + 1)}


def _last_write(root: Path) -> float:
    """Return when the newest backup was finished, by the clock of its disk."""
    times = (_written_at(folder / MANIFEST) for folder in reversed(backup_folders(root)))
    return next((time for time in times if time is not None), 0.0)


def _written_at(path: Path) -> float | None:
    try:
        return path.stat().st_mtime
    except OSError:
        return None
