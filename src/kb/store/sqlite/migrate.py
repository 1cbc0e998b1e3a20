"""Create, check or migrate the database when the program starts (requirements S-8, D-2)."""

import logging
from pathlib import Path

import apsw

from kb.api.errors import StoreError
from kb.store.migrations import FIRST, development_build
from kb.store.sqlite.connection import write_transaction
from kb.store.sqlite.foreign_objects import foreign_names
from kb.store.sqlite.legacy_v2 import migrate as legacy
from kb.store.sqlite.legacy_v2.detect import has_its_tables
from kb.store.sqlite.schema import SCHEMA_VERSION, create, steps
from kb.store.sqlite.vector_space import declared_dimensions

logger = logging.getLogger(__name__)

# The numbers of development builds; version 2 was released.
OF_DEVELOPMENT = range(3, FIRST)


def prepare_schema(connection: apsw.Connection, path: Path, dimensions: int) -> None:
    """Create the schema in a new database, for vectors of this length; migrate an older database.

    Raises:
        StoreError: kb cannot read or migrate a database of this version.
    """
    version = connection.pragma("user_version")
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"The database {path} has schema version {version}, but this kb supports {SCHEMA_VERSION}. Use a newer kb."
        )
    if version == 0 and not connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall():
        return create(connection, dimensions)
    if version in OF_DEVELOPMENT:
        raise of_development(f"the database {path}", version)
    if version < FIRST and not (version in (0, 2) and has_its_tables(connection)):
        raise StoreError(f"The database {path} has schema version {version}, which kb cannot read.")
    if version < FIRST:
        legacy.migrate(connection, path, declared_dimensions(connection))
    migrate(connection, path)
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
