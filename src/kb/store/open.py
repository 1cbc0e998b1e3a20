"""From the settings to a store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kb.contract.errors import SettingError

if TYPE_CHECKING:
    from kb.store.base import Store

SQLITE = "sqlite:///"


def open_store(url: str | None, data_dir: Path, dimensions: int) -> Store:
    """The store at `url`, or `kb.db` in the data directory; vectors have `dimensions` numbers.

    Raises:
        SettingError: no backend serves such a URL.
        StoreError: the database cannot be opened.
    """
    url = url or f"{SQLITE}{data_dir / 'kb.db'}"
    if not url.startswith(SQLITE):
        raise SettingError(f"KB_DATABASE_URL: only {SQLITE}PATH is served")
    from kb.store.sqlite.store import SqliteStore

    return SqliteStore(Path(url.removeprefix(SQLITE)), dimensions)
