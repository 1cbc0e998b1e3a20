"""Memory, files and threads of a group of processes. Without /proc these are unknown."""

import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

_BLOCK: Final = 512
"""The unit of `st_blocks`, whatever the block size of the disk."""

_GROUP, _THREADS = 2, 17
"""Their positions in `/proc/PID/stat`, counted after the name."""


def group_members(group: int) -> Iterator[int]:
    for folder in _numbered(Path("/proc").iterdir):
        with suppress(OSError, IndexError, ValueError):
            if _field(int(folder.name), _GROUP) == group:
                yield int(folder.name)


def thread_count(pid: int) -> int:
    with suppress(OSError, IndexError, ValueError):
        return _field(pid, _THREADS)
    return 0


def memory_use(members: Iterable[int]) -> int:
    """Return the memory that processes use, in bytes.

    Shared memory counts once and in full as long as one of the processes has it, even if it is not in use.
    """
    own, shared = 0, dict[str, int]()
    for pid in members:
        with suppress(OSError, ValueError):
            lines = (line.split() for line in Path(f"/proc/{pid}/status").read_text().splitlines())
            own += sum(int(line[1]) * 1024 for line in lines if line[0] in ("RssAnon:", "RssFile:"))
            for name, size in _shared_memory(pid).items():
                shared[name] = max(shared.get(name, 0), size)
    return own + sum(shared.values())


def files_below(folder: Path) -> Iterator[Path]:
    """Yield the files in a folder and its subfolders.

    Raises:
        PermissionError: a folder cannot be read.
    """

    def note(error: OSError) -> None:
        if isinstance(error, PermissionError):
            raise error

    for where, _, names in os.walk(folder, onerror=note):
        yield from (Path(where, name) for name in names)


def removed_files(members: Iterable[int]) -> Iterator[Path]:
    """Yield the deleted files that processes still have open."""
    for pid in members:
        for descriptor in _numbered(Path(f"/proc/{pid}/fd").iterdir):
            with suppress(OSError):
                if not descriptor.stat().st_nlink:
                    yield descriptor


def disk_sizes(paths: Iterable[Path]) -> Iterator[int]:
    """Yield the size of each file on disk in bytes, once per file."""
    seen = set[tuple[int, int]]()
    for path in paths:
        with suppress(OSError):
            is_descriptor = path.parts[:2] == (os.sep, "proc")
            status = path.stat() if is_descriptor else path.lstat()
            if stat.S_ISREG(status.st_mode) and (status.st_dev, status.st_ino) not in seen:
                seen.add((status.st_dev, status.st_ino))
                if sys.platform == "win32":
                    yield status.st_size
                else:
                    yield status.st_blocks * _BLOCK


def _field(pid: int, number: int) -> int:
    """Return a number from `/proc/PID/stat`, counted after the process name, which may contain anything."""
    return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[number])


def _shared_memory(pid: int) -> dict[str, int]:
    """Return the sizes of a process's shareable memory that does not belong to a file in a folder."""
    sizes = dict[str, int]()
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        span, rights, _, device, inode, *path = line.split(maxsplit=5)
        if rights.endswith("s") and path and path[0].endswith("(deleted)"):
            first, _, last = span.partition("-")
            name = f"{device} {inode}"
            sizes[name] = sizes.get(name, 0) + int(last, 16) - int(first, 16)
    return sizes


def _numbered(listing: Callable[[], Iterator[Path]]) -> Iterator[Path]:
    with suppress(OSError):
        yield from (path for path in listing() if path.name.isdigit())
