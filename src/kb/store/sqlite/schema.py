"""The declarations of the tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import apsw

from kb.store.migrations import migrations, newest
from kb.store.sqlite.statements import statements

SCHEMA_VERSION = newest(__package__)

BLOCK: Final = "chunk_size=8"
"""The number of vectors that vec0 keeps in a row, as an option. From rows of 1024, its default, a vector takes 40 µs to
read if the row's pages are scattered in the file, from rows of 8 it takes 5.
"""


@dataclass(frozen=True, slots=True)
class VectorSchema:
    """The columns of `chunks_vec`, which may have other names in databases from version 2.

    Args:
        key: the column of the chunk's id.
        embedding: the column of the vector.
    """

    key: str
    embedding: str
    declaration: str

    @classmethod
    def of(cls, connection: apsw.Connection) -> VectorSchema:
        """Return the columns that the database declares."""
        sql: str = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'chunks_vec'").get
        key = re.search(r'"?(\w+)"?\s+INTEGER\s+PRIMARY\s+KEY', sql, re.IGNORECASE)
        embedding = re.search(r'"?(\w+)"?\s+FLOAT\s*\[', sql, re.IGNORECASE)
        return cls(key[1] if key else "rowid", embedding[1] if embedding else "embedding", sql)

    @property
    def in_blocks(self) -> str:
        """The declaration with small blocks."""
        bare = re.sub(r",\s*chunk_size\s*=\s*\d+", "", self.declaration, flags=re.IGNORECASE)
        return re.sub(r"\)\s*$", f", {BLOCK})", bare)

    def sql(self, name: str) -> str:
        """Return a statement for the table, by name."""
        return statements("chunks_vec")[name].format(key=self.key, embedding=self.embedding)


def declare_vectors(connection: apsw.Connection, dimensions: int) -> None:
    """Replace `chunks_vec` by an empty table for vectors of this length."""
    # DROP TABLE alone would keep every page in memory, for a rollback of the statement.
    connection.execute("DELETE FROM chunks_vec_vector_chunks00")
    connection.execute("DROP TABLE chunks_vec")
    connection.execute(
        "CREATE VIRTUAL TABLE chunks_vec"
        f" USING vec0 (chunk_id INTEGER PRIMARY KEY, embedding FLOAT[{dimensions}], {BLOCK})"
    )


def steps(connection: apsw.Connection, dimensions: int) -> Iterator[tuple[int, str]]:
    """Yield the numbers above the database's, in order, each with the SQL of its migration for vectors of this length.

    The caller executes each before it takes the next, which may depend on it.
    """
    for number, sql in migrations(__package__, connection.pragma("user_version")):
        yield number, _filled(sql, connection, dimensions)


def _filled(sql: str, connection: apsw.Connection, dimensions: int) -> str:
    names = {"dimensions": str(dimensions)}
    if "{vectors}" in sql:
        table = VectorSchema.of(connection)
        names |= {"key": table.key, "embedding": table.embedding, "vectors": table.in_blocks}
    return re.sub(r"\{(\w+)\}", lambda match: names.get(match[1], match[0]), sql)


def create(connection: apsw.Connection, dimensions: int) -> None:
    """Create all tables in a new database, in one transaction."""
    with connection:
        for number, sql in steps(connection, dimensions):
            connection.execute(sql).fetchall()
            connection.pragma("user_version", number)
