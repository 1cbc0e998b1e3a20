"""A pool of connections to one database, which many engines may share."""

from __future__ import annotations

import logging
import threading
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

if TYPE_CHECKING:
    from psycopg.errors import Diagnostic

C = TypeVar("C", bound=psycopg.Connection[tuple[Any, ...]])
logger = logging.getLogger(__name__)

CONNECTIONS = 10
"""How many an engine has at most, beside the one that says that it is there."""

NAMED_AT_ONCE = 1000
"""The names of how many documents a transaction writes; the rest is written later."""

WRITING, QUEUING = 0x6B62_0002, 0x6B62_0003
"""The advisory locks of who writes, and of who changes the queue alone."""

PATIENCE_SECONDS, ATTEMPT_SECONDS, PAUSE_SECONDS = 10.0, 2.0, 0.2
"""How long after a server went what has not begun waits for it, how long at a time, and before it asks a read-only one
again.
"""

RECONNECT_SECONDS = 2.0
"""How long the pool tries by itself, ever more seldom; after that it does when a connection is asked for."""

LOCK_SECONDS, IDLE_SECONDS = 30, 60
"""How long a change waits for others, how long an engine may be silent amid a transaction.

How long a change takes has no limit: one that waits for a synchronous replica would be done, and only the wait end.
"""

UNCONFIRMED = (
    "The database broke off ({reason}): it is not known whether the change was written."
    " Look, or send it again with the same Idempotency-Key."
)
DEFAULT_RETENTION = Retention()
LOCK = "SELECT pg_advisory_xact_lock(%s), current_setting('transaction_read_only')"


def ping(connection: Connection) -> None:
    """Ask for an answer."""
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
        self.second = PostgresSecondVectors(connection, vectors, engine)
        self._words = words
        self._vectors = vectors

    @property
    def space(self) -> VectorSpace:
        return self._vectors.space

    @cached_property
    def transfer(self) -> PostgresTransfer:
        """Its rows as an export has them."""
        return PostgresTransfer(self._execute, self._vectors)

    @property
    def generation(self) -> int:
        number: int = self._execute(statements("search")["select_generation"]).get
        return number

    @cached_property
    def index(self) -> PostgresIndex:
        return PostgresIndex(self._execute, self._words, self._vectors)

    @property
    def size(self) -> int:
        size: int = self._execute(statements("documents")["select_size"]).get
        return size

    def publish(self) -> None:
        """Count the change of chunks or of their vectors, if there was one; note any other: replicas must have it."""
        is_new = self.documents.changed or self.second.switched
        self._execute(statements("search")["update_generation" if is_new else "note_change"])


class PostgresStore:
    """A store in a PostgreSQL database; see `kb.store.protocol.Store`.

    Args:
        url: where it is.
        space: what makes the vectors.
        retention: how long what was changed or deleted is kept.
        read_url: where replicas are, which answer `view`.

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
        self._write_lock = threading.Lock()
        self._queue_lock = threading.Lock()
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
                f"KB_DATABASE_URL: the database in PostgreSQL cannot be opened: {first_line(error)}. Does the server"
                " run, and are host, port, user, password and database right?"
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
        """One moment of the database, at a replica if one has all that was written before."""
        with self._replica.moment() if self._replica else nullcontext() as connection:
            if connection:
                yield PostgresTransaction(connection, self._retention, self._presence.number)
            else:
                with self.read() as tx:
                    yield tx

    @contextmanager
    def write(self, checkpoint: Callable[[], None] = lambda: None) -> Iterator[PostgresTransaction]:
        """Commit when the block ends.

        Raises:
            DiskFull: there is no room for it.
            Unconfirmed: it may have been written, or not.
        """
        # Those of this engine wait without a connection, those of others in the database.
        with acquired(self._write_lock), self._change(WRITING, checkpoint) as transaction:
            yield transaction
            transaction.documents.write_names(NAMED_AT_ONCE)
            transaction.publish()

    @contextmanager
    def queue(self) -> Iterator[PostgresTransaction]:
        """A change of the queue alone, which waits only for others of its kind, and for the jobs that a write ends."""
        with acquired(self._queue_lock), self._change(QUEUING) as transaction:
            yield transaction

    def blobs(self, scratch: Path) -> PostgresBlobs:
        """Return the files in the database, which are fetched into a folder to be read as such."""
        return PostgresBlobs(self._connection, scratch)

    @contextmanager
    def blob_place(self) -> Iterator[BlobPlace]:
        """What is recorded of where files are, and may be changed while the block lasts."""
        with self._connection() as connection, connection.transaction():
            yield BlobPlace(connection)

    def reclaim(self) -> bool:
        """Return False: autovacuum does it."""
        return False

    def check(self) -> None:
        try:
            self._last_change()
        except psycopg.Error as error:
            raise StoreError(f"The database cannot be read: {first_line(error)}.") from error

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
                raise errors.ReadOnlySqlTransaction("this server is a replica, or was told to be read-only")

        with self._connection(begin) as connection:
            engine = self._presence.number
            yield PostgresTransaction(connection, self._retention, engine, checkpoint)
            commit(connection)

    @contextmanager
    def _connection(self, begin: Callable[[Connection], object] = ping) -> Iterator[Connection]:
        """Lend a connection on which `begin` was done; what was not committed is rolled back.

        Raises as `translated_errors`.
        """
        with translated_errors(lambda: self._presence.trouble):
            connection = self._begin(begin)
            try:
                yield connection
            except errors.ReadOnlySqlTransaction:
                connection.close()  # the next one is to the server that has taken its place
                raise
            finally:
                self._give_back(connection)

    def _begin(self, begin: Callable[[Connection], object]) -> Connection:
        """Return a connection on which `begin` was done.

        In the first seconds that the server is gone it is tried again, which is safe, for nothing was written yet.
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
def acquired(lock: threading.Lock) -> Iterator[None]:
    """Hold a lock.

    Raises:
        StoreUnavailable: others have had it for too long.
    """
    if not lock.acquire(timeout=LOCK_SECONDS):
        raise StoreUnavailable(BUSY)
    try:
        yield
    finally:
        lock.release()


def commit(connection: Connection) -> None:
    """Commit.

    Raises:
        Unconfirmed: it may have been written, or not; or no replica has confirmed it that was to.
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
    if done != "COMMIT":  # without an error the server rolls back what had one before
        raise errors.InFailedSqlTransaction(f"a statement had failed: {done}")
    if warnings:  # as when an administrator ends the wait for a synchronous replica
        raise Unconfirmed(UNCONFIRMED.format(reason=warnings[0]))


def connect(url: str) -> Connection:
    """Return a connection of the store's kind, outside a transaction.

    Raises:
        SettingError: it is no URL.
        psycopg.Error: none can be made.
    """
    return open_connection(psycopg.Connection, conninfo(url))


def open_connection(connection_class: type[C], info: str) -> C:
    """Return such a connection, of a class, by what libpq is told.

    Raises:
        psycopg.Error: none can be made.
    """
    connection = connection_class.connect(info, autocommit=True, cursor_factory=PgCursor)
    with connection.transaction():
        connection.execute("SELECT 1")
    prepare(connection)
    return connection


def open_pool(
    name: str, connection_class: type[C], info: str, check: Callable[[Connection], None] = lambda _: None
) -> ConnectionPool[C]:
    """Return a pool of such connections, which wait for locks and for the engine only so long, and pass a check."""

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
