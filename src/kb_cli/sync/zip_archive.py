"""Unpack archives of notes, such as Notion exports; their files are added like ordinary files."""

import shutil
import tempfile
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path, PurePath, PurePosixPath
from typing import Final, NamedTuple

from kb.folders.ignore_rules import IGNORE_FILES
from kb_cli.runtime.exit_codes import LocalError, UsageError
from kb_cli.sync.file_selection import FileSelection, select_files
from kb_cli.sync.zip_name_encoding import entry_names

SUFFIX: Final = ".zip"
MAX_FILES: Final = 100_000
MAX_BYTES: Final = 10 << 30
MAX_DEPTH: Final = 2
"""Exports are archives within archives, but no deeper."""


def is_archive(path: Path) -> bool:
    """Return whether a path is an archive to unpack; documents in a zip format have other suffixes."""
    return is_archive_name(path) and path.is_file()


def is_archive_name(path: PurePath) -> bool:
    return path.suffix.lower() == SUFFIX


class Unpacked(NamedTuple):
    """An unpacked archive.

    Args:
        selection: the files to add.
        guessed: the code pages guessed for file names.
    """

    folder: Path
    selection: FileSelection
    guessed: set[str]


@contextmanager
def unpacked(archive: Path, exclude: Sequence[str], code_page: str | None = None) -> Iterator[Unpacked]:
    """Unpack an archive for the duration of the block.

    Args:
        exclude: patterns of files to skip.
        code_page: the encoding of names without a declared one; guessed if omitted.
    """
    with tempfile.TemporaryDirectory(prefix="kb-zip-") as scratch:
        folder = Path(scratch)
        try:
            room, places = _Budget(archive), _Places()
            guessed = _unpack(archive, folder, room, places, code_page)
            for _ in range(MAX_DEPTH):
                for inner in sorted(filter(is_archive, folder.rglob("*"))):
                    guessed |= _unpack(inner, inner.parent, room, places, code_page)
                    inner.unlink()
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
            raise UsageError(f"{archive}: kb cannot unpack it: {error}.") from None
        except OSError as error:
            raise LocalError(f"{archive}: kb cannot unpack it: {error.strerror}.") from None
        yield Unpacked(folder, select_files([str(folder)], exclude), guessed)


class _Budget:
    """The number of files and bytes that an archive may still contain, including nested archives.

    Args:
        archive: the archive to name in the error.
    """

    def __init__(self, archive: Path) -> None:
        self._archive = archive
        self._files, self._bytes = MAX_FILES, MAX_BYTES

    def take(self, entries: Sequence[zipfile.ZipInfo]) -> None:
        """Subtract the files and their sizes."""
        self._files -= len(entries)
        self._bytes -= sum(entry.file_size for entry in entries)
        if self._files < 0 or self._bytes < 0:
            raise UsageError(
                f"{self._archive}: it contains more than {MAX_FILES:,} files or {MAX_BYTES >> 30} GiB."
                " Unpack it, and add the folder."
            )


class _Places:
    """Chooses a free path for each file, across all archives and however the disk compares names."""

    def __init__(self) -> None:
        self._unpacked = set[tuple[Path, int, int]]()
        self._next = defaultdict[Path, int](lambda: 1)

    def free(self, path: Path, entry: zipfile.ZipInfo) -> Path | None:
        """Return the path for an entry called `path`, and create its folder; None if the same file is already there."""
        if (path, entry.CRC, entry.file_size) in self._unpacked:
            return None
        self._unpacked.add((path, entry.CRC, entry.file_size))
        folder = path.parents[-1]
        for name in path.parts[1:-1]:
            folder = next(candidate for candidate in _numbered(folder / name) if not candidate.is_file())
        folder.mkdir(parents=True, exist_ok=True)
        free = next(
            candidate for candidate in _numbered(folder / path.name, self._next[path]) if not candidate.exists()
        )
        self._next[path] += 1
        return free


def _numbered(path: Path, first: int = 1) -> Iterator[Path]:
    """Yield a path, then the same path with numbers, starting at `first`."""
    return (path.with_stem(f"{path.stem} ({number})") if number > 1 else path for number in count(first))


def _unpack(archive: Path, folder: Path, room: _Budget, places: _Places, code_page: str | None) -> set[str]:
    """Unpack an archive; return the code page guessed for its names, if any."""
    with zipfile.ZipFile(archive) as content:
        entries = [
            member
            for member in content.infolist()
            if not (member.is_dir() or (_inner_path(member.filename).name in IGNORE_FILES))
        ]
        room.take(entries)
        names, guessed = entry_names(entries, code_page)
        for entry, name in zip(entries, names, strict=True):
            if target := places.free(folder / _inner_path(name), entry):
                with content.open(entry) as packed, target.open("wb") as file:
                    shutil.copyfileobj(packed, file)
    return {guessed} if guessed else set()


def _inner_path(name: str) -> PurePosixPath:
    """Return a relative path that cannot leave the folder."""
    parts = [part for part in PurePosixPath(name.replace("\\", "/")).parts if part not in ("/", "..", ".")]
    return PurePosixPath(*parts or ["file"])
