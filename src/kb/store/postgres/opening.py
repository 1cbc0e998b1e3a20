"""A database in PostgreSQL that is read without an engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import psycopg

from kb.api.errors import StoreError
from kb.store.postgres.blobs import BlobPlace, PostgresBlobs
from kb.store.postgres.connection import READ, Connection
from kb.store.postgres.error_translation import first_line
from kb.store.postgres.migrate import SCHEMA_VERSION, schema_version
from kb.store.postgres.store import PostgresTransaction, connect
from kb.store.postgres.vector_space import IN_USE, are_engines_there
from kb.store.rows import Retention

PATIENCE = "SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL statement_timeout = 0"
"""Its transaction waits while files are written, and reads all there is."""

KEPT = "LOCK TABLE kb.vectors_a, kb.vectors_b IN ACCESS SHARE MODE"
"""Before its moment begins: what 'kb reembed' deletes is gone at once from every moment."""


@contextmanager
def moment(url: str) -> Iterator[PostgresTransaction]:
    """One moment of the database at `url`, whatever is written to it meanwhile.

    Raises:
        SettingError: it is no URL.
        StoreError: there is none, or it cannot be read.
    """
    try:
        with closing(connect(url)) as connection:
            if connection.execute("SELECT to_regclass('kb.migrations') IS NULL").fetchone() == (True,):
                raise StoreError("The database in PostgreSQL is none of kb.")
            connection.execute(READ)
            connection.execute(PATIENCE)
            connection.execute(KEPT)
            if schema_version(connection) != SCHEMA_VERSION:
                raise StoreError("The database is of another kb: start the engine once, which migrates it.")
            yield PostgresTransaction(connection, Retention(), 0)
    except psycopg.Error as error:
        raise StoreError(f"The database in PostgreSQL cannot be read: {first_line(error)}.") from error


def refuse_engines(url: str) -> None:
    """See that no engine uses the database at `url`.

    Raises:
        SettingError: it is no URL.
        StoreError: one does, or the database does not answer.
    """
    try:
        with closing(connect(url)) as connection:
            if are_engines_there(connection):
                raise StoreError(IN_USE)
    except psycopg.Error as error:
        raise StoreError(f"The database in PostgreSQL cannot be used: {first_line(error)}.") from error


@contextmanager
def files(url: str, scratch: Path) -> Iterator[tuple[PostgresBlobs, Callable[[], AbstractContextManager[BlobPlace]]]]:
    """The files in the database at `url`, and what is recorded of where they are.

    Raises:
        StoreError: it cannot be used.
    """
    try:
        with closing(connect(url)) as connection:

            @contextmanager
            def lend() -> Iterator[Connection]:
                yield connection

            @contextmanager
            def place() -> Iterator[BlobPlace]:
                with connection.transaction():
                    yield BlobPlace(connection)

            yield PostgresBlobs(lend, scratch), place
    except psycopg.Error as error:
        raise StoreError(f"The files in PostgreSQL cannot be used: {first_line(error)}.") from error
