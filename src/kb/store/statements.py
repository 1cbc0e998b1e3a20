"""Statements by name: those of both stores, translated for one, and those of its own."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.resources.abc import Traversable

SHARED: Final = "kb.store.sql"
"""The package with the statements of both stores: with `:name` for a parameter, and `$name` for a word of a dialect."""


@dataclass(frozen=True)
class Dialect:
    """How a database is asked.

    Args:
        package: where the statements are that it alone has.
        timestamp: its type of a time.
        has_colons: whether it takes parameters as `:name`, and not as `%(name)s`.
    """

    package: str
    timestamp: str
    has_colons: bool

    def translated(self, statement: str) -> str:
        """Return a statement of both stores as this one is asked."""
        said = Template(statement).substitute(timestamp=self.timestamp)
        return said if self.has_colons else re.sub(r"(?<![:\w]):(\w+)", r"%(\1)s", said.replace("%", "%%"))


@cache
def read_statements(dialect: Dialect, subject: str) -> Mapping[str, str]:
    """Return the statements about a subject: the store's own, and those of both stores that it has none instead of."""
    shared = _named(files(SHARED).joinpath(f"{subject}.sql"))
    own = _named(files(dialect.package).joinpath("sql", f"{subject}.sql"))
    return {name: dialect.translated(statement) for name, statement in shared.items()} | own


def _named(file: Traversable) -> dict[str, str]:
    """Return the statements of a file, if there is one; before each stand `-- name: …` and what it does."""
    if not file.is_file():
        return {}
    _, *parts = re.split(r"^-- name: (\w+)\n", file.read_text("utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[::2], map(str.strip, parts[1::2]), strict=True))
