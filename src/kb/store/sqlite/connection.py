"""Connections to the database."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import apsw
import sqlite_vec
from apsw import bestpractice

from kb import clock
from kb.api.date_parsing import own_day
from kb.api.errors import REMEDY, StoreError
from kb.lexical.document_names import folded_name
from kb.store.row_mapping import array, moment

BUSY_MS = 10_000

READ_CONNECTIONS = 8
"""How many requests may read at once; one connection writes."""

PRACTICES = (
    bestpractice.connection_wal,
    bestpractice.connection_enable_foreign_keys,
    bestpractice.connection_recursive_triggers,
)
"""Those that fit.

`apply` would reach every connection of the process, and `library_logging` all of its SQLite. `connection_dqs` would
break triggers of version 2 with strings in double quotes. `connection_optimize` would let plans depend on what the
tables looked like when they were last analyzed: the queue's statements would read whole tables, and none gains by it.
"""

PRAGMAS = {
    "synchronous": "FULL",
    "fullfsync": "ON",
    "checkpoint_fullfsync": "ON",
    "secure_delete": "ON",
    "journal_size_limit": 16 << 20,
    "temp_store": "MEMORY",
    "cache_size": -16384,
    "mmap_size": 0,
    "trusted_schema": "OFF",
}
"""macOS alone heeds `fullfsync`: its `fsync` leaves data in the drive. `secure_delete = FAST` would leave what stood on
pages that become free.
"""

READ_PRAGMAS = {"cache_size": -4096}
"""What each of them holds counts as the engine's memory: no map of the file, and a small cache.
The system's has the rest.
"""

VOCABULARY = (
    "CREATE VIRTUAL TABLE temp.instances USING fts5vocab(main, chunks_fts, instance)",
    "CREATE VIRTUAL TABLE temp.terms USING fts5vocab(main, chunks_fts, row)",
)
"""Where each word of the full text stands, and each once. A connection that only reads could not make them later."""


def connect(path: Path, *, read_only: bool = False) -> apsw.Connection:
    """Return a connection, to be used by one thread at a time. A read-only one must find the database made.

    Raises:
        StoreError: there is no database at `path` and none can be made, or the file is something else.
    """
    try:
        connection = apsw.Connection(str(path))
        bestpractice.connection_busy_timeout(connection, BUSY_MS)
        load_vectors(connection)
        connection.create_scalar_function("own_day", cast("Any", own_day), 1, deterministic=True)
        connection.create_scalar_function("folded_name", cast("Any", folded_name), 3, deterministic=True)
        connection.create_scalar_function("kb_now", cast("Any", _now), 0, deterministic=True)
        connection.convert_binding = _json
        if not connection.pragma("page_count"):  # only a new database takes it, and only before it has a page
            connection.pragma("auto_vacuum", "INCREMENTAL")
        for apply in PRACTICES:
            apply(connection)
        for name, value in (PRAGMAS | (READ_PRAGMAS if read_only else {})).items():
            connection.pragma(name, value)
        for sql in VOCABULARY:
            connection.execute(sql)
        if read_only:
            connection.pragma("query_only", "ON")
    except (apsw.NotADBError, apsw.CorruptError) as error:
        raise damaged(path, error) from error
    except apsw.Error as error:
        raise unopened(path, error) from error
    return connection


def _now() -> str:
    """Return kb's own time, which SQLite asks for once in a statement."""
    return moment(clock.own.now())


def _json(_: apsw.Cursor, number: int, value: Sequence[str | int]) -> str:
    """Return a parameter that is no value of SQLite's as a JSON array."""
    if not isinstance(value, list | tuple):
        raise TypeError(f"Parameter {number} is of the type {type(value).__name__}.")
    return array(value)


@contextmanager
def write_transaction(connection: apsw.Connection) -> Iterator[None]:
    """Begin to write, once nobody else does; commit when the block ends, roll back when it raises.

    Not with apsw's own, which waits for no one once it has read, and holds the interpreter's lock while it waits.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def unopened(path: Path, fault: object) -> StoreError:
    """Return the error of a database that cannot be opened; a read-only folder can hold no log beside it."""
    if path.exists() and not os.access(path.parent, os.W_OK):
        return StoreError(
            f"{path.parent} cannot be written, so the database {path} cannot be opened: {fault}. {REMEDY}."
        )
    return StoreError(f"The database {path} cannot be opened: {fault}.")


def damaged(path: Path, fault: object) -> StoreError:
    """Return the error that says what is wrong with a database, and the ways out."""
    return StoreError(
        f"The database {path} is damaged ({fault}): 'kb doctor' shows the damage, 'kb doctor --repair' rebuilds what"
        " follows from the texts, and 'kb backup restore' restores a backup."
    )


def load_vectors(connection: apsw.Connection) -> None:
    """Let a connection read and write vectors."""
    connection.enable_load_extension(True)  # noqa: FBT003 - it has no keyword
    connection.load_extension(sqlite_vec.loadable_path())
    connection.enable_load_extension(False)  # noqa: FBT003 - likewise
