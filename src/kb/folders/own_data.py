"""Folders of kb itself: their files would be added again after each change, which changes them again."""

from collections.abc import Collection
from pathlib import Path
from typing import Final

MARKS: Final = ({"kb.lock", "clock.json"}, {"kb.db", "manifest.json"}, {"kb-export.json"})
"""The names that a data folder, a backup and an export have."""

OWN_FOLDERS: Final = {"files", "staging", "databases", "models", "compiled", "objects"}
"""The folders in them with files of kb; people may keep other folders there."""

NOTES_MARK: Final = ".kb-folder"
"""The mark of a notes folder, as in `kb.notes_folder.marker`. The engine watches its files, so no sync adds them."""


def is_own_data(names: Collection[str]) -> bool:
    """Return whether a folder with these entries belongs to kb."""
    return any(mark.issubset(names) for mark in MARKS)


def is_in_own_data(path: Path, within: Path) -> bool:
    """Return whether a path is in a folder of kb, which is in the folder `within` or the same."""
    inside = [folder for folder in path.parents if folder == within or within in folder.parents]
    return any(all((folder / name).exists() for name in mark) for folder in inside for mark in MARKS)


def own_folder_around(path: Path) -> Path | None:
    """Return the folder of kb that a path is, or is in; None for other paths."""
    return next((at for at in (path, *path.parents) if _is_own(path, at)), None)


def _is_own(path: Path, folder: Path) -> bool:
    """Return whether a path is a folder of kb, is in a notes folder, or is among kb's own files in its folder."""
    if (folder / NOTES_MARK).exists():
        return True
    is_among = path == folder or path.relative_to(folder).parts[0] in OWN_FOLDERS
    return is_among and any(all((folder / name).exists() for name in mark) for mark in MARKS)
