"""The source paths of files: what they are called in the knowledge base."""

from __future__ import annotations

import os
from pathlib import Path

from kb.api.stream_safe import composed


def absolute(path: Path | str) -> Path:
    """Return the whole path; a link stays what it is called, where `Path.resolve` would say what it leads to."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - see above


def to_source_path(path: Path | str) -> str:
    """Return a file's source path: its whole path, with slashes also on Windows, and its letters composed."""
    return composed(absolute(path).as_posix())
