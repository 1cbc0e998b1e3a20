"""Select the files to add or sync."""

from __future__ import annotations

import errno
import glob
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote

from kb.api.stream_safe import composed
from kb.folders.ignore_rules import BINARY_SUFFIXES, DEFAULT, IGNORE_FILES, IgnoreRules, ignored_by
from kb.folders.own_data import NOTES_MARK, is_own_data, own_folder_around
from kb.folders.placeholders import is_dataless, is_placeholder, name_elsewhere
from kb.folders.timed_reads import ask, ask_folder, forget_silent
from kb_cli.runtime.exit_codes import UsageError
from kb_cli.runtime.files import absolute

VAULT: Final = ".obsidian"
"""A folder with this folder in it is a vault; kb also sends all of its pictures, because notes show them."""

MARKDOWN: Final = {".md", ".markdown"}
MOST_READ: Final = 4 << 20
"""The number of bytes of a Markdown file in which kb looks for names of pictures."""

PICTURES: Final = {".avif", ".bmp", ".gif", ".heic", ".jpeg", ".jpg", ".png", ".svg", ".tif", ".tiff", ".webp"}
PICTURE_END: Final = re.compile(rf"(?:{'|'.join(map(re.escape, sorted(PICTURES)))})\b", re.IGNORECASE)
NAME_START: Final = re.compile(r"""[][()<>"'/\\]\s*:?\s*""")
"""A place before the name of a picture in a link; a name may contain some of these characters."""

LONGEST_NAME: Final = 800
"""The number of characters of a name, which may have each letter as %C3%A9."""

MOST_STARTS, MOST_NAMES = 8, 20_000
"""The number of places where the same name may begin, and of names in a file."""

Stamp = tuple[int, int]
MOST_KNOWN: Final = 1_000_000
_named: dict[str, tuple[Stamp, frozenset[str]]] = {}
"""The names of pictures in Markdown files, by path: a watched folder reads a file again only after a change."""


@dataclass
class FileSelection:
    """The selected files as absolute paths, and the files skipped in folders.

    Args:
        files: the files, without duplicates, in order.
        passed_over: files that most engines cannot read.
        ignored: the number of ignored files and folders, by reason.
        unreadable: folders that cannot be listed.
        outside: links to files outside the folder.
        elsewhere: files whose content is not on this disk; they are neither sent nor treated as deleted.
        stamps: the times (ns) and sizes of the Markdown files found in folders.
    """

    files: list[Path] = field(default_factory=list)
    passed_over: list[Path] = field(default_factory=list)
    ignored: Counter[str] = field(default_factory=Counter)
    unreadable: list[Path] = field(default_factory=list)
    outside: list[Path] = field(default_factory=list)
    elsewhere: list[Path] = field(default_factory=list)
    stamps: dict[Path, Stamp] = field(default_factory=dict)

    def add_left_out(self, other: FileSelection) -> None:
        """Add the skipped and unreadable files of another selection."""
        self.passed_over += other.passed_over
        self.unreadable += other.unreadable
        self.outside += other.outside
        self.elsewhere += other.elsewhere
        self.ignored += other.ignored

    def take(self, suffixes: Collection[str]) -> None:
        """Also select the skipped files with one of these suffixes."""
        self._take({path for path in self.passed_over if path.suffix.lower() in suffixes})

    def take_named_pictures(self) -> None:
        """Also select the skipped pictures that a selected Markdown file names, because it shows them."""
        pictures = [path for path in self.passed_over if path.suffix.lower() in PICTURES]
        if pictures:
            markdown = (path for path in self.files if path.suffix.lower() in MARKDOWN)
            named = {name for path in markdown for name in _pictures_named(path, self.stamps.get(path))}
            self._take({path for path in pictures if _comparable(path.name) in named})

    def _take(self, taken: set[Path]) -> None:
        if taken:
            self.files = sorted({*self.files, *taken})
            self.passed_over = [path for path in self.passed_over if path not in taken]


def select_files(names: Iterable[str], exclude: Sequence[str] = (), *, follow_links: bool = False) -> FileSelection:
    """Select the files at these paths.

    A folder selects all files in it, a pattern all files and folders that it matches. In folders, kb skips hidden
    files, files that are rarely wanted, pictures that no vault or Markdown file shows, and files that a `.gitignore`, a
    `.kbignore` or `exclude` names (in the syntax of .gitignore). Unless `follow_links` is set, it also skips links to
    files outside. `exclude` also applies to named files, relative to their folder.

    Raises:
        UsageError: a path does not exist or is not a regular file.
    """
    selection = FileSelection()
    forget_silent()
    for path in (path for name in names for path in _expand(name)):
        if path.is_dir():
            _walk(absolute(path), exclude, selection, None if follow_links else path.resolve())
        elif not exclude or not IgnoreRules("--exclude", path.parent, exclude).verdict(path, is_folder=False):
            selection.files.append(absolute(path))
    selection.files = list(dict.fromkeys(selection.files))
    selection.take_named_pictures()
    return selection


def _expand(name: str) -> list[Path]:
    path = Path(name).expanduser()
    if name and path.exists():
        if not (path.is_file() or path.is_dir()):
            raise UsageError(f"{path} is not a regular file. Name a file or a folder.")
        return [path]
    matches = map(Path, sorted(glob.glob(str(path), recursive=True)))  # noqa: PTH207 - Path.glob includes hidden files
    paths = [match for match in matches if match.is_file() or match.is_dir()] if name else []
    if not paths:
        raise UsageError(f"The file or folder {name or repr(name)} does not exist.")
    return paths


class _Level(NamedTuple):
    """A folder that is being walked: its remaining entries and its rules."""

    folder: Path
    entries: Iterator[os.DirEntry[str]]
    rules: Sequence[IgnoreRules]
    is_vault: bool


def _walk(
    folder: Path,
    exclude: Sequence[str],
    selection: FileSelection,
    within: Path | None,
) -> None:
    """Select the files of a folder, however deep its folders are."""
    if own_folder_around(folder.resolve()):
        selection.ignored[DEFAULT] += 1
        return
    levels = list(_levels(folder, [], exclude, selection, is_vault=False))
    while levels:
        level = levels[-1]
        inner = next((entry for entry in level.entries if _take(entry, level, selection, within)), None)
        if inner is None:
            levels.pop()
        else:
            levels += _levels(level.folder / inner.name, level.rules, (), selection, is_vault=level.is_vault)


def _levels(
    folder: Path,
    inherited: Sequence[IgnoreRules],
    exclude: Sequence[str],
    selection: FileSelection,
    *,
    is_vault: bool,
) -> Iterator[_Level]:
    """Yield a folder to walk, unless it is unreadable or belongs to kb."""
    try:
        entries = ask_folder(folder, _entries)
        rules = [*inherited, *_read_rules(folder, entries, exclude)]
    except OSError:
        selection.unreadable.append(folder)
        return
    names = {entry.name for entry in entries}
    if NOTES_MARK in names or is_own_data(names):
        selection.ignored[DEFAULT] += 1
        return
    yield _Level(folder, iter(entries), rules, is_vault or VAULT in names)


def _take(entry: os.DirEntry[str], level: _Level, selection: FileSelection, within: Path | None) -> bool:
    """Select a file, or count it as skipped; return whether the entry is a folder to walk."""
    folder, rules = level.folder, level.rules
    path, is_folder = folder / entry.name, entry.is_dir(follow_symlinks=False)
    original = name_elsewhere(entry.name)
    if original and is_placeholder(entry) and not ignored_by(folder / original, rules, is_folder=is_folder):
        selection.elsewhere.append(folder / original)
    elif entry.name.startswith("."):
        return False
    elif reason := ignored_by(path, rules, is_folder=is_folder):
        selection.ignored[reason] += 1
    elif is_folder:
        return True
    elif _is_file(entry):
        if within and entry.is_symlink() and _is_outside(path, within):
            selection.outside.append(path)
        elif is_dataless(entry):
            selection.elsewhere.append(path)
        else:
            _select(path, entry, selection, is_vault=level.is_vault)
    return False


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """Return the entries of a folder by name, with their status already read."""
    with os.scandir(folder) as scan:
        entries = sorted(scan, key=lambda entry: entry.name)
    for entry in entries:
        if not entry.is_dir(follow_symlinks=False):
            with suppress(OSError):
                entry.stat()
    return entries


def _is_outside(path: Path, within: Path) -> bool:
    """Return whether a link leads out of a folder; False if it cannot be followed."""
    try:
        return not ask(path, path.resolve).is_relative_to(within)
    except OSError:
        return False


def _is_file(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a file or a link to one; True for a file whose status cannot be read."""
    try:
        return entry.is_file()
    except OSError as error:
        return error.errno != errno.ELOOP


def _read_rules(folder: Path, entries: Iterable[os.DirEntry[str]], exclude: Sequence[str]) -> Iterator[IgnoreRules]:
    names = {entry.name for entry in entries}
    for name in IGNORE_FILES:
        if name in names:
            try:
                text = ask(folder / name, (folder / name).read_text, "utf-8-sig")
                yield IgnoreRules(name, folder, text.splitlines())
            except TimeoutError:
                raise
            except (OSError, ValueError) as error:
                raise UsageError(f"{folder / name}: kb cannot read this file: {error}.") from None
    if exclude:
        yield IgnoreRules("--exclude", folder, exclude)


def _select(path: Path, entry: os.DirEntry[str], selection: FileSelection, *, is_vault: bool) -> None:
    suffix = path.suffix.lower()
    if suffix in BINARY_SUFFIXES and not (is_vault and suffix in PICTURES):
        selection.passed_over.append(path)
        return
    selection.files.append(path)
    if suffix in MARKDOWN:
        with suppress(OSError):
            state = entry.stat()  # read already
            selection.stamps[path] = state.st_mtime_ns, state.st_size


def _pictures_named(path: Path, stamp: Stamp | None) -> frozenset[str]:
    """Return the names of pictures in a Markdown file; none if it cannot be read."""
    known, names = _named.get(str(path), (None, frozenset[str]()))
    if stamp and known == stamp:
        return names
    try:
        names = ask(path, _read_names, path)
    except OSError:
        return frozenset()
    if stamp:
        if len(_named) > MOST_KNOWN:
            _named.clear()
        _named[str(path)] = stamp, names
    return names


def _read_names(path: Path) -> frozenset[str]:
    with path.open("rb") as file:
        text = file.read(MOST_READ).decode(errors="replace")
    names = set[str]()
    for match in islice(PICTURE_END.finditer(text), MOST_NAMES):
        line = text[max(0, match.end() - LONGEST_NAME) : match.end()].rpartition("\n")[2]
        starts = [start.end() for start in NAME_START.finditer(line)][-MOST_STARTS:]
        names |= {_comparable(unquote(line[start:]).rpartition("/")[2]) for start in starts}
    return frozenset(names)


def _comparable(name: str) -> str:
    """Return a file name in the form that links are compared in."""
    return composed(name).casefold()
