"""The source paths of files in the knowledge base."""

from __future__ import annotations

import os
from pathlib import Path

from kb.api.stream_safe import composed


def absolute(path: Path | str) -> Path:
    """Return the absolute path without following links, unlike `Path.resolve`."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - see above


def to_source_path(path: Path | str) -> str:
    """Return a file's source path: absolute, with slashes even on Windows, and with composed letters."""
    return composed(absolute(path).as_posix())
