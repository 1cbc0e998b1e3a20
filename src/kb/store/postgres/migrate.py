"""The schema, which numbered migrations create and update."""

import logging
from typing import Final

import psycopg

from kb.api.errors import StoreError
from kb.store.migrations import FIRST, development_build, migrations, newest
from kb.store.postgres.connection import SCHEMA, Connection
from kb.store.postgres.statements import statements

logger = logging.getLogger(__name__)

SCHEMA_VERSION: Final = newest(__package__)
OLDEST_POSTGRES: Final = 16
OLDEST_PGVECTOR: Final = (0, 8, 4)
MIGRATING: Final = 0x6B62_0001
"""The advisory lock for migrations."""


def prepare_schema(connection: Connection) -> None:
    """Create the schema, or migrate an older one. Engines that start together do this only once.

    Raises:
        StoreError: the server or pgvector is too old, or the schema is too new or cannot be migrated.
    """
    require_server(connection)
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATING,))
        require_pgvector(connection)
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        connection.execute(
            f"CREATE TABLE IF NOT EXISTS {SCHEMA}.migrations"
            " (number int PRIMARY KEY, at timestamptz(3) NOT NULL DEFAULT now())"
        )
        version = schema_version(connection)
        if version > SCHEMA_VERSION:
            raise StoreError(
                f"The database has schema version {version}, but kb supports {SCHEMA_VERSION}. Use a newer version."
            )
        if 0 < version < FIRST:
            raise development_build("the database", version, "copy the database to a file with 'kb migrate-store'")
        for number, sql in migrations(__package__, after=version):
            logger.info("migrating to version %s", number)
            try:
                connection.execute(sql)
            except psycopg.Error as error:
                raise StoreError(f"kb cannot migrate the database to version {number}: {error}.") from error
            connection.execute("INSERT INTO migrations (number) VALUES (%s)", (number,))
        connection.execute(statements("search")["note_change"])


def require_server(connection: Connection) -> None:
    """Check the version and the encoding of the server.

    Raises:
        StoreError: the server is too old, or does not store texts in UTF-8.
    """
    major = connection.info.server_version // 10_000
    if major < OLDEST_POSTGRES:
        raise StoreError(f"PostgreSQL {major} is too old for kb: use {OLDEST_POSTGRES} or newer.")
    [(encoding,)] = connection.execute("SHOW server_encoding").fetchall()
    if encoding != "UTF8":
        raise StoreError(f"The database stores text in {encoding}. Create one with ENCODING 'UTF8'.")


def require_pgvector(connection: Connection) -> None:
    """Create the extension if kb is allowed to, and check its version.

    Raises:
        StoreError: the extension is missing or too old.
    """
    oldest = ".".join(map(str, OLDEST_PGVECTOR))
    row = connection.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'").fetchone()
    if row is None:
        try:
            with connection.transaction():
                connection.execute("CREATE EXTENSION vector SCHEMA public")
        except psycopg.Error as error:
            raise StoreError(
                f"The database lacks pgvector ({str(error).splitlines()[0]}): install {oldest} or newer on the server"
                " and run CREATE EXTENSION vector as its administrator."
            ) from error
        row = connection.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'").fetchone()
    version = row[0] if row else ""
    if _numbers(version) < OLDEST_PGVECTOR:
        raise StoreError(
            f"pgvector {version} is too old for kb: before {oldest}, a vacuum may damage its indexes, so that searches"
            f" miss documents. Install {oldest} or newer and run ALTER EXTENSION vector UPDATE."
        )


def schema_version(connection: Connection) -> int:
    """Return the number of the last migration."""
    [(number,)] = connection.execute("SELECT COALESCE(max(number), 0) FROM migrations").fetchall()
    return int(number)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
