"""The record of the model and settings of a database's vectors. Vectors of different models cannot be compared."""

import re
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw

from kb.api.errors import StoreError
from kb.store.default_space import DEFAULT_SPACE, refusal
from kb.store.rows import VectorSpace
from kb.store.sqlite.connection import write_transaction
from kb.store.sqlite.schema import declare_vectors

SELECT_SPACE = """
SELECT model, precision, digest, coalesce(query_prefix, ''), coalesce(passage_prefix, ''), folder FROM vector_space
"""

HISTORY_SIZE = "SELECT coalesce(sum(length(chunks) + coalesce(length(vectors), 0)), 0) FROM former_contents"
"""The size of the contents of earlier versions, in bytes."""


def bind_space(connection: apsw.Connection, path: Path, space: VectorSpace) -> None:
    """Record `space` in a database without vectors; in other databases, compare it with the record.

    Raises:
        StoreError: the vectors are from another model or prefix. The message is one line, with the remedy.
    """
    with write_transaction(connection):
        if not connection.execute("SELECT EXISTS (SELECT 1 FROM chunks)").get:
            if declared_dimensions(connection) != space.dimensions:
                declare_vectors(connection, space.dimensions)
            record_space(connection, space)
            recount_precisions(connection, space.precision)
        elif not connection.execute("SELECT EXISTS (SELECT 1 FROM vector_space)").get:
            record_space(connection, DEFAULT_SPACE)
    recorded = read_space(connection)
    if recorded != space:
        raise StoreError(refusal(f"The database {path}", recorded, space))
    if recorded.folder != space.folder:
        with write_transaction(connection):
            record_space(connection, replace(space, precision=recorded.precision))


def recount_precisions(connection: apsw.Connection, precision: str) -> None:
    """Record that all vectors have one precision."""
    connection.execute("DELETE FROM vector_precisions")
    connection.execute("INSERT INTO vector_precisions SELECT ?, count(*) FROM chunks", (precision,))


def read_space(connection: apsw.Connection) -> VectorSpace:
    """Return the recorded space, or the default one if the database has no record."""
    is_recorded = connection.table_exists("main", "vector_space")  # version 2 has no such table
    rows: list[Any] = connection.execute(SELECT_SPACE).fetchall() if is_recorded else []
    dimensions = declared_dimensions(connection)
    return VectorSpace(dimensions, *rows[0]) if rows else replace(DEFAULT_SPACE, dimensions=dimensions)


def declared_dimensions(connection: apsw.Connection) -> int:
    """Return the number of dimensions that `chunks_vec` declares."""
    declared: Any = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'chunks_vec'").get
    match = re.search(r"float\s*\[\s*(\d+)", declared or "", re.IGNORECASE)
    return int(match[1]) if match else DEFAULT_SPACE.dimensions


def recorded_space(path: Path) -> VectorSpace:
    """Return the recorded space of a database file.

    Raises:
        StoreError: the database cannot be read.
    """
    try:
        with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)) as connection:
            return read_space(connection)
    except (apsw.Error, ValueError) as error:
        raise StoreError(f"kb cannot read the database {path}: {error}.") from error


def record_space(connection: apsw.Connection, space: VectorSpace) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO vector_space (only, model, precision, digest, query_prefix, passage_prefix, folder)"
        " VALUES (1, ?, ?, ?, nullif(?, ''), nullif(?, ''), ?)",
        (space.model, space.precision, space.digest, space.query_prefix, space.passage_prefix, space.folder),
    )
