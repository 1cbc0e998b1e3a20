"""A database in a file, and the lock that keeps it to one engine."""

from __future__ import annotations

from pathlib import Path

from kb.api.errors import SettingError
from kb.api.stores import SETTING, not_a_database, store_kind


def database_path(url: str | None, data_dir: Path) -> Path:
    """Return the file of the database at `url`, or in the data folder.

    Raises:
        SettingError: the database is not in a file. The message quotes only the beginning of the URL, which may contain
            a password.
    """
    if not url:
        return data_dir / "kb.db"
    kind = store_kind(url)
    if kind.is_shared:
        raise SettingError(
            f"{SETTING}: this command works only with a database in a file. For {kind.title}, use its own tools, such"
            f" as {kind.own_tools}."
        )
    scheme, _, rest = url.partition("://")
    path = rest.removeprefix("/")
    if path in (rest, ""):
        raise not_a_database(url)
    if Path(path).is_dir():
        file = f"{scheme}:///{path.rstrip('/')}/kb.db"
        raise SettingError(f"{SETTING}: {path} is a folder. Name a file in it, such as {file}.")
    return Path(path)


def database_lock(path: Path) -> Path:
    """Return the lock file of the database at `path`."""
    return path.with_name(f"{path.name}.lock")
