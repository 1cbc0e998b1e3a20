"""Where documents lie in a plane: near each other, if they are about the same."""

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
from kb.store.protocol import Store, Transaction
from kb.store.row_mapping import cursor_after
from kb.store.rows import Filter
from kb.vectors.projection import project

logger = logging.getLogger(__name__)

MAX_SHOWN: Final = 10_000
"""How many documents a map shows: those that were changed last."""

PAGE: Final = 250
"""How many are looked at in one transaction."""

CHUNKS: Final = 32
"""How many chunks of a document say what it is about, at most."""

MAPS: Final = 8
"""For how many limits maps are kept: each takes some 200 kB."""

RENEW_SECONDS: Final = 2.0
"""How old a map must be at least to be made anew: documents may come in all the time."""

REST: Final = 10
"""How much longer than making a map took the thread rests then."""

WAIT_SECONDS: Final = 1.0
"""How long one waits for the first map."""

Placed = tuple["NDArray[np.int64]", "NDArray[np.float32]"]


@dataclass(frozen=True, slots=True)
class Positions:
    """Where documents lie: `x` and `y` from -1 to 1, by id; None if that is nowhere.

    `generation` is the moment of the vectors that they were made of, `good_until` when other ones may be made.
    """

    places: dict[int, tuple[float, float] | None]
    generation: int
    good_until: float


class DocumentMapper:
    """The maps of a store, one for each limit that keys have. They are made in a thread, one after another.

    Args:
        store: where the documents are.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._kept: OrderedDict[Limit | None, Positions] = OrderedDict()
        self._making: dict[Limit | None, Future[None]] = {}
        self._thread = ThreadPoolExecutor(1, "kb-map")
        self._stopping = threading.Event()

    def __enter__(self) -> Self:
        """Start nothing yet: the thread begins with the first map."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop; what is not finished is given up."""
        self._stopping.set()
        self._thread.shutdown(cancel_futures=True)

    def positions(self, limit: Limit | None) -> tuple[Positions | None, bool]:
        """Return the map of what a limit admits, and whether it is of this moment; if not, another one follows.

        With a limit a map counts as of this moment: that others have written since would show in it.
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
        """Have another map made, if it is time: new tags or paths bring documents within a limit; no vector changes."""
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
            logger.warning("no map was made: %s", error)
        else:
            with self._lock:
                self._kept[limit] = made
                self._kept.move_to_end(limit)
                if len(self._kept) > MAPS:
                    self._kept.popitem(last=False)
        finally:  # the next one who asks has another one made
            with self._lock:
                del self._making[limit]

    def _made(self, limit: Limit | None) -> Positions:
        begun = time.monotonic()
        with self._store.read() as tx:
            generation = tx.generation
        by_id: dict[int, tuple[float, float] | None] = {}
        blocks = list(self._vectors(limit, by_id))
        ids = np.concatenate([np.empty(0, np.int64), *(ids for ids, _ in blocks)])
        places = project(np.concatenate([vectors for _, vectors in blocks])) if ids.size else np.empty((0, 2))
        by_id |= {
            document: (x, y)
            for document, (x, y) in zip(ids.tolist(), places.astype(np.float64).round(4).tolist(), strict=True)
        }
        now = time.monotonic()
        return Positions(by_id, generation, now + max(RENEW_SECONDS, REST * (now - begun)))

    def _vectors(self, limit: Limit | None, looked_at: dict[int, tuple[float, float] | None]) -> Iterator[Placed]:
        """Yield the ids of the documents, and what each is about, some at a time; note those that were looked at."""
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
    """Return those of the documents that have vectors, and the unit vector between those of each."""
    pairs = np.array(tx.documents.chunk_ids(document_ids, CHUNKS), np.int64).reshape(-1, 2)
    pairs = pairs[np.argsort(pairs[:, 1])]
    documents, rows = np.unique(pairs[:, 0], return_inverse=True)
    vectors = tx.index.select(Filter()).vectors(pairs[:, 1])
    totals = np.zeros((documents.size, vectors.shape[1]), np.float32)
    np.add.at(totals, rows, vectors)
    lengths = np.linalg.norm(totals, axis=1, keepdims=True)
    has_vector = lengths[:, 0] > 0
    return documents[has_vector], totals[has_vector] / lengths[has_vector]
