"""What made the database's vectors, recorded in it: those of two models or prefixes cannot be compared."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from time import sleep

import psycopg

from kb.api.errors import StoreError
from kb.store.default_space import refusal
from kb.store.postgres.connection import Connection, conninfo, prepare
from kb.store.postgres.jobs import ENGINES
from kb.store.postgres.statements import statements
from kb.store.rows import VectorSpace

MOST_DIMENSIONS = 4000
"""Of a half-precision vector in an index of pgvector."""

TOO_LONG = f"pgvector has an index for vectors of {MOST_DIMENSIONS} numbers at most: use another model."

TABLES = ("vectors_a", "vectors_b")
"""One is in use."""

IN_USE = "An engine uses the database; stop it first."

ENDED_SECONDS, PAUSE = 2.0, 0.05
"""After how long an engine that ended is gone for the server, too, and how often it is asked."""


def bind_space(connection: Connection, space: VectorSpace) -> None:
    """Record `space` in a database without vectors; check it against the record of one that has some.

    Raises:
        StoreError: the vectors are of another model or prefix, or those of another engine will be.
    """
    if space.dimensions > MOST_DIMENSIONS:
        raise StoreError(TOO_LONG)
    recorded = read_space(connection)
    has_chunks = connection.execute("SELECT EXISTS (SELECT 1 FROM chunks)").fetchone() == (True,)
    if recorded is None or not has_chunks:
        if recorded not in (None, space) and are_engines_there(connection):
            raise StoreError(f"Another engine uses the database with {recorded}, and this one would with {space}.")
        record_space(connection, space)
        recount_precisions(connection, space.precision)
        if recorded is None or recorded.dimensions != space.dimensions:
            index_vectors(connection, table_in_use(connection), space.dimensions)
    elif recorded != space:
        raise StoreError(refusal("The database", recorded, space))
    elif recorded.folder != space.folder:
        record_space(connection, replace(space, precision=recorded.precision))


def are_engines_there(connection: Connection) -> bool:
    """Return whether engines use the database, beside the one that starts; one that just ended is waited for."""
    for _ in range(int(ENDED_SECONDS / PAUSE)):
        if connection.execute(statements("jobs")["count_engines"], {"class": ENGINES}).fetchone() == (0,):
            return False
        sleep(PAUSE)
    return True


def index_vectors(connection: Connection, table: str, dimensions: int) -> None:
    """Empty a table of vectors, and make its index for vectors of this length."""
    for name in ("empty", "drop_index", "create_index"):
        connection.execute(statements("vectors")[name].format(vectors=table, dimensions=dimensions))


def table_in_use(connection: Connection) -> str:
    """Return the table of the vectors that are in use."""
    [(table, *_)] = connection.execute(statements("vectors")["select_in_use"]).fetchall()
    return str(table)


def record_space(connection: Connection, space: VectorSpace) -> None:
    """Record what the vectors are of."""
    connection.execute(statements("vectors")["record_space"], space_columns(space))


def recount_precisions(connection: Connection, precision: str) -> None:
    """Note that all vectors are of one precision."""
    connection.execute(statements("vectors")["forget_precisions"])
    connection.execute(statements("vectors")["recount_precisions"], (precision,))


def space_columns(space: VectorSpace) -> tuple[object, ...]:
    """Return a space as it is stored."""
    prefixes = space.query_prefix, space.passage_prefix
    return space.dimensions, space.model, space.precision, space.digest, *prefixes, space.folder


def read_space(connection: Connection) -> VectorSpace | None:
    """Return what the vectors are of, as the database says itself."""
    row = connection.execute(statements("vectors")["select_space"]).fetchone()
    return VectorSpace(*row) if row else None


def space_in_use(url: str) -> VectorSpace | None:
    """Return what the vectors of a database are of; None if it holds none, or cannot be read.

    Raises:
        SettingError: it is no URL.
    """
    with suppress(psycopg.Error), psycopg.connect(conninfo(url)) as connection:
        prepare(connection)
        if connection.execute("SELECT EXISTS (SELECT 1 FROM chunks)").fetchone() == (True,):
            return read_space(connection)
    return None
