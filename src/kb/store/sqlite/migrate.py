"""The database is made, checked or brought up to date when the program starts (requirements S-8, D-2)."""

from __future__ import annotations

import logging
import os
from contextlib import closing
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from kb.api.errors import StoreError
from kb.store.sqlite.connection import connect
from kb.store.sqlite.legacy_v2 import migrate as v2
from kb.store.sqlite.schema import SCHEMA_VERSION, create

if TYPE_CHECKING:
    from collections.abc import Iterator

logger = logging.getLogger(__name__)


def prepare_schema(connection: apsw.Connection, path: Path, dimensions: int) -> None:
    """Make the schema in a new database; migrate an older one; check that it fits this program and its model.

    Raises:
        StoreError: the database is of a version that cannot be read, or holds vectors of another length.
    """
    version = connection.pragma("user_version")
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"The database {path} has schema version {version}; this program knows {SCHEMA_VERSION}: use a newer kb."
        )
    if version == 0 and not connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall():
        return create(connection, dimensions)
    if version != SCHEMA_VERSION and not (version in (0, 2) and v2.has_its_tables(connection)):
        raise StoreError(f"The database {path} has schema version {version}, which cannot be read.")
    _check_dimensions(connection, path, dimensions)
    if version == SCHEMA_VERSION:
        return add_missing(connection, dimensions)
    v2.check_columns(connection, path)
    logger.info("migrating from version 2, which takes minutes if the database is large")
    back_up(connection, path.with_name(f"{path.name}.v2-backup"))
    return migrate(connection, path, dimensions)


def add_missing(connection: apsw.Connection, dimensions: int) -> None:
    """Add the columns, tables and indexes that version 3 has got since. Programs without them can still write."""
    newest = connect(Path(":memory:"))
    create(newest, dimensions)
    with connection:
        for table in v2.TABLES:
            v2.add_columns(connection, newest, table)
        for sql in list(_missing(connection, newest)):
            connection.execute(sql)
        v2.add_columns(connection, newest, "vector_space")
    newest.close()


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
        _sync(copy)
    except (OSError, apsw.Error) as error:
        raise StoreError(f"The backup {copy} cannot be written, so the database was not migrated: {error}.") from error


def _is_version_2(path: Path) -> bool:
    try:
        with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
            return v2.has_its_tables(connection)
    except apsw.Error:
        return False


def migrate(connection: apsw.Connection, path: Path, dimensions: int) -> None:
    """From version 2 to the newest, in one transaction: whatever interrupts it, the database is one or the other.

    Raises:
        StoreError: something in the database does not fit; it is as it was.
    """
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


def _to_version_3(connection: apsw.Connection, dimensions: int) -> None:
    for name, function in v2.FUNCTIONS.items():
        connection.create_scalar_function(name, function, 1, deterministic=True)
    text = v2.full_text_column(connection)
    newest = connect(Path(":memory:"))
    create(newest, dimensions, text)
    v2.fit_tables(connection, newest, text)
    connection.execute(files("kb.store.sqlite.migrations").joinpath("0003_fill.sql").read_text())
    v2.drop_stray_vectors(connection)
    for sql in _missing(connection, newest):
        connection.execute(sql)
    connection.execute("INSERT INTO generation VALUES (1, 0)")
    connection.execute("INSERT INTO chunks_fts (chunks_fts) VALUES ('rebuild')")
    newest.close()
    connection.pragma("user_version", SCHEMA_VERSION)


def _missing(connection: apsw.Connection, newest: apsw.Connection) -> Iterator[str]:
    """What makes the objects that are in the newest schema and not in this database."""
    objects = "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid"
    present = {name for name, _ in connection.execute(objects)}
    for name, sql in newest.execute(objects):
        if name not in present and not name.startswith(("chunks_fts_", "chunks_vec_", "sqlite_")):
            yield sql


def _check_dimensions(connection: apsw.Connection, path: Path, dimensions: int) -> None:
    declared = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'chunks_vec'").fetchall()
    if f"float[{dimensions}]" not in str(declared).lower().replace(" ", ""):
        raise StoreError(
            f"The database {path} holds vectors of another length than the model's {dimensions}: set KB_MODEL_DIR to"
            " the model it was made with, or take an empty KB_DATA_DIR and add the documents again."
        )


def _sync(path: Path) -> None:
    for name in (path,) if os.name == "nt" else (path, path.parent):  # Windows cannot open folders
        descriptor = os.open(name, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
