"""The files on the disk, by their names in the engine: file systems spell one name in several ways."""

import errno
import json
import os
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

from kb.api.stream_safe import composed
from kb.folders.placeholders import is_placeholder, name_elsewhere
from kb.folders.temporary_files import is_leftover
from kb.folders.timed_reads import ask_folder

ABSENT: Final = {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG}
"""Errors for a path at which nothing exists."""

OF_FILE_MANAGERS: Final = {".ds_store", ".directory", ".localized", "thumbs.db", "desktop.ini", "lost+found"}
"""Files in otherwise empty folders."""

COLUMNS: Final = 4
"""Required columns of a line in the mount table: device, mount point, type, options."""

NUMBERED: Final = {"ext2", "ext3", "ext4", "btrfs"}
"""File systems with a number of their own that stays the same after a reboot."""

DEVICES: Final = "/dev/"
BY_NUMBER: Final = Path("/dev/disk/by-uuid")
"""The folder in which the system lists devices by file system number, for file systems of all types."""


@dataclass
class DiskView:
    """The current state of a folder; each part is read once."""

    root: Path
    _listings: dict[Path, dict[str, str] | None] = field(default_factory=dict)
    """For each folder the names in it, with "file", "folder" or "elsewhere"; None if it cannot be read."""

    def has_file(self, relative: PurePosixPath) -> bool:
        """Return whether a file or its placeholder exists; unreadable paths count as existing."""
        folder = self.root
        *parents, name = map(composed, relative.parts or ("",))
        for parent in parents:
            listing = self._listing(folder)
            if listing is None or listing.get(parent) == "elsewhere":
                return True
            if parent not in listing:
                return False
            folder = self._inside(folder, parent)
        listing = self._listing(folder)
        return listing is None or listing.get(name) in ("file", "elsewhere")

    def is_emptied(self, relative: PurePosixPath) -> bool:
        """Return whether a folder exists and is empty."""
        try:
            return ask_folder(self.path_of(relative), holds_nothing)
        except OSError:
            return False

    def path_of(self, relative: PurePosixPath) -> Path:
        """Return the absolute path, as the disk spells it."""
        folder = self.root
        for part in relative.parts:
            folder = self._inside(folder, composed(part))
        return folder

    def _inside(self, folder: Path, name: str) -> Path:
        """Return the path of a name in a folder, as the disk spells it."""
        if os.path.lexists(folder / name):
            return folder / name
        try:
            with os.scandir(folder) as entries:
                return next((folder / entry.name for entry in entries if composed(entry.name) == name), folder / name)
        except OSError:
            return folder / name

    def _listing(self, folder: Path) -> dict[str, str] | None:
        if folder not in self._listings:
            try:
                self._listings[folder] = ask_folder(folder, list_folder)
            except OSError:
                self._listings[folder] = None
        return self._listings[folder]


def holds_nothing(folder: Path) -> bool:
    """Return whether a folder contains only files of file managers and leftovers of other programs."""
    with os.scandir(folder) as entries:
        return all(
            entry.name.lower() in OF_FILE_MANAGERS or is_leftover(entry.name, is_folder=entry.is_dir())
            for entry in entries
        )


def list_folder(folder: Path) -> dict[str, str] | None:
    """Return the names in a folder with their types; empty if the folder does not exist, None if it cannot be read."""
    listing: dict[str, str] = {}
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if (original := name_elsewhere(entry.name)) and is_placeholder(entry):
                    listing.setdefault(composed(original), "elsewhere")
                else:
                    is_folder = entry.is_dir(follow_symlinks=False)
                    listing[composed(entry.name)] = "folder" if is_folder else "file"
    except OSError as error:
        return {} if error.errno in ABSENT else None
    except ValueError:
        return {}
    return listing


def find_file(path: str) -> Path | None:
    """Return the file at a source path, however the disk spells it; None if missing."""
    if Path(path).is_file():
        return Path(path)
    whole = PurePosixPath(path)
    if not whole.is_absolute():
        return None
    file = DiskView(Path(whole.anchor)).path_of(whole.relative_to(whole.anchor))
    return file if file.is_file() else None


def describe_mounts(root: Path) -> str:
    """Return the devices of a folder and of the mount points below it, as text that can be compared."""
    root, devices = root.resolve(), mounted_devices()
    point = mount_point(root)
    mounts = {"": f"{point} {devices.get(point, '')}".rstrip()}
    for inner, device in devices.items():
        if inner != root and inner.is_relative_to(root):
            mounts[composed(inner.relative_to(root).as_posix())] = f"{inner} {device}".rstrip()
    return json.dumps(mounts, ensure_ascii=False, sort_keys=True)


def mount_point(folder: Path) -> Path:
    # `Path.is_mount` raises an error for unreadable paths, and before Python 3.12 always on Windows.
    while not os.path.ismount(folder) and folder != folder.parent:
        folder = folder.parent
    return folder


def mounted_devices() -> dict[Path, str]:
    """Return the mount points that the system lists, each with an identifier of its file system."""
    try:
        lines = Path("/proc/self/mounts").read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return {}
    rows = [line.split(" ") for line in lines]
    return {
        (point := Path(unescaped(row[1]))): file_system(point, row[2], unescaped(row[0]))
        for row in rows
        if len(row) >= COLUMNS
    }


def mounts_around(folder: Path) -> list[str]:
    """Return the system's lines for the mount points above and below a folder, without asking their disks."""
    try:
        lines = Path("/proc/self/mounts").read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return []
    points = [(Path(unescaped(row[1])), line) for line in lines if len(row := line.split(" ")) >= COLUMNS]
    return [line for point, line in points if point.is_relative_to(folder) or folder.is_relative_to(point)]


def unescaped(name: str) -> str:
    """Return a path from the mount table without its escapes."""
    return re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), name)


def file_system(point: Path, kind: str, device: str) -> str:
    """Return the permanent number of a file system; empty if unknown."""
    try:
        if sys.platform != "win32" and kind in NUMBERED:
            return f"{os.statvfs(point).f_fsid:x}"
        links = BY_NUMBER.iterdir() if device.startswith(DEVICES) else ()
        return next((link.name for link in links if link.samefile(device)), "")
    except OSError:
        return ""


def place_of(root: Path) -> str:
    """Return what two programs see alike if they see the same folder, or an empty string without one."""
    try:
        status = root.stat()
    except OSError:
        return ""
    return f"{status.st_ino} {status.st_ctime_ns}"
