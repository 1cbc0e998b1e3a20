"""One writer, a pool of readers."""

from __future__ import annotations

import queue
import threading
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

import apsw

from kb.api.errors import DiskFull, StoreError
from kb.store.rows import Counts
from kb.store.sqlite.connection import connect
from kb.store.sqlite.documents import SqliteDocuments
from kb.store.sqlite.index import SqliteIndex
from kb.store.sqlite.jobs import SqliteJobs
from kb.store.sqlite.migrate import prepare_schema
from kb.store.sqlite.schema import SCHEMA_VERSION
from kb.store.sqlite.statements import statements
from kb.store.sqlite.vector_keeper import VectorKeeper
from kb.store.sqlite.vector_space import bind_space
from kb.store.sqlite.vectors import Vectors, generation

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kb.store.rows import VectorSpace
    from kb.store.sqlite.row_mapping import Execute

READ_CONNECTIONS = 8
FLAT_LIMIT = 20_000
"""Up to how many vectors are all in memory."""


class SqliteTransaction:
    """A transaction on one connection; see `kb.store.protocol.Transaction`."""

    def __init__(self, connection: apsw.Connection, vectors: Vectors) -> None:
        self.connection = connection
        self.documents = SqliteDocuments(connection, vectors.table)
        self.jobs = SqliteJobs(connection)
        self._vectors = vectors

    @cached_property
    def index(self) -> SqliteIndex:
        """Both legs of search, at this transaction's moment."""
        return SqliteIndex(self.connection, self._vectors)

    def counts(self) -> Counts:
        """Return how much is in the database."""
        execute: Execute = self.connection.execute
        documents, jobs = statements("documents"), statements("jobs")
        return Counts(
            documents=dict(execute(documents["count_by_type"])),
            chunks=execute(documents["count_chunks"]).get,
            jobs=dict(execute(jobs["count_by_status"])),
            queue_age=self.jobs.queue_age(),
            size=self.connection.pragma("page_count") * self.connection.pragma("page_size"),
        )


class SqliteStore:
    """A store in one SQLite file; see `kb.store.protocol.Store`.

    Raises:
        StoreError: the file cannot be opened, or is of another version or model.
    """

    schema_version = SCHEMA_VERSION

    def __init__(self, path: Path, space: VectorSpace, flat_limit: int = FLAT_LIMIT) -> None:
        self._path = path
        self._writer = connect(path)
        prepare_schema(self._writer, path, space.dimensions)
        bind_space(self._writer, path, space)
        self._write_lock = threading.Lock()
        self._readers: queue.LifoQueue[apsw.Connection] = queue.LifoQueue()
        for _ in range(READ_CONNECTIONS):
            self._readers.put(connect(path, read_only=True))
        self._vectors = Vectors(self._writer, space.dimensions, flat_limit)
        self._keeper = VectorKeeper(self, self._vectors)
        self._keeper.notice()

    @property
    def vectors_size(self) -> int:
        """How many bytes the newest vectors take in memory."""
        return self._vectors.index.size

    @contextmanager
    def read(self) -> Iterator[SqliteTransaction]:
        """One moment of the database."""
        connection = self._readers.get()
        try:
            connection.execute("BEGIN")
            yield SqliteTransaction(connection, self._vectors)
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            self._readers.put(connection)
            if self._vectors.is_damaged:
                self._keeper.notice()

    @contextmanager
    def write(self) -> Iterator[SqliteTransaction]:
        """A change, whole or not at all; on disk when the block ends.

        Raises:
            DiskFull: there is no room for it.
        """
        with self._write_lock:
            self._writer.execute("BEGIN IMMEDIATE")
            before = self._vectors.newest
            try:
                transaction = SqliteTransaction(self._writer, self._vectors)
                yield transaction
                self._publish(transaction.documents)
                self._writer.execute("COMMIT")
            except BaseException as error:
                # SQLite has rolled back by itself after some errors (a full disk, say).
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                if self._vectors.newest != before:
                    self._vectors.withdraw()
                if isinstance(error, apsw.FullError):
                    raise DiskFull from error
                raise
        self._keeper.notice()

    def check(self) -> None:
        """Read a row.

        Raises:
            StoreError: the database does not answer.
        """
        try:
            with self.read() as tx:
                generation(tx.connection)
        except apsw.Error as error:
            raise StoreError(f"The database {self._path} cannot be read: {error}.") from error

    def close(self) -> None:
        """Close every connection. No transaction may be open."""
        self._keeper.close()
        with self._write_lock:
            for _ in range(READ_CONNECTIONS):
                self._readers.get().close()
            self._writer.close()

    def _publish(self, documents: SqliteDocuments) -> None:
        if documents.added or documents.removed:
            removed = set(documents.removed)
            lasting = [(chunk_id, vector) for chunk_id, vector in documents.added if chunk_id not in removed]
            number = self._vectors.publish(self._writer, lasting, removed)
            self._writer.execute(statements("search")["update_generation"], (number,))
