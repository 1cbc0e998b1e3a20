"""The backend of databases in PostgreSQL; see `kb.store.backend`."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from pathlib import Path

import psycopg

from kb.api.errors import StoreError
from kb.settings import Settings
from kb.store.postgres.blobs import BlobPlace, PostgresBlobs
from kb.store.postgres.connection import READ, Connection
from kb.store.postgres.error_translation import first_line
from kb.store.postgres.migrate import SCHEMA_VERSION, schema_version
from kb.store.postgres.store import PostgresStore, PostgresTransaction, connect
from kb.store.postgres.vector_space import IN_USE, are_engines_there, read_space
from kb.store.rows import Retention, VectorSpace

PATIENCE = "SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL statement_timeout = 0"
"""No limits, because the transaction waits while files are written, and reads the whole database."""

KEPT = "LOCK TABLE kb.vectors_a, kb.vectors_b IN ACCESS SHARE MODE"
"""Runs before the snapshot begins, because vectors that 'kb reembed' deletes vanish from every snapshot at once."""


@contextmanager
def opened(settings: Settings, space: VectorSpace, read_url: str | None) -> Iterator[PostgresStore]:
    store = PostgresStore(str(settings.database_url), space, Retention.of(settings), read_url)
    with closing(store):
        yield store


def opened_alone(settings: Settings, space: VectorSpace) -> AbstractContextManager[PostgresStore]:
    url = str(settings.database_url)
    refuse_engines(url)
    return closing(PostgresStore(url, space))


@contextmanager
def moment(settings: Settings) -> Iterator[PostgresTransaction]:
    """Yield a snapshot of the database, which later writes do not change.

    Raises:
        SettingError: the URL is not valid.
        StoreError: the database does not exist or cannot be read.
    """
    with _connected(str(settings.database_url), "read the database") as connection:
        if connection.execute("SELECT to_regclass('kb.migrations') IS NULL").fetchone() == (True,):
            raise StoreError(
                "kb did not create this PostgreSQL database. Check KB_DATABASE_URL. If it is new and empty, start"
                " the engine once."
            )
        connection.execute(READ)
        connection.execute(PATIENCE)
        connection.execute(KEPT)
        if schema_version(connection) != SCHEMA_VERSION:
            raise StoreError(
                "Another version of kb made this database. Start the engine once: it migrates the database."
            )
        yield PostgresTransaction(connection, Retention(), 0)


def space_in_use(settings: Settings) -> VectorSpace | None:
    with suppress(psycopg.Error), closing(connect(str(settings.database_url))) as connection:
        if connection.execute("SELECT EXISTS (SELECT 1 FROM chunks)").fetchone() == (True,):
            return read_space(connection)
    return None


def refuse_engines(url: str) -> None:
    """Check that no engine uses the database at `url`.

    Raises:
        SettingError: the URL is not valid.
        StoreError: an engine uses the database, or the database does not answer.
    """
    with _connected(url, "use the database") as connection:
        if are_engines_there(connection):
            raise StoreError(IN_USE)


@contextmanager
def files(
    settings: Settings, scratch: Path
) -> Iterator[tuple[PostgresBlobs, Callable[[], AbstractContextManager[BlobPlace]]]]:
    """Yield the files in the database, and a function that lends the record of where files are.

    Raises:
        StoreError: the database cannot be used.
    """
    with _connected(str(settings.database_url), "use the files") as connection:

        @contextmanager
        def place() -> Iterator[BlobPlace]:
            with connection.transaction():
                yield BlobPlace(connection)

        yield PostgresBlobs(lambda: nullcontext(connection), scratch), place


@contextmanager
def _connected(url: str, to: str) -> Iterator[Connection]:
    try:
        with closing(connect(url)) as connection:
            yield connection
    except psycopg.Error as error:
        raise StoreError(f"kb cannot {to} in PostgreSQL: {first_line(error)}.") from error
