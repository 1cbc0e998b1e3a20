"""The database is made, checked or brought up to date when the program starts (requirements S-8, D-2)."""

from __future__ import annotations

import logging
import unicodedata
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import apsw

from kb.api.errors import StoreError
from kb.lexical.segment import segmented
from kb.store.sqlite.connection import write_transaction
from kb.store.sqlite.foreign import foreign_names
from kb.store.sqlite.legacy_v2 import migrate as legacy
from kb.store.sqlite.legacy_v2.detect import has_its_tables
from kb.store.sqlite.schema import SCHEMA_VERSION, create
from kb.store.sqlite.vector_space import declared_dimensions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

logger = logging.getLogger(__name__)

OLDEST_NUMBERED = 3
"""The version that the numbered migrations begin at."""

FUNCTIONS: dict[str, Any] = {"nfc": partial(unicodedata.normalize, "NFC"), "segmented": segmented}
"""What a migration cannot say in SQL."""

FULL_TEXT_ANEW = "INSERT INTO chunks_fts (chunks_fts) VALUES ('rebuild')"
DAMAGES = (apsw.CorruptError, apsw.ConstraintError)
"""What FTS5 raises when it cannot take words out of a damaged full text."""


def prepare_schema(connection: apsw.Connection, path: Path, dimensions: int) -> None:
    """Make the schema in a new database, for vectors of this length; migrate an older one.

    Raises:
        StoreError: the database is of a version that cannot be read.
    """
    version = connection.pragma("user_version")
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"The database {path} has schema version {version}; this program knows {SCHEMA_VERSION}: use a newer kb."
        )
    if version == 0 and not connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall():
        return create(connection, dimensions)
    if version < OLDEST_NUMBERED and not (version in (0, 2) and has_its_tables(connection)):
        raise StoreError(f"The database {path} has schema version {version}, which cannot be read.")
    dimensions = declared_dimensions(connection)
    if version < OLDEST_NUMBERED:
        legacy.migrate(connection, path, dimensions)
    elif version == OLDEST_NUMBERED:
        legacy.complete(connection, dimensions)
    migrate(connection, path)
    if found := foreign_names(connection):
        logger.warning("the database declares what kb never does (%s): 'kb doctor' says what helps", ", ".join(found))
    return None


def migrate(connection: apsw.Connection, path: Path) -> None:
    """Go from the database's version to the newest, one number after the other, each whole or not at all.

    Raises:
        StoreError: one fails; the database is of the version before it.
    """
    for name, function in FUNCTIONS.items():
        connection.create_scalar_function(name, function, 1, deterministic=True)
    for number, sql in migrations(after=connection.pragma("user_version")):
        logger.info("migrating to version %s", number)
        try:
            try:
                _take(connection, number, sql)
            except DAMAGES as error:
                logger.warning("the full text may be damaged (%s): it is made anew from the texts", error)
                _take(connection, number, f"{FULL_TEXT_ANEW}; {sql}")
        except apsw.Error as error:
            raise StoreError(f"The database {path} cannot be migrated to version {number}: {error}.") from error


def _take(connection: apsw.Connection, number: int, sql: str) -> None:
    """Go to a version, whole or not at all."""
    with write_transaction(connection):
        connection.execute(sql).fetchall()
        connection.pragma("user_version", number)


def migrations(after: int) -> Iterator[tuple[int, str]]:
    """Yield the numbers above `after`, in order, and what leads to each."""
    for file in sorted(files(__package__).joinpath("migrations").iterdir(), key=lambda file: file.name):
        if file.name.endswith(".sql") and (number := int(file.name.partition("_")[0])) > after:
            yield number, file.read_text("utf-8")
