"""A disk after the worst loss of power: only synced writes, names and removals remain."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

HEAD = struct.Struct("<c7xQQQQQQ")
SOURCE = Path(__file__).with_suffix(".c")


@dataclass
class Record:
    """What `unsynced.c` logs."""

    kind: bytes
    inode: int
    offset: int
    before: int
    path: str
    kept: str
    content: bytes


def build(folder):
    """The shim, or None without a compiler."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        return None
    library = folder / "unsynced.so"
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-w", "-o", library, SOURCE, "-ldl"], check=True)
    return library


def records(log):
    raw, place = log.read_bytes(), 0
    while place < len(raw):
        kind, inode, offset, before, first, second, count = HEAD.unpack_from(raw, place)
        place += HEAD.size
        ends = [place + first, place + first + second, place + first + second + count]
        yield Record(
            kind,
            inode,
            offset,
            before,
            raw[place : ends[0]].decode(),
            raw[ends[0] : ends[1]].decode(),
            raw[ends[1] : ends[2]],
        )
        place = ends[2]


@dataclass
class PowerLoss:
    """The shim, the folder that it watches and the one for its log."""

    library: Path
    root: Path
    logs: Path

    @property
    def environment(self):
        return {
            "LD_PRELOAD": str(self.library),
            "KB_UNSYNCED_ROOT": str(self.root),
            "KB_UNSYNCED_LOG": str(self.logs),
        }

    def strike(self):
        """Undo unsynced writes. SQLite's shared memory is also gone."""
        for memory in self.root.glob("*-shm"):
            memory.unlink()
        return lose_unsynced(self.logs)


def lose_unsynced(logs):
    """Undo all that was not synced; answers how many writes and names were undone."""
    writes, names = [], []
    for record in records(logs / "log"):
        if record.kind == b"w":
            writes.append(record)
        elif record.kind == b"n":
            names.append(record)
        elif record.path:
            names = [each for each in names if str(Path(each.path).parent) != record.path]
        else:
            writes = [each for each in writes if each.inode != record.inode]
    for record in reversed(writes):
        undo_write(logs / f"inode-{record.inode}", record)
    for record in reversed(names):
        undo_name(logs, record)
    shutil.rmtree(logs)
    logs.mkdir()
    return len(writes), len(names)


def undo_write(path, record):
    if not path.exists() or path.stat().st_ino != record.inode:  # the inode is another file's now
        return
    with path.open("r+b") as file:
        file.seek(record.offset)
        file.write(record.content)
        file.truncate(max(record.before, 0))


def undo_name(logs, record):
    path = Path(record.path)
    if record.before:  # a folder was removed, or moved from here
        path.mkdir(exist_ok=True)
    elif record.kept:
        path.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        os.link(logs / record.kept, path)
    elif path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
