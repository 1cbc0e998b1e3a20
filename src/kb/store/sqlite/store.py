"""The store in one SQLite file: one connection that writes, and a pool of connections that read."""

import os
import queue
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from pathlib import Path

import apsw

from kb.api.errors import DiskFault, DiskFull, StoreError, TooLong
from kb.store.row_mapping import Execute, next_ids
from kb.store.rows import MemoryUse, Retention, VectorSpace
from kb.store.sql.jobs import Jobs
from kb.store.sql.transaction import Transaction
from kb.store.sqlite import upgrade_reindex
from kb.store.sqlite.connection import BUSY_MS, READ_CONNECTIONS, connect, damaged, unopened
from kb.store.sqlite.documents import SqliteDocuments
from kb.store.sqlite.export_tables import SqliteTransfer
from kb.store.sqlite.file_identity import FileIdentity
from kb.store.sqlite.foreign_objects import foreign_names
from kb.store.sqlite.full_text_cache import DEFAULT_LIMIT, WordReader, Words
from kb.store.sqlite.index import SqliteIndex
from kb.store.sqlite.index_completeness import check_in_step
from kb.store.sqlite.migrate import prepare_schema
from kb.store.sqlite.reembed_vectors import SqliteSecondVectors
from kb.store.sqlite.schema import SCHEMA_VERSION
from kb.store.sqlite.statements import statements
from kb.store.sqlite.vector_keeper import VectorKeeper
from kb.store.sqlite.vector_space import bind_space
from kb.store.sqlite.vectors import Vectors, generation
from kb.store.write_turns import WriteTurns

DEFAULT_RETENTION = Retention()
# With more vectors, only a code of each vector is in memory.
FLAT_LIMIT = 20_000

# SQLite's errors if the disk cannot be written.
FAULTS = (apsw.ReadOnlyError, apsw.IOError, apsw.CantOpenError)

# The number of documents whose names a transaction indexes; later steps index the rest.
NAMED_AT_ONCE = 100

# Free pages up to this number stay; more are freed in steps of this size.
RECLAIMED_PAGES = 256


class SqliteJobs(Jobs):
    """See `kb.store.protocol.Jobs`. Ids are never reused. Knows whether its transaction queued a job."""

    is_queued = False

    def _new_id(self) -> int:
        self.is_queued = True
        [job_id] = next_ids(self._execute, self._sql["take_job_ids"], 1)
        return job_id


class SqliteTransaction(Transaction):
    """A transaction on one connection; see `kb.store.protocol.Transaction`."""

    documents: SqliteDocuments
    jobs: SqliteJobs

    def __init__(
        self,
        connection: apsw.Connection,
        vectors: Vectors,
        retention: Retention,
        checkpoint: Callable[[], None] = lambda: None,
        *,
        words: Words | None = None,
    ) -> None:
        documents = SqliteDocuments(connection, vectors.era, checkpoint)
        jobs = SqliteJobs(connection.execute, statements)
        super().__init__(connection.execute, statements, documents, jobs, retention)
        self.connection = connection
        self.second = SqliteSecondVectors(connection, vectors)
        self.reanalysed: list[int] = []
        self._vectors = vectors
        self._words = words

    @cached_property
    def space(self) -> VectorSpace:
        return self._vectors.era_of(self.connection).space

    @cached_property
    def transfer(self) -> SqliteTransfer:
        return SqliteTransfer(self.connection, self.space.dimensions)

    @property
    def generation(self) -> int:
        return generation(self.connection)

    @cached_property
    def index(self) -> SqliteIndex:
        return SqliteIndex(self.connection, self._vectors, self.words)

    @cached_property
    def words(self) -> WordReader | None:
        """The snapshot of the words in memory that this transaction sees; None in a transaction that writes."""
        return self._words.seen_by(self.connection) if self._words else None

    @property
    def size(self) -> int:
        size: int = self.connection.pragma("page_count") * self.connection.pragma("page_size")
        return size

    def foreign_names(self) -> Sequence[str]:
        return foreign_names(self.connection)


REPLACED_NOW = (
    "The database file {0} was replaced, moved or removed while kb was running. kb refuses changes, because they would"
    " be lost. If you moved it, move it back. If you replaced it, stop kb and start it again: the start names the"
    " remedy. If it is lost, stop kb and restore a backup with 'kb backup restore'."
)


class SqliteStore:
    """A store in one SQLite file; see `kb.store.protocol.Store`.

    Args:
        space: the model and settings that the vectors are from.
        words_limit: the memory for words, in bytes.
        flat_limit: the number of vectors up to which all are in memory, and a search compares each.
        retention: how long kb keeps history and deleted documents.
        is_marked: notice if the file is replaced.

    Raises:
        StoreError: the file cannot be opened, or has another version or model.
    """

    schema_version = SCHEMA_VERSION
    keys = None
    replica = None
    is_shared = False
    full_text = "BM25 over FTS5, in memory"

    def __init__(
        self,
        path: Path,
        space: VectorSpace,
        words_limit: int = DEFAULT_LIMIT,
        flat_limit: int = FLAT_LIMIT,
        retention: Retention = DEFAULT_RETENTION,
        *,
        is_marked: bool = False,
    ) -> None:
        self._path = path
        self._retention = retention
        self._writer = connect(path)
        self._turns = WriteTurns()
        self._wake: Callable[[], None] = lambda: None
        self._readers: queue.LifoQueue[apsw.Connection] = queue.LifoQueue()
        self._file: FileIdentity | None = None
        try:
            prepare_schema(self._writer, path, space.dimensions)
            bind_space(self._writer, path, space)
            if is_marked and hasattr(os, "pread"):
                self._file = FileIdentity(path, self._writer)
            for _ in range(READ_CONNECTIONS):
                self._readers.put(connect(path, read_only=True))
            check_in_step(self._writer)
            self._vectors = Vectors(self._writer, space, flat_limit)
            self.words = Words(self._writer, words_limit)
            self._writer.pragma("shrink_memory")  # its cache holds the pages that were read
        except apsw.BusyError as error:
            raise StoreError(
                f"Another program is writing to the database {path}. Try again once it has finished."
            ) from error
        except (apsw.FullError, *FAULTS) as error:
            raise unopened(path, error) from error
        except (apsw.Error, ValueError) as error:
            raise damaged(path, error) from error
        self._keeper = VectorKeeper(self, self._vectors)
        self._keeper.notice()

    @property
    def memory(self) -> MemoryUse:
        return MemoryUse(self._vectors.index.size, self.words.size, self.words.faults)

    @contextmanager
    def read(self) -> Iterator[SqliteTransaction]:
        connection = self._readers.get()
        try:
            connection.execute("BEGIN")
            yield SqliteTransaction(connection, self._vectors, self._retention, words=self.words)
        except apsw.InterruptError as error:
            raise TooLong from error
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            self._readers.put(connection)

    view = read

    @contextmanager
    def write(
        self, checkpoint: Callable[[], None] = lambda: None, *, urgent: bool = False
    ) -> Iterator[SqliteTransaction]:
        """Commit when the block ends.

        Raises:
            DiskFull: the disk is full.
            DiskFault: the disk cannot be written, or the file was replaced.
        """
        with self._turns.turn(urgent=urgent), self._translated_errors():
            if self._is_replaced:
                raise DiskFault(REPLACED_NOW.format(self._path))
            self._writer.execute("BEGIN IMMEDIATE")
            before, words_before = self._vectors.newest, self.words.newest
            try:
                transaction = SqliteTransaction(self._writer, self._vectors, self._retention, checkpoint)
                yield transaction
                transaction.documents.write_names(NAMED_AT_ONCE)
                self._publish(transaction)
                if filled := transaction.documents.filled:
                    self._vectors.write_filled(self._writer, filled)
                self._writer.execute("COMMIT")
                if filled:
                    self._vectors.fill(filled)
            except BaseException:
                # After some errors, such as a full disk, SQLite has already rolled back.
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                if self._vectors.newest != before:
                    self._vectors.withdraw()
                if self.words.newest != words_before:
                    self.words.withdraw()
                raise
        self._keeper.notice()
        if transaction.jobs.is_queued:
            self._wake()

    @property
    def has_urgent(self) -> bool:
        return self._turns.has_urgent

    def listen(self, wake: Callable[[], None], ended: Callable[[int], None] = lambda _: None) -> None:
        """See `kb.store.protocol.Store`. No other process ends jobs."""
        self._wake = wake

    def queue(self) -> AbstractContextManager[SqliteTransaction]:
        """Return an ordinary write transaction."""
        return self.write()

    def reclaim(self) -> bool:
        """Free some pages, or empty the log if few pages are free; return whether pages were freed.

        A database that was created without `auto_vacuum` keeps its free pages and reuses them.
        """
        with self._turns.turn(), self._translated_errors():
            if self._is_replaced:
                return False
            more = bool(self._writer.pragma("auto_vacuum")) and self._writer.pragma("freelist_count") > RECLAIMED_PAGES
            if more:
                self._writer.execute(f"PRAGMA incremental_vacuum({RECLAIMED_PAGES})").fetchall()
            else:
                self._empty_log()
            return more

    def renew_words(self, documents: int) -> bool:
        with self.read() as tx:
            execute: Execute = tx.connection.execute
            changes = upgrade_reindex.next_changes(execute, documents) if upgrade_reindex.is_due(execute) else None
            if not changes and not execute(statements("names")["has_unnamed"]).get:
                return False
        with self.write() as tx:
            if changes:
                tx.reanalysed = upgrade_reindex.write_changes(self._writer, changes)
        return True

    def check(self) -> None:
        if self._is_replaced:
            raise StoreError(REPLACED_NOW.format(self._path))
        try:
            with self.read() as tx:
                generation(tx.connection)
        except apsw.Error as error:
            raise StoreError(f"kb cannot read the database {self._path}: {error}.") from error

    def close(self) -> None:
        """Close every connection. No transaction may be open."""
        self._keeper.close()
        with self._turns.turn():
            connections = [*(self._readers.get() for _ in range(READ_CONNECTIONS)), self._writer]
            if self._is_replaced:
                for connection in connections:
                    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            for connection in connections:
                connection.close()
            if self._file:
                self._file.close()

    @property
    def _is_replaced(self) -> bool:
        return self._file is not None and self._file.is_replaced()

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Raise `DiskFull` or `DiskFault` instead of SQLite's errors."""
        try:
            yield
        except apsw.FullError as error:
            raise DiskFull from error
        except FAULTS as error:
            if getattr(error, "extendedresult", None) == apsw.SQLITE_IOERR_NOMEM:
                raise  # out of memory; the disk is fine
            raise DiskFault.at(self._path, error) from error

    def _empty_log(self) -> None:
        """Move the log's pages into the database and truncate the log, unless a reader uses it."""
        log = self._path.with_name(f"{self._path.name}-wal")
        if not log.exists() or not log.stat().st_size:
            return
        self._writer.set_busy_timeout(0)
        try:
            self._writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.BusyError:
            return
        finally:
            self._writer.set_busy_timeout(BUSY_MS)

    def _publish(self, tx: SqliteTransaction) -> None:
        added, removed = tx.documents.added, set(tx.documents.removed)
        if tx.second.switched:
            number = self._vectors.switch(self._writer, tx.second.switched)
        elif added or removed:
            added = [(chunk_id, vector) for chunk_id, vector in added if chunk_id not in removed]
            number = self._vectors.publish(self._writer, added, removed)
        elif tx.reanalysed:
            number = self._vectors.publish(self._writer, [], set())
            self.words.replace(self._writer, number, tx.reanalysed)
            self._writer.execute(statements("search")["update_generation"], (number,))
            return
        else:
            return
        self.words.publish(self._writer, number, [chunk_id for chunk_id, _ in added], removed)
        self._writer.execute(statements("search")["update_generation"], (number,))
