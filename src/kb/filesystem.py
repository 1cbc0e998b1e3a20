"""Folders that are made, and files that are on the disk when a function returns."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from kb.api.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path

IS_WINDOWS = os.name == "nt"


def make_folder(path: Path, variable: str) -> None:
    """Make a folder for its owner alone, unless it is there.

    Raises:
        StoreError: it cannot be made; the message names the `variable` that asked for it.
    """
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise StoreError(f"{variable}: {path} cannot be used: {error.strerror}.") from error


def sync(path: Path) -> None:
    """Flush a file, or the names in a folder, to the disk. Windows cannot flush folders, and need not."""
    if IS_WINDOWS and path.is_dir():
        return
    descriptor = os.open(path, os.O_RDWR if IS_WINDOWS else os.O_RDONLY)
    try:
        sync_descriptor(descriptor)
    finally:
        os.close(descriptor)


def sync_descriptor(descriptor: int) -> None:
    """Flush an open file to the disk. On macOS `fsync` leaves it in the drive."""
    if sys.platform == "darwin":
        import fcntl

        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    else:
        os.fsync(descriptor)
