"""Read the links of the documents of an older kb, while searches and writers continue."""

import logging
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


class LinkBackfill(BackgroundThread):
    """A thread that reads these links and ends.

    Args:
        store: the store, which must stay open while the thread runs.
    """

    def __init__(self, store: Store) -> None:
        super().__init__("kb-links")
        self._store = store

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._read_all()
            except (KbError, apsw.BusyError) as error:
                logger.warning("could not read links; retrying in %.0f s: %s", RETRY_SECONDS, error)
                self._stopping.wait(RETRY_SECONDS)
            else:
                return

    def _read_all(self) -> None:
        with self._store.read() as tx:
            if tx.links.is_complete:
                return
        count, told = 0, perf_counter()
        logger.info("reading the links of the documents of an older kb")
        while not self._stopping.is_set():
            begun = perf_counter()
            with self._store.write() as tx:
                is_more = tx.documents.link_older(DOCUMENTS)
            if not is_more:
                logger.info("read the links of all documents of an older kb")
                return
            count += DOCUMENTS
            now = perf_counter()
            if now - told > TOLD_SECONDS:
                logger.info("read the links of %s documents of an older kb", count)
                told = now
            self._stopping.wait(min(now - begun, MOST_PAUSE))
