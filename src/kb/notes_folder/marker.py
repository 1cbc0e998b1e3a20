"""The mark in the notes folder, from which kb knows it again: a folder without its disk is empty, and so has none.

It names the last sessions of the engine that used the folder. If the database names another one, either of them has
returned to an earlier state, as after a restore; then kb trusts none of its records about the files.
"""

from pathlib import Path
from typing import Final

from kb.filesystem import sync

NAME: Final = ".kb-folder"


def sessions(root: Path) -> list[str] | None:
    """Return the sessions in the mark of a folder; None without a mark.

    Raises:
        OSError: the mark cannot be read.
    """
    try:
        return (root / NAME).read_text("utf-8", errors="replace").split()
    except FileNotFoundError:
        return None


def write(root: Path, *named: str) -> None:
    """Write the mark of a folder.

    Raises:
        OSError: it cannot be written.
    """
    part = root / f"{NAME}.part"
    part.write_text("\n".join(filter(None, named)) + "\n", "utf-8")
    sync(part)
    part.replace(root / NAME)
