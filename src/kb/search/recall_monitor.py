"""The recall of the vector search, measured from time to time on actual queries."""

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
"""The number of best chunks, out of as many as the vector leg lists, that are compared."""


class RecallMonitor:
    """Repeats a vector search with and without comparing every vector, in its own thread.

    Args:
        store: the store with the vectors.
        instruments: record the share of the best that was found.
        interval: the minimum number of seconds between two checks.
    """

    def __init__(self, store: Store, instruments: Instruments, interval: float = INTERVAL) -> None:
        self._store = store
        self._instruments = instruments
        self._interval = interval
        self._pool = ThreadPoolExecutor(1, "kb-recall")
        self._at_work = threading.Lock()
        self._next = monotonic() + interval

    def observe(self, vector: NDArray[np.float32], where: Filter, space: VectorSpace) -> None:
        """Check the recall for a query, whose vector is in `space`, if the interval has passed."""
        if monotonic() >= self._next and self._at_work.acquire(blocking=False):
            self._next = monotonic() + self._interval
            try:
                self._pool.submit(self._check, vector, where, space)
            except RuntimeError:  # the pool was closed
                self._at_work.release()

    def close(self) -> None:
        """Wait for the current check and stop."""
        self._pool.shutdown()

    def _check(self, vector: NDArray[np.float32], where: Filter, space: VectorSpace) -> None:
        try:
            with self._store.read() as tx:
                if tx.space != space:  # the vectors were replaced
                    return
                selection = tx.index.select(where)
                nearest, approximate = (top(selection, vector, exact=exact) for exact in (True, False))
            if nearest.size:  # ties count as found
                reached = np.count_nonzero(approximate >= nearest.min() - EQUAL)
                self._instruments.recalled(reached / nearest.size)
        except Exception:  # the outermost frame of the thread: no search depends on it
            logger.exception("could not check the recall of the vectors")
        finally:
            self._at_work.release()


def top(selection: Selection, vector: NDArray[np.float32], *, exact: bool) -> NDArray[np.float64]:
    """Return the similarities of the best chunks that a search finds."""
    return selection.nearest(vector, LISTED, exact=exact).best(TOP).scores
