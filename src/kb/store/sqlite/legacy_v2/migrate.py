"""From version 2 to 3, and from an early build's version 3 to what it became."""

from __future__ import annotations

import logging
from contextlib import closing, contextmanager
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from kb.api.errors import StoreError
from kb.store.sqlite.connection import connect
from kb.store.sqlite.legacy_v2.backup import back_up
from kb.store.sqlite.legacy_v2.detect import TABLES, check_columns, full_text_column
from kb.store.sqlite.legacy_v2.fill import fill
from kb.store.sqlite.legacy_v2.tables import add_columns, drop_stray_vectors, fit_tables, missing_objects

if TYPE_CHECKING:
    from collections.abc import Iterator

logger = logging.getLogger(__name__)


def migrate(connection: apsw.Connection, path: Path, dimensions: int) -> None:
    """From version 2 to 3, in one transaction, after a copy: whatever interrupts it, the database is one or the other.

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
        _to_version_3(connection, dimensions)
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


def complete(connection: apsw.Connection, dimensions: int) -> None:
    """Add the columns, tables and indexes that a database of an early build's version 3 lacks."""
    with _version_3(dimensions) as newest, connection:
        for table in TABLES:
            add_columns(connection, newest, table)
        for sql in list(missing_objects(connection, newest)):
            connection.execute(sql)


def _to_version_3(connection: apsw.Connection, dimensions: int) -> None:
    text = full_text_column(connection)
    with _version_3(dimensions, text) as newest:
        fit_tables(connection, newest, text)
        fill(connection)
        drop_stray_vectors(connection)
        for sql in missing_objects(connection, newest):
            connection.execute(sql)
    connection.execute("INSERT INTO generation VALUES (1, 0)")
    connection.execute("INSERT INTO chunks_fts (chunks_fts) VALUES ('rebuild')")
    connection.pragma("user_version", 3)


@contextmanager
def _version_3(dimensions: int, text: str = "text") -> Iterator[apsw.Connection]:
    """An empty database of version 3; `text` is the full-text column that holds a chunk's text."""
    sql = files(__package__).joinpath("schema_v3.sql").read_text("utf-8")
    with closing(connect(Path(":memory:"))) as newest:
        newest.execute(sql.replace("{dimensions}", str(dimensions)).replace("{text}", text))
        yield newest
