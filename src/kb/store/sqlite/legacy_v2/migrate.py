"""From version 2 to the tables that kb 3 begins with."""

from __future__ import annotations

import logging
from contextlib import closing
from importlib.resources import files
from pathlib import Path

import apsw

from kb.api.errors import StoreError
from kb.filesystem import sync
from kb.store.sqlite.connection import connect
from kb.store.sqlite.legacy_v2.detect import check_columns, has_its_tables
from kb.store.sqlite.legacy_v2.fill import fill
from kb.store.sqlite.legacy_v2.tables import drop_stray_vectors, fit_tables, missing_objects
from kb.store.sqlite.schema import steps

logger = logging.getLogger(__name__)


def migrate(connection: apsw.Connection, path: Path, dimensions: int) -> None:
    """From version 2 to the first number, in one transaction, after a copy.

    Whatever interrupts it, the database is one or the other.

    Raises:
        StoreError: something in the database does not fit, or it cannot be copied; it is as it was.
    """
    check_columns(connection, path)
    logger.info("migrating from version 2, which takes minutes if the database is large")
    back_up(connection, path.with_name(f"{path.name}.v2-backup"))
    # Tables that others refer to may be made anew: the references are checked when all is done.
    connection.pragma("foreign_keys", False)  # noqa: FBT003 - it has no keyword
    connection.execute("BEGIN IMMEDIATE")
    try:
        _to_first_number(connection, dimensions)
        connection.execute("COMMIT")
        logger.info("migrated")
    except BaseException as error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        if isinstance(error, apsw.Error):
            raise StoreError(f"The database {path} cannot be migrated from version 2: {error}.") from error
        raise
    finally:
        connection.pragma("foreign_keys", True)  # noqa: FBT003 - likewise


def _to_first_number(connection: apsw.Connection, dimensions: int) -> None:
    number, sql = next(steps(0, dimensions))
    with closing(connect(Path(":memory:"))) as new:
        new.execute(sql)
        fit_tables(connection, new)
        fill(connection)
        drop_stray_vectors(connection)
        for declaration in missing_objects(new):
            connection.execute(declaration)
    connection.execute(files(__package__).joinpath("complete.sql").read_text("utf-8"))
    connection.pragma("user_version", number)


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
