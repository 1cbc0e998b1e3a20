"""The presence of an engine: a number that it locks through a connection, which also receives news of jobs."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING

import psycopg

from kb.store.postgres.error_translation import first_line
from kb.store.postgres.jobs import ENGINES

if TYPE_CHECKING:
    from kb.store.postgres.connection import Connection

logger = logging.getLogger(__name__)

HEARD_SECONDS = 0.5
"""The time between checks whether the engine stops."""

RETRY_SECONDS = 1.0
ENDS = "kb_ends"
LISTEN = f"LISTEN kb_jobs; LISTEN {ENDS}"


class Presence:
    """Holds the engine's number, takes it again after a lost connection, and listens for notifications.

    While the connection is lost, `trouble` is the reason and `lost_at` the time of the loss, from `monotonic`.
    """

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._connect = connect
        self._connection = connect()
        self.number = take_number(self._connection)
        self._wake: Callable[[], None] = lambda: None
        self._ended: Callable[[int], None] = lambda _: None
        self.trouble: str | None = None
        self.lost_at: float | None = None
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kb-presence", daemon=True)
        self._thread.start()

    def listen(self, wake: Callable[[], None], ended: Callable[[int], None]) -> None:
        """Call `wake` when a job is queued, and `ended` with the id of a job that ends."""
        self._wake, self._ended = wake, ended

    def close(self) -> None:
        """Stop and release the number."""
        self._closing.set()
        self._thread.join()
        self._connection.close()

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                self._hear()
            except psycopg.Error as error:
                self.trouble = self.trouble or first_line(error)
                self.lost_at = self.lost_at or monotonic()
                logger.warning("the database does not answer (%s); kb will retry", self.trouble)
                self._closing.wait(RETRY_SECONDS)
                self._return()

    def _hear(self) -> None:
        self._connection.execute(LISTEN)
        while not self._closing.is_set():
            for notice in self._connection.notifies(timeout=HEARD_SECONDS, stop_after=1):
                if notice.channel != ENDS:
                    self._wake()
                elif notice.payload.isdecimal():  # any client can send on this channel
                    self._ended(int(notice.payload))

    def _return(self) -> None:
        """Reconnect, with the same number unless another engine has taken it."""
        self._connection.close()
        try:
            self._connection = self._connect()
            if not takes(self._connection, self.number):
                self.number = take_number(self._connection)
            self._connection.execute(LISTEN)
            self.trouble = self.lost_at = None
            self._wake()  # notifications in the meantime were lost
        except psycopg.Error as error:
            self.trouble = first_line(error)


def take_number(connection: Connection) -> int:
    """Return a number that no other engine has, and hold it as long as the connection lives."""
    while True:
        [(number,)] = connection.execute("SELECT nextval('engine_numbers')").fetchall()
        if takes(connection, number):
            return int(number)


def takes(connection: Connection, number: int) -> bool:
    """Try to take a number; return False if another engine has it."""
    [(is_ours,)] = connection.execute("SELECT pg_try_advisory_lock(%s, %s)", (ENGINES, number)).fetchall()
    return bool(is_ours)
