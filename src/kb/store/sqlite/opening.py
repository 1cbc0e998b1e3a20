"""The backend of database files; see `kb.store.backend`."""

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path

import apsw

from kb.api.errors import StoreError
from kb.api.store_kinds import SETTING
from kb.filesystem import is_exposed, make_folder, refuse_closed
from kb.settings import Settings
from kb.store.backfill import DOCUMENTS
from kb.store.engine_lock import database_lock, sole_user
from kb.store.rows import Retention, VectorSpace
from kb.store.sqlite.connection import connect, write_transaction
from kb.store.sqlite.file_identity import refuse_blend
from kb.store.sqlite.schema import SCHEMA_VERSION
from kb.store.sqlite.store import SqliteStore, SqliteTransaction
from kb.store.sqlite.upgrade_reindex import is_due, next_changes, write_changes
from kb.store.sqlite.upkeep import Upkeep
from kb.store.sqlite.vector_space import read_space
from kb.store.sqlite.vectors import Vectors

logger = logging.getLogger(__name__)

LOGS = ("-wal", "-shm")

START_SECONDS = 3
"""The longest start of everything else on a suitable machine."""


@contextmanager
def opened(settings: Settings, space: VectorSpace, read_url: str | None = None) -> Iterator[SqliteStore]:
    path, words_limit = settings.database_path, settings.words_memory_mb << 20
    make_folder(path.parent, SETTING)
    for file in (path, *(path.with_name(f"{path.name}{ending}") for ending in LOGS)):
        if file.exists():
            refuse_closed(file, SETTING)
            close(file)
    refuse_blend(path)
    with (
        sole_user(database_lock(path)),
        closing(SqliteStore(path, space, words_limit, retention=Retention.of(settings), is_marked=True)) as store,
        Upkeep(store, delay=START_SECONDS),
    ):
        yield store


def close(file: Path) -> None:
    """Take the permission to read a file of the database from other accounts."""
    if is_exposed(file):
        try:
            file.chmod(0o600)
            logger.warning("other accounts could read %s; kb has changed its permissions", file)
        except OSError as error:
            logger.warning("other accounts can read %s, and kb cannot change that: %s", file, error.strerror)


def opened_alone(settings: Settings, space: VectorSpace) -> AbstractContextManager[SqliteStore]:
    refuse_blend(settings.database_path)
    return closing(SqliteStore(settings.database_path, space))


def space_in_use(settings: Settings) -> VectorSpace | None:
    file, flags = str(settings.database_path), apsw.SQLITE_OPEN_READWRITE
    refuse_blend(settings.database_path)
    with suppress(apsw.Error), closing(apsw.Connection(file, flags=flags)) as connection:
        if connection.execute("SELECT EXISTS (SELECT 1 FROM chunks)").get:
            return read_space(connection)
    return None


@contextmanager
def moment(path: Path) -> Iterator[SqliteTransaction]:
    """Open a database, index it again if an older kb did, and yield a transaction. No other program may use it.

    Raises:
        StoreError: the database cannot be read, or has another version.
    """
    refuse_blend(path)
    try:
        with closing(connect(path)) as connection:
            if connection.pragma("user_version") != SCHEMA_VERSION:
                raise StoreError("An older version of kb made this database. Start the engine once to migrate it.")
            while is_due(connection.execute):
                with write_transaction(connection):
                    write_changes(connection, next_changes(connection.execute, DOCUMENTS))
            # The limit 0 keeps only ids in memory, no vectors.
            yield SqliteTransaction(connection, Vectors(connection, read_space(connection), 0), Retention())
    except apsw.Error as error:
        raise StoreError(f"kb cannot read the database {path}: {error}.") from error
