"""The files of the notes folder on the disk: find them, and write, move and remove them without a loss.

Each write goes to a hidden file in the same folder first. It then takes the target's place at once, and the file that
was there is removed only if it still has the expected content. No path is followed through a link.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Collection, Iterable, Sequence, Set
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import file_digest, sha256
from pathlib import Path, PurePosixPath
from typing import Final
from uuid import uuid4

from kb.api.limit_errors import larger_than
from kb.api.stream_safe import composed
from kb.folders.ignore_rules import IGNORE_FILES, LEFTOVER, IgnoreRules, ignored_by
from kb.folders.left_out import BY_USER
from kb.folders.temporary_files import is_leftover
from kb.notes_folder.paths import MOST_FOLDERS, SUFFIXES, conflict_names, is_conflict
from kb.open_folder import Linked, OpenFolder, opened

NOT_UNICODE: Final = re.compile("[\ud800-\udfff]")
IS_OPEN: Final = "Another program has it open, and its next changes would be lost. Close the file in that program."
PART: Final = ".kb-part-"
"""The beginning of the names of hidden files that are being written or removed."""

PART_NAME: Final = re.compile(rf"{PART}(?:(?P<note>\d{{1,18}})-)?[0-9a-f]{{32}}")

MOST_OF_RULES: Final = 1 << 20
"""The most bytes of an ignore file."""

Rules = Sequence[IgnoreRules] | None
"""The rules that apply to a folder; None if kb reads no ignore files."""

TWICE: Final = "Another file in its folder has the same name in another Unicode spelling. Rename one of them."
TOO_DEEP: Final = f"It is more than {MOST_FOLDERS} folders deep, so kb does not look at it."


class Changed(Exception):
    """Somebody else changed the file."""


class InUse(OSError):
    """A program has the file open to write."""

    def __init__(self) -> None:
        super().__init__(errno.ETXTBSY, IS_OPEN)


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a file: the notes folder, and the path in it as the disk spells it."""

    root: Path
    path: PurePosixPath

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def absolute(self) -> Path:
        return self.root / self.path

    def beside(self, name: str) -> Place:
        """Return the place of another file in the same folder."""
        return Place(self.root, self.path.with_name(name))

    def folder(self, *, make: bool = False) -> AbstractContextManager[OpenFolder]:
        """Open the folder of the file; see `opened`."""
        return opened(self.root, self.path.parent.parts, make=make)


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file: its path in the folder as the disk spells it, and a state that changes with its content."""

    root: Path
    spelled: str
    state: str

    @property
    def place(self) -> Place:
        """The place, which is made only for the few files that kb opens."""
        return Place(self.root, PurePosixPath(self.spelled))


@dataclass(slots=True)
class Scan:
    """The Markdown files of a folder by their path in NFC, and the files that kb skips.

    Args:
        files: the files.
        others: files of other types.
        conflicts: copies of files that two sides changed.
        links: links to files and folders, which kb does not follow.
        parts: hidden files of an engine that was stopped while it wrote them.
        unreadable: folders and files that cannot be read.
        problems: the reasons why files are skipped.
        ignored: the rules that skip files and folders.
    """

    files: dict[str, FoundFile] = field(default_factory=dict)
    others: dict[str, FoundFile] = field(default_factory=dict)
    conflicts: list[str] = field(default_factory=list)
    links: set[str] = field(default_factory=set)
    parts: list[Place] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)
    ignored: dict[str, str] = field(default_factory=dict)

    def leave_out(self, paths: Iterable[str]) -> None:
        """Look away from files."""
        for path in paths:
            if self.files.pop(path, None) or self.others.pop(path, None):
                self.ignored[path] = BY_USER


def scan(root: Path, known: Collection[str], *, are_notes: bool = True, exclude: Sequence[str] | None = None) -> Scan:
    """Find the files of a folder; `known` are paths of documents, whatever their names look like.

    Args:
        root: the folder.
        known: the paths.
        are_notes: whether Markdown files are notes; otherwise they are files like others.
        exclude: patterns of files to skip, as those of ignore files are; without it, kb reads no ignore files.
    """
    walk = Walk(root, known, are_notes)
    waiting = [(PurePosixPath(), walk.own_rules(exclude))]
    while waiting:
        folder, rules = waiting.pop()
        try:
            waiting += reversed([(inner, walk.rules_in(inner, rules)) for inner in walk.folders_in(folder, rules)])
        except (OSError, ValueError) as error:
            path = composed(str(folder))
            walk.found.unreadable.append(path)
            walk.found.problems[path] = getattr(error, "strerror", None) or str(error)
    return walk.found


@dataclass
class Walk:
    """A look at all files of a folder; see `scan`."""

    root: Path
    known: Collection[str]
    are_notes: bool
    found: Scan = field(default_factory=Scan)

    @cached_property
    def around(self) -> Set[str]:
        """The folders around known files."""
        return {str(parent) for path in self.known for parent in PurePosixPath(path).parents}

    def own_rules(self, exclude: Sequence[str] | None) -> Rules:
        """Return the rules of the folder itself; None if kb reads no ignore files."""
        if exclude is None:
            return None
        given = [IgnoreRules("--exclude", PurePosixPath(), exclude)] if exclude else []
        return [*(self.rules_in(PurePosixPath(), ()) or ()), *given]

    def rules_in(self, folder: PurePosixPath, inherited: Rules) -> Rules:
        """Return the rules for the files of a folder: those around it, and its own.

        Raises:
            OSError, ValueError: they cannot be read.
        """
        if inherited is None:
            return None
        with opened(self.root, folder.parts) as open_folder:
            texts = {name: text for name in IGNORE_FILES if (text := _rules_text(open_folder, name))}
        return [*inherited, *(IgnoreRules(name, folder, text.splitlines()) for name, text in texts.items())]

    def folders_in(self, folder: PurePosixPath, rules: Rules) -> list[PurePosixPath]:
        """Add the files of one folder to the found ones; return the folders in it.

        Raises:
            OSError: it cannot be read, or it is too deep.
        """
        if len(folder.parts) > MOST_FOLDERS:
            raise OSError(TOO_DEEP)
        folders, around = list[PurePosixPath](), f"{folder}/" if folder.parts else ""
        with opened(self.root, folder.parts) as open_folder, open_folder.entries() as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                spelled, is_folder = around + entry.name, entry.is_dir(follow_symlinks=False)
                if entry.is_symlink():
                    self.found.links.add(composed(spelled))
                elif entry.name.startswith(PART) and entry.is_file(follow_symlinks=False):
                    self.found.parts.append(Place(self.root, PurePosixPath(spelled)))
                if self._is_skipped(spelled, entry.name, rules, is_folder=is_folder):
                    continue
                if is_folder:
                    folders.append(PurePosixPath(spelled))
                else:
                    self._take(entry, spelled)
        return folders

    def _is_skipped(self, spelled: str, name: str, rules: Rules, *, is_folder: bool) -> bool:
        if name.startswith("."):
            return True
        if rules is None:
            reason = LEFTOVER if is_leftover(name, is_folder=is_folder) else None
        else:
            reason = ignored_by(PurePosixPath(spelled), rules, is_folder=is_folder)
        if not reason:
            return False
        path = composed(spelled)
        if path in (self.around if is_folder and rules is not None else self.known):
            return False
        self.found.ignored[path] = reason
        return True

    def _take(self, entry: os.DirEntry[str], spelled: str) -> None:
        path, found = composed(spelled), self.found
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
        if not (self.are_notes and entry.name.casefold().endswith(SUFFIXES)):
            found.others[path] = FoundFile(self.root, spelled, state_of(status))
        elif is_conflict(entry.name) and path not in self.known:
            found.conflicts.append(path)
        elif path in found.files:
            found.problems[path] = TWICE
        else:
            found.files[path] = FoundFile(self.root, spelled, state_of(status))


def _rules_text(folder: OpenFolder, name: str) -> str:
    """Return the text of an ignore file; empty if there is none, or if it is a link."""
    with suppress(FileNotFoundError, Linked), folder.open_file(name) as file:
        return file.read(MOST_OF_RULES).decode("utf-8-sig")
    return ""


def state_of(status: os.stat_result) -> str:
    """Return the state of a file, which changes with its content."""
    return f"{status.st_mtime_ns} {status.st_ctime_ns} {status.st_size} {status.st_ino}"


def modified(state: str) -> float:
    """Return the time of a file in a state, in seconds."""
    return int(state.partition(" ")[0]) / 1e9


def size_of(state: str) -> int:
    """Return the size of a file in a state."""
    return int(state.split(" ")[2])


def inode_of(state: str) -> str:
    """Return the number of a file in its file system, which it keeps when it is renamed; empty if unknown."""
    return state.rpartition(" ")[2]


def status_at(place: Place) -> os.stat_result | None:
    """Return the status of whatever has a path; None if nothing has it.

    Raises:
        Linked: a folder in its path is a link.
    """
    try:
        with place.folder() as folder:
            return folder.status(place.name)
    except (FileNotFoundError, NotADirectoryError):
        return None


def state_at(place: Place) -> str | None:
    """Return the state of a file, or None if it is missing. Raises the same error as `status_at`."""
    status = status_at(place)
    return state_of(status) if status else None


def is_below_file(place: Place) -> bool:
    """Return whether a file has the place of a folder in a path."""
    try:
        with place.folder():
            return False
    except NotADirectoryError:
        return True
    except FileNotFoundError:
        return False


def read(place: Place, most_bytes: int) -> tuple[bytes, str]:
    """Return the content of a file and its state.

    Raises:
        OSError: it cannot be read.
        Changed: it changed during that.
        ValueError: it is too large; the message says so.
    """
    with place.folder() as folder, folder.open_file(place.name) as file:
        before = os.fstat(file.fileno())
        if before.st_size > most_bytes:
            raise ValueError(f"It is {larger_than(most_bytes)}.")
        content = file.read(most_bytes + 1)
        state = state_of(os.fstat(file.fileno()))
        if not state == state_of(before) == _state_at(folder, place.name) or len(content) != before.st_size:
            raise Changed
    return content, state


def file_digest_at(place: Place, most_bytes: int) -> str:
    """Return the digest of a file of any size up to a limit, read block by block. Raises the same errors as `read`."""
    with place.folder() as folder, folder.open_file(place.name) as file:
        before = os.fstat(file.fileno())
        if before.st_size > most_bytes:
            raise ValueError(f"It is {larger_than(most_bytes)}.")
        digest = file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type] # of a file on the disk
        if state_of(os.fstat(file.fileno())) != state_of(before):
            raise Changed
    return digest


def digest_of(content: bytes) -> str:
    """Return the digest of a file's content."""
    return sha256(content).hexdigest()


def create(place: Place, content: bytes, document_id: int | None = None) -> str:
    """Write a new file of a note with its folders; return its state. Its name is durable after a `sync` of its folder.

    Raises:
        FileExistsError: something has this path already.
        OSError: it cannot be written.
    """
    with place.folder(make=True) as folder:
        part, written = _write_part(folder, content, document_id)
        try:
            folder.move_to_free(part, folder, place.name)
        except OSError:
            folder.remove(part)
            raise
        return _state_after(folder, place.name, written)


def replace(place: Place, content: bytes, expected: str, document_id: int | None = None) -> str:
    """Write a file of a note whose content still has the digest `expected`; return its state, durable as in `create`.

    Raises:
        Changed: it has other content, or it is gone; nothing changes.
        OSError: it cannot be written.
    """
    with place.folder() as folder:
        try:
            status = folder.status(place.name)
        except FileNotFoundError:
            raise Changed from None
        if not status.st_mode & 0o222 or not folder.is_writable(place.name):
            raise PermissionError(13, "It is read-only.")
        part, written = _write_part(folder, content, document_id, stat.S_IMODE(status.st_mode))
        try:
            if folder.is_open_to_write(place.name) and not folder.is_open_to_write(part):
                raise InUse
            folder.exchange(place.name, part)
        except FileNotFoundError:
            folder.remove(part)
            raise Changed from None
        except OSError:
            folder.remove(part)
            raise
        if _digest_at(folder, part) != expected:
            _put_back(folder, place.name, part, digest_of(content))
            raise Changed
        folder.remove(part)
        return _state_after(folder, place.name, written)


def remove(place: Place, expected: str) -> None:
    """Remove a file whose content still has the digest `expected`, and the folders that are empty then.

    Raises:
        Changed: it has other content; nothing changes.
        OSError: it cannot be removed.
    """
    part = _part_name()
    try:
        with place.folder() as folder:
            if _is_in_use(folder, place.name):
                raise InUse
            folder.rename(place.name, part)
            if _digest_at(folder, part) != expected:
                try:
                    folder.move_to_free(part, folder, place.name)
                except FileExistsError:
                    _rescue(folder, place.name, part)
                raise Changed
            folder.remove(part)
            folder.sync()
    except (FileNotFoundError, NotADirectoryError):
        pass  # it is gone already
    prune(place)


def discard(place: Place) -> None:
    """Remove a file, if it exists.

    Raises:
        OSError: it cannot be removed.
    """
    with place.folder() as folder:
        folder.remove(place.name)


def has_twin(part: Place, content: bytes) -> bool:
    """Return whether a visible file in the folder of a hidden one has the same content."""
    with part.folder() as folder:
        with folder.entries() as entries:
            names = [entry.name for entry in entries if entry.name[0] != "."]
        alike = (name for name in names if _size_at(folder, name) == len(content))
        return any(_digest_at(folder, name) == digest_of(content) for name in alike)


def prune(place: Place) -> None:
    """Remove the folders around a file, as far as they are empty."""
    inner = place.path.parent
    with suppress(OSError):
        while inner.name:
            with opened(place.root, inner.parent.parts) as folder:
                folder.remove_folder(inner.name)
            inner = inner.parent


def move(place: Place, target: Place) -> None:
    """Move a file to a free path, and remove the folders that are empty then.

    Raises:
        FileExistsError: something has the new path already.
        OSError: it cannot be moved.
    """
    with target.folder(make=True) as to, place.folder() as folder:
        folder.move_to_free(place.name, to, target.name)
        to.sync()
        folder.sync()
    prune(place)


def sync(places: Iterable[Place]) -> None:
    """Make the names of files durable, given a file of each folder."""
    for place in places:
        with suppress(FileNotFoundError, NotADirectoryError, Linked), place.folder() as folder:
            folder.sync()


def set_aside(place: Place, content: bytes, day: str) -> Place:
    """Write content next to a file as `name (conflict DATE).md`; return that place. The same content is kept once.

    Raises:
        OSError: it cannot be written.
    """
    for other in map(place.beside, conflict_names(place.name, day)):
        with suppress(FileExistsError):
            create(other, content)
            sync([other])
            return other
        with other.folder() as folder:
            if _digest_at(folder, other.name) == digest_of(content):
                return other
    raise AssertionError("unreachable")


def note_in(part: str) -> int | None:
    """Return the note whose text a hidden file with this name was to have; None if it has the text of a file."""
    name = PART_NAME.fullmatch(part)
    return int(name["note"]) if name and name["note"] else None


def _part_name(document_id: int | None = None) -> str:
    return f"{PART}{'' if document_id is None else f'{document_id}-'}{uuid4().hex}"


def _write_part(
    folder: OpenFolder, content: bytes, document_id: int | None, mode: int = 0o666
) -> tuple[str, os.stat_result]:
    """Write content durably to a hidden file in a folder; return its name and its status."""
    part = _part_name(document_id)
    return part, folder.create(part, content, mode)


def _is_in_use(folder: OpenFolder, name: str) -> bool:
    """Return whether a program has a file open to write, on a file system that can tell."""
    if not folder.is_open_to_write(name):
        return False
    part, _ = _write_part(folder, b"", None)
    try:
        return not folder.is_open_to_write(part)
    finally:
        folder.remove(part)


def _state_at(folder: OpenFolder, name: str) -> str | None:
    try:
        return state_of(folder.status(name))
    except FileNotFoundError:
        return None


def _state_after(folder: OpenFolder, name: str, written: os.stat_result) -> str:
    """Return the state of a file after its move; empty, so that kb looks at it again, if it is another file already."""
    now = folder.status(name)
    is_same = (now.st_ino, now.st_mtime_ns, now.st_size) == (written.st_ino, written.st_mtime_ns, written.st_size)
    return state_of(now) if is_same else ""


def _put_back(folder: OpenFolder, name: str, part: str, ours: str) -> None:
    """Return a file to its place, because somebody changed it while kb was writing."""
    folder.exchange(name, part)
    if _digest_at(folder, part) == ours:
        folder.remove(part)
    else:  # changed once more
        _rescue(folder, name, part)


def _rescue(folder: OpenFolder, name: str, part: str) -> None:
    """Keep content that has lost its place next to its file."""
    for other in conflict_names(name, "interrupted"):
        with suppress(FileExistsError):
            folder.move_to_free(part, folder, other)
            return


def _size_at(folder: OpenFolder, name: str) -> int:
    with suppress(OSError):
        return folder.status(name).st_size
    return -1


def _digest_at(folder: OpenFolder, name: str) -> str:
    """Return the digest of a file; empty for anything else."""
    with suppress(OSError), folder.open_file(name) as file:
        return file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type] # of a file on the disk
    return ""
