"""The path of a note's file in the notes folder."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from pathlib import Path, PurePosixPath
from typing import Final
from unicodedata import category

from kb.api.stream_safe import composed
from kb.folders.safe_names import safe_name
from kb.folders.temporary_files import is_leftover
from kb.store.rows import Document

SUFFIXES: Final = (".md", ".markdown")
"""Files of other types in the folder are not notes."""

ADDRESS: Final = re.compile(r"(?i)([a-z][a-z0-9+.-]+)://")
MOST_FOLDERS: Final = 50
"""The depth of folders; a note with a deeper path is in the last of these folders."""

WINDOWS_NAMES: Final = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?")
SLUG_CHARACTERS: Final = 80

CONFLICT: Final = re.compile(
    r"""
      .*\(conflict\ \d{4}-\d\d-\d\d(?:\ \d+)?\)\.[^.]+              # of kb itself
    | .*\.sync-conflict-\d{8}-\d{6}(?:-\w+)?\.[^.]+                 # Syncthing
    | .*\((?:[^()]*\s)?conflicted\ copy(?:\s[^()]*)?\)\.[^.]+       # Dropbox, Nextcloud
    | .*\(.*(?:in\ Konflikt\ stehende\ Kopie|copie\ en\ conflit|copia\ en\ conflicto).*\)\.[^.]+  # Dropbox
    | .*\((?:SFConflict|Case\ Conflict)[^()]*\)\.[^.]+              # Seafile, Dropbox
    | .*[.]Conflict\.[^.]+ | .*\[Conflict[^\]]*\]\.[^.]+              # Resilio, Google Drive
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
"""Names of the copies that programs make when two sides changed a file."""


def folded(path: str) -> str:
    """Return a path in the form in which a file system without upper and lower case compares paths."""
    return composed(path).casefold()


def is_conflict(name: str) -> bool:
    """Return whether this is the copy of a file that two sides changed."""
    return CONFLICT.fullmatch(name) is not None


def conflict_paths(path: Path, day: str) -> Iterator[Path]:
    """Yield free names for the other content of a file that two sides changed."""
    stem = path.stem.encode()[:200].decode(errors="ignore")
    yield path.with_name(f"{stem} (conflict {day}){path.suffix}")
    number = 2
    while True:
        yield path.with_name(f"{stem} (conflict {day} {number}){path.suffix}")
        number += 1


def file_path(document: Document, taken: Container[str]) -> str:
    """Return the path for a new file of a note: its `source_path`, or else a path from its year and title.

    `taken` contains the paths of other files, as `folded` returns them; then the id is added to the name.
    """
    path = PurePosixPath(path_from(document.source_path) if document.source_path else _slug(document))
    if folded(str(path)) not in taken:
        return str(path)
    return str(path.with_name(f"{path.stem}-{document.id}{path.suffix}"))


def path_from(source_path: str) -> str:
    """Return the path of the file for a `source_path`, which may be an address, or of another operating system."""
    parts = ADDRESS.sub(r"\1/", composed(source_path).replace("\\", "/")).split("/")
    *folders, name = [_safe(part) for part in parts if part not in ("", ".", "..")] or ["note"]
    folders = folders[:MOST_FOLDERS]
    if not name.casefold().endswith(SUFFIXES):
        name = f"{_safe(name[:200])}.md"
    return "/".join([*folders, name])


def _safe(part: str) -> str:
    name = safe_name(part)
    skipped = name.startswith(".") or is_leftover(name, is_folder=False) or is_leftover(name, is_folder=True)
    return f"_{name}" if skipped or WINDOWS_NAMES.fullmatch(name) else name


def _slug(document: Document) -> str:
    characters = (letter if category(letter)[0] in "LMN" else "-" for letter in composed(document.title).lower())
    slug = re.sub("-+", "-", "".join(characters))[:SLUG_CHARACTERS].strip("-") or "note"
    return f"{document.created_at[:4]}/{_safe(f'{slug}.md')}"
