"""Create, check or migrate the database when the program starts (requirements S-8, D-2)."""

import logging
from contextlib import closing, suppress
from glob import escape
from pathlib import Path
from typing import Final

import apsw

from kb import clock
from kb.api.errors import StoreError
from kb.filesystem import sync
from kb.store.migrations import FIRST, development_build
from kb.store.sqlite.connection import reason_of, write_transaction
from kb.store.sqlite.foreign_objects import foreign_names
from kb.store.sqlite.legacy_v2 import migrate as legacy
from kb.store.sqlite.legacy_v2.detect import has_its_tables
from kb.store.sqlite.schema import SCHEMA_VERSION, create, steps
from kb.store.sqlite.vector_space import declared_dimensions

logger = logging.getLogger(__name__)

# The numbers of development builds; version 2 was released.
OF_DEVELOPMENT = range(3, FIRST)

COPY_DAYS: Final = 30
"""How long the copy from before a migration stays: purged documents must not live on in it for ever."""


def prepare_schema(connection: apsw.Connection, path: Path, dimensions: int) -> None:
    """Create the schema in a new database, for vectors of this length; migrate an older database.

    Raises:
        StoreError: kb cannot read or migrate a database of this version.
    """
    version = connection.pragma("user_version")
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"The database {path} has schema version {version}, but kb supports {SCHEMA_VERSION}. Use a newer version."
        )
    if version == 0 and not connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall():
        return create(connection, dimensions)
    if version in OF_DEVELOPMENT:
        raise of_development(f"the database {path}", version)
    if version < FIRST and not (version in (0, 2) and has_its_tables(connection)):
        raise StoreError(f"The database {path} has schema version {version}, which kb cannot read.")
    if version < SCHEMA_VERSION:
        back_up(connection, path, version)
    if version < FIRST:
        legacy.migrate(connection, path, declared_dimensions(connection))
    migrate(connection, path)
    drop_old_copies(path)
    if foreign := foreign_names(connection):
        logger.warning("the database contains objects that kb did not create (%s); run 'kb doctor'", ", ".join(foreign))
    return None


def migrate(connection: apsw.Connection, path: Path) -> None:
    """Migrate the database to the newest version, with one transaction per version.

    Raises:
        StoreError: a migration failed; the database keeps the version before it.
    """
    for number, sql in steps(connection, declared_dimensions(connection)):
        logger.info("migrating to version %s", number)
        try:
            with write_transaction(connection):
                connection.execute(sql).fetchall()
                connection.pragma("user_version", number)
        except apsw.Error as error:
            raise StoreError(f"kb cannot migrate the database {path} to version {number}: {error}.") from error


def of_development(what: str, version: int) -> StoreError:
    """Return the error for a database of a development build; `what` is its name in the message."""
    return development_build(what, version, "start its engine with this database and wait until the queue is empty")


def back_up(connection: apsw.Connection, path: Path, version: int) -> None:
    """Copy the database to `kb.db.v40-backup`, if 40 is its version. The file gets this name when it is complete.

    A copy of version 2 is never replaced: nobody else may still have it.

    Raises:
        StoreError: the copy cannot be written.
    """
    copy = path.with_name(f"{path.name}.v{version or 2}-backup")
    if version < FIRST and copy.exists():
        return
    logger.info("migrating from version %s; kb first copies the database to %s", version or 2, copy)
    part = copy.with_name(f"{copy.name}.part")
    try:
        part.unlink(missing_ok=True)
        part.touch(0o600)
        with closing(apsw.Connection(str(part))) as target, target.backup("main", connection, "main") as backup:
            backup.step()
        sync(part)
        part.replace(copy)
        sync(copy.parent)
    except (OSError, apsw.Error) as error:
        with suppress(OSError):
            part.unlink()
        raise StoreError(
            f"kb did not migrate the database, because it cannot write the backup {copy}: {reason_of(error)}."
        ) from error


def drop_old_copies(path: Path) -> None:
    """Delete the copies of databases of kb 3 that are older than `COPY_DAYS`, also incomplete ones."""
    expired = clock.own.expiry().timestamp() - COPY_DAYS * 86_400
    for copy in path.parent.glob(f"{escape(path.name)}.v[3-9][0-9]-backup*"):
        with suppress(OSError):  # the database can be used nevertheless
            if copy.stat().st_mtime < expired:
                logger.info("deleting %s, a copy from before an upgrade", copy)
                copy.unlink()
