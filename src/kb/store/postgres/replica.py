"""Replicas of the database: they answer reads as long as they have all earlier writes."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.pq import TransactionStatus
from psycopg_pool import ConnectionPool, PoolTimeout

from kb.api.errors import KbError, StoreError, StoreUnavailable
from kb.store.postgres.connection import READ, Connection
from kb.store.postgres.error_translation import first_line
from kb.store.postgres.statements import statements
from kb.store.rows import ReplicaState

if TYPE_CHECKING:
    from psycopg.abc import RV, PQGen

logger = logging.getLogger(__name__)

WAIT_SECONDS, SHORTEST_PAUSE, LONGEST_PAUSE = 0.1, 0.001, 0.01
"""The time that a read waits for a replica to catch up, and the pauses between checks."""

LOOK_SECONDS = 1.0
"""The time between checks whether a replica answers."""

QUESTION_SECONDS, STATEMENT_SECONDS = 1.0, 10.0
"""The time that a replica may be silent during a check, and during a read."""

TRANSACTIONS = 1 << 32
"""The number of transactions after which their numbers start again."""

OUT_OF_STEP = "it does not have all changes from the primary, or has changes that the primary lacks"
SILENT = "it has been silent for {seconds:.0f} s"
BROKE_OFF = "The connection to a replica failed: {reason}. Try again in a few seconds."
OTHER_DATABASE = "this server is not a replica of the database in KB_DATABASE_URL"


Identity = tuple[int, int]
"""The identifier shared by a server and its replicas, and the one of the database on them."""


class OtherDatabase(psycopg.OperationalError):
    """The server is not a replica of this database."""


class ReplicaConnection(psycopg.Connection[tuple[Any, ...]]):
    """Gives up on a silent server. A server that hangs keeps its connections, and enforces no timeouts of its own."""

    patience = QUESTION_SECONDS

    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        """Wait as psycopg does, but with a limit.

        Raises:
            psycopg.OperationalError: the server was silent; the connection is closed.
        """
        try:
            return super().wait(gen, interval, timeout or self.patience)
        except psycopg.OperationalError:
            if self.pgconn.transaction_status != TransactionStatus.ACTIVE:
                raise
            self.pgconn.finish()
            raise psycopg.OperationalError(SILENT.format(seconds=timeout or self.patience)) from None


class Replica:
    """Lends connections to replicas. While no replica is good enough, it lends none and checks again every second.

    Args:
        open_pool: opens a pool of such connections, and passes each new one to a function.
        identity: the primary's `database_identity`.
        newest: returns the number of the primary's last change.

    Raises:
        StoreError: the server is not a replica of this database.
    """

    def __init__(
        self,
        connect: Callable[[], ReplicaConnection],
        open_pool: Callable[[Callable[[Connection], None]], ConnectionPool[ReplicaConnection]],
        identity: Identity,
        newest: Callable[[], int],
    ) -> None:
        self._connect, self._identity, self._newest = connect, identity, newest
        self._watching: ReplicaConnection | None = None
        self._lock = threading.Lock()
        self._trouble: str | None = None
        self._level_at = monotonic()
        self._reads = self._passed_on = 0
        self._look()
        if self._trouble == OTHER_DATABASE:
            raise StoreError(f"KB_DATABASE_READ_URL: {OTHER_DATABASE}.")
        self._pool = open_pool(self._check)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="kb-replica", daemon=True)
        self._thread.start()

    @property
    def state(self) -> ReplicaState:
        answers = self._trouble is None
        behind = 0.0 if answers else monotonic() - self._level_at
        return ReplicaState(answers, behind, self._reads, self._passed_on)

    @contextmanager
    def moment(self) -> Iterator[Connection | None]:
        """Lend a connection that sees all earlier writes; None if the primary must answer.

        Raises:
            StoreUnavailable: the replica failed, or the primary does not answer.
        """
        connection = None if self._trouble else self._take()
        with self._lock:
            self._reads += connection is not None
            self._passed_on += connection is None
        if connection is None:
            yield None
            return
        connection.patience = STATEMENT_SECONDS
        try:
            yield connection
        except psycopg.Error as error:
            logger.warning("the connection to a replica failed (%s); the primary answers", first_line(error))
            if connection.closed:
                self._leave(first_line(error))
            raise StoreUnavailable(BROKE_OFF.format(reason=first_line(error))) from error
        finally:
            self._give_back(connection)

    def close(self) -> None:
        """Close every connection."""
        self._closing.set()
        self._thread.join()
        self._pool.close()
        self._close_watching()

    def _take(self) -> ReplicaConnection | None:
        try:
            connection = self._pool.getconn(timeout=WAIT_SECONDS)
        except PoolTimeout:  # all are in use
            return None
        try:
            if catch_up(connection, self._newest):
                return connection
            trouble = OUT_OF_STEP
        except psycopg.Error as error:
            trouble = first_line(error)
        except KbError:  # the primary's
            self._give_back(connection)
            raise
        connection.close()  # the next one may be to another replica
        self._give_back(connection)
        self._leave(trouble)
        return None

    def _give_back(self, connection: ReplicaConnection) -> None:
        connection.patience = QUESTION_SECONDS
        with suppress(psycopg.Error):
            connection.rollback()
        self._pool.putconn(connection)

    def _watch(self) -> None:
        while not self._closing.wait(LOOK_SECONDS):
            self._look()

    def _look(self) -> None:
        try:
            self._watching = self._watching or self._connect()
            self._check(self._watching)
        except psycopg.Error as error:
            self._close_watching()
            self._leave(first_line(error))
        except KbError as error:  # from the primary; the state of the replica is unknown
            self._close_watching()
            logger.debug("the state of the primary, with which replicas are compared, is unknown: %s", error)
        else:
            if self._trouble:
                logger.info("a replica is available again")
            self._trouble, self._level_at = None, monotonic()

    def _check(self, connection: Connection) -> None:
        """Raise if the server is not a replica of the database, or is not level with the primary."""
        if database_identity(connection) != self._identity:
            raise OtherDatabase(OTHER_DATABASE)
        if not catch_up(connection, self._newest):
            raise psycopg.OperationalError(OUT_OF_STEP)
        connection.rollback()

    def _leave(self, trouble: str) -> None:
        if not self._trouble:
            logger.warning("no replica is available (%s); the primary answers", trouble)
        self._trouble = trouble

    def _close_watching(self) -> None:
        if self._watching:
            self._watching.close()
        self._watching = None


def catch_up(connection: Connection, newest: Callable[[], int]) -> bool:
    """Wait until the server has the primary's last change and no change that the primary lacks; begin to read there.

    A replica has changes that the primary lacks while they wait for a synchronous replica, or for good after a failover
    lost them elsewhere. If the wait takes too long, return False, without a transaction.
    """
    oldest = newest()
    deadline, pause = monotonic() + WAIT_SECONDS, SHORTEST_PAUSE
    while True:
        connection.execute(READ, prepare=False)
        position = last_change(connection)
        if position == oldest or (is_at_least(position, oldest) and is_at_least(newest(), position)):
            return True
        connection.rollback()
        if monotonic() + pause >= deadline:
            return False
        sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)


def is_at_least(number: int, other: int) -> bool:
    """Return whether a transaction is the same as another, or later."""
    return (number - other) % TRANSACTIONS < TRANSACTIONS // 2


def last_change(connection: Connection) -> int:
    """Return the number of the last transaction that changed something."""
    [(number,)] = connection.execute(statements("search")["select_change"]).fetchall()
    return int(number)


def database_identity(connection: Connection) -> Identity:
    """Return the identifiers that a database shares only with its replicas."""
    [(system, database)] = connection.execute(statements("search")["select_identity"]).fetchall()
    return system, database
