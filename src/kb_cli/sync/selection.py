"""Which files a person means."""

from __future__ import annotations

import errno
import glob
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kb_cli.runtime.exit_codes import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pathspec import GitIgnoreSpec

IGNORE_FILE: Final = ".kbignore"
NOT_TEXT: Final = {
    ".7z", ".a", ".aac", ".apk", ".avi", ".avif", ".bmp", ".bz2", ".class", ".com", ".dll", ".dmg", ".dylib", ".eot",
    ".exe", ".flac", ".gif", ".gz", ".heic", ".heif", ".ico", ".img", ".iso", ".jar", ".jpeg", ".jpg", ".lib", ".m4a",
    ".m4v", ".mkv", ".mov", ".mp3", ".mp4", ".mpeg", ".mpg", ".o", ".oga", ".ogg", ".ogv", ".opus", ".otf", ".png",
    ".psd", ".pyc", ".rar", ".rpm", ".so", ".sqlite", ".sqlite3", ".tar", ".tgz", ".tif", ".tiff", ".ttf", ".war",
    ".wav", ".webm", ".webp", ".whl", ".wma", ".wmv", ".woff", ".woff2", ".xz", ".zip", ".zst",
}  # fmt: skip
"""Names of files that hold no text end so. In folders they are passed over; one that is named is sent."""


@dataclass
class Found:
    """The files that are meant, with absolute paths, and what was passed over in folders.

    Args:
        files: each once, in order.
        passed: how many files were passed over, by the end of their names.
        unreadable: folders that cannot be listed.
    """

    files: list[Path] = field(default_factory=list)
    passed: dict[str, int] = field(default_factory=dict)
    unreadable: list[Path] = field(default_factory=list)


def files_at(names: Iterable[str], exclude: Sequence[str] = ()) -> Found:
    """The files at these paths.

    Folders stand for all that is in them, patterns for all files and folders that they match. What is hidden, and what
    a `.kbignore` or `exclude` names (in the syntax of .gitignore), is left out of folders; `exclude` also counts for
    the files themselves, from the folder that they are in.

    Raises:
        UsageError: there is nothing at a path, or something that is no file.
    """
    found = Found()
    for place in (place for name in names for place in _places(name)):
        if place.is_dir():
            _walk(absolute(place), [], exclude, found)
        elif not exclude or not Ignored(place.parent, exclude).verdict(place, is_folder=False):
            found.files.append(absolute(place))
    found.files = list(dict.fromkeys(found.files))
    return found


def _places(name: str) -> list[Path]:
    place = Path(name).expanduser()
    if name and place.exists():
        if not (place.is_file() or place.is_dir()):
            raise UsageError(f"{place} is no regular file.")
        return [place]
    matches = map(Path, sorted(glob.glob(str(place), recursive=True)))  # noqa: PTH207 - Path.glob shows what is hidden
    places = [match for match in matches if match.is_file() or match.is_dir()] if name else []
    if not places:
        raise UsageError(f"There is no file or folder {name or repr(name)}.")
    return places


class Ignored:
    """What is left out of a folder, by patterns in the syntax of .gitignore that count from there."""

    def __init__(self, folder: Path, patterns: Iterable[str]) -> None:
        from pathspec import GitIgnoreSpec

        self._folder = folder
        self._spec: GitIgnoreSpec = GitIgnoreSpec.from_lines(patterns)

    def verdict(self, path: Path, *, is_folder: bool) -> bool | None:
        """Whether the patterns leave a path below the folder out or keep it in; None if they do not say."""
        relative = path.relative_to(self._folder).as_posix()
        return self._spec.check_file(f"{relative}/" if is_folder else relative).include


def _walk(folder: Path, above: Sequence[Ignored], exclude: Sequence[str], found: Found) -> None:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        found.unreadable.append(folder)
        return
    ignored = [*above, *_ignored_here(folder, entries, exclude if not above else ())]
    for entry in entries:
        path, is_folder = folder / entry.name, entry.is_dir(follow_symlinks=False)
        if entry.name.startswith(".") or _is_ignored(path, ignored, is_folder=is_folder):
            continue
        if is_folder:
            _walk(path, ignored, exclude, found)
        elif _is_file(entry):
            _take(path, found)


def _is_file(entry: os.DirEntry[str]) -> bool:
    """Whether it is a file, or a link to one; a file that cannot be looked at is there all the same."""
    try:
        return entry.is_file()
    except OSError as error:
        return error.errno != errno.ELOOP


def _ignored_here(folder: Path, entries: Iterable[os.DirEntry[str]], exclude: Sequence[str]) -> Iterator[Ignored]:
    if any(entry.name == IGNORE_FILE for entry in entries):
        try:
            yield Ignored(folder, (folder / IGNORE_FILE).read_text("utf-8-sig").splitlines())
        except (OSError, ValueError) as error:
            raise UsageError(f"{folder / IGNORE_FILE} cannot be read: {error}.") from None
    if exclude:
        yield Ignored(folder, exclude)


def _is_ignored(path: Path, ignored: Sequence[Ignored], *, is_folder: bool) -> bool:
    verdicts = (each.verdict(path, is_folder=is_folder) for each in reversed(ignored))
    return next((verdict for verdict in verdicts if verdict is not None), False)


def _take(path: Path, found: Found) -> None:
    suffix = path.suffix.lower()
    if suffix in NOT_TEXT:
        found.passed[suffix] = found.passed.get(suffix, 0) + 1
    else:
        found.files.append(path)


def absolute(path: Path | str) -> Path:
    """The whole path; a link stays what it is called, where `Path.resolve` would say what it leads to."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - see above


def source_path_of(path: Path | str) -> str:
    """What a file is called in the knowledge base: its whole path, with slashes also on Windows."""
    return absolute(path).as_posix()


def prefix_of(folder: str) -> str:
    """How the source paths of what is below a folder begin: a folder here, or else what others called theirs."""
    known = source_path_of(Path(folder).expanduser()) if Path(folder).expanduser().exists() else folder
    return known.rstrip("/") + "/"
