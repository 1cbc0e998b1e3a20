"""From the settings to a store."""

from __future__ import annotations

import logging
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from kb.api.errors import SettingError
from kb.filesystem import is_exposed, make_folder
from kb.store.lock import sole_user

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kb.store.protocol import Store
    from kb.store.rows import Retention, VectorSpace

logger = logging.getLogger(__name__)

SQLITE = "sqlite:///"
START_SECONDS = 3
"""How long the start of everything else takes at most on a machine that is fit for it."""


@contextmanager
def open_store(
    url: str | None, data_dir: Path, space: VectorSpace, words_limit: int, retention: Retention
) -> Iterator[Store]:
    """The store at `url`, or `kb.db` in the data directory.

    Args:
        url: where the database is, if it is not there.
        data_dir: the data directory.
        space: what makes the vectors.
        words_limit: how many bytes the words in memory may take.
        retention: how long what was changed or deleted is kept.

    Raises:
        SettingError: no backend serves such a URL.
        StoreError: the database cannot be opened, holds vectors of another space, or another engine has it open.
    """
    with _open_sqlite(database_path(url, data_dir), space, words_limit, retention) as store:
        yield store


def database_path(url: str | None, data_dir: Path) -> Path:
    """Return the file of the database at `url`, or in the data directory.

    Raises:
        SettingError: no backend serves such a URL.
    """
    url = url or f"{SQLITE}{data_dir / 'kb.db'}"
    if not url.startswith(SQLITE):
        raise SettingError(f"KB_DATABASE_URL: only {SQLITE}PATH is served")
    return Path(url.removeprefix(SQLITE))


def database_lock(path: Path) -> Path:
    """Return the file that whoever uses the database at `path` locks."""
    return path.with_name(f"{path.name}.lock")


def space_in_use(path: Path, otherwise: VectorSpace) -> VectorSpace:
    """Return what the vectors of the database at `path` are of; `otherwise` if it has none, or cannot be read."""
    from kb.store.sqlite import vector_space

    return vector_space.space_in_use(path) or otherwise


@contextmanager
def _open_sqlite(path: Path, space: VectorSpace, words_limit: int, retention: Retention) -> Iterator[Store]:
    from kb.store.sqlite.store import SqliteStore
    from kb.store.sqlite.upkeep import Upkeep

    make_folder(path.parent, "KB_DATABASE_URL")
    if path.exists() and is_exposed(path):
        logger.warning("other accounts can read the database: chmod go= %s %s-wal %s-shm", path, path, path)
    with (
        sole_user(database_lock(path)),
        closing(SqliteStore(path, space, words_limit, retention=retention)) as store,
        Upkeep(store, delay=START_SECONDS),
    ):
        yield store
