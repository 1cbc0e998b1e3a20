"""What search asks of the vectors in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from kb.vectors.scores import ScoredChunks

    NewVector = tuple[int, NDArray[np.float32]]
    """A chunk's id and its unit vector."""


class Snapshot(Protocol):
    """The unit vectors of all chunks at one moment. Never changes, so several threads may use it."""

    @property
    def size(self) -> int:
        """The bytes of the vectors."""

    def nearest(self, query: NDArray[np.float32], limit: int, among: NDArray[np.int64] | None) -> ScoredChunks:
        """Return the `limit` chunks nearest to a unit vector, the older one of equals.

        Args:
            query: shape (dimensions,).
            limit: how many.
            among: the ids to choose from, ascending; None for all.
        """

    def cosines(self, query: NDArray[np.float32], ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how near these chunks are to a unit vector; 0 for one without a vector."""

    def changed(self, added: Sequence[NewVector], removed: Collection[int]) -> Snapshot:
        """Return the next snapshot. The ids of `added` ascend, above every one before."""
