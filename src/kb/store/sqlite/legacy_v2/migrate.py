"""Migrate a database of kb 2 to the first schema of kb 3."""

import logging
from contextlib import closing
from importlib.resources import files
from pathlib import Path

import apsw

from kb.api.errors import StoreError
from kb.filesystem import sync
from kb.store.sqlite.connection import connect, reason_of
from kb.store.sqlite.legacy_v2.detect import check_columns, has_its_tables
from kb.store.sqlite.legacy_v2.fill import fill
from kb.store.sqlite.legacy_v2.tables import drop_stray_vectors, fit_tables, missing_objects
from kb.store.sqlite.schema import steps

logger = logging.getLogger(__name__)


def migrate(connection: apsw.Connection, path: Path, dimensions: int) -> None:
    """Back up a database of version 2, then migrate it to the first number in one transaction.

    If the migration is interrupted, the database keeps version 2.

    Raises:
        StoreError: some of the data does not fit, or the backup cannot be written. The database is unchanged.
    """
    check_columns(connection, path)
    logger.info("migrating from version 2; a large database takes minutes")
    back_up(connection, path.with_name(f"{path.name}.v2-backup"))
    # The migration may rebuild tables that other tables refer to.
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
            raise StoreError(f"kb cannot migrate the database {path} from version 2: {error}.") from error
        raise
    finally:
        connection.pragma("foreign_keys", True)  # noqa: FBT003 - it has no keyword


def _to_first_number(connection: apsw.Connection, dimensions: int) -> None:
    number, sql = next(steps(connection, dimensions))
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
    """Copy the database to `copy`, unless a copy exists. The file gets this name when it is complete.

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
        sync(part)
        part.rename(copy)
        sync(copy.parent)
    except (OSError, apsw.Error) as error:
        raise StoreError(
            f"kb did not migrate the database, because it cannot write the backup {copy}: {reason_of(error)}."
        ) from error


def _is_version_2(path: Path) -> bool:
    try:
        with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
            return has_its_tables(connection)
    except apsw.Error:
        return False
