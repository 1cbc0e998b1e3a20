"""The mark in the notes folder, from which kb knows it again: a folder without its disk is empty, and so has none.

It names the last sessions of the engine that used the folder. If the database names another one, either of them has
returned to an earlier state, as after a restore; then kb trusts none of its records about the files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final
from uuid import uuid4

from kb.filesystem import open_regular, sync_descriptor

NAME: Final = ".kb-folder"
LONGEST: Final = 4096
"""The number of bytes of a mark that are read."""


def sessions(root: Path) -> list[str] | None:
    """Return the sessions in the mark of a folder; None without a mark.

    Raises:
        OSError: the mark cannot be read.
    """
    try:
        with open_regular(root / NAME) as file:
            return file.read(LONGEST).decode(errors="replace").split()
    except FileNotFoundError:
        return None


def write(root: Path, *named: str) -> None:
    """Write the mark of a folder.

    Raises:
        OSError: it cannot be written.
    """
    content = "\n".join(filter(None, named)) + "\n"
    part = root / f"{NAME}.{uuid4().hex}.part"  # nobody can put a link there
    try:
        with part.open("x", encoding="utf-8") as file:
            file.write(content)
            file.flush()
            sync_descriptor(file.fileno())
        part.replace(root / NAME)
    finally:
        part.unlink(missing_ok=True)
