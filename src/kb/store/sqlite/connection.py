import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import apsw
import sqlite_vec
from apsw import bestpractice

from kb import clock
from kb.api.document_day import own_day
from kb.api.errors import REMEDY, StoreError
from kb.index.words.document_names import alphabetic, folded_name
from kb.processor_time import is_over
from kb.store.row_mapping import array, moment

BUSY_MS = 10_000

# The number of requests that may read at the same time; one more connection writes.
READ_CONNECTIONS = 8

STEPS = 50_000
"""After so many steps of its virtual machine, about two milliseconds, SQLite asks whether to go on."""

PRACTICES = (
    bestpractice.connection_wal,
    bestpractice.connection_enable_foreign_keys,
    bestpractice.connection_recursive_triggers,
)
"""The suitable ones of apsw's recommended practices.

`apply` would affect every connection of the process, and `library_logging` all of its SQLite. `connection_dqs` would
break triggers of version 2 with strings in double quotes. With `connection_optimize`, query plans would depend on the
state of the tables at the last analysis: the queue's statements would read whole tables, and no statement gains.
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
"""Only macOS needs `fullfsync`, because its `fsync` leaves data in the drive's cache. `secure_delete = FAST` would
leave deleted content on pages that become free.
"""

READ_PRAGMAS = {"cache_size": -4096}
"""Each read connection has a small cache and no memory map, because both count as the engine's memory.
The system caches the rest of the file.
"""

VOCABULARY = (
    "CREATE VIRTUAL TABLE temp.instances USING fts5vocab(main, chunks_fts, instance)",
    "CREATE VIRTUAL TABLE temp.terms USING fts5vocab(main, chunks_fts, row)",
)
"""The positions of each word of the full text, and the list of words. Created before a connection becomes read-only."""


def connect(path: Path, *, read_only: bool = False) -> apsw.Connection:
    """Return a connection for one thread at a time. For a read-only connection the database must exist.

    Raises:
        StoreError: the database cannot be opened or created, or the file is damaged or not a database.
    """
    try:
        connection = apsw.Connection(str(path))
        bestpractice.connection_busy_timeout(connection, BUSY_MS)
        load_vectors(connection)
        connection.create_scalar_function("own_day", cast("Any", own_day), 1, deterministic=True)
        connection.create_scalar_function("folded_name", cast("Any", folded_name), 3, deterministic=True)
        connection.create_scalar_function("alphabetic", cast("Any", alphabetic), 1, deterministic=True)
        connection.create_scalar_function("kb_now", cast("Any", _now), 0, deterministic=True)
        connection.convert_binding = _json
        if not connection.pragma("page_count"):  # works only in a new database, before its first page
            connection.pragma("auto_vacuum", "INCREMENTAL")
        for apply in PRACTICES:
            apply(connection)
        for name, value in (PRAGMAS | (READ_PRAGMAS if read_only else {})).items():
            connection.pragma(name, value)
        for sql in VOCABULARY:
            connection.execute(sql)
        if read_only:
            connection.pragma("query_only", "ON")
            connection.set_progress_handler(is_over, STEPS)
    except (apsw.NotADBError, apsw.CorruptError) as error:
        raise damaged(path, error) from error
    except apsw.Error as error:
        raise unopened(path, error) from error
    return connection


def _now() -> str:
    """Return the time of kb's clock; SQLite calls this once per statement."""
    return moment(clock.own.now())


def _json(_: apsw.Cursor, number: int, value: Sequence[str | int]) -> str:
    """Return a list or tuple as a JSON array, because SQLite has no such values."""
    if not isinstance(value, list | tuple):
        raise TypeError(f"Parameter {number} has the type {type(value).__name__}.")
    return array(value)


@contextmanager
def write_transaction(connection: apsw.Connection) -> Iterator[None]:
    """Start a write transaction after any other writer ends; commit when the block ends, roll back if it raises.

    apsw's own context manager does not wait for other writers after a read, and it holds the interpreter's lock while
    it waits.
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
    """Return the error for a database that cannot be opened; in a read-only folder SQLite cannot create its log."""
    if not path.exists():
        return StoreError(f"The database {path} is missing. If it was lost, restore a backup with 'kb backup restore'.")
    if not os.access(path.parent, os.W_OK):
        return StoreError(
            f"kb cannot write to {path.parent}, so it cannot open the database {path}: {fault}. {REMEDY}."
        )
    return StoreError(f"kb cannot open the database {path}: {fault}.")


def reason_of(error: Exception) -> str:
    """Return why a file cannot be written; SQLite's backups leave that out."""
    said = str(error)
    return "the disk is full, or cannot be written" if said == "not an error" else said


def damaged(path: Path, fault: object) -> StoreError:
    """Return the error for a damaged database, with its remedies."""
    return StoreError(
        f"The database {path} is damaged ({fault}). Run 'kb doctor' to see the damage. 'kb doctor --repair' rebuilds"
        " indexes and vectors from the text; if the text is damaged, restore a backup with 'kb backup restore'."
    )


def load_vectors(connection: apsw.Connection) -> None:
    """Load the extension for vectors into a connection."""
    connection.enable_load_extension(True)  # noqa: FBT003 - it has no keyword
    connection.load_extension(sqlite_vec.loadable_path())
    connection.enable_load_extension(False)  # noqa: FBT003 - it has no keyword
