"""Open the store that the settings name."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kb.api.errors import SettingError
from kb.filesystem import is_exposed, make_folder
from kb.store.engine_lock import sole_user
from kb.store.link_backfill import LinkBackfill
from kb.store.protocol import Store
from kb.store.rows import Retention, VectorSpace

if TYPE_CHECKING:
    from kb.store.postgres.store import PostgresStore, PostgresTransaction
    from kb.store.sqlite.store import SqliteStore, SqliteTransaction

    MovedStore = SqliteStore | PostgresStore
    MovedTransaction = SqliteTransaction | PostgresTransaction

logger = logging.getLogger(__name__)

SQLITE = "sqlite:///"
POSTGRES = ("postgresql://", "postgres://")
SETTING = "KB_DATABASE_URL"
START_SECONDS = 3
"""The longest start of everything else on a suitable machine."""


@contextmanager
def open_store(
    url: str | None,
    data_dir: Path,
    space: VectorSpace,
    words_limit: int,
    retention: Retention,
    read_url: str | None = None,
) -> Iterator[Store]:
    """Open the store at `url`, or else `kb.db` in the data folder.

    Args:
        url: the URL of the database, if it is not in the data folder.
        data_dir: the data folder.
        space: the space of the vectors.
        words_limit: the most bytes of memory for the words.
        retention: the limits of the history, the bin and the audit log.
        read_url: the URL of replicas of a database in PostgreSQL.

    Raises:
        SettingError: no backend supports the URL.
        StoreError: the database cannot be opened, is incomplete, has vectors of another space, or is open in another
            engine.
    """
    if is_postgres(url):
        with closing(postgres("store").PostgresStore(url, space, retention, read_url)) as store:
            _check_whole(store)
            with LinkBackfill(store):
                yield store
    else:
        with _open_sqlite(database_path(url, data_dir), space, words_limit, retention) as store, LinkBackfill(store):
            yield store


def database_path(url: str | None, data_dir: Path) -> Path:
    """Return the file of the database at `url`, or in the data folder.

    Raises:
        SettingError: the database is not in a file. The message quotes only the beginning of the URL, which may contain
            a password.
    """
    if not url:
        return data_dir / "kb.db"
    if is_postgres(url):
        raise SettingError(
            f"{SETTING}: this command works only with a database in a file. For PostgreSQL, use its own tools, such as"
            " pg_dump."
        )
    path = url.removeprefix(SQLITE)
    if path in (url, ""):
        scheme, is_url, _ = url.partition("://")
        begin = f"the URL that begins with {scheme}://" if is_url and scheme.isalnum() else "the URL"
        raise SettingError(
            f"{SETTING}: {begin} does not name a database. Write {SQLITE}PATH or postgresql://USER:PASSWORD@HOST/DATABASE."
        )
    if Path(path).is_dir():
        file = f"{SQLITE}{path.rstrip('/')}/kb.db"
        raise SettingError(f"{SETTING}: {path} is a folder. Name a file in it, such as {file}.")
    return Path(path)


def is_postgres(url: str | None) -> bool:
    """Return whether a database is in PostgreSQL."""
    return url is not None and url.startswith(POSTGRES)


def database_lock(path: Path) -> Path:
    """Return the lock file of the database at `path`."""
    return path.with_name(f"{path.name}.lock")


def space_in_use(url: str | None, data_dir: Path) -> VectorSpace | None:
    """Return the space of a database's vectors; None if it has no vectors or cannot be read.

    Raises:
        SettingError: no backend supports the URL.
    """
    if is_postgres(url):
        space: VectorSpace | None = postgres("vector_space").space_in_use(url)
        return space
    from kb.store.sqlite import vector_space

    return vector_space.space_in_use(database_path(url, data_dir))


def open_moment(url: str | None, path: Path) -> AbstractContextManager[MovedTransaction]:
    """Return a snapshot of the PostgreSQL database at `url`, or of the database at `path` while nothing else uses it.

    Raises:
        StoreError: the database cannot be read.
    """
    if is_postgres(url):
        of_postgres: AbstractContextManager[MovedTransaction] = postgres("opening").moment(url)
        return of_postgres
    from kb.store.sqlite.opening import moment

    return moment(path)


def open_alone(url: str | None, data_dir: Path, space: VectorSpace) -> AbstractContextManager[MovedStore]:
    """Return the store at `url`, or in the data folder, for a caller with the locks of the database and the folder.

    Raises:
        SettingError: no backend supports the URL.
        StoreError: the database cannot be opened, holds vectors of another space, or an engine uses it.
    """
    if is_postgres(url):
        postgres("opening").refuse_engines(url)
        shared: PostgresStore = postgres("store").PostgresStore(url, space)
        return closing(shared)
    from kb.store.sqlite.store import SqliteStore

    return closing(SqliteStore(database_path(url, data_dir), space))


@contextmanager
def _open_sqlite(path: Path, space: VectorSpace, words_limit: int, retention: Retention) -> Iterator[Store]:
    from kb.store.sqlite.store import SqliteStore
    from kb.store.sqlite.upkeep import Upkeep

    make_folder(path.parent, SETTING)
    if path.exists() and is_exposed(path):
        logger.warning("other accounts can read the database; run 'chmod go= %s %s-wal %s-shm'", path, path, path)
    with (
        sole_user(database_lock(path)),
        closing(SqliteStore(path, space, words_limit, retention=retention)) as store,
    ):
        _check_whole(store)
        with Upkeep(store, delay=START_SECONDS):
            yield store


def _check_whole(store: MovedStore) -> None:
    """Check that no import into the database was interrupted.

    Raises:
        StoreError: an import was interrupted.
    """
    with store.read() as tx:
        tx.transfer.check_whole()


def postgres(name: str) -> Any:  # noqa: ANN401 - a module
    """Return a module of the PostgreSQL backend.

    Raises:
        SettingError: the driver is not installed.
    """
    try:
        return import_module(f"kb.store.postgres.{name}")
    except ModuleNotFoundError as error:
        if error.name not in ("psycopg", "psycopg_pool"):
            raise
        raise SettingError(
            f"{SETTING}: the package {error.name} is not installed. For PostgreSQL, install 'kb-local[postgres]'."
        ) from error
