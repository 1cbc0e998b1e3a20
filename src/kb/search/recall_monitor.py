"""How much of what is nearest a search finds, checked now and then on the queries that come."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from kb.store.protocol import Selection, Store
from kb.store.rows import Filter, VectorSpace
from kb.telemetry.instruments import Instruments

logger = logging.getLogger(__name__)

INTERVAL = 60.0
LISTED = 100
EQUAL = 1e-6
TOP = 10
"""Of how many chunks as the vector leg lists how many are compared."""


class RecallMonitor:
    """Repeats a search by vectors with and without every vector compared, in a thread of its own.

    Args:
        store: where the vectors are.
        instruments: take what share of the best was found.
        interval: at most one check in so many seconds.
    """

    def __init__(self, store: Store, instruments: Instruments, interval: float = INTERVAL) -> None:
        self._store = store
        self._instruments = instruments
        self._interval = interval
        self._pool = ThreadPoolExecutor(1, "kb-recall")
        self._at_work = threading.Lock()
        self._next = monotonic() + interval

    def observe(self, vector: NDArray[np.float32], where: Filter, space: VectorSpace) -> None:
        """Take note of a query and of what its vector is of; it is checked if it is time to."""
        if monotonic() >= self._next and self._at_work.acquire(blocking=False):
            self._next = monotonic() + self._interval
            try:
                self._pool.submit(self._check, vector, where, space)
            except RuntimeError:  # it was closed
                self._at_work.release()

    def close(self) -> None:
        """End the check at hand."""
        self._pool.shutdown()

    def _check(self, vector: NDArray[np.float32], where: Filter, space: VectorSpace) -> None:
        try:
            with self._store.read() as tx:
                if tx.space != space:  # other vectors came into use
                    return
                selection = tx.index.select(where)
                nearest, approximate = (top(selection, vector, exact=exact) for exact in (True, False))
            if nearest.size:  # of equal ones any counts
                reached = np.count_nonzero(approximate >= nearest.min() - EQUAL)
                self._instruments.recalled(reached / nearest.size)
        except Exception:  # the thread's end: no search depends on it
            logger.exception("the recall of the vectors could not be checked")
        finally:
            self._at_work.release()


def top(selection: Selection, vector: NDArray[np.float32], *, exact: bool) -> NDArray[np.float64]:
    """Return how near the chunks are to a vector that a search finds."""
    return selection.nearest(vector, LISTED, exact=exact).best(TOP).scores
