"""What made the database's vectors, recorded in it: those of two models or prefixes cannot be compared."""

from __future__ import annotations

import re
from contextlib import closing, suppress
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
"""How many bytes the contents of former versions take."""


def bind_space(connection: apsw.Connection, path: Path, space: VectorSpace) -> None:
    """Record `space` in a database without vectors; check it against the record of one that has some.

    Raises:
        StoreError: the vectors are of another model or prefix. One line, with the remedy.
    """
    with write_transaction(connection):
        if not connection.execute("SELECT EXISTS (SELECT 1 FROM chunks)").get:
            if declared_dimensions(connection) != space.dimensions:
                declare_vectors(connection, space.dimensions)
            change_space(connection, space)
        elif not connection.execute("SELECT EXISTS (SELECT 1 FROM vector_space)").get:
            record_space(connection, DEFAULT_SPACE)
    recorded = read_space(connection)
    if recorded != space:
        raise StoreError(refusal(f"The database {path}", recorded, space))
    if recorded.folder != space.folder:
        with write_transaction(connection):
            record_space(connection, replace(space, precision=recorded.precision))


def change_space(connection: apsw.Connection, space: VectorSpace) -> None:
    """Record what the vectors are of now."""
    is_other = (
        not connection.execute("SELECT EXISTS (SELECT 1 FROM vector_space)").get or read_space(connection) != space
    )
    record_space(connection, space)
    if is_other or not connection.execute("SELECT EXISTS (SELECT 1 FROM chunks)").get:
        recount_precisions(connection, space.precision)


def recount_precisions(connection: apsw.Connection, precision: str) -> None:
    """Note that all vectors are of one precision."""
    connection.execute("DELETE FROM vector_precisions")
    connection.execute("INSERT INTO vector_precisions SELECT ?, count(*) FROM chunks", (precision,))


def read_space(connection: apsw.Connection) -> VectorSpace:
    """Return what the vectors are of, as the database says itself."""
    is_recorded = connection.table_exists("main", "vector_space")  # version 2 did not
    rows: list[Any] = connection.execute(SELECT_SPACE).fetchall() if is_recorded else []
    dimensions = declared_dimensions(connection)
    return VectorSpace(dimensions, *rows[0]) if rows else replace(DEFAULT_SPACE, dimensions=dimensions)


def declared_dimensions(connection: apsw.Connection) -> int:
    """Return the length of a vector."""
    declared: Any = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'chunks_vec'").get
    match = re.search(r"float\s*\[\s*(\d+)", declared or "", re.IGNORECASE)
    return int(match[1]) if match else DEFAULT_SPACE.dimensions


def recorded_space(path: Path) -> VectorSpace:
    """Return what the vectors of a database are of, as it says itself.

    Raises:
        StoreError: it cannot be read.
    """
    try:
        with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)) as connection:
            return read_space(connection)
    except (apsw.Error, ValueError) as error:
        raise StoreError(f"The database {path} cannot be read: {error}.") from error


def space_in_use(path: Path) -> VectorSpace | None:
    """Return what the vectors of a database are of; None if it holds none, or cannot be read."""
    with suppress(apsw.Error), closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)) as connection:
        if connection.execute("SELECT EXISTS (SELECT 1 FROM chunks)").get:
            return read_space(connection)
    return None


def record_space(connection: apsw.Connection, space: VectorSpace) -> None:
    """Record what the vectors are of."""
    connection.execute(
        "INSERT OR REPLACE INTO vector_space (only, model, precision, digest, query_prefix, passage_prefix, folder)"
        " VALUES (1, ?, ?, ?, nullif(?, ''), nullif(?, ''), ?)",
        (space.model, space.precision, space.digest, space.query_prefix, space.passage_prefix, space.folder),
    )
