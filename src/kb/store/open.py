"""From the settings to a store."""

from __future__ import annotations

from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from kb.api.errors import SettingError, StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kb.store.protocol import Store
    from kb.store.rows import VectorSpace

SQLITE = "sqlite:///"


@contextmanager
def sole_user(path: Path) -> Iterator[None]:
    """Holds the lock at `path`: one engine at a time, for it keeps the vectors in memory.

    Raises:
        StoreError: another engine has it.
    """
    try:
        with FileLock(path, timeout=0):
            yield
    except Timeout:
        raise StoreError(f"Another kb engine is using {path.parent} ({path.name}); stop it first.") from None


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
    from kb.store.sqlite.store import SqliteStore

    path = Path(url.removeprefix(SQLITE))
    make_folder(path.parent, "KB_DATABASE_URL")
    with sole_user(path.with_name(f"{path.name}.lock")), closing(SqliteStore(path, space)) as store:
        yield store


def make_folder(path: Path, variable: str) -> None:
    """A folder for its owner alone, if it is not there.

    Raises:
        StoreError: it cannot be made; the message names the `variable` that asked for it.
    """
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise StoreError(f"{variable}: {path} cannot be used: {error.strerror}.") from error
