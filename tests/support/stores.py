"""The kinds of stores that tests use. Each opens a store in a folder, or the same one again."""

from __future__ import annotations

import os
import tempfile
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import apsw

from kb.store.rows import Retention
from kb.store.sqlite.connection import connect
from kb.store.sqlite.schema import SCHEMA_VERSION, create
from kb.store.sqlite.store import SqliteStore
from tests.support.spaces import space

EVERYTHING = Retention()


def sqlite(folder, /, retention=EVERYTHING, **changes):
    database, vectors = folder / "kb.db", space(**changes)
    if not database.exists():
        database.write_bytes(empty_database(vectors.dimensions))
    return closing(SqliteStore(database, vectors, retention=retention))


@cache
def empty_database(dimensions):
    """Return a database after all migrations, which each new store copies instead of running them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kb.db")
        with closing(connect(path)) as connection:
            create(connection, dimensions)
        return path.read_bytes()


def postgres(folder, /, retention=EVERYTHING, **changes):
    from kb.store.postgres.store import PostgresStore
    from tests.support.postgres import database_url

    return closing(PostgresStore(database_url(folder), space(**changes), retention))


STORES = {"sqlite": sqlite, "postgres": postgres}
TRIED = os.environ.get("KB_TEST_STORES", "sqlite").split(",")
"""Those that are tried; servers are run over the last. `make test-postgres` says which."""


@dataclass(frozen=True)
class Database:
    """The database of a folder. Called, it is opened as a store, again and again: `with database(dimensions=8) as store`."""

    folder: Path
    kind: str = TRIED[-1]

    def __call__(self, **options):
        return STORES[self.kind](self.folder, **options)

    def execute(self, statement):
        """Execute a statement while others use the database, and return the rows."""
        if self.kind == "sqlite":
            with closing(apsw.Connection(str(self.folder / "kb.db"))) as connection:
                connection.set_busy_timeout(10_000)
                return connection.execute(statement).fetchall()
        import psycopg

        from tests.support.postgres import database_url

        url, options = database_url(self.folder), "-c search_path=kb,public"
        with closing(psycopg.connect(url, autocommit=True, options=options)) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def staged(self):
        """The names of waiting files in a server's storage."""
        if self.kind == "sqlite":
            return [each.name for each in (self.folder / "staging").iterdir()]
        return [name for (name,) in self.execute("SELECT name FROM blobs WHERE starts_with(name, 'staging/')")]

    def earlier(self, moment, days):
        """The expression of a moment so many days earlier."""
        if self.kind == "sqlite":
            return f"strftime('%Y-%m-%d %H:%M:%f', {moment}, '-{days} days')"
        return f"{moment} - interval '{days} days'"


def served_version():
    """The number of the schema that servers have."""
    if TRIED[-1] == "sqlite":
        return SCHEMA_VERSION
    from kb.store.postgres.migrate import SCHEMA_VERSION as VERSION_OF_POSTGRES

    return VERSION_OF_POSTGRES


def served_store(folder):
    """The settings of a server with this data folder and the tested store."""
    if TRIED[-1] == "sqlite":
        return {}
    from tests.support.postgres import database_url

    return {"KB_DATABASE_URL": database_url(folder)}
