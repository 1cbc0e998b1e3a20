"""The store in PostgreSQL: a pool of connections to one database, which several engines may share."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from functools import cached_property, partial
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg
from psycopg import errors
from psycopg_pool import ConnectionPool, PoolTimeout

from kb.api.errors import StoreError, StoreUnavailable, Unconfirmed
from kb.store.postgres.blobs import BlobPlace, PostgresBlobs
from kb.store.postgres.connection import READ, Connection, PgCursor, conninfo, prepare, replica_conninfo
from kb.store.postgres.documents import PostgresDocuments
from kb.store.postgres.error_translation import BUSY, first_line, translated_errors
from kb.store.postgres.export_tables import PostgresTransfer
from kb.store.postgres.full_text import FullText
from kb.store.postgres.index import PostgresIndex
from kb.store.postgres.jobs import PostgresJobs
from kb.store.postgres.keys import PostgresKeys
from kb.store.postgres.migrate import SCHEMA_VERSION, prepare_schema
from kb.store.postgres.notifications import Presence
from kb.store.postgres.reembed_vectors import PostgresSecondVectors
from kb.store.postgres.replica import Replica, ReplicaConnection, database_identity, last_change
from kb.store.postgres.statements import statements
from kb.store.postgres.vector_space import bind_space
from kb.store.postgres.vectors import VectorTable
from kb.store.row_mapping import Execute
from kb.store.rows import MemoryUse, ReplicaState, Retention, VectorSpace
from kb.store.sql.transaction import Transaction
from kb.store.write_turns import WriteTurns

if TYPE_CHECKING:
    from psycopg.errors import Diagnostic

C = TypeVar("C", bound=psycopg.Connection[tuple[Any, ...]])
logger = logging.getLogger(__name__)

CONNECTIONS = 10
"""The most connections of an engine, not counting the connection that shows its presence."""

NAMED_AT_ONCE = 1000
"""The number of documents whose names a transaction writes; later ones write the rest."""

WRITING, QUEUING = 0x6B62_0002, 0x6B62_0003
"""The advisory locks for writes, and for changes of only the queue."""

PATIENCE_SECONDS, ATTEMPT_SECONDS, PAUSE_SECONDS = 10.0, 2.0, 0.2
"""How long new transactions wait for a lost server, how long each attempt takes, and the pause before kb asks a
read-only server again.
"""

RECONNECT_SECONDS = 2.0
"""How long the pool reconnects on its own, with growing pauses; after that it tries when kb requests a connection."""

LOCK_SECONDS, IDLE_SECONDS = 30, 60
"""How long a change waits for other changes, and how long an engine may be silent within a transaction.

The time of a change itself has no limit. A timeout during the wait for a synchronous replica would end only the wait,
although the change is done.
"""

UNCONFIRMED = (
    "The connection to the database failed ({reason}), so kb does not know whether the change was written."
    " Check it, or send the change again with the same Idempotency-Key."
)
DEFAULT_RETENTION = Retention()
LOCK = "SELECT pg_advisory_xact_lock(%s), current_setting('transaction_read_only')"


def ping(connection: Connection) -> None:
    connection.execute("SELECT 1")


class PostgresTransaction(Transaction):
    """A transaction on one connection; see `kb.store.protocol.Transaction`."""

    documents: PostgresDocuments
    jobs: PostgresJobs

    def __init__(
        self,
        connection: Connection,
        retention: Retention,
        engine: int,
        checkpoint: Callable[[], None] = lambda: None,
    ) -> None:
        execute: Execute = connection.execute
        words, vectors = FullText(connection), VectorTable(execute)
        documents = PostgresDocuments(connection, words, vectors, checkpoint)
        super().__init__(execute, statements, documents, PostgresJobs(execute, engine), retention)
        self.connection = connection
        self.keys = PostgresKeys(lambda: nullcontext(connection))
        self.second = PostgresSecondVectors(connection, vectors, engine)
        self.full_text = words
        self._vectors = vectors

    @property
    def space(self) -> VectorSpace:
        return self._vectors.space

    @cached_property
    def transfer(self) -> PostgresTransfer:
        """Its rows in the form of an export."""
        return PostgresTransfer(self._execute, self._vectors)

    @property
    def generation(self) -> int:
        number: int = self._execute(statements("search")["select_generation"]).get
        return number

    @cached_property
    def index(self) -> PostgresIndex:
        return PostgresIndex(self._execute, self.full_text, self._vectors)

    @property
    def size(self) -> int:
        size: int = self._execute(statements("documents")["select_size"]).get
        return size

    def publish(self) -> None:
        """Increase the generation after a change of chunks or vectors; note any other change for the replicas."""
        is_new = self.documents.changed or self.second.switched
        self._execute(statements("search")["update_generation" if is_new else "note_change"])


class PostgresStore:
    """A store in a PostgreSQL database; see `kb.store.protocol.Store`.

    Args:
        space: the space of the vectors.
        retention: the limits of the history, the bin and the audit log.
        read_url: the URL of replicas, which answer `view`.

    Raises:
        StoreError: the database cannot be opened, or is of another version or model.
    """

    schema_version = SCHEMA_VERSION
    is_shared = True
    full_text = "BM25 over tables"
    memory = MemoryUse()

    def __init__(
        self, url: str, space: VectorSpace, retention: Retention = DEFAULT_RETENTION, read_url: str | None = None
    ) -> None:
        self._retention = retention
        self.keys = PostgresKeys(self._connection)
        self._write_turns = WriteTurns()
        self._queue_turns = WriteTurns()
        replicas = replica_conninfo(read_url) if read_url else None
        try:
            with ExitStack() as stack:
                self._prepare(url, space, stack)
                self._pool = stack.enter_context(closing(open_pool("kb", psycopg.Connection, conninfo(url))))
                self._pool.wait(PATIENCE_SECONDS)
                self._replica = stack.enter_context(closing(self._open_replica(replicas))) if replicas else None
                self._parts = stack.pop_all()
        except (psycopg.Error, PoolTimeout) as error:
            raise StoreError(
                f"KB_DATABASE_URL: kb cannot open the database in PostgreSQL: {first_line(error)}. Check that the"
                " server runs, and check the host, port, user, password and database."
            ) from error

    def _prepare(self, url: str, space: VectorSpace, stack: ExitStack) -> None:
        with closing(connect(url)) as connection:
            prepare_schema(connection)
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (WRITING,))
                bind_space(connection, space)
                connection.execute(statements("search")["note_change"])
                presence = Presence(partial(connect, url))  # so that no copy begins in between
                self._presence = stack.enter_context(closing(presence))

    def _open_replica(self, info: str) -> Replica:
        with self._connection() as connection:
            identity = database_identity(connection)
        connect = partial(open_connection, ReplicaConnection, info)
        pool = partial(open_pool, "kb-replica", ReplicaConnection, info)
        return Replica(connect, pool, identity, self._last_change)

    @property
    def replica(self) -> ReplicaState | None:
        return self._replica.state if self._replica else None

    def listen(self, wake: Callable[[], None], ended: Callable[[int], None] = lambda _: None) -> None:
        self._presence.listen(wake, ended)

    @contextmanager
    def read(self) -> Iterator[PostgresTransaction]:
        with self._connection(lambda connection: connection.execute(READ, prepare=False)) as connection:
            engine = self._presence.number
            yield PostgresTransaction(connection, self._retention, engine)

    @contextmanager
    def view(self) -> Iterator[PostgresTransaction]:
        """Read a snapshot, from a replica if one has all earlier writes."""
        with self._replica.moment() if self._replica else nullcontext() as connection:
            if connection:
                yield PostgresTransaction(connection, self._retention, self._presence.number)
            else:
                with self.read() as tx:
                    yield tx

    @contextmanager
    def write(
        self,
        checkpoint: Callable[[], None] = lambda: None,
        *,
        urgent: bool = False,
    ) -> Iterator[PostgresTransaction]:
        """Commit when the block ends.

        Raises:
            DiskFull: the disk is full.
            Unconfirmed: the change may have been written, or not.
        """
        # Writes of this engine wait without a connection, writes of other engines in the database.
        with acquired(self._write_turns, urgent=urgent), self._change(WRITING, checkpoint) as transaction:
            yield transaction
            transaction.documents.write_names(NAMED_AT_ONCE)
            transaction.publish()

    @property
    def has_urgent(self) -> bool:
        return self._write_turns.has_urgent

    @contextmanager
    def queue(self) -> Iterator[PostgresTransaction]:
        """Change only the queue; this waits only for other changes of the queue, and for jobs that a write ends."""
        with acquired(self._queue_turns), self._change(QUEUING) as transaction:
            yield transaction

    def blobs(self, scratch: Path) -> PostgresBlobs:
        """Return the files in the database; kb copies one into the folder `scratch` to read it as a file."""
        return PostgresBlobs(self._connection, scratch)

    @contextmanager
    def blob_place(self) -> Iterator[BlobPlace]:
        """Yield the record of where files are, which may change only within this block."""
        with self._connection() as connection, connection.transaction():
            yield BlobPlace(connection)

    def renew_words(self, documents: int) -> bool:
        with self.read() as tx:
            if tx.full_text.backfilled is None:
                return False
        with self.write() as tx:
            return tx.documents.index_older(documents)

    def reclaim(self) -> bool:
        """Return False, because autovacuum frees the space."""
        return False

    def check(self) -> None:
        try:
            self._last_change()
        except psycopg.Error as error:
            raise StoreError(f"kb cannot read the database: {first_line(error)}.") from error

    def close(self) -> None:
        """Close every connection. No transaction may be open."""
        self._parts.close()

    def _last_change(self) -> int:
        changes: list[int] = []
        with self._connection(lambda connection: changes.append(last_change(connection))):
            return changes[-1]

    @contextmanager
    def _change(self, lock: int, checkpoint: Callable[[], None] = lambda: None) -> Iterator[PostgresTransaction]:
        def begin(connection: Connection) -> None:
            connection.execute("BEGIN")
            [(_, read_only)] = connection.execute(LOCK, (lock,)).fetchall()
            if read_only == "on":
                raise errors.ReadOnlySqlTransaction("this server is a replica or read-only")

        with self._connection(begin) as connection:
            engine = self._presence.number
            yield PostgresTransaction(connection, self._retention, engine, checkpoint)
            commit(connection)

    @contextmanager
    def _connection(self, begin: Callable[[Connection], object] = ping) -> Iterator[Connection]:
        """Lend a connection after a call of `begin` with it; roll back uncommitted changes at the end.

        Raises the same errors as `translated_errors`.
        """
        with translated_errors(lambda: self._presence.trouble):
            connection = self._begin(begin)
            try:
                yield connection
            except errors.ReadOnlySqlTransaction:
                connection.close()  # the next connection goes to the new primary
                raise
            finally:
                self._give_back(connection)

    def _begin(self, begin: Callable[[Connection], object]) -> Connection:
        """Return a connection after a call of `begin` with it.

        kb retries in the first seconds without a server. This is safe because nothing was written yet.
        """
        deadline = (self._presence.lost_at or monotonic()) + PATIENCE_SECONDS
        while True:
            connection = None
            try:
                connection = self._pool.getconn(timeout=ATTEMPT_SECONDS)
                begin(connection)
            except (psycopg.Error, PoolTimeout) as error:
                if isinstance(error, errors.ReadOnlySqlTransaction) and connection:
                    connection.close()
                    sleep(PAUSE_SECONDS)
                is_gone = connection is None or connection.closed
                if connection:
                    self._give_back(connection)
                if not is_gone or monotonic() >= deadline:
                    raise
            else:
                return connection

    def _give_back(self, connection: Connection) -> None:
        with suppress(psycopg.Error):
            connection.rollback()
        self._pool.putconn(connection)


@contextmanager
def acquired(turns: WriteTurns, *, urgent: bool = False) -> Iterator[None]:
    """Hold a turn while the block runs.

    Raises:
        StoreUnavailable: others have had it for too long.
    """
    if not turns.acquire(urgent=urgent, timeout=LOCK_SECONDS):
        raise StoreUnavailable(BUSY)
    try:
        yield
    finally:
        turns.release()


def commit(connection: Connection) -> None:
    """Commit.

    Raises:
        Unconfirmed: the change may have been written, or not; or a synchronous replica did not confirm it.
        psycopg.Error: nothing was written.
    """
    warnings: list[str] = []

    def warn(diagnostic: Diagnostic) -> None:
        warnings.append(diagnostic.message_primary or "")

    connection.add_notice_handler(warn)
    try:
        done = connection.execute("COMMIT").statusmessage
    except psycopg.OperationalError as error:
        if not connection.closed:
            raise
        raise Unconfirmed(UNCONFIRMED.format(reason=first_line(error))) from error
    finally:
        connection.remove_notice_handler(warn)
    if done != "COMMIT":  # after a failed statement, the server rolls back without an error
        raise errors.InFailedSqlTransaction(f"an earlier statement failed: {done}")
    if warnings:  # as when an administrator ends the wait for a synchronous replica
        raise Unconfirmed(UNCONFIRMED.format(reason=warnings[0]))


def connect(url: str) -> Connection:
    """Return a connection of the store's kind, outside a transaction.

    Raises:
        SettingError: the URL is not valid.
        psycopg.Error: the connection cannot be made.
    """
    return open_connection(psycopg.Connection, conninfo(url))


def open_connection(connection_class: type[C], info: str) -> C:
    """Return a connection of the store's kind, of this class, for a libpq connection string.

    Raises:
        psycopg.Error: the connection cannot be made.
    """
    connection = connection_class.connect(info, autocommit=True, cursor_factory=PgCursor)
    with connection.transaction():
        connection.execute("SELECT 1")
    prepare(connection)
    return connection


def open_pool(
    name: str, connection_class: type[C], info: str, check: Callable[[Connection], None] = lambda _: None
) -> ConnectionPool[C]:
    """Return a pool of such connections, with limits on the wait for locks and for the engine, and with a check."""

    def configure(connection: Connection) -> None:
        prepare(connection)
        connection.execute(f"SET lock_timeout = '{LOCK_SECONDS}s'")
        connection.execute(f"SET idle_in_transaction_session_timeout = '{IDLE_SECONDS}s'")
        check(connection)

    return ConnectionPool(
        info,
        connection_class=connection_class,
        min_size=2,
        max_size=CONNECTIONS,
        kwargs={"autocommit": True, "cursor_factory": PgCursor},
        configure=configure,
        reconnect_timeout=RECONNECT_SECONDS,
        open=True,
        name=name,
    )
