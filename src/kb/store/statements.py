"""Statements by name: those of both stores, translated for one, and those of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Final

from kb.store.rows import SAID

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

SHARED: Final = "kb.store.sql"
"""The package with the statements of both stores."""

WORDS: Final = {
    "said": ", ".join(SAID),
    "said_values": ", ".join(f":{name}" for name in SAID),
    "set_said": ", ".join(f"{name} = :{name}" for name in SAID),
    "unsaid": ", ".join(f"{name} = NULL" for name in SAID),
}
"""What every statement may name with `$`: the columns of `Said`, and what is done with them."""

Statements = Callable[[str], Mapping[str, str]]
"""Returns a store's statements about a subject, by name."""


@dataclass(frozen=True)
class Dialect:
    """How a database is asked.

    Args:
        package: where the statements are that it alone has; those named `dialect` are words of any subject.
        has_colons: whether it takes parameters as `:name`, and not as `%(name)s`.
    """

    package: str
    has_colons: bool

    def translated(self, statement: str) -> str:
        """Return a statement with `:name`, or `?`, for each parameter as this one is asked."""
        if self.has_colons:
            return statement
        return re.sub(r"(?<![:\w]):(\w+)", r"%(\1)s", statement.replace("%", "%%")).replace("?", "%s")

    def own(self, subject: str) -> dict[str, str]:
        """Return the statements that it alone has."""
        return _named(files(self.package).joinpath("sql", f"{subject}.sql"))


class _Words(dict[str, str]):
    """What `$name` stands for: the statement of that name without what is said before it."""

    def __getitem__(self, name: str) -> str:
        return Template(re.sub(r"\A(--.*\n?)*", "", super().__getitem__(name))).substitute(self)


@cache
def read_statements(dialect: Dialect, subject: str) -> Mapping[str, str]:
    """Return the statements about a subject: the store's own, and those of both stores that it has none instead of.

    Where both stores have some, all are written with `:name` or `?` for a parameter, and `$name` for another of them
    or a word of the dialect. A store's own are written in its own way where they stand alone.
    """
    shared, own = _named(files(SHARED).joinpath(f"{subject}.sql")), dialect.own(subject)
    if not shared:
        return own
    words = _Words(WORDS | dialect.own("dialect") | shared | own)
    return {name: dialect.translated(Template(text).substitute(words)) for name, text in (shared | own).items()}


def condition(sql: Mapping[str, str], names: Iterable[str]) -> str:
    """Return the conditions of these names as one; that all rows meet if there is none."""
    return " AND ".join(sql[name] for name in names) or "TRUE"


def _named(file: Traversable) -> dict[str, str]:
    """Return the statements of a file, if there is one; before each stand `-- name: …` and what it does."""
    if not file.is_file():
        return {}
    _, *parts = re.split(r"^-- name: (\w+)\n", file.read_text("utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[::2], map(str.strip, parts[1::2]), strict=True))
