"""What made the database's vectors, recorded in it: those of two models, precisions or prefixes cannot be compared."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import apsw

from kb.api.errors import StoreError
from kb.store.rows import VectorSpace

if TYPE_CHECKING:
    from pathlib import Path

DEFAULT_SPACE = VectorSpace(
    dimensions=384,
    model="all-MiniLM-L6-v2",
    precision="fp32",
    digest="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
)
"""The default model's, and that of every database that records none."""

SELECT_SPACE = (
    "SELECT model, precision, digest, coalesce(query_prefix, ''), coalesce(passage_prefix, '') FROM vector_space"
)

HISTORY_SIZE = "SELECT coalesce(sum(length(chunks) + coalesce(length(vectors), 0)), 0) FROM former_contents"
"""How many bytes the contents of former versions take."""


def bind_space(connection: apsw.Connection, path: Path, space: VectorSpace) -> None:
    """Record `space` in a database without vectors; check it against the record of one that has some.

    Raises:
        StoreError: the vectors are of another model, precision or prefix. One line, with the remedy.
    """
    with connection:
        if not connection.execute("SELECT EXISTS (SELECT 1 FROM chunks)").get:
            _record(connection, space)
        elif not connection.execute("SELECT EXISTS (SELECT 1 FROM vector_space)").get:
            _record(connection, DEFAULT_SPACE)
    [(model, precision, digest, *prefixes)] = connection.execute(SELECT_SPACE)
    recorded = VectorSpace(space.dimensions, model, precision, digest, *prefixes)
    if recorded != space:
        raise StoreError(
            f"The database {path} holds vectors of {recorded}, and the model makes those of {space}:"
            f" {_remedy(recorded, space)}, or take an empty KB_DATA_DIR and add the documents again."
        )


def change_space(connection: apsw.Connection, space: VectorSpace) -> None:
    """Record what the vectors are of now; those of former versions go if they are of something else."""
    before = connection.execute(SELECT_SPACE).fetchall()
    _record(connection, space)
    if connection.execute(SELECT_SPACE).fetchall() != before:
        connection.execute("UPDATE former_contents SET vectors = NULL")
        connection.execute(f"UPDATE history SET size = ({HISTORY_SIZE})")  # noqa: S608 - a constant


def recorded_space(path: Path) -> VectorSpace:
    """Return what the vectors of a database are of, as it says itself.

    Raises:
        StoreError: it cannot be read.
    """
    try:
        with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)) as connection:
            [(declared,)] = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'chunks_vec'")
            dimensions = re.search(r"float\s*\[\s*(\d+)", declared, re.IGNORECASE)
            found = list(connection.execute(SELECT_SPACE)) if connection.table_exists("main", "vector_space") else []
    except (apsw.Error, ValueError) as error:
        raise StoreError(f"The database {path} cannot be read: {error}.") from error
    recorded = VectorSpace(DEFAULT_SPACE.dimensions, *found[0]) if found else DEFAULT_SPACE
    return replace(recorded, dimensions=int(dimensions[1])) if dimensions else recorded


def _record(connection: apsw.Connection, space: VectorSpace) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO vector_space (only, model, precision, digest, query_prefix, passage_prefix)"
        " VALUES (1, ?, ?, ?, nullif(?, ''), nullif(?, ''))",
        (space.model, space.precision, space.digest, space.query_prefix, space.passage_prefix),
    )


def _remedy(recorded: VectorSpace, space: VectorSpace) -> str:
    if replace(recorded, precision=space.precision) == space:
        return f"set KB_PRECISION={recorded.precision}"
    if recorded == DEFAULT_SPACE:
        return "unset KB_MODEL_DIR"
    return f"set KB_MODEL_DIR to the folder of {recorded.model} that it was made with"
