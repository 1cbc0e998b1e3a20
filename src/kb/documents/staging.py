"""Where uploaded files wait for their job."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, BinaryIO
from uuid import uuid4

from kb.api.errors import DiskFull
from kb.filesystem import sync, sync_descriptor

if TYPE_CHECKING:
    from pathlib import Path

BLOCK_SIZE = 1 << 20
"""How many bytes are held in memory at a time."""


def stage(content: BinaryIO, folder: Path) -> tuple[str, str]:
    """Copy a file into the staging folder; it is on disk, and so is its name, when this returns.

    Returns:
        Its name there, and the SHA-256 of its content.

    Raises:
        DiskFull: there is no room for it; nothing of it is left.
    """
    name = uuid4().hex
    try:
        digest = _copy(content, folder / name)
        sync(folder)
    except BaseException as error:
        discard(name, folder)
        if isinstance(error, OSError) and DiskFull.is_why(error):
            raise DiskFull from error
        raise
    return name, digest


def discard(name: str | None, folder: Path) -> None:
    """Remove a staged file that no job will ask for."""
    if name:
        (folder / name).unlink(missing_ok=True)


def _copy(content: BinaryIO, path: Path) -> str:
    digest = sha256()
    with path.open("xb") as file:
        while block := content.read(BLOCK_SIZE):
            digest.update(block)
            file.write(block)
        file.flush()
        sync_descriptor(file.fileno())
    return digest.hexdigest()
