"""Which files a person means."""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import TYPE_CHECKING

from kb_cli.exits import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def files_at(names: Iterable[str]) -> list[Path]:
    """The files at these paths, each once, with absolute paths.

    Folders stand for all that is in them, patterns for all that they match. What is hidden is left out unless it is
    named.

    Raises:
        UsageError: there is nothing at a path, or something that is no file.
    """
    found = (file for name in names for place in _places(name) for file in _files(place))
    return list(dict.fromkeys(map(absolute, found)))


def _places(name: str) -> list[Path]:
    place = Path(name).expanduser()
    if place.exists():
        return [place]
    matches = sorted(glob.glob(str(place), recursive=True))  # noqa: PTH207 - Path.glob shows what is hidden
    if not matches:
        raise UsageError(f"There is no file or folder {name}.")
    return [Path(match) for match in matches]


def _files(place: Path) -> Iterator[Path]:
    if place.is_dir():
        yield from _inside(place)
    elif place.is_file():
        yield place
    else:
        raise UsageError(f"{place} is no regular file.")


def _inside(folder: Path) -> Iterator[Path]:
    unreadable: list[Path] = []
    for parent, folders, names in os.walk(folder, onerror=lambda error: unreadable.append(Path(error.filename))):
        folders[:] = sorted(name for name in folders if not _is_hidden(name))
        files = (Path(parent, name) for name in sorted(names) if not _is_hidden(name))
        yield from filter(Path.is_file, files)
    yield from unreadable


def _is_hidden(name: str) -> bool:
    return name.startswith(".")


def absolute(path: Path | str) -> Path:
    """The whole path; a link stays what it is called, where `Path.resolve` would say what it leads to."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - see above
