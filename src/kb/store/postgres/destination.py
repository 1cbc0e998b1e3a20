"""A PostgreSQL database, which takes over another one; see `kb.store.transfer.Destination`."""

from __future__ import annotations

from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import psycopg

from kb.api.errors import DiskFull, Invalid, StoreError
from kb.api.moments import own_day
from kb.store.postgres.arrival import read_arrival, record_arrival
from kb.store.postgres.documents import NO_SECTION
from kb.store.postgres.faults import TOO_LONG
from kb.store.postgres.jobs import ENGINES
from kb.store.postgres.migrate import prepare_schema
from kb.store.postgres.origin import PostgresOrigin
from kb.store.postgres.statements import statements
from kb.store.postgres.store import WRITING
from kb.store.postgres.vector_space import are_engines_there, bind_space, table_in_use
from kb.store.postgres.words import FullText
from kb.store.transfer import BIN, DOCUMENTS, VERSIONS, check_ids, check_source, take_folders

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from kb.store.postgres.connection import Connection
    from kb.store.rows import VectorSpace
    from kb.store.transfer import Facts, Row, Table, Whole

COPYING: Final = 0x6B62_0004
"""The advisory lock of who takes over another database."""

SEQUENCES: Final = {
    "documents": "document_ids",
    "chunks": "chunk_ids",
    "jobs": "jobs_id_seq",
    "audit": "audit_id_seq",
    "operations": "operations_id_seq",
    "contents": "former_contents_id_seq",
}
EMPTY: Final = (None,) * len(DOCUMENTS.columns)
PATH: Final = DOCUMENTS.columns.index("source_path")
IN_USE: Final = "An engine uses the target; stop it first."
BEGIN_BINARY, END_BINARY = b"PGCOPY\n\xff\r\n\0" + bytes(8), b"\xff\xff"
CHUNK_COLUMNS: Final = (
    "id", "document_id", "chunk_index", "section_id", "text", "page", "line_start", "line_end", "char_start",
    "char_end", "length",
)  # fmt: skip


class PostgresDestination:
    """See `kb.store.transfer.Destination`.

    Args:
        connection: outside a transaction.
        space: what the vectors are of that it takes.

    Raises:
        StoreError: it is too old or too new, an engine uses it, or another copy is being made.
    """

    def __init__(self, connection: Connection, space: VectorSpace) -> None:
        self._connection = connection
        self._execute: Any = connection.execute
        self._space = space
        self._sql = statements("transfer")
        self._source = ""
        if connection.execute("SELECT pg_try_advisory_lock(%s)", (COPYING,)).fetchone() == (False,):
            raise StoreError("Another 'kb migrate-store' writes to the target.")
        if are_engines_there(connection):
            raise StoreError(IN_USE)
        prepare_schema(connection)
        self.origin: PostgresOrigin

    def begin(self, source: str, last_ids: Mapping[str, int]) -> None:
        """Begin, or go on, to take over a source of this name.

        Raises:
            StoreError: the database holds what is not from there.
        """
        with self._changing():
            mark, is_empty = read_arrival(self._connection), not self._execute(self._sql["is_used"]).get
            check_source(mark, source, is_empty=is_empty)
            if mark:
                check_ids(PostgresOrigin(self._connection).facts().last_ids, last_ids)
            bind_space(self._connection, self._space)
            if is_empty:
                self._execute(statements("vectors")["drop_index"].format(vectors=self._vectors))  # made at the end
            record_arrival(self._connection, source, done=False)
        self._source = source
        self.origin = PostgresOrigin(self._connection)

    def write(self, gone: Collection[int], documents: Sequence[Whole]) -> None:
        """Remove documents that are there, and then add some.

        Raises:
            Invalid: one has a path that no index holds.
        """
        with self._changing(), _translated_length_errors(documents):
            for document_id in gone:
                self._remove(document_id)
            self._copy(DOCUMENTS, (each.state.document for each in documents if each.state.document))
            tags = ((each.id, tag) for each in documents for tag in each.state.tags)
            self._copy_rows("document_tags", ("document_id", "tag"), tags)
            self._add_chunks(documents)
            contents = [(former, each.id) for each in documents for former in each.held.contents]
            rows = ((former.id, document_id, former.chunks, former.vectors) for former, document_id in contents)
            self._copy_rows("former_contents", ("id", "document_id", "chunks", "vectors"), rows)
            size = sum(len(former.chunks) + len(former.vectors or b"") for former, _ in contents)
            self._execute(statements("history")["change_size"], {"size": size})
            self._copy(VERSIONS, (version for each in documents for version in each.state.versions))
            self._copy(BIN, (each.state.binned for each in documents if each.state.binned))

    def write_rows(self, table: Table, gone: Collection[int], rows: Sequence[Row]) -> None:
        """Remove rows by their keys, and then add some."""
        with self._changing():
            self._execute(self._sql["delete_rows"].format(table=table.name, key=table.key), (list(gone),))
            self._copy(table, rows)

    def complete(self, facts: Facts) -> None:
        """Bring what stands for itself over, and make the index that was left for the end."""
        with self._changing():
            self._execute(self._sql["set_beginning"], (facts.begins,))
            self._execute(statements("vectors")["forget_precisions"])
            for counted in facts.precisions.items():
                self._execute(statements("vectors")["count_precision"], counted)
            for name, sequence in SEQUENCES.items():
                if last := facts.last_ids[name]:
                    self._execute(self._sql["set_last_id"], (sequence, last))
            take_folders(self.origin.tx.folders, facts)
            self._execute(statements("search")["update_generation"])
            if not self._execute(self._sql["is_indexed"].format(vectors=self._vectors)).get:
                sql = statements("vectors")["create_index"]
                self._execute(sql.format(vectors=self._vectors, dimensions=self._space.dimensions))
        self._execute(self._sql["analyze"])

    def finish(self) -> None:
        """Let engines use the database."""
        with self._changing():
            record_arrival(self._connection, self._source, done=True)

    @cached_property
    def _vectors(self) -> str:
        """The table of the vectors in use."""
        return table_in_use(self._connection)

    def _add_chunks(self, documents: Sequence[Whole]) -> None:
        """Write what documents hold, its full text, and the vectors."""
        held = [(each.id, chunk) for each in documents for chunk in each.held.chunks]
        sections = self._add_sections({(id_, chunk.header, chunk.place.heading): 0 for id_, chunk in held})
        words = FullText(self._connection)
        texts = [
            words.new_text(chunk.id, each.id, chunk.text, chunk.header, each.language)
            for each in documents
            for chunk in each.held.chunks
        ]
        rows = (
            (
                chunk.id,
                id_,
                chunk.index,
                sections.get((id_, chunk.header, chunk.place.heading)),
                chunk.text,
                chunk.place.page,
                chunk.place.line_start,
                chunk.place.line_end,
                chunk.place.char_start,
                chunk.place.char_end,
                text.length,
            )
            for (id_, chunk), text in zip(held, texts, strict=True)
        )
        self._copy_rows("chunks", CHUNK_COLUMNS, rows)
        words.add(texts)
        vectors = [vector for each in documents for vector in each.held.vectors]
        self._copy_vectors(
            [(chunk.id, id_, vector) for (id_, chunk), vector in zip(held, vectors, strict=True) if vector]
        )

    def _add_sections(self, wanted: Iterable[tuple[int, str, tuple[str, ...]]]) -> dict[Any, int]:
        """Write sections; return the id of each."""
        sections = [each for each in wanted if each[1:] != NO_SECTION]
        ids = [id_ for (id_,) in self._execute(self._sql["take_section_ids"], (len(sections),))]
        rows = (
            (id_, document_id, header, list(heading))
            for id_, (document_id, header, heading) in zip(ids, sections, strict=True)
        )
        self._copy_rows("sections", ("id", "document_id", "header", "heading"), rows)
        return dict(zip(sections, ids, strict=True))

    def _copy_vectors(self, vectors: Sequence[tuple[int, int, bytes]]) -> None:
        with self._connection.cursor().copy(self._sql["copy_vectors"].format(vectors=self._vectors)) as copy:
            copy.write(BEGIN_BINARY + binary_rows(vectors, self._space.dimensions) + END_BINARY)

    def _copy(self, table: Table, rows: Iterable[Row]) -> None:
        columns = table.columns + (("own_day",) if table in (DOCUMENTS, VERSIONS) else ())
        self._copy_rows(table.name, columns, (self._stored(table, row) for row in rows))

    def _copy_rows(self, table: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
        with self._connection.cursor().copy(
            self._sql["copy_rows"].format(table=table, columns=", ".join(columns))
        ) as copy:
            for row in rows:
                copy.write_row(row)

    def _stored(self, table: Table, row: Row) -> Row:
        """Return a row as PostgreSQL has it, with what it has besides."""
        stored = [list(value) if isinstance(value, tuple) else value for value in row]
        if table in (DOCUMENTS, VERSIONS):
            stored.append(own_day(row[table.columns.index("date")]))
        return tuple(stored)

    def _remove(self, document_id: int) -> None:
        FullText(self._connection).remove(document_id)
        self._execute(statements("documents")["delete_chunks"], {"id": document_id})
        self._execute(statements("documents")["delete_document"], {"id": document_id})
        for name in ("delete_binned", "delete_contents", "delete_versions"):
            self._execute(statements("history")[name], {"id": document_id})

    @contextmanager
    def _changing(self) -> Iterator[None]:
        try:
            with self._connection.transaction():
                self._execute("SELECT pg_advisory_xact_lock(%s)", (WRITING,))
                if self._execute(statements("jobs")["count_engines"], {"class": ENGINES}).get:
                    raise StoreError(IN_USE)
                yield
        except psycopg.errors.DiskFull as error:
            raise DiskFull from error
        except psycopg.Error as error:
            raise StoreError(f"The database cannot be written: {str(error).partition(chr(10))[0]}.") from error


@contextmanager
def _translated_length_errors(documents: Sequence[Whole]) -> Iterator[None]:
    """Say which document it may be whose path is too long."""
    try:
        yield
    except psycopg.errors.ProgramLimitExceeded as error:
        longest = max(documents, key=lambda each: len((each.state.document or EMPTY)[PATH] or ""))
        raise Invalid(f"{TOO_LONG} The longest path here is that of document {longest.id}.") from error


def binary_rows(vectors: Sequence[tuple[int, int, bytes]], dimensions: int) -> bytes:
    """Return rows of vectors in the binary format of COPY: each column, of which there are 3, behind its length."""
    rows = np.empty(
        len(vectors),
        [
            ("columns", ">i2"),
            *(("chunk_bytes", ">i4"), ("chunk_id", ">i8")),
            *(("document_bytes", ">i4"), ("document_id", ">i8")),
            *(("vector_bytes", ">i4"), ("dimensions", ">i2"), ("unused", ">i2"), ("numbers", ">f4", (dimensions,))),
        ],
    )
    constants = {"columns": 3, "chunk_bytes": 8, "document_bytes": 8, "vector_bytes": 4 + 4 * dimensions}
    for name, value in (constants | {"dimensions": dimensions, "unused": 0}).items():
        rows[name] = value
    rows["chunk_id"], rows["document_id"] = [each[0] for each in vectors], [each[1] for each in vectors]
    rows["numbers"] = np.frombuffer(b"".join(each[2] for each in vectors), "<f4").reshape(-1, dimensions)
    return rows.tobytes()
