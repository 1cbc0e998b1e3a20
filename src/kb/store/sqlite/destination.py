"""A database in a file, which takes over another one; see `kb.store.transfer.Destination`."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import apsw

from kb.api.errors import DiskFull, StoreError
from kb.store.row_mapping import array
from kb.store.sqlite.arrival import read_arrival, record_arrival
from kb.store.sqlite.connection import write_transaction
from kb.store.sqlite.documents import SqliteDocuments
from kb.store.sqlite.migrate import prepare_schema
from kb.store.sqlite.origin import SqliteOrigin
from kb.store.sqlite.schema import SCHEMA_VERSION, VectorTable
from kb.store.sqlite.statements import statements
from kb.store.sqlite.vector_space import bind_space
from kb.store.transfer import BIN, DOCUMENTS, VERSIONS, check_ids, check_source, take_folders

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from kb.store.rows import VectorSpace
    from kb.store.transfer import Facts, Row, Table, Whole


class SqliteDestination:
    """See `kb.store.transfer.Destination`.

    Args:
        connection: that nobody else writes beside.
        path: its database.
        space: what the vectors are of that it takes.

    Raises:
        StoreError: it is of another version, or holds vectors of something else.
    """

    def __init__(self, connection: apsw.Connection, path: Path, space: VectorSpace) -> None:
        if connection.pragma("user_version") not in (0, SCHEMA_VERSION):
            raise StoreError(f"{path} is a database of another kb: name an empty one.")
        prepare_schema(connection, path, space.dimensions)
        self._connection = connection
        self._execute: Any = connection.execute
        self._path = path
        self._space = space
        self._sql = statements("transfer")
        self._source = ""
        self.origin = SqliteOrigin(connection)

    def begin(self, source: str, last_ids: Mapping[str, int]) -> None:
        """Begin, or go on, to take over a source of this name.

        Raises:
            StoreError: the database holds what is not from there.
        """
        mark = read_arrival(self._connection)
        check_source(mark, source, is_empty=not self._execute(self._sql["is_used"]).get)
        if mark:
            check_ids(self.origin.facts().last_ids, last_ids)
        bind_space(self._connection, self._path, self._space)
        self._source = source
        self.origin = SqliteOrigin(self._connection)
        with self._changing():
            record_arrival(self._connection, source, done=False)

    def write(self, gone: Collection[int], documents: Sequence[Whole]) -> None:
        """Remove documents that are there, and then add some."""
        table = VectorTable.of(self._connection)
        with self._changing():
            for document_id in gone:
                self._remove(document_id, table)
            for each in documents:
                self._add(each, table)

    def write_rows(self, table: Table, gone: Collection[int], rows: Sequence[Row]) -> None:
        """Remove rows by their keys, and then add some."""
        with self._changing():
            delete = self._sql["delete_row"].format(table=table.name, key=table.key)
            self._connection.executemany(delete, [(key,) for key in gone])
            self._insert(table, rows)

    def complete(self, facts: Facts) -> None:
        """Bring what stands for itself over."""
        with self._changing():
            self._execute(self._sql["set_beginning"], (facts.begins,))
            self._execute(statements("vectors")["forget_precisions"])
            for counted in facts.precisions.items():
                self._execute(statements("vectors")["count_precision"], counted)
            self._execute(self._sql["delete_unused_tags"])
            for name, last in facts.last_ids.items():
                self._execute(self._sql["raise_last_id"], (last, name))
            self._execute(self._sql["delete_audit_sequence"])
            self._execute(self._sql["insert_audit_sequence"], (facts.last_ids["audit"],))
            take_folders(self.origin.tx.folders, facts)
            self._execute(statements("search")["update_generation"], (self.origin.tx.generation + 1,))

    def finish(self) -> None:
        """Let engines use the database."""
        with self._changing():
            record_arrival(self._connection, self._source, done=True)

    def _add(self, whole: Whole, table: VectorTable) -> None:
        state, held, documents = whole.state, whole.held, SqliteDocuments(self._connection, table)
        self._insert(DOCUMENTS, [state.document] if state.document else [])
        documents.add_tags(whole.id, state.tags)
        documents.insert_chunks(whole.id, ((chunk.id, chunk) for chunk in held.chunks), whole.language)
        vectors = zip(held.chunks, held.vectors, strict=True)
        self._connection.executemany(table.insert, [(chunk.id, vector) for chunk, vector in vectors if vector])
        contents = [(former.id, whole.id, former.chunks, former.vectors) for former in held.contents]
        self._connection.executemany(self._sql["insert_content"], contents)
        self._insert(VERSIONS, state.versions)
        self._insert(BIN, [state.binned] if state.binned else [])

    def _remove(self, document_id: int, table: VectorTable) -> None:
        documents, history = statements("documents"), statements("history")
        chunks = self._execute(documents["select_chunk_ids"], (document_id,)).fetchall()
        self._connection.executemany(table.delete, chunks)
        for name in ("delete_chunks", "delete_sections"):
            self._execute(documents[name], (document_id,))
        self._execute(self._sql["delete_document"], (document_id,))
        for name in ("delete_binned", "delete_contents"):
            self._execute(history[name], (document_id,))
        self._execute(history["delete_versions"], (document_id,)).fetchall()

    def _insert(self, table: Table, rows: Sequence[Row]) -> None:
        values = {"columns": ", ".join(table.columns), "values": ", ".join("?" * len(table.columns))}
        sql = self._sql["insert_row"].format(table=table.name, **values)
        self._connection.executemany(sql, [tuple(map(_stored, row)) for row in rows])

    @contextmanager
    def _changing(self) -> Iterator[None]:
        try:
            with write_transaction(self._connection):
                yield
        except apsw.FullError as error:
            raise DiskFull from error
        except apsw.Error as error:
            raise StoreError(f"The database {self._path} cannot be written: {error}.") from error


def _stored(value: Any) -> Any:  # noqa: ANN401 - a column's
    return array(value) if isinstance(value, tuple) else value
