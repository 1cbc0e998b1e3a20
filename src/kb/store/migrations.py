"""The numbered migrations of a store, and the databases too old for them."""

from collections.abc import Iterator
from importlib.resources import files
from typing import Final

from kb.api.errors import StoreError

FIRST: Final = 30
"""The number of the migration that makes the tables. Development builds of kb 3 used the numbers below it."""

LAST_DEVELOPMENT_BUILD: Final = "616eef48"
"""The last commit that can read the databases of all development builds."""


def newest(package: str) -> int:
    """Return the highest migration number in a store's package."""
    return max(number for number, _ in migrations(package, after=0))


def migrations(package: str, after: int) -> Iterator[tuple[int, str]]:
    """Yield the migrations above `after` in a store's package, in order, as numbers and SQL."""
    for file in sorted(files(package).joinpath("migrations").iterdir(), key=lambda file: file.name):
        if file.name.endswith(".sql") and (number := int(file.name.partition("_")[0])) > after:
            yield number, file.read_text("utf-8")


def development_build(what: str, version: int, first: str) -> StoreError:
    """Return the error for a database or a backup that a development build of kb 3 made.

    Args:
        what: the name of the database in the message.
        version: the number of its schema.
        first: the steps before an export of it, for the message.
    """
    return StoreError(
        f"A development build of kb made {what} (schema version {version}), which this version cannot read. With the"
        f" build of commit {LAST_DEVELOPMENT_BUILD}: {first}, then run 'kb export DIR'. With this version: start with a"
        " new database, and run 'kb import DIR'."
    )
