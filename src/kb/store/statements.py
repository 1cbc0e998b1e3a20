"""SQL statements by name: a store's own ones, and the shared ones translated for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Final

from kb.store.rows import OPTIONAL_FIELDS

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

SHARED: Final = "kb.store.sql"
"""The package of the shared statements."""

WORDS: Final = {
    "optional_fields": ", ".join(OPTIONAL_FIELDS),
    "optional_values": ", ".join(f":{name}" for name in OPTIONAL_FIELDS),
    "set_optional_fields": ", ".join(f"{name} = :{name}" for name in OPTIONAL_FIELDS),
    "null_optional_fields": ", ".join(f"{name} = NULL" for name in OPTIONAL_FIELDS),
}
"""Words that every statement may use after `$`: the columns of `OptionalFields`, and clauses about them."""

Statements = Callable[[str], Mapping[str, str]]
"""A function that returns a store's statements about a subject, by name."""


@dataclass(frozen=True)
class Dialect:
    """The SQL dialect of a database.

    Args:
        package: the package of its own statements; entries of `dialect` are words for the statements of any subject.
        has_colons: whether it writes parameters as `:name`, and not as `%(name)s`.
    """

    package: str
    has_colons: bool

    def translated(self, statement: str) -> str:
        """Return a statement whose parameters are `:name` or `?` with the parameters of this dialect."""
        if self.has_colons:
            return statement
        return re.sub(r"(?<![:\w]):(\w+)", r"%(\1)s", statement.replace("%", "%%")).replace("?", "%s")

    def own(self, subject: str) -> dict[str, str]:
        """Return the database's own statements about a subject."""
        return _named(files(self.package).joinpath("sql", f"{subject}.sql"))


class _Words(dict[str, str]):
    """The replacement of `$name`: the statement of that name without the comment above it."""

    def __getitem__(self, name: str) -> str:
        return Template(re.sub(r"\A(--.*\n?)*", "", super().__getitem__(name))).substitute(self)


@cache
def read_statements(dialect: Dialect, subject: str) -> Mapping[str, str]:
    """Return the statements about a subject: the shared ones, and the store's own, which override shared ones.

    If a subject has shared statements, all of its statements write `:name` or `?` for a parameter, and `$name` for
    another statement or a word of the dialect. Otherwise a store's own statements use its own dialect.
    """
    shared, own = _named(files(SHARED).joinpath(f"{subject}.sql")), dialect.own(subject)
    if not shared:
        return own
    words = _Words(WORDS | dialect.own("dialect") | shared | own)
    return {name: dialect.translated(Template(text).substitute(words)) for name, text in (shared | own).items()}


def condition(sql: Mapping[str, str], names: Iterable[str]) -> str:
    """Return the conditions of these names as one; without names, a condition that all rows meet."""
    return " AND ".join(sql[name] for name in names) or "TRUE"


def _named(file: Traversable) -> dict[str, str]:
    """Return the statements of a file, if it exists; `-- name: …` and a comment precede each one."""
    if not file.is_file():
        return {}
    _, *parts = re.split(r"^-- name: (\w+)\n", file.read_text("utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[::2], map(str.strip, parts[1::2]), strict=True))
