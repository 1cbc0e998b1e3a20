"""A pool of connections to one database, which many engines may share."""

from __future__ import annotations

import logging
import threading
from contextlib import closing, contextmanager, suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg_pool import ConnectionPool, PoolTimeout

from kb.api.errors import DiskFull, Invalid, StoreError, StoreUnavailable, Unconfirmed
from kb.store.former_index import FormerIndex
from kb.store.postgres.audit import PostgresAudit
from kb.store.postgres.connection import CONNECT_SECONDS, Rows, checked, prepare
from kb.store.postgres.document_query import admitted
from kb.store.postgres.documents import PostgresDocuments
from kb.store.postgres.former_index import PostgresPresent
from kb.store.postgres.history import PostgresHistory
from kb.store.postgres.index import PostgresIndex
from kb.store.postgres.jobs import PostgresJobs
from kb.store.postgres.migrate import SCHEMA_VERSION, prepare_schema
from kb.store.postgres.presence import Presence
from kb.store.postgres.second_vectors import PostgresSecondVectors
from kb.store.postgres.statements import statements
from kb.store.postgres.vector_space import bind_space
from kb.store.postgres.vectors import VectorTable
from kb.store.postgres.words import FullText
from kb.store.rows import Counts, Filter, Retention

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from kb.api.access import Caller
    from kb.store.postgres.connection import Connection
    from kb.store.rows import VectorSpace

logger = logging.getLogger(__name__)

CONNECTIONS = 10
"""How many an engine has at most, beside the one that says that it is there."""

WRITING, QUEUING = 0x6B62_0002, 0x6B62_0003
"""The advisory locks of who writes, and of who changes the queue alone."""

LOST = (psycopg.OperationalError, psycopg.InterfaceError, psycopg.errors.ReadOnlySqlTransaction, PoolTimeout)
"""What is raised where the server is gone, or another one has become the first."""

TOO_LONG = "A path or another name is too long: PostgreSQL's indexes hold some 2,700 bytes of one."
DEFAULT_RETENTION = Retention()
READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class PostgresTransaction:
    """A transaction on one connection; see `kb.store.protocol.Transaction`."""

    def __init__(
        self,
        connection: Connection,
        retention: Retention,
        engine: int,
        place: str,
        checkpoint: Callable[[], None] = lambda: None,
    ) -> None:
        self.connection = connection
        self._execute: Any = connection.execute
        words, vectors = FullText(connection), VectorTable(self._execute)
        self.documents = PostgresDocuments(connection, words, vectors, checkpoint)
        self.history = PostgresHistory(self._execute, self.documents, retention)
        self.jobs = PostgresJobs(self._execute, engine, place)
        self.second = PostgresSecondVectors(connection, vectors, engine)
        self.audit = PostgresAudit(self._execute, retention)
        self._words = words
        self._vectors = vectors

    @property
    def space(self) -> VectorSpace:
        """What the vectors are of at this transaction's moment."""
        return self._vectors.space

    @property
    def generation(self) -> int:
        """The number of the moment that the vectors are of."""
        number: int = self._execute(statements("search")["select_generation"]).get
        return number

    @cached_property
    def index(self) -> PostgresIndex:
        """Both legs of search, at this transaction's moment."""
        return PostgresIndex(self._execute, self._words, self._vectors)

    def index_at(self, instant: datetime) -> FormerIndex:
        """Both legs of search, as of a former moment."""
        present = PostgresPresent(self._execute, self.index, self._words, self._vectors, self.history)
        return FormerIndex(present, instant)

    def counts(self, of: Caller | None = None) -> Counts:
        """Return how much is in the database; or how many of the documents and jobs are the caller's to see."""
        sql = statements("documents")
        condition, parameters = admitted(self._words, Filter(limit=of.limit if of else None))
        chunks = self._execute(sql["count_chunks_of"].format(condition=condition), parameters) if of else None
        return Counts(
            documents=dict(self._execute(sql["count_by_type"].format(condition=condition), parameters).fetchall()),
            chunks=(chunks or self._execute(sql["count_chunks"])).get,
            jobs=self.jobs.count(of),
            queue_age=0 if of else self.jobs.queue_age(),
            size=0 if of else self._execute(sql["select_size"]).get,
        )

    def publish(self) -> None:
        """Count the change of chunks or of their vectors, if there was one."""
        if self.documents.changed or self.second.switched:
            self._execute(statements("search")["update_generation"])


class PostgresStore:
    """A store in a PostgreSQL database; see `kb.store.protocol.Store`.

    Args:
        url: where it is.
        space: what makes the vectors.
        retention: how long what was changed or deleted is kept.
        place: the data directory in which the files lie that wait for a job; see `place_of`.

    Raises:
        StoreError: the database cannot be opened, or is of another version or model.
    """

    schema_version = SCHEMA_VERSION
    is_shared = True
    full_text = "BM25 over tables"
    vectors_size = 0
    words_size = 0
    words_faults = 0

    def __init__(self, url: str, space: VectorSpace, retention: Retention = DEFAULT_RETENTION, place: str = "") -> None:
        self._retention = retention
        self._place = place
        self._write_lock = threading.Lock()
        self._queue_lock = threading.Lock()
        try:
            with closing(connect(url)) as connection:
                prepare_schema(connection)
                with connection.transaction():
                    connection.execute("SELECT pg_advisory_xact_lock(%s)", (WRITING,))
                    bind_space(connection, space)
            self._pool = open_pool(url)
            self._presence = Presence(partial(connect, url))
        except (psycopg.Error, PoolTimeout) as error:
            raise StoreError(f"The database cannot be opened: {_first_line(error)}.") from error

    def listen(self, wake: Callable[[], None]) -> None:
        """Have `wake` called when any engine queued a job."""
        self._presence.listen(wake)

    @contextmanager
    def read(self) -> Iterator[PostgresTransaction]:
        """One moment of the database."""
        with self._connection() as connection:
            connection.execute(READ)
            engine = self._presence.number
            yield PostgresTransaction(connection, self._retention, engine, self._place)

    @contextmanager
    def write(self, checkpoint: Callable[[], None] = lambda: None) -> Iterator[PostgresTransaction]:
        """A change, whole or not at all; durable when the block ends. `checkpoint` may end it between two chunks.

        Raises:
            DiskFull: there is no room for it.
            Unconfirmed: it may have been written, or not.
        """
        # Those of this engine wait without a connection, those of others in the database.
        with self._write_lock, self._change(WRITING, checkpoint) as transaction:
            yield transaction
            transaction.publish()

    @contextmanager
    def queue(self) -> Iterator[PostgresTransaction]:
        """A change of the queue alone, which waits only for others of its kind, and for the jobs that a write ends."""
        with self._queue_lock, self._change(QUEUING) as transaction:
            yield transaction

    def reclaim(self) -> bool:
        """Return False: autovacuum does it."""
        return False

    def check(self) -> None:
        """Read something.

        Raises:
            StoreUnavailable: the database does not answer.
        """
        with self._connection() as connection:
            connection.execute("SELECT 1")

    def close(self) -> None:
        """Close every connection. No transaction may be open."""
        self._presence.close()
        self._pool.close()

    @contextmanager
    def _change(self, lock: int, checkpoint: Callable[[], None] = lambda: None) -> Iterator[PostgresTransaction]:
        with self._connection() as connection:
            connection.execute("BEGIN")
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock,))
            engine = self._presence.number
            yield PostgresTransaction(connection, self._retention, engine, self._place, checkpoint)
            try:
                connection.execute("COMMIT")
            except psycopg.OperationalError as error:
                raise Unconfirmed(
                    f"The database broke off ({_first_line(error)}): it is not known whether the change was written."
                    " Look, or send it again with the same Idempotency-Key."
                ) from error

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        """Lend a connection; what it did and did not commit is rolled back.

        Raises:
            DiskFull: the database's disk is full.
            Invalid: something is too long for an index.
            StoreUnavailable: the database does not answer.
        """
        try:
            with self._pool.connection() as connection:
                try:
                    yield connection
                finally:
                    with suppress(psycopg.Error):
                        connection.rollback()
        except psycopg.errors.DiskFull as error:
            raise DiskFull from error
        except psycopg.errors.ProgramLimitExceeded as error:  # trying it again would not help
            raise Invalid(TOO_LONG) from error
        except LOST as error:
            detail = f"The database does not answer: {_first_line(error)}. Try again in a few seconds."
            raise StoreUnavailable(detail) from error


def connect(url: str) -> Connection:
    """Return a connection of the store's kind, outside a transaction.

    Raises:
        SettingError: it is no URL.
        psycopg.Error: none can be made.
    """
    connection = psycopg.connect(checked(url), autocommit=True, cursor_factory=Rows, connect_timeout=CONNECT_SECONDS)
    with connection.transaction():
        connection.execute("SELECT 1")
    prepare(connection)
    return connection


def open_pool(url: str) -> ConnectionPool[Connection]:
    """Return a pool of such connections.

    Raises:
        psycopg.Error: none could be made.
    """
    pool = ConnectionPool(
        url,
        min_size=2,
        max_size=CONNECTIONS,
        kwargs={"autocommit": True, "cursor_factory": Rows},
        configure=prepare,
        check=ConnectionPool.check_connection,  # after a failover all there were are dead
        timeout=CONNECT_SECONDS,
        open=False,
        name="kb",
    )
    pool.open(wait=True, timeout=CONNECT_SECONDS)
    return pool


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
