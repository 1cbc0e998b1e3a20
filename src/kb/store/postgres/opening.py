"""A PostgreSQL database as another one takes it over, or as it takes another one over."""

from __future__ import annotations

from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import psycopg

from kb.api.errors import StoreError
from kb.store.postgres.blobs import BlobPlace, PostgresBlobs
from kb.store.postgres.connection import READ
from kb.store.postgres.destination import PostgresDestination
from kb.store.postgres.origin import PostgresOrigin
from kb.store.postgres.store import connect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from kb.store.postgres.connection import Connection
    from kb.store.rows import VectorSpace

PATIENCE = "SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL statement_timeout = 0"
"""Its transaction waits while the other database is written, and reads all there is."""


KEPT = "LOCK TABLE kb.vectors_a, kb.vectors_b IN ACCESS SHARE MODE"
"""Before its moment begins: what 'kb reembed' deletes is gone at once from every moment."""


@contextmanager
def origin(url: str, setting: str) -> Iterator[PostgresOrigin]:
    """One moment of the database at `url`, whatever is written to it meanwhile.

    Raises:
        SettingError: it is no URL.
        StoreError: there is none, or it cannot be read.
    """
    try:
        with closing(connect(url, setting)) as connection:
            connection.execute(READ)
            connection.execute(PATIENCE)
            connection.execute(KEPT)
            yield PostgresOrigin(connection)
    except psycopg.errors.InvalidSchemaName as error:
        raise StoreError(f"{setting}: the database in PostgreSQL is none of kb.") from error
    except psycopg.Error as error:
        raise StoreError(f"{setting}: the database in PostgreSQL cannot be read: {_first_line(error)}.") from error


@contextmanager
def destination(url: str, space: VectorSpace, setting: str) -> Iterator[PostgresDestination]:
    """The database at `url`, whose schema is made if it has none. No engine may use it.

    Raises:
        SettingError: it is no URL.
        StoreError: it cannot be opened, is too old or too new, or is used.
    """
    try:
        with closing(connect(url, setting)) as connection:
            yield PostgresDestination(connection, space)
    except psycopg.Error as error:
        raise StoreError(f"{setting}: the database in PostgreSQL cannot be used: {_first_line(error)}.") from error


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
        raise StoreError(f"The files in PostgreSQL cannot be used: {_first_line(error)}.") from error


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
