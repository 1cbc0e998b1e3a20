"""The declarations of the tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import apsw

from kb.store.migrations import migrations, newest
from kb.store.sqlite.statements import statements

SCHEMA_VERSION = newest(__package__)


@dataclass(frozen=True, slots=True)
class VectorSchema:
    """The columns of `chunks_vec`, which may have other names in databases from version 2.

    Args:
        key: the column of the chunk's id.
        embedding: the column of the vector.
    """

    key: str
    embedding: str

    @classmethod
    def of(cls, connection: apsw.Connection) -> VectorSchema:
        """Return the columns that the database declares."""
        sql: str = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'chunks_vec'").get
        key = re.search(r'"?(\w+)"?\s+INTEGER\s+PRIMARY\s+KEY', sql, re.IGNORECASE)
        embedding = re.search(r'"?(\w+)"?\s+FLOAT\s*\[', sql, re.IGNORECASE)
        return cls(key[1] if key else "rowid", embedding[1] if embedding else "embedding")

    def sql(self, name: str) -> str:
        """Return a statement for the table, by name."""
        return statements("chunks_vec")[name].format(key=self.key, embedding=self.embedding)


def declare_vectors(connection: apsw.Connection, dimensions: int) -> None:
    """Create `chunks_vec` for vectors of this length; an existing table is dropped."""
    connection.execute("DROP TABLE IF EXISTS chunks_vec")
    connection.execute(
        f"CREATE VIRTUAL TABLE chunks_vec USING vec0 (chunk_id INTEGER PRIMARY KEY, embedding FLOAT[{dimensions}])"
    )


def steps(after: int, dimensions: int) -> Iterator[tuple[int, str]]:
    """Yield the numbers above `after`, in order, each with the SQL of its migration for vectors of this length."""
    for number, sql in migrations(__package__, after):
        yield number, sql.replace("{dimensions}", str(dimensions))


def create(connection: apsw.Connection, dimensions: int) -> None:
    """Create all tables in a new database, in one transaction."""
    with connection:
        for number, sql in steps(0, dimensions):
            connection.execute(sql).fetchall()
            connection.pragma("user_version", number)
