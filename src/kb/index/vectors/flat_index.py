"""Exact search over float32 vectors in memory: the simplest index, and the fastest for tens of thousands of chunks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kb.index.vectors.protocol import Among, NewVector, VectorReader
from kb.index.vectors.scores import ScoredChunks
from kb.index.vectors.shared_rows import RowIndex, Rows

LONGEST = 4.0
"""The highest squared length of an undamaged vector."""

GATHERED = 0.2
"""Up to this share of the rows, gathering them is cheaper than multiplying all."""


@dataclass(frozen=True, slots=True)
class FlatIndex(RowIndex):
    """See `kb.index.vectors.protocol.VectorIndex`; also the `VectorSnapshot`. The rows hold the vectors.

    It uses `np.vecdot`, not `@`: BLAS' threads wait for one another on a busy machine, and a row's score there depends
    on the other rows in the product.
    """

    @classmethod
    def of(cls, ids: NDArray[np.int64], vectors: NDArray[np.float32]) -> FlatIndex:
        """Return an index of these vectors, of shape (n, dimensions), by ascending id, with spare capacity."""
        return cls(Rows.of(ids, vectors).with_room())

    @property
    def ids(self) -> NDArray[np.int64]:
        return self.rows.ids

    @property
    def size(self) -> int:
        """The bytes of the vectors, without spare capacity."""
        return self.rows.data.nbytes

    def snapshot(self, reader: VectorReader) -> FlatIndex:
        """Return the index itself, because it needs no reader."""
        return self

    def nearest(
        self, query: NDArray[np.float32], limit: int, among: Among = None, *, exact: bool = False
    ) -> ScoredChunks:
        """Return the `limit` chunks nearest to a unit vector; of equals, the older."""
        allowed = self.rows.mask(among)
        count = np.count_nonzero(allowed)
        if count == allowed.size:
            ids, scores = self.ids, np.vecdot(self.rows.data, query)
        elif count > GATHERED * allowed.size:
            ids, scores = self.ids[allowed], np.vecdot(self.rows.data, query)[allowed]
        else:
            ids, scores = self.ids[allowed], np.vecdot(self.rows.data[allowed], query)
        best = ScoredChunks(ids, scores).best(limit)
        return ScoredChunks(best.ids, best.scores.astype(np.float64))

    def cosines(self, query: NDArray[np.float32], ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the cosines of these existing chunks with a unit vector; 0 for a chunk without a vector."""
        scores = np.zeros(ids.size)
        rows, present = self.rows.find(ids)
        scores[present] = np.vecdot(self.rows.data[rows[present]], query)
        return scores

    def vectors(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the vectors of these chunks, shape (n, dimensions); zeros for a chunk without a vector."""
        vectors = np.zeros((ids.size, self.rows.data.shape[1]), np.float32)
        rows, present = self.rows.find(ids)
        vectors[present] = self.rows.data[rows[present]]
        return vectors

    def changed(self, added: Sequence[NewVector], removed: Collection[int]) -> FlatIndex:
        return FlatIndex(self.rows.changed(*columns(added, self.rows.data.shape[1]), removed))

    def fill(self, filled: Sequence[NewVector]) -> None:
        self.rows.fill(*columns(filled, self.rows.data.shape[1]))


def usable(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the vectors, with zeros for vectors that are too long for unit vectors: their bytes are damaged."""
    with np.errstate(over="ignore", invalid="ignore"):
        damaged = ~(np.vecdot(vectors, vectors) <= LONGEST)  # also true for NaN
    if damaged.any():
        vectors = vectors.copy()
        vectors[damaged] = 0
    return vectors


def columns(added: Sequence[NewVector], dimensions: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the ids and the vectors, of shape (n, dimensions)."""
    ids = np.fromiter((chunk_id for chunk_id, _ in added), np.int64, len(added))
    vectors = np.array([vector for _, vector in added], np.float32).reshape(-1, dimensions)
    return ids, vectors
