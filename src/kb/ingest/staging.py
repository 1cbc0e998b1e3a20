"""Where uploaded files wait for their job."""

from __future__ import annotations

import os
from hashlib import sha256
from typing import TYPE_CHECKING, BinaryIO
from uuid import uuid4

if TYPE_CHECKING:
    from pathlib import Path

PART = 1 << 20
"""How many bytes are held in memory at a time."""


def stage(content: BinaryIO, folder: Path) -> tuple[str, str]:
    """Copy a file into the staging folder; it is on disk, and so is its name, when this returns.

    Returns:
        Its name there, and the SHA-256 of its content.
    """
    name, digest = uuid4().hex, sha256()
    with (folder / name).open("xb") as file:
        while part := content.read(PART):
            digest.update(part)
            file.write(part)
        file.flush()
        os.fsync(file.fileno())
    _sync_folder(folder)
    return name, digest.hexdigest()


def discard(name: str | None, folder: Path) -> None:
    """Remove a staged file that no job will ask for."""
    if name:
        (folder / name).unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":  # Windows cannot open folders, and needs no sync of them
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
