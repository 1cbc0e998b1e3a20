"""What made the database's vectors, recorded in it: vectors of two models or precisions cannot be compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kb.api.errors import StoreError
from kb.store.rows import VectorSpace

if TYPE_CHECKING:
    from pathlib import Path

    import apsw

BEFORE_IT_WAS_RECORDED = VectorSpace(
    dimensions=384,
    model="all-MiniLM-L6-v2",
    precision="fp32",
    digest="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
)
"""What every database was made with that says nothing of it."""


def settle_space(connection: apsw.Connection, path: Path, space: VectorSpace) -> None:
    """Record `space` in a database without vectors; check it against the record of one that has some.

    Raises:
        StoreError: the vectors are of another model or precision. One line, with the remedy.
    """
    with connection:
        if not connection.execute("SELECT EXISTS (SELECT 1 FROM chunks)").get:
            _record(connection, space)
        elif not connection.execute("SELECT EXISTS (SELECT 1 FROM vector_space)").get:
            _record(connection, BEFORE_IT_WAS_RECORDED)
    [(model, precision, digest)] = connection.execute("SELECT model, precision, digest FROM vector_space")
    recorded = VectorSpace(space.dimensions, model, precision, digest)
    if recorded != space:
        raise StoreError(
            f"The database {path} holds vectors of {recorded}, and the model makes those of {space}:"
            f" {_remedy(recorded, space)}, or take an empty KB_DATA_DIR and add the documents again."
        )


def _record(connection: apsw.Connection, space: VectorSpace) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO vector_space VALUES (1, ?, ?, ?)", (space.model, space.precision, space.digest)
    )


def _remedy(recorded: VectorSpace, space: VectorSpace) -> str:
    if (recorded.model, recorded.digest) == (space.model, space.digest):
        return f"set KB_PRECISION={recorded.precision}"
    if recorded == BEFORE_IT_WAS_RECORDED:
        return "unset KB_MODEL_DIR"
    return f"set KB_MODEL_DIR to the folder of {recorded.model}"
