"""Work on the documents of an older kb, a few at a time, while searches and writers continue: read their links."""

import logging
from abc import abstractmethod
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
    """A thread that works on all documents and ends.

    Args:
        name: the name of the thread.
        what: its work, for the log.
    """

    def __init__(self, name: str, what: str) -> None:
        super().__init__(name)
        self._what = what

    @abstractmethod
    def is_complete(self) -> bool:
        """Whether nothing is left to do."""

    @abstractmethod
    def step(self) -> bool:
        """Work on the next `DOCUMENTS` documents; return whether there may be more."""

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._read_all()
            except (KbError, apsw.BusyError) as error:
                logger.warning("%s failed; retrying in %.0f s: %s", self._what, RETRY_SECONDS, error)
                self._stopping.wait(RETRY_SECONDS)
            else:
                return

    def _read_all(self) -> None:
        if self.is_complete():
            return
        count, told = 0, perf_counter()
        logger.info("%s of an older kb", self._what)
        while not self._stopping.is_set():
            begun = perf_counter()
            if not self.step():
                logger.info("%s of an older kb: done", self._what)
                return
            count += DOCUMENTS
            now = perf_counter()
            if now - told > TOLD_SECONDS:
                logger.info("%s of an older kb: %s documents are done", self._what, count)
                told = now
            self._stopping.wait(min(now - begun, MOST_PAUSE))


class LinkBackfill(Backfill):
    """Reads the links of the documents.

    Args:
        store: the store, which must stay open while the thread runs.
    """

    def __init__(self, store: Store) -> None:
        super().__init__("kb-links", "reading the links of the documents")
        self._store = store

    def is_complete(self) -> bool:
        with self._store.read() as tx:
            return tx.links.is_complete

    def step(self) -> bool:
        with self._store.write() as tx:
            return tx.documents.link_older(DOCUMENTS)
