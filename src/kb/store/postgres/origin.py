"""One moment of a PostgreSQL database, which another one takes over; see `kb.store.transfer.Origin`."""

from __future__ import annotations

import zlib
from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import psycopg

from kb.api.errors import StoreError
from kb.store.postgres.arrival import read_arrival
from kb.store.postgres.migrate import SCHEMA_VERSION, schema_version
from kb.store.postgres.statements import statements
from kb.store.postgres.store import PostgresTransaction
from kb.store.postgres.vector_space import space_of, table_in_use
from kb.store.postgres.vectors import HEADER
from kb.store.postgres.words import FullText
from kb.store.rows import Retention
from kb.store.transfer import BIN, DOCUMENTS, REMEDY, VERSIONS, Facts, Former, Held, State, state_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kb.store.postgres.connection import Connection
    from kb.store.rows import Chunk, VectorSpace
    from kb.store.transfer import Row, Table


class PostgresOrigin:
    """See `kb.store.transfer.Origin`.

    Args:
        connection: in a transaction, or the only one that writes.

    Raises:
        StoreError: the database is of an older kb, or none of kb's.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._execute: Any = connection.execute
        self._sql = statements("transfer")
        self.space = _checked_space(connection)

    @cached_property
    def tx(self) -> PostgresTransaction:
        """The same moment as the engine sees it."""
        return PostgresTransaction(self._connection, Retention(), 0)

    def arrival(self) -> tuple[str, bool] | None:
        """Return what the database was copied from, and whether it is whole; None if it is no copy."""
        return read_arrival(self._connection)

    def count(self) -> int:
        """Return how many documents there are, those in the bin too."""
        [(count,)] = self._select(self._sql["count_documents"])
        return int(count)

    def ids(self, after: int, limit: int) -> list[int]:
        """Return at most so many documents above an id, ascending."""
        return [id_ for (id_,) in self._select(self._sql["select_ids"], {"after": after, "limit": limit})]

    def states(self, after: int, upto: int) -> dict[int, State]:
        """Return the documents with these ids."""
        found: dict[int, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
        for table in (DOCUMENTS, VERSIONS, BIN):
            for row in self._rows(table, after, upto):
                found[row[0]][table.name].append(row)
        for name, select in (("tags", "select_tags"), ("chunks", "select_chunks"), ("contents", "select_contents")):
            for document_id, *row in self._select(self._sql[select], (after, upto)):
                found[document_id][name].append(tuple(row))
        return {id_: state_of(found[id_]) for id_ in sorted(found)}

    def held(self, document_id: int) -> Held:
        """Return what a document holds and held.

        Raises:
            StoreError: it cannot be read.
        """
        try:
            chunks = self.tx.documents.chunks(document_id)
            held = Held(chunks, self._vectors(chunks), self.former(document_id))
            held.check(self.space.dimensions)
            return held
        except (StoreError, psycopg.Error, ValueError, TypeError, LookupError, zlib.error) as error:
            raise StoreError(f"Document {document_id} cannot be read: {error}. {REMEDY}") from error

    def former(self, document_id: int) -> list[Former]:
        """Return what it held."""
        return [Former(*row) for row in self._select(self._sql["select_former"], (document_id,))]

    def keys(self, table: Table, after: int, limit: int) -> list[int]:
        """Return at most so many keys above one, ascending."""
        sql = self._sql["select_keys"].format(table=table.name, key=table.key)
        return [key for (key,) in self._select(sql, (after, limit))]

    def rows(self, table: Table, after: int, upto: int) -> dict[int, Row]:
        """Return the rows with these keys."""
        return {row[0]: row for row in self._rows(table, after, upto)}

    def facts(self) -> Facts:
        """Return what stands for itself."""
        [(begins, _)] = self._select(statements("history")["select_history"])
        last_ids = self._select(self._sql["select_last_ids"])
        known = {name: last or 0 for name, last in last_ids}
        precisions = dict(self._select(statements("vectors")["select_precisions"]))
        return Facts(begins, known, self.tx.folders.all(), self.tx.folders.left_out(), precisions)

    def full_text_faults(self) -> Iterator[str]:
        """Yield what the full text has otherwise than the texts say."""
        return FullText(self._connection).faults()

    def _select(self, sql: str, parameters: Any = ()) -> list[Any]:  # noqa: ANN401 - as the driver takes them
        """Return all rows.

        Raises:
            StoreError: they cannot be read.
        """
        try:
            rows: list[Any] = self._execute(sql, parameters).fetchall()
        except psycopg.Error as error:
            first = str(error).partition("\n")[0]
            raise StoreError(
                f"The database {self._connection.info.dbname} in PostgreSQL cannot be read: {first}."
            ) from error
        return rows

    def _rows(self, table: Table, after: int, upto: int) -> Iterator[Row]:
        names = {"columns": ", ".join(table.columns), "table": table.name, "key": table.key}
        sql = self._sql["select_rows"].format(**names, order=table.columns[1])
        return (table.row(row) for row in self._select(sql, (after, upto)))

    @cached_property
    def _select_vectors(self) -> str:
        return statements("vectors")["select_vectors"].format(vectors=table_in_use(self._connection))

    def _vectors(self, chunks: Sequence[Chunk]) -> list[bytes | None]:
        """Return the bytes of the chunks' vectors."""
        if not chunks:
            return []
        ids = [chunk.id for chunk in chunks]
        rows = self._execute(self._select_vectors, (ids,), binary=True)
        found = {chunk_id: np.frombuffer(sent, ">f4", offset=HEADER).astype("<f4").tobytes() for chunk_id, sent in rows}
        return [found.get(chunk_id) for chunk_id in ids]


def _checked_space(connection: Connection) -> VectorSpace:
    if connection.execute("SELECT to_regclass('kb.migrations') IS NULL").fetchone() == (True,):
        raise StoreError("The database in PostgreSQL is none of kb.")
    if schema_version(connection) != SCHEMA_VERSION:
        raise StoreError("The database is of another kb: start the engine once, which migrates it.")
    space = space_of(connection)
    if space is None:
        raise StoreError("The database in PostgreSQL does not say what its vectors are of.")
    return space
