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

from kb.store.sqlite.schema import VectorTable
from kb.vectors.scored import Scored

if TYPE_CHECKING:
    from collections.abc import Iterable

    import apsw
    from numpy.typing import NDArray

KEPT_SNAPSHOTS = 16
MOST_DEAD = 0.25


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Vectors at one moment: the first rows of two arrays that later snapshots may share.

    Args:
        room_ids: chunk ids, ascending, shape (at least n,).
        room_vectors: unit vectors, shape (at least n, dimensions).
        alive: False where the chunk is deleted, shape (n,).
    """

    room_ids: NDArray[np.int64]
    room_vectors: NDArray[np.float32]
    alive: NDArray[np.bool_]

    @property
    def ids(self) -> NDArray[np.int64]:
        """The chunk ids, shape (n,)."""
        return self.room_ids[: self.alive.size]

    @property
    def vectors(self) -> NDArray[np.float32]:
        """The vectors, shape (n, dimensions)."""
        return self.room_vectors[: self.alive.size]

    @property
    def size(self) -> int:
        """The bytes of the vectors, without the room to grow."""
        return self.vectors.nbytes

    def nearest(self, query: NDArray[np.float32], k: int, among: NDArray[np.int64] | None) -> Scored:
        """The `k` chunks nearest to `query`, the older one of equals; only ids `among`, which ascend."""
        if among is None:
            # Multiplying the dead ones too is cheaper than gathering the others.
            rows, scores = np.flatnonzero(self.alive), self.vectors @ query
            scores = scores[rows]
        else:
            rows = self.rows(among)
            scores = self.vectors[rows] @ query
        return Scored(self.ids[rows], scores.astype(np.float64)).best(k)

    def cosines(self, query: NDArray[np.float32], ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """The cosines of chunks that are alive; 0 for one that came from version 2 without a vector."""
        scores = np.zeros(ids.size)
        rows, known = self._find(ids)
        scores[known] = self.vectors[rows[known]] @ query
        return scores

    def rows(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where the vectors stand of those chunks that have one and are alive."""
        rows, known = self._find(ids)
        rows = rows[known]
        return rows[self.alive[rows]]

    def _find(self, ids: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        rows = np.searchsorted(self.ids, ids)
        known = rows < self.ids.size
        known[known] = self.ids[rows[known]] == ids[known]
        return rows, known


class Vectors:
    """The snapshots that transactions may still see. One writer at a time; any number of readers."""

    def __init__(self, connection: apsw.Connection, dimensions: int) -> None:
        self._lock = threading.Lock()
        self._dimensions = dimensions
        self.table = VectorTable.of(connection)
        first = self.read(connection)
        self._newest = generation(connection)
        # Room to grow from the start, or the first note that is added would wait for a copy of everything.
        self._snapshots = {self._newest: with_room(first, first.alive.size)}

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
        rows: list[Any] = connection.execute(self.table.select).fetchall()
        ids = np.fromiter((row[0] for row in rows), np.int64, len(rows))
        vectors = np.frombuffer(b"".join(row[1] for row in rows), np.float32).reshape(-1, self._dimensions)
        return Snapshot(ids, vectors, np.ones(ids.size, np.bool_))

    def publish(self, added: Iterable[tuple[int, NDArray[np.float32]]], removed: Iterable[int]) -> int:
        """Make the next snapshot, visible to those who read its number; answers the number."""
        last = self._snapshots[self._newest]
        alive = last.alive.copy()
        alive[last.rows(np.fromiter(removed, np.int64))] = False
        snapshot = appended(Snapshot(last.room_ids, last.room_vectors, alive), list(added))
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


def appended(last: Snapshot, added: list[tuple[int, NDArray[np.float32]]]) -> Snapshot:
    """The next snapshot. The arrays of `last` are written only past its rows, where no reader looks."""
    if last.alive.size - last.alive.sum() > max(1000, MOST_DEAD * last.alive.size):
        last = Snapshot(last.ids[last.alive], last.vectors[last.alive], last.alive[last.alive])
    start, end = last.alive.size, last.alive.size + len(added)
    if end > last.room_ids.size:
        last = with_room(last, end)
    for row, (chunk_id, vector) in enumerate(added, start):
        last.room_ids[row], last.room_vectors[row] = chunk_id, vector
    return Snapshot(last.room_ids, last.room_vectors, np.concatenate([last.alive, np.ones(len(added), np.bool_)]))


def with_room(last: Snapshot, size: int) -> Snapshot:
    """A copy in arrays that have room for `size` rows and half as many more."""
    capacity = max(1024, size + size // 2)
    ids, vectors = np.empty(capacity, np.int64), np.empty((capacity, last.vectors.shape[1]), np.float32)
    ids[: last.alive.size], vectors[: last.alive.size] = last.ids, last.vectors
    return Snapshot(ids, vectors, last.alive)


def generation(connection: apsw.Connection) -> int:
    """The number of the moment that the connection's transaction sees."""
    number: int = connection.execute("SELECT number FROM generation").get
    return number
