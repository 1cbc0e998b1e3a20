"""The name of a data directory: files wait for their jobs in the one that they were sent to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from uuid import uuid4

from kb.filesystem import sync

if TYPE_CHECKING:
    from pathlib import Path

NAME: Final = "place"
"""The file that holds it."""


def place_of(folder: Path) -> str:
    """Return the name of a data directory; one that has none gets one."""
    file = folder / NAME
    if not file.exists():
        partial = file.with_suffix(".part")
        partial.write_text(uuid4().hex)
        sync(partial)
        partial.replace(file)
        sync(folder)
    return file.read_text()
