"""The positions of documents on a plane, on which documents about the same subject are close together."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from kb.api.errors import KbError, Stopped
from kb.api.rights import Limit
from kb.index.vectors.projection import evened, project
from kb.store.protocol import Store, Transaction
from kb.store.row_mapping import cursor_after
from kb.store.rows import Filter

logger = logging.getLogger(__name__)

MAX_SHOWN: Final = 10_000
"""The maximum number of documents on a map, which shows the most recently changed ones."""

PAGE: Final = 250
"""The number of documents read in one transaction."""

CHUNKS: Final = 32
"""The maximum number of chunks of a document that its mean vector covers."""

MAPS: Final = 8
"""The number of limits whose maps are kept; each map takes about 200 kB."""

RENEW_SECONDS: Final = 2.0
"""The minimum age of a map that is rebuilt, because documents may arrive all the time."""

REST: Final = 10
"""The pause of the thread after a map, as a multiple of the time that the map took."""

WAIT_SECONDS: Final = 1.0
"""The time that a request waits for the first map."""

Placed = tuple["NDArray[np.int64]", "NDArray[np.float32]"]


@dataclass(frozen=True, slots=True)
class Positions:
    """The positions of documents, by id: `x` and `y` from -1 to 1; None for documents without vectors.

    `generation` is the state of the vectors used, `good_until` the earliest time of the next map.
    """

    places: dict[int, tuple[float, float] | None]
    generation: int
    good_until: float


class DocumentMapper:
    """The maps of a store, one for each limit of a key. A thread builds them one after another.

    Args:
        store: the store with the documents.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._kept: OrderedDict[Limit | None, Positions] = OrderedDict()
        self._making: dict[Limit | None, Future[None]] = {}
        self._thread = ThreadPoolExecutor(1, "kb-map")
        self._stopping = threading.Event()

    def __enter__(self) -> Self:
        """Start nothing: the first map starts the thread."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop and discard unfinished maps."""
        self._stopping.set()
        self._thread.shutdown(cancel_futures=True)

    def positions(self, limit: Limit | None) -> tuple[Positions | None, bool]:
        """Return the map for a limit, and whether it is current; if not, a new one will follow.

        A map with a limit always counts as current, because otherwise it would reveal that others have written.
        """
        with self._store.read() as tx:
            generation = tx.generation
        with self._lock:
            cached = self._kept.get(limit)
            if cached:
                self._kept.move_to_end(limit)
            if cached and cached.generation == generation:
                return cached, True
            if cached and time.monotonic() < cached.good_until:
                return cached, limit is not None
            making = self._begin(limit)
        if cached is None:
            wait([making], WAIT_SECONDS)
            with self._lock:
                cached = self._kept.get(limit)
        return cached, cached is not None and (limit is not None or cached.generation == generation)

    def renew(self, limit: Limit | None) -> None:
        """Request another map if it is time: new tags or paths change the documents within a limit, but no vectors."""
        with self._lock:
            cached = self._kept.get(limit)
            if cached is None or time.monotonic() >= cached.good_until:
                self._begin(limit)

    def _begin(self, limit: Limit | None) -> Future[None]:
        if limit not in self._making:
            self._making[limit] = self._thread.submit(self._make, limit)
        return self._making[limit]

    def _make(self, limit: Limit | None) -> None:
        try:
            made = self._made(limit)
        except Stopped:
            return
        except KbError as error:
            logger.warning("could not make the map: %s", error)
        else:
            with self._lock:
                self._kept[limit] = made
                self._kept.move_to_end(limit)
                if len(self._kept) > MAPS:
                    self._kept.popitem(last=False)
        finally:  # the next caller starts another one
            with self._lock:
                del self._making[limit]

    def _made(self, limit: Limit | None) -> Positions:
        begun = time.monotonic()
        with self._store.read() as tx:
            generation = tx.generation
        by_id: dict[int, tuple[float, float] | None] = {}
        blocks = list(self._vectors(limit, by_id))
        ids = np.concatenate([np.empty(0, np.int64), *(ids for ids, _ in blocks)])
        places = evened(project(np.concatenate([vectors for _, vectors in blocks]))) if ids.size else np.empty((0, 2))
        by_id |= {
            document: (x, y)
            for document, (x, y) in zip(ids.tolist(), places.astype(np.float64).round(4).tolist(), strict=True)
        }
        now = time.monotonic()
        return Positions(by_id, generation, now + max(RENEW_SECONDS, REST * (now - begun)))

    def _vectors(self, limit: Limit | None, looked_at: dict[int, tuple[float, float] | None]) -> Iterator[Placed]:
        """Yield the ids and mean vectors of documents, page by page; add each document to `looked_at`."""
        cursor, seen = None, 0
        while seen < MAX_SHOWN:
            if self._stopping.is_set():
                raise Stopped
            with self._store.read() as tx:
                page = tx.documents.page(Filter(limit=limit), sort="recent", limit=PAGE, cursor=cursor)
                if not page:
                    return
                looked_at |= dict.fromkeys(document.id for document in page)
                yield mean_vectors(tx, [document.id for document in page])
                cursor = cursor_after(page[-1])
            seen += len(page)


def mean_vectors(tx: Transaction, document_ids: Sequence[int]) -> Placed:
    """Return the documents that have vectors, and the normalized mean vector of each."""
    pairs = np.array(tx.documents.chunk_ids(document_ids, CHUNKS), np.int64).reshape(-1, 2)
    pairs = pairs[np.argsort(pairs[:, 1])]
    documents, rows = np.unique(pairs[:, 0], return_inverse=True)
    vectors = tx.index.select(Filter()).vectors(pairs[:, 1])
    totals = np.zeros((documents.size, vectors.shape[1]), np.float32)
    np.add.at(totals, rows, vectors)
    lengths = np.linalg.norm(totals, axis=1, keepdims=True)
    has_vector = lengths[:, 0] > 0
    return documents[has_vector], totals[has_vector] / lengths[has_vector]
