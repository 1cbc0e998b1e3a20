"""The vectors in memory: exact search as one matrix product.

`chunks_vec` is the source of truth; this copy of it makes a search several times faster than a scan of the table.
Up to some hundred thousand chunks an exact product is also the simplest index there is (docs/adr/0004).

A transaction must see the vectors of its own moment, neither older nor newer than its tables. So each change of
the vectors makes a new `Snapshot`, numbered like the row of the table `generation` that the same transaction
writes; a reader takes the snapshot with the number that it reads. Snapshots share one growing array.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kb.store.base import Scored

if TYPE_CHECKING:
    from collections.abc import Iterable

    import apsw
    from numpy.typing import NDArray

KEPT_SNAPSHOTS = 16
MOST_DEAD = 0.25


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Vectors at one moment.

    Args:
        ids: chunk ids, ascending, shape (n,).
        vectors: unit vectors, shape (n, dimensions).
        alive: False where the chunk is deleted, shape (n,).
    """

    ids: NDArray[np.int64]
    vectors: NDArray[np.float32]
    alive: NDArray[np.bool_]

    def nearest(self, query: NDArray[np.float32], k: int, among: NDArray[np.int64] | None) -> Scored:
        """The `k` chunks nearest to `query`, the older one of equals; only ids `among`, which ascend."""
        rows = np.flatnonzero(self.alive) if among is None else self._rows(among)
        everything = rows.size == self.ids.size
        scores = self.vectors @ query if everything else self.vectors[rows] @ query
        return Scored(self.ids[rows], scores.astype(np.float64)).best(k)

    def cosines(self, query: NDArray[np.float32], ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """The cosines of chunks that are alive."""
        return (self.vectors[np.searchsorted(self.ids, ids)] @ query).astype(np.float64)

    def _rows(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        rows = np.searchsorted(self.ids, ids)
        rows = rows[rows < self.ids.size]
        return rows[self.alive[rows]]


class Vectors:
    """The snapshots that transactions may still see. One writer at a time; any number of readers."""

    def __init__(self, connection: apsw.Connection, dimensions: int) -> None:
        self._lock = threading.Lock()
        self._dimensions = dimensions
        first = self.read(connection)
        self._ids, self._vectors = first.ids, first.vectors
        self._newest = generation(connection)
        self._snapshots = {self._newest: first}

    @property
    def newest(self) -> int:
        """The number of the newest snapshot."""
        return self._newest

    def seen_by(self, connection: apsw.Connection) -> Snapshot:
        """The snapshot of the moment that the connection's transaction sees."""
        with self._lock:
            snapshot = self._snapshots.get(generation(connection))
        return snapshot or self.read(connection)

    def read(self, connection: apsw.Connection) -> Snapshot:
        """Every vector of the database, from the table."""
        rows: list[Any] = connection.execute("SELECT chunk_id, embedding FROM chunks_vec ORDER BY chunk_id").fetchall()
        ids = np.fromiter((row[0] for row in rows), np.int64, len(rows))
        vectors = np.frombuffer(b"".join(row[1] for row in rows), np.float32).reshape(-1, self._dimensions)
        return Snapshot(ids, vectors, np.ones(ids.size, np.bool_))

    def publish(self, added: Iterable[tuple[int, NDArray[np.float32]]], removed: Iterable[int]) -> int:
        """Make the next snapshot, visible to those who read its number; answers the number."""
        last = self._snapshots[self._newest]
        alive = last.alive.copy()
        alive[np.searchsorted(last.ids, np.fromiter(removed, np.int64))] = False
        snapshot = self._append(Snapshot(last.ids, last.vectors, alive), list(added))
        with self._lock:
            self._newest += 1
            self._snapshots[self._newest] = snapshot
            self._snapshots.pop(self._newest - KEPT_SNAPSHOTS, None)
        return self._newest

    def withdraw(self) -> None:
        """Take the newest snapshot back: its transaction was rolled back."""
        with self._lock:
            del self._snapshots[self._newest]
            self._newest -= 1

    def _append(self, last: Snapshot, added: list[tuple[int, NDArray[np.float32]]]) -> Snapshot:
        if last.alive.size - last.alive.sum() > max(1000, MOST_DEAD * last.alive.size):
            last = Snapshot(last.ids[last.alive], last.vectors[last.alive], np.ones(last.alive.sum(), np.bool_))
            self._ids, self._vectors = last.ids, last.vectors
        start, end = last.ids.size, last.ids.size + len(added)
        if end > self._ids.size:
            self._grow(last, end)
        # Rows past `start` belong to no snapshot but withdrawn ones: nobody reads them.
        for row, (chunk_id, vector) in enumerate(added, start):
            self._ids[row], self._vectors[row] = chunk_id, vector
        alive = np.concatenate([last.alive, np.ones(len(added), np.bool_)])
        return Snapshot(self._ids[:end], self._vectors[:end], alive)

    def _grow(self, last: Snapshot, size: int) -> None:
        capacity = max(1024, size + size // 2)
        ids, vectors = np.empty(capacity, np.int64), np.empty((capacity, self._vectors.shape[1]), np.float32)
        ids[: last.ids.size], vectors[: last.ids.size] = last.ids, last.vectors
        self._ids, self._vectors = ids, vectors


def generation(connection: apsw.Connection) -> int:
    """The number of the moment that the connection's transaction sees."""
    number: int = connection.execute("SELECT number FROM generation").get
    return number
