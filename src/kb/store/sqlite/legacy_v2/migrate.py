"""Migrate a database of kb 2 to the first schema of kb 3."""

import logging
from contextlib import closing
from importlib.resources import files
from pathlib import Path

import apsw

from kb.api.errors import StoreError
from kb.store.sqlite.connection import connect
from kb.store.sqlite.legacy_v2.detect import check_columns
from kb.store.sqlite.legacy_v2.fill import fill
from kb.store.sqlite.legacy_v2.tables import drop_stray_vectors, fit_tables, missing_objects
from kb.store.sqlite.schema import steps

logger = logging.getLogger(__name__)


def migrate(connection: apsw.Connection, path: Path, dimensions: int) -> None:
    """Migrate a database of version 2 to the first number in one transaction.

    If the migration is interrupted, the database keeps version 2.

    Raises:
        StoreError: some of the data does not fit. The database is unchanged.
    """
    check_columns(connection, path)
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
