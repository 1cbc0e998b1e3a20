"""From the settings to a store."""

from __future__ import annotations

from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from kb.api.errors import SettingError
from kb.filesystem import make_folder
from kb.store.lock import sole_user

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kb.store.protocol import Store
    from kb.store.rows import VectorSpace

SQLITE = "sqlite:///"


@contextmanager
def open_store(url: str | None, data_dir: Path, space: VectorSpace, words_limit: int) -> Iterator[Store]:
    """The store at `url`, or `kb.db` in the data directory.

    Args:
        url: where the database is, if it is not there.
        data_dir: the data directory.
        space: what makes the vectors.
        words_limit: how many bytes the words in memory may take.

    Raises:
        SettingError: no backend serves such a URL.
        StoreError: the database cannot be opened, holds vectors of another space, or another engine has it open.
    """
    url = url or f"{SQLITE}{data_dir / 'kb.db'}"
    if not url.startswith(SQLITE):
        raise SettingError(f"KB_DATABASE_URL: only {SQLITE}PATH is served")
    with _open_sqlite(Path(url.removeprefix(SQLITE)), space, words_limit) as store:
        yield store


@contextmanager
def _open_sqlite(path: Path, space: VectorSpace, words_limit: int) -> Iterator[Store]:
    from kb.store.sqlite.store import SqliteStore
    from kb.store.sqlite.upkeep import Upkeep

    make_folder(path.parent, "KB_DATABASE_URL")
    with (
        sole_user(path.with_name(f"{path.name}.lock")),
        closing(SqliteStore(path, space, words_limit)) as store,
        Upkeep(store),
    ):
        yield store
