"""A copy of the database before it is migrated."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import apsw

from kb.api.errors import StoreError
from kb.filesystem import sync
from kb.store.sqlite.legacy_v2.detect import has_its_tables


def back_up(connection: apsw.Connection, copy: Path) -> None:
    """A copy of the database at `copy`, unless one is there; it has that name only when it is whole.

    Raises:
        StoreError: the copy cannot be written.
    """
    if _is_version_2(copy):
        return
    part = copy.with_name(f"{copy.name}.part")
    try:
        part.unlink(missing_ok=True)
        target = apsw.Connection(str(part))
        with target.backup("main", connection, "main") as backup:
            backup.step()
        target.close()
        part.chmod(0o600)
        part.rename(copy)
        sync(copy)
        sync(copy.parent)
    except (OSError, apsw.Error) as error:
        raise StoreError(f"The backup {copy} cannot be written, so the database was not migrated: {error}.") from error


def _is_version_2(path: Path) -> bool:
    try:
        with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
            return has_its_tables(connection)
    except apsw.Error:
        return False
