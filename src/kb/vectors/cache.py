"""Vectors that were read a while ago."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

NOBODY = -1


class VectorCache:
    """The vectors of some chunks, each of which keeps its vector. Safe to use from several threads.

    A chunk's id gives its one place: to find the places of many takes next to no time, unlike to find out which vector
    was not asked for the longest.

    Args:
        dimensions: the length of a vector.
        size: how many bytes the vectors may take. Memory is taken as they come.
    """

    def __init__(self, dimensions: int, size: int) -> None:
        self._lock = threading.Lock()
        places = max(1, size // (dimensions * np.dtype(np.float32).itemsize))
        self._ids = np.full(places, NOBODY, np.int64)
        self._vectors = np.empty((places, dimensions), np.float32)

    @property
    def size(self) -> int:
        """The bytes of the vectors that are there."""
        return int(np.count_nonzero(self._ids != NOBODY) * self._vectors[0].nbytes)

    def get(self, ids: NDArray[np.int64]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Return a vector for each chunk, shape (n, dimensions), and which of them are theirs."""
        places = ids % self._ids.size
        with self._lock:
            return self._vectors.take(places, axis=0), self._ids.take(places) == ids

    def put(self, ids: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        """Keep vectors from now on, in the place of others; zeros stand for none, and are not kept."""
        places, owners = ids % self._ids.size, np.where(vectors.any(axis=1), ids, NOBODY)
        with self._lock:
            self._ids[places], self._vectors[places] = owners, vectors
