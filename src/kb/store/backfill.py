"""Bring the documents of an older kb up to date, a few at a time, while searches and writers continue.

Each document is as it was or as it should be at any moment, so an end at any time only interrupts the work.
"""

import logging
from collections.abc import Callable
from time import perf_counter
from typing import Final

import apsw

from kb.api.errors import KbError
from kb.store.protocol import Store
from kb.threads import BackgroundThread

logger = logging.getLogger(__name__)

DOCUMENTS: Final = 20
"""The number of documents per transaction, because other writers wait for it."""

MOST_PAUSE: Final = 0.2
"""The maximum pause between two transactions, in seconds; a pause is otherwise as long as the transaction before it."""

RETRY_SECONDS: Final = 60.0
TOLD_SECONDS: Final = 30.0


class Backfill(BackgroundThread):
    """A thread that indexes words again and reads links, and ends.

    Args:
        store: the store, which must stay open while the thread runs.
    """

    def __init__(self, store: Store) -> None:
        super().__init__("kb-backfill")
        self._store = store

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._renew("indexing the words", self._store.renew_words)
                self._renew("reading the links", self._renew_links)
            except (KbError, apsw.BusyError) as error:
                logger.warning("indexing failed; retrying in %.0f s: %s", RETRY_SECONDS, error)
                self._stopping.wait(RETRY_SECONDS)
            else:
                return

    def _renew(self, what: str, step: Callable[[int], bool]) -> None:
        """Repeat a step, with pauses for searches and writers, until it has nothing left to do."""
        begun, told, steps = perf_counter(), perf_counter(), 0
        while not self._stopping.is_set() and step(DOCUMENTS):
            steps += 1
            now = perf_counter()
            if steps == 1 or now - told > TOLD_SECONDS:
                logger.info("%s of documents from an older version of kb", what)
                told = now
            self._stopping.wait(min(now - begun, MOST_PAUSE))
            begun = perf_counter()
        if steps and not self._stopping.is_set():
            logger.info("%s of documents from an older version of kb: done", what)

    def _renew_links(self, limit: int) -> bool:
        with self._store.read() as tx:
            if tx.links.is_complete:
                return False
        with self._store.write() as tx:
            return tx.documents.link_older(limit)
