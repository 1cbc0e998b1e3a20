"""Paths of files, files of other programs that people also edit, and the settings to start this kb again."""

import os
import sys
import tempfile
from itertools import count
from pathlib import Path
from typing import Final

from kb.api.stream_safe import composed


def absolute(path: Path | str) -> Path:
    """Return the absolute path without following links, unlike `Path.resolve`."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - see above


def to_source_path(path: Path | str) -> str:
    """Return a file's source path: absolute, with slashes even on Windows, and with composed letters."""
    return composed(absolute(path).as_posix())


def replace_file(file: Path, content: bytes) -> None:
    """Write a file atomically and only readable by its owner, because it may contain a key."""
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{file.name}.", suffix=".kb", dir=file.parent)
    scratch = Path(name)  # private to this process: another one may write the same file
    try:
        with os.fdopen(descriptor, "wb") as written:
            written.write(content)
            written.flush()
            os.fsync(descriptor)
        scratch.replace(file)
    finally:
        scratch.unlink(missing_ok=True)


def back_up(file: Path) -> Path:
    """Copy a file to a free name next to it, and return the copy."""
    name = f"{file.name}.before-kb"
    names = (file.with_name(name if number == 1 else f"{name}-{number}") for number in count(1))
    backup = next(filter(_is_made, names))
    try:
        replace_file(backup, file.read_bytes())
    except OSError:
        backup.unlink()
        raise
    return backup


def _is_made(file: Path) -> bool:
    """Create a file unless it exists; return whether it was created."""
    try:
        file.touch(mode=0o600, exist_ok=False)
    except FileExistsError:
        return False
    return True


NOT_FOR_SERVER: Final = {"KB_ENGINE_URL", "KB_MCP_URL", "KB_PROFILE"}
PATHS: Final = ("_DIR", "_FILE")
"""Suffixes of settings that are paths."""


def program() -> str:
    beside = Path(sys.executable).with_name("kb")
    return str(beside if beside.exists() else Path(sys.argv[0]).absolute())


def own_settings() -> dict[str, str]:
    """Return the server settings of this environment, with absolute paths."""
    return {
        name: str(Path(value).expanduser().absolute()) if name.endswith(PATHS) else value
        for name, value in sorted(os.environ.items())
        if value and name.startswith("KB_") and name not in NOT_FOR_SERVER
    }
