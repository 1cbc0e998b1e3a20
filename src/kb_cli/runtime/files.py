"""Files of other programs, which people edit too, and what those need to start this very program alike."""

from __future__ import annotations

import os
import sys
import tempfile
from itertools import count
from pathlib import Path
from typing import Final


def replace_file(file: Path, content: bytes) -> None:
    """Write a file whole or not at all, for its owner alone: it may hold a key."""
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{file.name}.", suffix=".kb", dir=file.parent)
    scratch = Path(name)  # of this process alone: another may write the same file
    try:
        with os.fdopen(descriptor, "wb") as written:
            written.write(content)
            written.flush()
            os.fsync(descriptor)
        scratch.replace(file)
    finally:
        scratch.unlink(missing_ok=True)


def back_up(file: Path) -> Path:
    """Copy a file to a name beside it that is free, and return that."""
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
    """Make a file, unless there is one, and return whether it did."""
    try:
        file.touch(mode=0o600, exist_ok=False)
    except FileExistsError:
        return False
    return True


NOT_FOR_SERVER: Final = {"KB_ENGINE_URL", "KB_MCP_URL", "KB_PROFILE"}
PATHS: Final = ("_DIR", "_FILE")
"""How the names of settings end that are paths."""


def program() -> str:
    """Return the path of this very kb."""
    beside = Path(sys.executable).with_name("kb")
    return str(beside if beside.exists() else Path(sys.argv[0]).absolute())


def own_settings() -> dict[str, str]:
    """Return the settings of the server that are set now; a path counts from anywhere."""
    return {
        name: str(Path(value).expanduser().absolute()) if name.endswith(PATHS) else value
        for name, value in sorted(os.environ.items())
        if value and name.startswith("KB_") and name not in NOT_FOR_SERVER
    }
