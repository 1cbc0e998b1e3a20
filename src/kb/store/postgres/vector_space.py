"""The space of the vectors, which the database records: vectors of two models or prefixes cannot be compared."""

from dataclasses import replace
from time import sleep

from kb.api.errors import StoreError
from kb.store.default_space import refusal
from kb.store.postgres.connection import Connection
from kb.store.postgres.jobs import ENGINES
from kb.store.postgres.statements import statements
from kb.store.row_mapping import field_values
from kb.store.rows import VectorSpace

MOST_DIMENSIONS = 4000
"""The limit of a half-precision vector in an index of pgvector."""

TOO_LONG = f"pgvector cannot index vectors of more than {MOST_DIMENSIONS} numbers. Use another model."

TABLES = ("vectors_a", "vectors_b")
"""The two tables of vectors, of which one is in use."""

IN_USE = "An engine is using the database. Stop it first."

ENDED_SECONDS, PAUSE = 2.0, 0.05
"""The time that the server may take to notice that an engine has ended, and the pause between checks."""


def bind_space(connection: Connection, space: VectorSpace) -> None:
    """Record `space` in a database without vectors; otherwise check it against the recorded space.

    Raises:
        StoreError: the vectors, or the future vectors of another engine, have another model or prefix.
    """
    if space.dimensions > MOST_DIMENSIONS:
        raise StoreError(TOO_LONG)
    recorded = read_space(connection)
    has_chunks = connection.execute("SELECT EXISTS (SELECT 1 FROM chunks)").fetchone() == (True,)
    if recorded is None or not has_chunks:
        if recorded not in (None, space) and are_engines_there(connection):
            raise StoreError(
                f"Another engine uses the database with {recorded}, but this one has {space}. Use the same model"
                " for all engines."
            )
        record_space(connection, space)
        recount_precisions(connection, space.precision)
        if recorded is None or recorded.dimensions != space.dimensions:
            index_vectors(connection, table_in_use(connection), space.dimensions)
    elif recorded != space:
        raise StoreError(refusal("The database", recorded, space))
    elif recorded.folder != space.folder:
        record_space(connection, replace(space, precision=recorded.precision))


def are_engines_there(connection: Connection) -> bool:
    """Return whether any engine other than the starting one uses the database; wait for one that has just ended."""
    for _ in range(int(ENDED_SECONDS / PAUSE)):
        if connection.execute(statements("jobs")["count_engines"], {"class": ENGINES}).fetchone() == (0,):
            return False
        sleep(PAUSE)
    return True


def index_vectors(connection: Connection, table: str, dimensions: int) -> None:
    """Empty a table of vectors, and create its index for vectors of this length."""
    for name in ("empty", "drop_index", "create_index"):
        connection.execute(statements("vectors")[name].format(vectors=table, dimensions=dimensions))


def table_in_use(connection: Connection) -> str:
    [(table, *_)] = connection.execute(statements("vectors")["select_in_use"]).fetchall()
    return str(table)


def record_space(connection: Connection, space: VectorSpace) -> None:
    connection.execute(statements("vectors")["record_space"], field_values(space))


def recount_precisions(connection: Connection, precision: str) -> None:
    """Record that all vectors have this precision."""
    connection.execute(statements("vectors")["forget_precisions"])
    connection.execute(statements("vectors")["recount_precisions"], (precision,))


def read_space(connection: Connection) -> VectorSpace | None:
    """Return the recorded space of the vectors."""
    row = connection.execute(statements("vectors")["select_space"]).fetchone()
    return VectorSpace(*row) if row else None
