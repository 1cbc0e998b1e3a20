"""Where uploaded files wait for their job."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, BinaryIO
from uuid import uuid4

if TYPE_CHECKING:
    from pathlib import Path


def stage(content: BinaryIO, folder: Path, depth: int = 0) -> str:
    """Copy a file into the staging folder; it is on disk, and so is its name, when this returns the name.

    The name says how deep the file was inside others: `depth`, which `depth_of` reads.
    """
    name = f"{uuid4().hex}-{depth}" if depth else uuid4().hex
    with (folder / name).open("xb") as file:
        shutil.copyfileobj(content, file, 1 << 20)
        file.flush()
        os.fsync(file.fileno())
    _sync_folder(folder)
    return name


def depth_of(staged: str) -> int:
    """How deep a staged file was inside others: 0 for one that was sent by itself."""
    return int(staged.partition("-")[2] or 0)


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":  # Windows cannot open folders, and needs no sync of them
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
