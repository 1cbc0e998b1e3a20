"""The interface of vectors for a search."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kb.index.vectors.scores import ScoredChunks

NewVector = tuple[int, NDArray[np.float32]]
"""A chunk's id and its unit vector."""

Among = NDArray[np.int64] | NDArray[np.bool_] | None
"""Chunks to choose from: ascending ids, a mask over a snapshot's rows, or None for all."""


class VectorReader(Protocol):
    """The stored vectors at the moment of a snapshot."""

    def vectors(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the vectors of chunks with ascending ids, shape (n, dimensions); zeros for missing vectors."""

    def nearest(self, query: NDArray[np.float32], limit: int, ids: NDArray[np.int64] | None) -> ScoredChunks:
        """Return the `limit` chunks nearest to a unit vector among these, or all, by comparing each."""


class VectorSnapshot(Protocol):
    """The unit vectors of all chunks at one moment. Immutable."""

    @property
    def ids(self) -> NDArray[np.int64]:
        """The chunk of each row, ascending, possibly including deleted ones."""

    def nearest(
        self, query: NDArray[np.float32], limit: int, among: Among = None, *, exact: bool = False
    ) -> ScoredChunks:
        """Return the `limit` chunks nearest to a unit vector, with their cosines; of equals, the older.

        Args:
            query: shape (dimensions,).
            limit: the number of chunks.
            among: the chunks to choose from.
            exact: whether each chunk must be compared; otherwise a large snapshot may miss some.
        """

    def cosines(self, query: NDArray[np.float32], ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the cosines of these existing chunks with a unit vector; 0 for a chunk without a vector."""

    def vectors(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the vectors of these chunks by ascending id, shape (n, dimensions); zeros for missing vectors."""


class VectorIndex(Protocol):
    """The data about the vectors in memory at one moment. Immutable, so several threads may use it."""

    @property
    def size(self) -> int:
        """The bytes that it takes, without spare capacity."""

    @property
    def count(self) -> int:
        """The number of chunks in it."""

    def snapshot(self, reader: VectorReader) -> VectorSnapshot:
        """Return the snapshot for a reader of the same moment."""

    def changed(self, added: Sequence[NewVector], removed: Collection[int]) -> VectorIndex:
        """Return the next index. The ids of `added` are ascending and higher than all earlier ids."""

    def fill(self, filled: Sequence[NewVector]) -> None:
        """Set the vectors of chunks that had zeros. Earlier moments may see them too: their texts are the same."""
