"""The files of the notes folder on the disk: find them, and write, move and remove them without a loss.

Each write goes to a hidden file in the same folder first. It then takes the target's place at once, and the file that
was there is removed only if it still has the expected content.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Final
from uuid import uuid4

from kb.api.limits import larger_than
from kb.api.stream_safe import composed
from kb.filesystem import exchange, move_to_free, open_regular, sync, sync_descriptor
from kb.folders.temporary_files import is_leftover
from kb.notes_folder.paths import MOST_FOLDERS, SUFFIXES, conflict_paths, is_conflict

NOT_UNICODE: Final = re.compile("[\ud800-\udfff]")
PART: Final = ".kb-part-"
"""The beginning of the names of hidden files that are being written or removed."""

TWICE: Final = "Another file in its folder has the same name in another Unicode form. Rename one of them."


class Changed(Exception):
    """Somebody else changed the file."""


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file: its path on the disk, a state that changes with its content, and its time in seconds."""

    disk_path: str
    state: str
    modified: float


@dataclass(slots=True)
class Scan:
    """The Markdown files of a folder by their path in NFC, and the files that kb skips.

    Args:
        files: the files.
        conflicts: copies of files that two sides changed.
        links: links to files and folders, which kb does not follow.
        parts: hidden files of an engine that was stopped while it wrote them.
        unreadable: folders and files that cannot be read.
        problems: the reasons why files are skipped.
    """

    files: dict[str, FoundFile] = field(default_factory=dict)
    conflicts: list[str] = field(default_factory=list)
    links: set[str] = field(default_factory=set)
    parts: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)


def scan(root: Path, known: Collection[str]) -> Scan:
    """Find the files of a folder; `known` are paths of notes, whatever their names look like.

    Hidden files and folders, links, and leftovers of other programs are skipped.
    """
    found = Scan()
    folders = [(str(root), "")]
    while folders:
        folder, prefix = folders.pop()
        if prefix.count("/") > MOST_FOLDERS:
            found.unreadable.append(prefix.rstrip("/"))
            found.problems[prefix.rstrip("/")] = f"kb looks into at most {MOST_FOLDERS} folders within each other."
        else:
            folders += reversed(_scan(folder, prefix, known, found))
    return found


def _scan(folder: str, prefix: str, known: Collection[str], found: Scan) -> list[tuple[str, str]]:
    """Add the files of a folder to `found`; return the folders in it with their prefixes."""
    try:
        with os.scandir(folder) as entries:
            ordered = sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        found.unreadable.append(prefix.rstrip("/") or ".")
        found.problems[prefix.rstrip("/") or "."] = error.strerror or str(error)
        return []
    folders = []
    for entry in ordered:
        path = composed(prefix + entry.name)
        is_folder = entry.is_dir(follow_symlinks=False)
        if entry.is_symlink():
            found.links.add(path)
        elif entry.name.startswith(PART) and not is_folder:
            found.parts.append(entry.path)
        if entry.name.startswith(".") or (is_leftover(entry.name, is_folder=is_folder) and path not in known):
            continue
        if is_folder:
            folders.append((entry.path, f"{path}/"))
        elif entry.name.casefold().endswith(SUFFIXES):
            _take(entry, path, known, found)
    return folders


def _take(entry: os.DirEntry[str], path: str, known: Collection[str], found: Scan) -> None:
    if NOT_UNICODE.search(path):
        found.problems[path.encode(errors="replace").decode()] = "Its name is not valid Unicode."
        return
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError as error:
        found.unreadable.append(path)
        found.problems[path] = error.strerror or str(error)
        return
    if not stat.S_ISREG(status.st_mode):
        return
    if is_conflict(entry.name) and path not in known:
        found.conflicts.append(path)
    elif path in found.files:
        found.problems[path] = TWICE
    else:
        found.files[path] = FoundFile(entry.path, state_of(status), status.st_mtime)


def state_of(status: os.stat_result) -> str:
    """Return the state of a file, which changes with its content."""
    return f"{status.st_mtime_ns} {status.st_ctime_ns} {status.st_size} {status.st_ino}"


def state_at(path: str | Path) -> str | None:
    """Return the state of the file at a path; None without a file."""
    try:
        return state_of(os.lstat(path))
    except (FileNotFoundError, NotADirectoryError):
        return None


def read(path: str | Path, most_bytes: int) -> tuple[bytes, str]:
    """Return the content of a file and its state.

    Raises:
        OSError: it cannot be read.
        Changed: it changed during that.
        ValueError: it is too large; the message says so.
    """
    with open_regular(Path(path)) as file:
        before = os.fstat(file.fileno())
        if before.st_size > most_bytes:
            raise ValueError(f"It is {larger_than(most_bytes)}.")
        content = file.read(most_bytes + 1)
        state = state_of(os.fstat(file.fileno()))
    if state != state_of(before) or state != state_at(path) or len(content) != before.st_size:
        raise Changed
    return content, state


def digest_of(content: bytes) -> str:
    """Return the digest of a file's content."""
    return sha256(content).hexdigest()


def create(path: Path, content: bytes) -> str:
    """Write a new file with its folders; return its state. Its name is durable after a `sync` of its folder.

    Raises:
        FileExistsError: something has this path already.
        OSError: it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part, written = _write_part(path, content)
    try:
        move_to_free(part, path)
    except OSError:
        part.unlink(missing_ok=True)
        raise
    return _state_after(path, written)


def replace(path: Path, content: bytes, expected: str) -> str:
    """Write a file whose content still has the digest `expected`; return its state. It is durable as in `create`.

    Raises:
        Changed: it has other content, or it is gone; nothing changes.
        OSError: it cannot be written.
    """
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        raise Changed from None
    if not status.st_mode & 0o222 or not os.access(path, os.W_OK):
        raise PermissionError(13, "It is read-only.")
    part, written = _write_part(path, content, stat.S_IMODE(status.st_mode))
    try:
        exchange(path, part)
    except FileNotFoundError:
        part.unlink()
        raise Changed from None
    except OSError:
        part.unlink(missing_ok=True)
        raise
    if _digest_at(part) != expected:
        _put_back(path, part, digest_of(content))
        raise Changed
    part.unlink()
    return _state_after(path, written)


def remove(path: Path, expected: str) -> None:
    """Remove a file whose content still has the digest `expected`, and the folders that are empty then.

    Raises:
        Changed: it has other content; nothing changes.
        OSError: it cannot be removed.
    """
    part = path.with_name(f"{PART}{uuid4().hex}")
    try:
        path.rename(part)
    except (FileNotFoundError, NotADirectoryError):
        return
    if _digest_at(part) != expected:
        try:
            move_to_free(part, path)
        except FileExistsError:
            _rescue(path, part)
        raise Changed
    part.unlink()
    sync(path.parent)


def has_twin(part: Path, content: bytes) -> bool:
    """Return whether a visible file in the folder of a hidden one has the same content."""
    others = (path for path in part.parent.glob("[!.]*") if path.is_file() and path.stat().st_size == len(content))
    return any(_digest_at(other) == digest_of(content) for other in others)


def prune(folder: Path, root: Path) -> None:
    """Remove a folder below the root, and the folders around it, as far as they are empty."""
    with suppress(OSError):
        while folder != root and folder.is_relative_to(root):
            folder.rmdir()
            folder = folder.parent


def move(path: Path, target: Path) -> None:
    """Move a file to a free path.

    Raises:
        FileExistsError: something has the new path already.
        OSError: it cannot be moved.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    move_to_free(path, target)
    sync(target.parent)
    sync(path.parent)


def set_aside(path: Path, content: bytes, day: str) -> Path:
    """Write content next to a file as `name (conflict DATE).md`; return that path. The same content is kept once.

    Raises:
        OSError: it cannot be written.
    """
    for other in conflict_paths(path, day):
        with suppress(FileExistsError):
            create(other, content)
            sync(other.parent)
            return other
        if _digest_at(other) == digest_of(content):
            return other
    raise AssertionError("unreachable")


def _write_part(path: Path, content: bytes, mode: int = 0o666) -> tuple[Path, os.stat_result]:
    """Write content durably to a hidden file in the folder of a path; return that file and its status."""
    part = path.with_name(f"{PART}{uuid4().hex}")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            sync_descriptor(file.fileno())
            return part, os.fstat(file.fileno())
    except OSError:
        part.unlink(missing_ok=True)
        raise


def _state_after(path: Path, written: os.stat_result) -> str:
    """Return the state of a file after its move; empty, so that kb looks at it again, if it is another file already."""
    now = os.lstat(path)
    is_same = (now.st_ino, now.st_mtime_ns, now.st_size) == (written.st_ino, written.st_mtime_ns, written.st_size)
    return state_of(now) if is_same else ""


def _put_back(path: Path, part: Path, ours: str) -> None:
    """Return a file to its place, because somebody changed it while kb was writing."""
    exchange(path, part)
    if _digest_at(part) == ours:
        part.unlink()
    else:  # changed once more
        _rescue(path, part)


def _rescue(path: Path, part: Path) -> None:
    """Keep content that has lost its place next to its file."""
    for other in conflict_paths(path, "interrupted"):
        with suppress(FileExistsError):
            move_to_free(part, other)
            return


def _digest_at(path: Path) -> str:
    with suppress(OSError), open_regular(path) as file:
        return digest_of(file.read())
    return ""
