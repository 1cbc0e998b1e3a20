"""One moment of a database in a file, which another one takes over; see `kb.store.transfer.Origin`."""

from __future__ import annotations

import zlib
from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING, Any

import apsw
import numpy as np

from kb.api.errors import StoreError
from kb.store.rows import Retention
from kb.store.sqlite.arrival import read_arrival
from kb.store.sqlite.documents import SqliteDocuments
from kb.store.sqlite.reanalysis import is_due
from kb.store.sqlite.rules import add_functions
from kb.store.sqlite.schema import SCHEMA_VERSION, VectorTable
from kb.store.sqlite.statements import statements
from kb.store.sqlite.store import SqliteTransaction
from kb.store.sqlite.vector_space import space_of
from kb.store.sqlite.vectors import Vectors
from kb.store.sqlite.verify import full_text_faults
from kb.store.transfer import BIN, DOCUMENTS, REMEDY, VERSIONS, Facts, Former, Held, State, state_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kb.store.rows import Chunk
    from kb.store.transfer import Row, Table


class SqliteOrigin:
    """See `kb.store.transfer.Origin`.

    Args:
        connection: in a transaction, or the only one that writes.

    Raises:
        StoreError: the database is of an older kb, or some of its documents are still indexed as one did it.
    """

    def __init__(self, connection: apsw.Connection) -> None:
        if connection.pragma("user_version") != SCHEMA_VERSION:
            raise StoreError("The database is of an older kb: start the engine once, which migrates it.")
        if is_due(connection.execute):
            raise StoreError(
                "Documents of an older kb are still being indexed again, and a copy would not go on with that: let the"
                " engine run until its log says that all are done."
            )
        self._connection = connection
        self._execute: Any = connection.execute
        self._sql = statements("transfer")
        self._table = VectorTable.of(connection)
        self._documents = SqliteDocuments(connection, self._table)
        self.space = space_of(connection)

    @cached_property
    def tx(self) -> SqliteTransaction:
        """The same moment as the engine sees it, with nothing in memory but ids."""
        return SqliteTransaction(self._connection, Vectors(self._connection, self.space, 0), Retention())

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
            chunks = self._documents.chunks(document_id)
            held = Held(chunks, self._vectors(chunks), self.former(document_id))
            held.check(self.space.dimensions)
            return held
        except (StoreError, apsw.Error, ValueError, TypeError, LookupError, zlib.error) as error:
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
        last_ids = dict(self._select(self._sql["select_last_ids"]))
        precisions = dict(self._select(statements("vectors")["select_precisions"]))
        return Facts(begins, last_ids, self.tx.folders.all(), self.tx.folders.left_out(), precisions)

    def full_text_faults(self) -> Iterator[str]:
        """Yield what the full text has otherwise than the texts say."""
        add_functions(self._connection)
        yield from full_text_faults(self._connection)

    def _select(self, sql: str, parameters: Any = ()) -> list[Any]:  # noqa: ANN401 - as the driver takes them
        """Return all rows.

        Raises:
            StoreError: they cannot be read.
        """
        try:
            rows: list[Any] = self._execute(sql, parameters).fetchall()
        except apsw.Error as error:
            raise StoreError(
                f"The database {self._connection.filename} cannot be read: {error}. 'kb doctor' says more."
            ) from error
        return rows

    def _rows(self, table: Table, after: int, upto: int) -> Iterator[Row]:
        names = {"columns": ", ".join(table.columns), "table": table.name, "key": table.key}
        sql = self._sql["select_rows"].format(**names, order=table.columns[1])
        return (table.row(row) for row in self._select(sql, (after, upto)))

    def _vectors(self, chunks: Sequence[Chunk]) -> list[bytes | None]:
        """Return the bytes of the chunks' vectors."""
        if not chunks:  # which carray refuses
            return []
        ids = np.array([chunk.id for chunk in chunks], np.int64)
        found = dict(self._execute(self._table.lookup, (apsw.carray(ids),)).fetchall())
        return [found.get(chunk.id) for chunk in chunks]
