"""Open the store that the settings name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from pathlib import Path
from typing import cast

from kb.api.errors import SettingError
from kb.api.stores import SETTING, store_kind
from kb.store.backend import Backend, MovedStore, MovedTransaction
from kb.store.link_backfill import LinkBackfill
from kb.store.protocol import Store
from kb.store.rows import Retention, VectorSpace


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
        read_url: the URL of replicas of a shared database.

    Raises:
        SettingError: no backend supports the URL.
        StoreError: the database cannot be opened, is incomplete, has vectors of another space, or is open in another
            engine.
    """
    with backend(url).opened(url or "", data_dir, space, words_limit, retention, read_url) as store:
        with store.read() as tx:
            tx.transfer.check_whole()
        with LinkBackfill(store):
            yield store


def space_in_use(url: str | None, data_dir: Path) -> VectorSpace | None:
    """Return the space of a database's vectors; None if it has no vectors or cannot be read.

    Raises:
        SettingError: no backend supports the URL.
    """
    return backend(url).space_in_use(url or "", data_dir)


def open_moment(url: str | None, data_dir: Path) -> AbstractContextManager[MovedTransaction]:
    """Return a snapshot of the database at `url`, or in the folder. Nothing else may use a database in a file.

    Raises:
        StoreError: the database cannot be read.
    """
    return backend(url).moment(url or "", data_dir)


def open_alone(url: str | None, data_dir: Path, space: VectorSpace) -> AbstractContextManager[MovedStore]:
    """Return the store at `url`, or in the data folder, for a caller with the locks of the database and the folder.

    Raises:
        SettingError: no backend supports the URL.
        StoreError: the database cannot be opened, holds vectors of another space, or an engine uses it.
    """
    return backend(url).opened_alone(url or "", data_dir, space)


def backend(url: str | None) -> Backend:
    """Return the module that opens the database at `url`.

    Raises:
        SettingError: no backend supports the URL, or a package that it needs is not installed.
    """
    kind = store_kind(url)
    try:
        return cast("Backend", import_module(kind.backend))
    except ModuleNotFoundError as error:
        name = str(error.name)
        if not kind.install or name.partition(".")[0] == kind.backend.partition(".")[0]:
            raise
        raise SettingError(
            f"{SETTING}: the package {name} is not installed. For {kind.title}, install '{kind.install}'."
        ) from error
