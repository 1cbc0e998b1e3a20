"""A database in a file as another one takes it over, or as it takes another one over."""

from __future__ import annotations

from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import apsw

from kb.api.errors import StoreError
from kb.store.sqlite.connection import connect
from kb.store.sqlite.destination import SqliteDestination
from kb.store.sqlite.foreign import refuse_parts
from kb.store.sqlite.origin import SqliteOrigin

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kb.store.rows import VectorSpace


@contextmanager
def origin(path: Path) -> Iterator[SqliteOrigin]:
    """One moment of the database at `path`, whatever is written to it meanwhile.

    Raises:
        StoreError: there is none, or it cannot be read.
    """
    if not path.exists():
        raise StoreError(f"There is no database {path}.")
    try:
        with closing(connect(path, read_only=True)) as connection:
            connection.execute("BEGIN")
            refuse_parts(connection, f"The database {path}")
            yield SqliteOrigin(connection)
    except apsw.Error as error:
        raise StoreError(f"The database {path} cannot be read: {error}. 'kb doctor' says more.") from error


@contextmanager
def destination(path: Path, space: VectorSpace) -> Iterator[SqliteDestination]:
    """The database at `path`, which is made if there is none. Nobody else may use it.

    Raises:
        StoreError: it cannot be opened, or is of another version.
    """
    try:
        path.touch(mode=0o600)
    except OSError as error:
        raise StoreError(f"The database {path} cannot be made: {error.strerror}.") from error
    try:
        with closing(connect(path)) as connection:
            refuse_parts(connection, f"The database {path}")
            yield SqliteDestination(connection, path, space)
    except apsw.Error as error:
        raise StoreError(f"The database {path} cannot be used: {error}.") from error
