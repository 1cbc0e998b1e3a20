"""Placeholders: the files that sync programs leave for files whose content is online."""

import os
import re
import stat
from pathlib import Path, PurePath
from typing import Final

from kb.folders.timed_reads import ask

HIDDEN: Final = re.compile(r"\.(.+)\.icloud")
"""iCloud Drive placeholders."""

SUFFIXED: Final = re.compile(r"(.+\.[^.]+)\.(?:nextcloud|owncloud|rsls|cloud|cloudf)")
"""Placeholders of Nextcloud, ownCloud, Resilio Sync and odrive."""

MAX_SUFFIXED: Final = 1024
"""Maximum size of a placeholder in bytes: a larger file has content of its own."""

DATALESS: Final = 0x40000000
"""The flag of files on macOS whose content is online (SF_DATALESS)."""

OFFLINE: Final = 0x1000 | 0x40000 | 0x400000
"""The attributes of files on Windows whose content is online: OFFLINE, RECALL_ON_OPEN, RECALL_ON_DATA_ACCESS."""

POINTER: Final = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n|(?:[./\\]*\.git)?[/\\]annex[/\\]objects[/\\]\S+\s*\Z"
)
POINTER_SIZES: Final = range(30, 400)
"""The content of a Git LFS or git-annex pointer file, and its size in bytes."""

SHORTCUTS: Final = {
    ".gdoc", ".gdraw", ".gform", ".gjam", ".gmap", ".gscript", ".gsheet", ".gsite", ".gslides", ".gtable",
}  # fmt: skip
"""Shortcuts of Google Drive to documents that are only online."""


def name_elsewhere(name: str) -> str | None:
    """Return the original name of a placeholder; None if the name is not a placeholder's."""
    match = HIDDEN.fullmatch(name) or SUFFIXED.fullmatch(name)
    return match[1] if match else None


def is_placeholder(entry: os.DirEntry[str]) -> bool:
    """Return whether a file is a placeholder; False if its status cannot be read."""
    if HIDDEN.fullmatch(entry.name):
        return True
    try:
        return SUFFIXED.fullmatch(entry.name) is not None and entry.stat().st_size <= MAX_SUFFIXED
    except OSError:
        return False


def is_dataless(entry: os.DirEntry[str]) -> bool:
    """Return whether the content of a file is online. kb does not read such a file, because that would download it."""
    try:
        status = entry.stat()
    except OSError:
        return False
    if getattr(status, "st_flags", 0) & DATALESS or getattr(status, "st_file_attributes", 0) & OFFLINE:
        return True
    if PurePath(entry.name).suffix.lower() in SHORTCUTS:
        return True
    return stat.S_ISREG(status.st_mode) and status.st_size in POINTER_SIZES and is_pointer(entry.path)


def is_pointer(path: str | Path) -> bool:
    """Return whether a file is a Git LFS or git-annex pointer."""
    try:
        return ask(path, _begins_as_pointer, path)
    except OSError:
        return False


def _begins_as_pointer(path: str | Path) -> bool:
    with open(path, "rb") as file:  # noqa: PTH123 - a path of `os.scandir`
        return POINTER.match(file.read(POINTER_SIZES.stop)) is not None
