"""Decide which documents a sync may delete: only documents whose file was deleted on purpose, as far as kb can know."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kb.folders.disk_view import DiskView

FEW: Final = 5
"""Up to this many deletions at once are not suspicious."""

SHARE: Final = 5
"""More than FEW deletions are suspicious if they exceed one in this many documents."""

SHOWN_FOLDERS: Final = 4

EMPTIED: Final = ""
"""Replaces the device of a suddenly empty folder until all of its files are back or the user confirms."""

ITSELF: Final = "."
"""The synced folder, in the list of suddenly empty folders; an empty name would mean its disk."""


@dataclass(frozen=True, slots=True)
class Withheld:
    """Documents that stay although their file is gone.

    Args:
        reason: the reason, and how to proceed.
        paths: their paths, relative to the folder.
        needs_yes: whether they can be deleted with --yes.
    """

    reason: str
    paths: tuple[str, ...]
    needs_yes: bool = True


@dataclass
class Judge:
    """Decides which documents are deleted.

    Args:
        mounts: its devices after the last sync, and now.
        unread: its unreadable files, as relative paths.
        total: the number of its documents.
        is_sure: whether the user confirmed all deletions.
        remedy: how the user confirms them.
    """

    disk: DiskView
    mounts: tuple[str, str]
    unread: Sequence[str]
    total: int
    is_sure: bool = False
    remedy: str = "If you deleted these files, add --yes."
    withheld: list[Withheld] = field(default_factory=list)
    emptied: list[str] = field(default_factory=list)
    """Folders that are suddenly empty, or were and do not have all of their files again."""

    def allow(self, paths: Iterable[str]) -> list[str]:
        """Return those relative paths whose documents may be deleted; record the reasons for the others."""
        left = self._beside_unread(list(paths))
        if self.is_sure:
            return left
        left = self._on_other_devices(left)
        left = self._in_emptied_folders(left)
        if len(left) > FEW and len(left) * SHARE > self.total:
            reason = f"{len(left)} of {self.total} documents would be deleted ({places(left)}), so kb deleted none."
            self._withhold(left, f"{reason} {self.remedy}")
            return []
        return left

    def keep_away(self, paths: Iterable[str]) -> list[str]:
        """Return the paths that are not on a missing device: files on a missing device have not moved."""
        lost = lost_mounts(*self.mounts)
        away = [mount for mount, device in lost.items() if device != EMPTIED]
        return [path for path in paths if self.is_sure or not any(is_below(path, mount) for mount in away)]

    def _beside_unread(self, paths: list[str]) -> list[str]:
        for file in self.unread:
            folder = parent(file)
            where = folder or "the folder"
            reason = f"kb cannot read {file}, and deletes nothing in {where} until it can."
            paths = self._split(paths, folder, reason, needs_yes=False)
        return paths

    def _on_other_devices(self, paths: list[str]) -> list[str]:
        for mount, device in lost_mounts(*self.mounts).items():
            if device == EMPTIED:
                continue
            where = mount or "The folder"
            reason = f"{where} is not on the same disk as before ({device.partition(' ')[0]}). Is that disk connected?"
            reason += f" {self.remedy}"
            paths = self._split(paths, mount, reason)
        return paths

    def _in_emptied_folders(self, paths: list[str]) -> list[str]:
        inside = Counter(str(ancestor) for path in paths for ancestor in PurePosixPath(path).parents)
        emptied = {
            folder: "is empty"
            for folder, count in inside.items()
            if count > 1 and self.disk.is_emptied(PurePosixPath(folder))
        }
        before = [folder for folder, device in lost_mounts(*self.mounts).items() if device == EMPTIED]
        emptied = dict.fromkeys(before, "was empty, and not all of its files are back") | emptied
        for folder in sorted(emptied, key=len):
            number = sum(is_below(path, folder) for path in paths)
            came = "1 document comes" if number == 1 else f"{number} documents come"
            where = "The folder" if folder == ITSELF else folder
            reason = f"{where} {emptied[folder]}, and {came} from there. Is its disk connected?"
            reason += f" {self.remedy}"
            left = self._split(paths, folder, reason)
            self.emptied += [folder] if left != paths else []
            paths = left
        return paths

    def _split(self, paths: list[str], folder: str, reason: str, *, needs_yes: bool = True) -> list[str]:
        """Withhold the paths below a folder; return the others."""
        inside = [path for path in paths if is_below(path, folder)]
        if inside:
            stay = "1 document stays" if len(inside) == 1 else f"{len(inside)} documents stay"
            self._withhold(inside, f"{stay}: {reason}", needs_yes=needs_yes)
        return [path for path in paths if not is_below(path, folder)]

    def _withhold(self, paths: list[str], reason: str, *, needs_yes: bool = True) -> None:
        self.withheld.append(Withheld(reason, tuple(sorted(paths)), needs_yes))


def lost_mounts(before: str, now: str) -> dict[str, str]:
    """Return the folders that are no longer on the same device, each with that device."""
    previous, current = parsed(before), parsed(now)
    return {mount: device for mount, device in previous.items() if current.get(mount) != device}


def remembered(before: str, now: str, left: Collection[str], emptied: Iterable[str] = ()) -> str:
    """Return the devices to remember: the current ones, and the lost ones of documents without a file.

    Suddenly empty folders count as lost.
    """
    lost = lost_mounts(before, now).items()
    mounts = {mount: device for mount, device in lost if any(is_below(path, mount) for path in left)}
    mounts |= dict.fromkeys(emptied, EMPTIED)
    return json.dumps(parsed(now) | mounts, ensure_ascii=False, sort_keys=True)


def parsed(mounts: str) -> dict[str, str]:
    """Return the devices by folder, read from their stored form."""
    try:
        read = json.loads(mounts)
    except ValueError:
        return {}
    return {str(mount): str(device) for mount, device in read.items()} if isinstance(read, dict) else {}


def places(paths: Sequence[str]) -> str:
    """Return a phrase with the folders that contain most of the paths."""
    counts = Counter(PurePosixPath(path).parts[0] + "/" if "/" in path else "" for path in paths)
    most = counts.most_common(SHOWN_FOLDERS)
    named = [f"{count} in {folder or 'the folder itself'}" for folder, count in most]
    return ", ".join(named) + (", …" if len(counts) > len(most) else "")


def is_below(path: str, folder: str) -> bool:
    """Return whether a path is in a folder; the empty name contains all."""
    return folder in ("", ITSELF) or path.startswith(f"{folder}/")


def parent(path: str) -> str:
    return path.rpartition("/")[0]
