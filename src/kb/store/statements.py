"""Statements by name."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@cache
def read_statements(package: str, file: str) -> Mapping[str, str]:
    """Return the statements of `sql/{file}.sql` in a package; before each stand `-- name: …` and what it does."""
    text = files(package).joinpath("sql", f"{file}.sql").read_text("utf-8")
    _, *parts = re.split(r"^-- name: (\w+)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[::2], map(str.strip, parts[1::2]), strict=True))
