"""Which files of a folder kb skips: those that ignore files name, generated ones, private keys, and leftovers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from kb.folders.temporary_files import is_leftover

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

IGNORE_FILES: Final = (".gitignore", ".kbignore")
"""Files with ignore patterns for their folder; if both match a path, the last file decides."""

USUAL_FOLDERS: Final = {"node_modules", "bower_components", "venv", "__pycache__", "__MACOSX", "tool-results"}
"""Folders of generated files, the last one of Claude Code; skipped unless an ignore file says otherwise."""

PRIVATE_NAMES: Final = {"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"}
PRIVATE_SUFFIXES: Final = {".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk"}
"""Private keys and password stores; also skipped."""

DEFAULT: Final = "default"
"""The reason in `ignored` for the folders and files above."""

LEFTOVER: Final = "leftover"
"""The reason for leftovers of other programs."""

BINARY_SUFFIXES: Final = {
    ".7z", ".a", ".aac", ".apk", ".avi", ".avif", ".bmp", ".bz2", ".class", ".com", ".db", ".dll", ".dmg", ".dylib",
    ".eot", ".exe", ".flac", ".gif", ".gz", ".heic", ".heif", ".ico", ".img", ".iso", ".jar", ".jpeg", ".jpg", ".lib",
    ".m4a", ".m4v", ".mkv", ".mov", ".mp3", ".mp4", ".mpeg", ".mpg", ".o", ".oga", ".ogg", ".ogv", ".opus", ".otf",
    ".png", ".psd", ".pyc", ".rar", ".rpm", ".so", ".sqlite", ".sqlite3", ".tar", ".tgz", ".tif", ".tiff", ".ttf",
    ".war", ".wav", ".webm", ".webp", ".whl", ".wma", ".wmv", ".woff", ".woff2", ".xz", ".zip", ".zst",
}  # fmt: skip
"""Suffixes of files without text. kb skips them in folders, but sends a file that the user names."""


class IgnoreRules:
    """Ignore patterns for a folder, in the syntax of .gitignore.

    Args:
        name: the file with the patterns.
        folder: the folder to which they are relative.
        patterns: the lines.
    """

    def __init__(self, name: str, folder: PurePath, patterns: Iterable[str]) -> None:
        from pathspec import GitIgnoreSpec

        from kb.folders.ignore_pattern import LinearPattern

        self.name = name
        self._folder = folder
        self._spec: GitIgnoreSpec = GitIgnoreSpec.from_lines(patterns, LinearPattern, backend="simple")

    def verdict(self, path: PurePath, *, is_folder: bool) -> bool | None:
        """Return whether the patterns ignore a path below the folder; None if no pattern matches."""
        relative = path.relative_to(self._folder).as_posix()
        return self._spec.check_file(f"{relative}/" if is_folder else relative).include


def ignored_by(path: PurePath, rules: Sequence[IgnoreRules], *, is_folder: bool) -> str | None:
    """Return the reason for which a path is ignored, or None."""
    for rule in reversed(rules):
        verdict = rule.verdict(path, is_folder=is_folder)
        if verdict is not None:
            return rule.name if verdict else None
    if is_leftover(path.name, is_folder=is_folder):
        return LEFTOVER
    return DEFAULT if _is_usual(path, is_folder=is_folder) else None


def _is_usual(path: PurePath, *, is_folder: bool) -> bool:
    """Return whether a path is skipped by default."""
    if is_folder:
        return path.name in USUAL_FOLDERS
    return path.name in PRIVATE_NAMES or path.suffix.lower() in PRIVATE_SUFFIXES
