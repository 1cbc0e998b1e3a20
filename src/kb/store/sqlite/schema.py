"""The tables as they are declared."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import apsw

from kb.store.migrations import migrations
from kb.store.sqlite.statements import statements

SCHEMA_VERSION = 30


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

    def sql(self, name: str) -> str:
        """Return a statement about the table."""
        return statements("chunks_vec")[name].format(key=self.key, embedding=self.embedding)


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
