"""The path of a note's file in the notes folder."""

import re
from collections.abc import Callable, Iterator
from itertools import chain, count, islice
from pathlib import PurePosixPath
from typing import Final

from kb.api.stream_safe import composed
from kb.folders.safe_names import safe_name
from kb.folders.temporary_files import is_leftover
from kb.store.rows import Document

SUFFIXES: Final = (".md", ".markdown")
"""Files of other types in the folder are not notes."""

ADDRESS: Final = re.compile(r"(?i)([a-z][a-z0-9+.-]+)://")
WINDOWS_NAMES: Final = re.compile(r"(?i)(con|prn|aux|nul|conin\$|conout\$|com[\d¹²³]|lpt[\d¹²³])(\..*)?")

MOST_FOLDERS: Final = 50
"""Files in more folders than this are neither written nor read."""

NAME_BYTES: Final = 200
"""The longest name that kb makes, without `.md`: a file name may have 255 bytes, with the mark of a conflict file."""

NUMBER: Final = re.compile(r" \d+(?=\.[^.]+$)")
"""The number in the name of a file that has a twin."""

UNSEEN: Final = re.compile("[\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
"""Characters without a form of their own, some of which change the order of others."""

NOT_IN_NAMES: Final = re.compile(r"""(?P<before>\s?)[\x00-\x1f\x7f-\x9f*"\\/<>:|?#^\[\]]+(?P<after>\s?)""")
"""Characters that no name of a file may have on some system, or no link of Obsidian, with the blanks around them."""

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


def conflict_names(name: str, day: str) -> Iterator[str]:
    """Yield names for the other content of a file that two sides changed."""
    path = PurePosixPath(name)
    stem = path.stem.encode()[:NAME_BYTES].decode(errors="ignore")
    yield from (f"{stem} (conflict {day}{number}){path.suffix}" for number in _numbers())


def free_path(wanted: str, is_taken: Callable[[str], bool]) -> str:
    """Return a path for a new file: the wanted one, or one with a number if that is taken."""
    path = PurePosixPath(wanted)
    stem = path.stem.encode()[:NAME_BYTES].decode(errors="ignore")
    twins = (str(path.with_name(f"{stem}{number}{path.suffix}")) for number in islice(_numbers(), 1, None))
    return next(free for free in chain([str(path)], twins) if not is_taken(free))


def path_of(document: Document) -> str:
    """Return the path for the file of a note, if nothing else has it: its `source_path`, or else its title."""
    return path_from(document.source_path) if document.source_path else name_of(document.title)


def is_name_of(document: Document, path: str) -> bool:
    """Return whether a path is the one of a note's file, or the one of a twin, which has a number."""
    return folded(path_of(document)) in (folded(path), NUMBER.sub("", folded(path)))


def path_from(source_path: str) -> str:
    """Return the path of the file for a `source_path`, which may be an address, or of another operating system."""
    parts = ADDRESS.sub(r"\1/", composed(source_path).replace("\\", "/")).split("/")
    *folders, name = [_safe(part) for part in parts if part not in ("", ".", "..")] or ["note"]
    if not name.casefold().endswith(SUFFIXES):
        name = f"{_safe(name[:NAME_BYTES])}.md"
    return "/".join([*folders[:MOST_FOLDERS], name])


def name_of(title: str) -> str:
    """Return the name of the file of a note with a title, so that `[[title]]` leads to it wherever that is possible."""
    seen = NOT_IN_NAMES.sub(_gap, UNSEEN.sub("", composed(title)))
    name = re.sub(r"(?i)\.md$", "", " ".join(seen.split())).encode()[:NAME_BYTES].decode(errors="ignore")
    return _safe(f"{name.strip('-. ') or 'note'}.md")


def _gap(match: re.Match[str]) -> str:
    """Return what replaces characters: a blank between words, otherwise a hyphen."""
    return " " if match["before"] or match["after"] else "-"


def _numbers() -> Iterator[str]:
    return chain([""], (f" {number}" for number in count(2)))


def _safe(part: str) -> str:
    name = safe_name(part)
    skipped = name.startswith(".") or is_leftover(name, is_folder=False) or is_leftover(name, is_folder=True)
    return f"_{name}" if skipped or WINDOWS_NAMES.fullmatch(name) else name
