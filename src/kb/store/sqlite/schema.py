"""The tables as they are declared."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import apsw

from kb.store.migrations import migrations, newest

SCHEMA_VERSION = newest(__package__)


@dataclass(frozen=True, slots=True)
class VectorSchema:
    """`chunks_vec` as it was declared: version 2 may have named its columns otherwise.

    Args:
        key: the column of the chunk's id.
        embedding: the column of the vector.
    """

    key: str
    embedding: str

    @classmethod
    def of(cls, connection: apsw.Connection) -> VectorSchema:
        """Return what the database declares."""
        sql: str = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'chunks_vec'").get
        key = re.search(r'"?(\w+)"?\s+INTEGER\s+PRIMARY\s+KEY', sql, re.IGNORECASE)
        embedding = re.search(r'"?(\w+)"?\s+FLOAT\s*\[', sql, re.IGNORECASE)
        return cls(key[1] if key else "rowid", embedding[1] if embedding else "embedding")

    @property
    def select(self) -> str:
        """Every vector, by ascending id."""
        return f"SELECT {self.key}, {self.embedding} FROM chunks_vec ORDER BY {self.key}"

    @property
    def select_one(self) -> str:
        """The vector for an id."""
        return f"SELECT {self.embedding} FROM chunks_vec WHERE {self.key} = ?"

    @property
    def keys(self) -> str:
        """The id of every vector."""
        return f"SELECT {self.key} FROM chunks_vec"

    @property
    def scan(self) -> str:
        """Every vector, in no order: SQLite would sort all of them in memory."""
        return f"SELECT {self.key}, {self.embedding} FROM chunks_vec"

    @property
    def with_copies(self) -> str:
        """Every vector with its copy, or NULL."""
        return (
            f"SELECT vectors.{self.key}, vectors.{self.embedding}, copies.vector FROM chunks_vec AS vectors"
            f" LEFT JOIN vector_copies AS copies ON copies.chunk_id = vectors.{self.key}"
        )

    @property
    def lookup(self) -> str:
        """The vectors of an array of ids, in its order."""
        return (
            f"SELECT {self.key}, {self.embedding} FROM carray(?) AS wanted CROSS JOIN chunks_vec ON {self.key} = value"
        )

    @property
    def nearest(self) -> str:
        """The ids of so many vectors nearest to one."""
        return f"SELECT {self.key} FROM chunks_vec WHERE {self.embedding} MATCH ? AND k = ?"

    @property
    def nearest_among(self) -> str:
        """The same of those in an array of ids."""
        return f"{self.nearest} AND {self.key} IN (SELECT value FROM carray(?))"

    @property
    def insert(self) -> str:
        """The statement that inserts one vector: id, bytes."""
        return f"INSERT INTO chunks_vec ({self.key}, {self.embedding}) VALUES (?, ?)"

    @property
    def delete(self) -> str:
        """The statement that deletes one vector, by id."""
        return f"DELETE FROM chunks_vec WHERE {self.key} = ?"


def declare_vectors(connection: apsw.Connection, dimensions: int) -> None:
    """Make `chunks_vec` for vectors of this length, in the place of one for others."""
    connection.execute("DROP TABLE IF EXISTS chunks_vec")
    connection.execute(
        f"CREATE VIRTUAL TABLE chunks_vec USING vec0 (chunk_id INTEGER PRIMARY KEY, embedding FLOAT[{dimensions}])"
    )


def steps(after: int, dimensions: int) -> Iterator[tuple[int, str]]:
    """Yield the numbers above `after`, in order, and what leads to each, for vectors of this length."""
    for number, sql in migrations(__package__, after):
        yield number, sql.replace("{dimensions}", str(dimensions))


def create(connection: apsw.Connection, dimensions: int) -> None:
    """Make every table in a new database, or none."""
    with connection:
        for number, sql in steps(0, dimensions):
            connection.execute(sql).fetchall()
            connection.pragma("user_version", number)
