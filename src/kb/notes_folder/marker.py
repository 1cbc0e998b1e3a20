"""The mark in the notes folder, from which kb knows it again: a folder without its disk is empty, and so has none.

It names the last sessions of the engine that used the folder. If the database names another one, either of them has
returned to an earlier state, as after a restore; then kb trusts none of its records about the files. The mark is in a
folder that Git ignores; once it was a file.
"""

from pathlib import Path
from typing import Final
from uuid import uuid4

from kb.open_folder import Linked, OpenFolder, opened

NAME: Final = ".kb-folder"
MARK: Final = "mark"
MOST_BYTES: Final = 10_000


def sessions(root: Path) -> list[str] | None:
    """Return the sessions in the mark of a folder, or None if there is no mark.

    Raises:
        OSError: the mark cannot be read.
    """
    try:
        with opened(root, [NAME]) as folder:
            return _read(folder, MARK)
    except (FileNotFoundError, Linked):
        return None
    except NotADirectoryError:
        with OpenFolder.of(root) as folder:
            return _read(folder, NAME)


def write(root: Path, *named: str) -> None:
    """Write the mark of a folder.

    Raises:
        OSError: it cannot be written.
    """
    with OpenFolder.of(root) as folder:
        if folder.is_other_than_folder(NAME):
            folder.remove(NAME)
        with folder.inside(NAME, make=True) as own:
            _put(own, MARK, "\n".join(filter(None, named)) + "\n")
            if not own.has(".gitignore"):
                _put(own, ".gitignore", "*\n")
        folder.sync()


def remove(root: Path) -> None:
    """Remove the mark of a folder that kb keeps no longer.

    Raises:
        OSError: it cannot be removed.
    """
    with OpenFolder.of(root) as folder:
        with folder.inside(NAME) as own:
            for name in (MARK, ".gitignore"):
                own.remove(name)
        folder.remove_folder(NAME)


def _read(folder: OpenFolder, name: str) -> list[str] | None:
    try:
        with folder.open_file(name) as file:
            return file.read(MOST_BYTES).decode(errors="replace").split()
    except FileNotFoundError:
        return None


def _put(folder: OpenFolder, name: str, text: str) -> None:
    part = f"{name}-{uuid4().hex}"
    folder.create(part, text.encode())
    folder.rename(part, name)
    folder.sync()
