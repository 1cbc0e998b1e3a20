"""Connections to the database."""

from __future__ import annotations

from typing import TYPE_CHECKING

import apsw
import sqlite_vec

from kb.api.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path

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
