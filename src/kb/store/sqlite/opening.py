"""Read a database file without an engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw

from kb.api.errors import StoreError
from kb.store.rows import Retention
from kb.store.sqlite.connection import connect, write_transaction
from kb.store.sqlite.schema import SCHEMA_VERSION
from kb.store.sqlite.store import SqliteTransaction
from kb.store.sqlite.upgrade_reindex import is_due, next_changes, write_changes
from kb.store.sqlite.vector_space import read_space
from kb.store.sqlite.vectors import Vectors


@contextmanager
def moment(path: Path) -> Iterator[SqliteTransaction]:
    """Open a database, index it again if an older kb did, and yield a transaction. No other program may use it.

    Raises:
        StoreError: the database cannot be read, or has another version.
    """
    try:
        with closing(connect(path)) as connection:
            if connection.pragma("user_version") != SCHEMA_VERSION:
                raise StoreError("An older kb made this database. Start the engine once: it migrates the database.")
            while is_due(connection.execute):
                with write_transaction(connection):
                    write_changes(connection, next_changes(connection.execute))
            # The limit 0 keeps only ids in memory, no vectors.
            yield SqliteTransaction(connection, Vectors(connection, read_space(connection), 0), Retention())
    except apsw.Error as error:
        raise StoreError(f"kb cannot read the database {path}: {error}.") from error
