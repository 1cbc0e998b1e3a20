"""Connections to the database, and its schema."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

import apsw
import sqlite_vec

from kb.contract.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA_VERSION = 3
BUSY_MS = 10_000

# One statement a call: APSW stops after the first statement that returns a row.
PRAGMAS = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA recursive_triggers = ON",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA cache_size = -65536",
    "PRAGMA mmap_size = 1073741824",
    "PRAGMA trusted_schema = OFF",
)


def connect(path: Path, *, read_only: bool = False) -> apsw.Connection:
    """A connection, to be used by one thread at a time. A read-only one must find the database made.

    Raises:
        StoreError: there is no database at `path` and none can be made, or the file is something else.
    """
    try:
        connection = apsw.Connection(str(path))
        connection.set_busy_timeout(BUSY_MS)
        connection.enable_load_extension(True)  # noqa: FBT003 - it has no keyword
        connection.load_extension(sqlite_vec.loadable_path())
        connection.enable_load_extension(False)  # noqa: FBT003 - likewise
        for pragma in PRAGMAS:
            connection.execute(pragma).fetchall()
        if read_only:
            connection.execute("PRAGMA query_only = ON")
    except apsw.Error as error:
        raise StoreError(f"The database {path} cannot be opened: {error}.") from error
    return connection


def prepare_schema(connection: apsw.Connection, path: Path, dimensions: int) -> None:
    """Make the schema in a new database; check that an existing one fits this program and its model.

    Raises:
        StoreError: the database is of another version, or holds vectors of another length.
    """
    version = connection.pragma("user_version")
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"The database {path} has schema version {version}; this program knows {SCHEMA_VERSION}: use a newer kb."
        )
    if version == 0 and not connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall():
        return _create(connection, dimensions)
    if version != SCHEMA_VERSION:
        raise StoreError(f"The database {path} has schema version {version}, which cannot be read.")
    return _check_dimensions(connection, path, dimensions)


def _create(connection: apsw.Connection, dimensions: int) -> None:
    schema = files(__package__).joinpath("schema.sql").read_text()
    with connection:
        connection.execute(schema.replace("{dimensions}", str(dimensions)))
        connection.pragma("user_version", SCHEMA_VERSION)


def _check_dimensions(connection: apsw.Connection, path: Path, dimensions: int) -> None:
    declared = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'chunks_vec'").fetchall()
    if f"float[{dimensions}]" not in str(declared).lower():
        raise StoreError(f"The database {path} holds vectors of another length than the model's {dimensions}.")
