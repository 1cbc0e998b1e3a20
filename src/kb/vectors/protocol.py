"""What search asks of the vectors."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kb.vectors.scores import ScoredChunks

NewVector = tuple[int, NDArray[np.float32]]
"""A chunk's id and its unit vector."""

Among = NDArray[np.int64] | NDArray[np.bool_] | None
"""Chunks to choose from: ascending ids, a mask over a snapshot's rows, or None for all."""


class VectorReader(Protocol):
    """The vectors where they are stored, at the moment that a snapshot shows."""

    def vectors(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the vectors of chunks with ascending ids, shape (n, dimensions); zeros for one without a vector."""

    def nearest(self, query: NDArray[np.float32], limit: int, ids: NDArray[np.int64] | None) -> ScoredChunks:
        """Return the `limit` chunks nearest to a unit vector among these, or all, after looking at each."""


class VectorSnapshot(Protocol):
    """The unit vectors of all chunks at one moment. Never changes."""

    @property
    def ids(self) -> NDArray[np.int64]:
        """The chunk of each row, ascending; a deleted one may be among them."""

    def nearest(
        self, query: NDArray[np.float32], limit: int, among: Among = None, *, exact: bool = False
    ) -> ScoredChunks:
        """Return the `limit` chunks nearest to a unit vector, with their cosines, the older one of equals.

        Args:
            query: shape (dimensions,).
            limit: how many.
            among: which chunks to choose from.
            exact: whether each of them must be looked at; without it a large snapshot may miss some.
        """

    def cosines(self, query: NDArray[np.float32], ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how near these chunks, which are alive, are to a unit vector; 0 for one without a vector."""

    def vectors(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the vectors of these chunks by ascending id, shape (n, dimensions); zeros for one without a vector."""


class VectorIndex(Protocol):
    """What is kept in memory of the vectors at one moment. Never changes, so several threads may use it."""

    @property
    def size(self) -> int:
        """The bytes that it takes, without the room to grow."""

    @property
    def count(self) -> int:
        """How many chunks are in it."""

    def snapshot(self, reader: VectorReader) -> VectorSnapshot:
        """Return the snapshot for a reader of the same moment."""

    def changed(self, added: Sequence[NewVector], removed: Collection[int]) -> VectorIndex:
        """Return the next index. The ids of `added` ascend, above every one before."""
