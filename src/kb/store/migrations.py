"""The numbered migrations of a store, and the databases that they do not begin with."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from typing import Final

from kb.api.errors import StoreError

FIRST: Final = 30
"""The number of the migration that makes the tables. Development builds of kb 3 had the numbers below it."""

LAST_DEVELOPMENT_BUILD: Final = "616eef48"
"""The last commit that reads the databases of all development builds."""


def newest(package: str) -> int:
    """Return the number that a store's package leads to."""
    return max(number for number, _ in migrations(package, after=0))


def migrations(package: str, after: int) -> Iterator[tuple[int, str]]:
    """Yield the numbers above `after` of a store's package, in order, and what leads to each."""
    for file in sorted(files(package).joinpath("migrations").iterdir(), key=lambda file: file.name):
        if file.name.endswith(".sql") and (number := int(file.name.partition("_")[0])) > after:
            yield number, file.read_text("utf-8")


def development_build(what: str, version: int, first: str) -> StoreError:
    """Return the error of a database or a backup that a development build of kb 3 made.

    Args:
        what: the database, as the message calls it.
        version: the number of its schema.
        first: what must be done with it before it can be exported.
    """
    return StoreError(
        f"{what} was made by a development build of kb (schema version {version}). Use the build of commit"
        f" {LAST_DEVELOPMENT_BUILD}: {first}, then write it to files with 'kb export DIR'. Then let this kb begin with"
        " a new database, and run 'kb import DIR'."
    )
