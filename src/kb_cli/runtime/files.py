"""Files of other programs, which people edit too."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def replace_file(file: Path, content: bytes) -> None:
    """Write a file whole or not at all, for its owner alone: it may hold a key."""
    file.parent.mkdir(parents=True, exist_ok=True)
    scratch = file.with_name(f".{file.name}.kb")
    scratch.unlink(missing_ok=True)
    scratch.touch(mode=0o600)
    scratch.write_bytes(content)
    scratch.replace(file)


def back_up(file: Path) -> Path:
    """Copy a file to a name beside it that is free, and return that."""
    name = f"{file.name}.before-kb"
    names = (file.with_name(name if number == 1 else f"{name}-{number}") for number in count(1))
    backup = next(each for each in names if not each.exists())
    replace_file(backup, file.read_bytes())
    return backup
