"""What made the database's vectors, recorded in it: those of two models, precisions or prefixes cannot be compared."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import psycopg

from kb.api.errors import StoreError
from kb.store.postgres.connection import CONNECT_SECONDS, checked, prepare
from kb.store.postgres.statements import statements
from kb.store.rows import VectorSpace

if TYPE_CHECKING:
    from kb.store.postgres.connection import Connection

MOST_DIMENSIONS = 4000
"""Of a half-precision vector in an index of pgvector."""


def bind_space(connection: Connection, space: VectorSpace) -> None:
    """Record `space` in a database without vectors; check it against the record of one that has some.

    Raises:
        StoreError: the vectors are of another model, precision or prefix.
    """
    if space.dimensions > MOST_DIMENSIONS:
        raise StoreError(f"pgvector has an index for vectors of {MOST_DIMENSIONS} numbers at most: use another model.")
    recorded = space_of(connection)
    has_chunks = connection.execute("SELECT EXISTS (SELECT 1 FROM chunks)").fetchone() == (True,)
    if recorded is None or not has_chunks:
        if recorded is None or recorded.dimensions != space.dimensions:
            declare_vectors(connection, space.dimensions)
        record_space(connection, space)
        if recorded not in (None, space):
            connection.execute("UPDATE former_contents SET vectors = NULL")
            connection.execute(statements("vectors")["recount_history"])
    elif recorded != space:
        raise StoreError(
            f"The database holds vectors of {recorded}, and the model makes those of {space}: use that model; making"
            " vectors anew in PostgreSQL is not there yet."
        )
    elif recorded.folder != space.folder:
        record_space(connection, space)


def declare_vectors(connection: Connection, dimensions: int) -> None:
    """Make the table of vectors of this length, in the place of one for others."""
    for name in ("drop_vectors", "create_vectors", "index_vectors"):
        connection.execute(statements("vectors")[name].format(dimensions=dimensions))


def record_space(connection: Connection, space: VectorSpace) -> None:
    """Record what the vectors are of."""
    row = space.dimensions, space.model, space.precision, space.digest, space.query_prefix, space.passage_prefix
    connection.execute(statements("vectors")["record_space"], (*row, space.folder))


def space_of(connection: Connection) -> VectorSpace | None:
    """Return what the vectors are of, as the database says itself."""
    row = connection.execute(statements("vectors")["select_space"]).fetchone()
    return VectorSpace(*row) if row else None


def space_in_use(url: str) -> VectorSpace | None:
    """Return what the vectors of a database are of; None if it holds none, or cannot be read.

    Raises:
        SettingError: it is no URL.
    """
    with suppress(psycopg.Error), psycopg.connect(checked(url), connect_timeout=CONNECT_SECONDS) as connection:
        prepare(connection)
        if connection.execute("SELECT EXISTS (SELECT 1 FROM chunks)").fetchone() == (True,):
            return space_of(connection)
    return None
