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
    from kb.store.rows import VectorSpace

logger = logging.getLogger(__name__)

SQLITE = "sqlite:///"


@contextmanager
def open_store(url: str | None, data_dir: Path, space: VectorSpace) -> Iterator[Store]:
    """The store at `url`, or `kb.db` in the data directory; its vectors are of `space`.

    Raises:
        SettingError: no backend serves such a URL.
        StoreError: the database cannot be opened, holds vectors of another space, or another engine has it open.
    """
    url = url or f"{SQLITE}{data_dir / 'kb.db'}"
    if not url.startswith(SQLITE):
        raise SettingError(f"KB_DATABASE_URL: only {SQLITE}PATH is served")
    with _open_sqlite(Path(url.removeprefix(SQLITE)), space) as store:
        yield store


@contextmanager
def _open_sqlite(path: Path, space: VectorSpace) -> Iterator[Store]:
    from kb.store.sqlite.store import SqliteStore

    make_folder(path.parent, "KB_DATABASE_URL")
    if path.exists() and is_exposed(path):
        logger.warning("other accounts can read the database: chmod go= %s %s-wal %s-shm", path, path, path)
    with sole_user(path.with_name(f"{path.name}.lock")), closing(SqliteStore(path, space)) as store:
        yield store
