"""The stores that everything a store must do is tried on: each opens one in a folder, or the same one again."""

from __future__ import annotations

import os
from contextlib import closing

from kb.store.sqlite.schema import SCHEMA_VERSION
from kb.store.sqlite.store import SqliteStore
from tests.support.spaces import space


def sqlite(folder, /, **changes):
    return closing(SqliteStore(folder / "kb.db", space(**changes)))


def postgres(folder, /, **changes):
    from kb.store.postgres.store import PostgresStore
    from tests.support.postgres import database_url

    return closing(PostgresStore(database_url(folder), space(**changes)))


STORES = {"sqlite": sqlite, "postgres": postgres}
TRIED = os.environ.get("KB_TEST_STORES", "sqlite").split(",")
"""Those that are tried; servers are run over the last. `make test-postgres` says which."""


def served_version():
    """The number of the schema that servers have."""
    if TRIED[-1] == "sqlite":
        return SCHEMA_VERSION
    from kb.store.postgres.migrate import SCHEMA_VERSION as VERSION_OF_POSTGRES

    return VERSION_OF_POSTGRES


def served_store(folder):
    """The settings by which a server with this data directory has the store that is tried."""
    if TRIED[-1] == "sqlite":
        return {}
    from tests.support.postgres import database_url

    return {"KB_DATABASE_URL": database_url(folder)}
