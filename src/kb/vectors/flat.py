"""Exact search as one matrix product over float32 vectors.

Up to some hundred thousand chunks this is fast, and the simplest index there is (docs/adr/0004).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kb.vectors.scores import ScoredChunks

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from kb.vectors.snapshot import NewVector

MIN_CAPACITY = 1024
MIN_DEAD = 1000
MAX_DEAD = 0.25
"""Deleted rows are dropped when they are more than so many, and more than this share."""


@dataclass(frozen=True, slots=True)
class FlatSnapshot:
    """See `kb.vectors.snapshot.Snapshot`: the first rows of two arrays that later snapshots may share.

    Args:
        id_buffer: chunk ids, ascending, shape (at least n,).
        vector_buffer: unit vectors, shape (at least n, dimensions).
        alive: False where the chunk is deleted, shape (n,).
    """

    id_buffer: NDArray[np.int64]
    vector_buffer: NDArray[np.float32]
    alive: NDArray[np.bool_]

    @classmethod
    def of(cls, ids: NDArray[np.int64], vectors: NDArray[np.float32]) -> FlatSnapshot:
        """Return a snapshot of these vectors, of shape (n, dimensions), by ascending id; nothing is copied."""
        return cls(ids, vectors, np.ones(ids.size, np.bool_))

    @property
    def ids(self) -> NDArray[np.int64]:
        """The chunk ids, shape (n,)."""
        return self.id_buffer[: self.alive.size]

    @property
    def vectors(self) -> NDArray[np.float32]:
        """The vectors, shape (n, dimensions)."""
        return self.vector_buffer[: self.alive.size]

    @property
    def size(self) -> int:
        """The bytes of the vectors, without the room to grow."""
        return self.vectors.nbytes

    def nearest(self, query: NDArray[np.float32], limit: int, among: NDArray[np.int64] | None) -> ScoredChunks:
        """Return the `limit` chunks nearest to a unit vector, the older one of equals."""
        if among is None:
            # Multiplying the dead ones too is cheaper than gathering the others.
            rows, scores = np.flatnonzero(self.alive), self.vectors @ query
            scores = scores[rows]
        else:
            rows = self._rows(among)
            scores = self.vectors[rows] @ query
        return ScoredChunks(self.ids[rows], scores.astype(np.float64)).best(limit)

    def cosines(self, query: NDArray[np.float32], ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how near these chunks, which are alive, are to a unit vector; 0 for one without a vector."""
        scores = np.zeros(ids.size)
        rows, found = self._find(ids)
        scores[found] = self.vectors[rows[found]] @ query
        return scores

    def changed(self, added: Sequence[NewVector], removed: Collection[int]) -> FlatSnapshot:
        """Return the next snapshot. The buffers are written only past this one's rows, where no reader looks."""
        alive = self.alive.copy()
        alive[self._rows(np.fromiter(removed, np.int64))] = False
        following = FlatSnapshot(self.id_buffer, self.vector_buffer, alive)._without_dead()
        start, end = following.alive.size, following.alive.size + len(added)
        if end > following.id_buffer.size:
            following = following.with_room(end)
        for row, (chunk_id, vector) in enumerate(added, start):
            following.id_buffer[row], following.vector_buffer[row] = chunk_id, vector
        alive = np.concatenate([following.alive, np.ones(len(added), np.bool_)])
        return FlatSnapshot(following.id_buffer, following.vector_buffer, alive)

    def with_room(self, size: int | None = None) -> FlatSnapshot:
        """Return a copy in buffers for `size` rows, or as many as there are, and half as many more."""
        size = self.alive.size if size is None else size
        capacity = max(MIN_CAPACITY, size + size // 2)
        ids, vectors = np.empty(capacity, np.int64), np.empty((capacity, self.vectors.shape[1]), np.float32)
        ids[: self.alive.size], vectors[: self.alive.size] = self.ids, self.vectors
        return FlatSnapshot(ids, vectors, self.alive)

    def _without_dead(self) -> FlatSnapshot:
        if self.alive.size - self.alive.sum() <= max(MIN_DEAD, MAX_DEAD * self.alive.size):
            return self
        return FlatSnapshot.of(self.ids[self.alive], self.vectors[self.alive])

    def _rows(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the rows of those chunks that have a vector and are alive."""
        rows, found = self._find(ids)
        rows = rows[found]
        return rows[self.alive[rows]]

    def _find(self, ids: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        rows = np.searchsorted(self.ids, ids)
        found = rows < self.ids.size
        found[found] = self.ids[rows[found]] == ids[found]
        return rows, found
