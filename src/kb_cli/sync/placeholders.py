"""Files that stand for another one: what sync programs leave where a file was whose content is online."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path, PurePath
from typing import Final

from kb_cli.sync.timed_reads import ask

HIDDEN: Final = re.compile(r"\.(.+)\.icloud")
"""What iCloud Drive leaves of a file that it keeps online."""

SUFFIXED: Final = re.compile(r"(.+\.[^.]+)\.(?:nextcloud|owncloud|rsls|cloud|cloudf)")
"""Likewise Nextcloud, ownCloud, Resilio Sync and odrive."""

MAX_SUFFIXED: Final = 1024
"""Such a file is nearly empty: a larger one of that name holds something itself."""

DATALESS: Final = 0x40000000
"""A flag of files on macOS whose content is online (SF_DATALESS)."""

OFFLINE: Final = 0x1000 | 0x40000 | 0x400000
"""Attributes of files on Windows whose content is online: OFFLINE, RECALL_ON_OPEN, RECALL_ON_DATA_ACCESS."""

POINTER: Final = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n|(?:[./\\]*\.git)?[/\\]annex[/\\]objects[/\\]\S+\s*\Z"
)
POINTER_SIZES: Final = range(30, 400)
"""How Git LFS and git-annex stand for a file that was not fetched."""

SHORTCUTS: Final = {
    ".gdoc", ".gdraw", ".gform", ".gjam", ".gmap", ".gscript", ".gsheet", ".gsite", ".gslides", ".gtable",
}  # fmt: skip
"""What Google Drive leaves of a document that is only online."""


def name_elsewhere(name: str) -> str | None:
    """Return the name of the file that one stands for, by its own name; None if it stands for none."""
    match = HIDDEN.fullmatch(name) or SUFFIXED.fullmatch(name)
    return match[1] if match else None


def is_placeholder(entry: os.DirEntry[str]) -> bool:
    """Return whether a file stands for another one that is elsewhere; what cannot be looked at does not."""
    if HIDDEN.fullmatch(entry.name):
        return True
    try:
        return SUFFIXED.fullmatch(entry.name) is not None and entry.stat().st_size <= MAX_SUFFIXED
    except OSError:
        return False


def is_dataless(entry: os.DirEntry[str]) -> bool:
    """Return whether the content of a file is elsewhere: it stays there, and reading it would fetch it."""
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
    """Return whether a file stands for one that Git LFS or git-annex did not fetch."""
    try:
        return ask(path, _begins_as_pointer, path)
    except OSError:
        return False


def _begins_as_pointer(path: str | Path) -> bool:
    with open(path, "rb") as file:  # noqa: PTH123 - a path of `os.scandir`
        return POINTER.match(file.read(POINTER_SIZES.stop)) is not None
