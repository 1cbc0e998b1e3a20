"""Search over two-bit codes in memory, rescored exactly with the stored vectors."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kb.index.vectors.flat_index import columns
from kb.index.vectors.protocol import Among, NewVector, VectorReader
from kb.index.vectors.quantize import Quantizer
from kb.index.vectors.scores import ScoredChunks
from kb.index.vectors.shared_rows import RowIndex, Rows

RESCORED, OF_LONG = 1 / 6, 0.2
MIN_RESCORED = 200
"""The minimum number of vectors that are rescored.

Above it, the number is `RESCORED` times the limit times the fourth root of the count: for a limit of 100, 296 of
100,000 and 527 of a million. For a long list it is smaller, `OF_LONG` times the square root of limit times count,
because the end of the list matters less.
"""

ESTIMATED, REFINED = 12, 3
"""The number of estimates, and of refined ones: these factors times the square root of the number of candidates."""

GATHERED = 0.25
"""Up to this share of the rows, gathering their codes is cheaper than a scan of all."""

BLOCK = 8192
"""The number of vectors that are read at once."""

CACHED = 96 << 20
"""The bytes of read vectors that stay in memory: 65,536 vectors of 384 dimensions."""

SAMPLED = 16_384
FARTHEST = np.iinfo(np.uint16).max
NOBODY = -1


@dataclass(frozen=True, slots=True)
class StoredIndex(RowIndex):
    """An index with only the ids: each search reads the vectors. See `kb.index.vectors.protocol.VectorIndex`."""

    def snapshot(self, reader: VectorReader) -> StoredSnapshot:
        return StoredSnapshot(self.rows, reader)

    def changed(self, added: Sequence[NewVector], removed: Collection[int]) -> StoredIndex:
        ids = np.fromiter((chunk_id for chunk_id, _ in added), np.int64, len(added))
        return StoredIndex(self.rows.changed(ids, np.empty((ids.size, 0)), removed))

    def fill(self, filled: Sequence[NewVector]) -> None:
        """Do nothing, because no vectors are in memory."""


@dataclass(frozen=True, slots=True)
class StoredSnapshot:
    """See `kb.index.vectors.protocol.VectorSnapshot`."""

    rows: Rows
    reader: VectorReader

    @property
    def ids(self) -> NDArray[np.int64]:
        return self.rows.ids

    def nearest(
        self, query: NDArray[np.float32], limit: int, among: Among = None, *, exact: bool = False
    ) -> ScoredChunks:
        """Return the `limit` chunks nearest to a unit vector; of equals, the older."""
        ids = None if among is None else self.ids[self.rows.mask(among)]
        if ids is not None and ids.size <= rescored(limit, ids.size):
            return ScoredChunks(ids, self.cosines(query, ids)).best(limit)
        return self.reader.nearest(query, limit, ids)

    def cosines(self, query: NDArray[np.float32], ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the cosines of these existing chunks with a unit vector; 0 for a chunk without a vector."""
        return _cosines(self.vectors, query, ids)

    def vectors(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the vectors of these chunks by ascending id; zeros for a chunk without a vector."""
        return self.reader.vectors(ids)


@dataclass(frozen=True, slots=True)
class CodedIndex(RowIndex):
    """An index of codes. See `kb.index.vectors.protocol.VectorIndex`.

    Args:
        rows: the codes, in Fortran order.
        quantizer: the quantizer that made them.
        cache: vectors already read; later indexes of the same vectors share it.
    """

    quantizer: Quantizer
    cache: VectorCache

    @classmethod
    def of(cls, rows: Rows, quantizer: Quantizer) -> CodedIndex:
        """Return an index with an empty cache."""
        return cls(rows, quantizer, VectorCache(quantizer.mean.size, CACHED))

    @property
    def size(self) -> int:
        """The bytes of the rows, without spare capacity, and of the cached vectors."""
        return self.rows.data.nbytes + self.rows.ids.nbytes + self.cache.size

    def snapshot(self, reader: VectorReader) -> CodedSnapshot:
        return CodedSnapshot(self.rows, reader, self)

    def changed(self, added: Sequence[NewVector], removed: Collection[int]) -> CodedIndex:
        ids, vectors = columns(added, self.quantizer.mean.size)
        return replace(self, rows=self.rows.changed(ids, self.quantizer.encode(ids, vectors), removed))

    def fill(self, filled: Sequence[NewVector]) -> None:
        ids, vectors = columns(filled, self.quantizer.mean.size)
        self.rows.fill(ids, self.quantizer.encode(ids, vectors))

    def candidates(self, query: NDArray[np.float32], allowed: NDArray[np.bool_], limit: int) -> NDArray[np.intp]:
        """Return the `limit` rows, ascending, with the highest estimates; all allowed rows if they are not more."""
        count = np.count_nonzero(allowed)
        if count <= limit:
            return np.flatnonzero(allowed)
        root = math.isqrt(count)
        near = self._near(query, allowed, int(count), max(2 * limit, ESTIMATED * root))
        near = _best(near, self.quantizer.estimates(query, self.rows.data, near), max(2 * limit, REFINED * root))
        return _best(near, self.quantizer.refined(query, self.rows.data, near), limit)

    def _near(self, query: NDArray[np.float32], allowed: NDArray[np.bool_], count: int, limit: int) -> NDArray[np.intp]:
        """Return the allowed rows within the smallest distance that includes at least `limit` of them."""
        if count <= limit:
            return np.flatnonzero(allowed)
        if count <= GATHERED * allowed.size:
            rows = np.flatnonzero(allowed)
            near = self.quantizer.distances(query, np.asfortranarray(self.rows.data[rows]))
            return rows[near <= threshold(near, limit)]
        near = self.quantizer.distances(query, self.rows.data)
        if count < allowed.size:
            near[~allowed] = FARTHEST
        return np.flatnonzero(near <= threshold(near, limit))


@dataclass(frozen=True, slots=True)
class CodedSnapshot(StoredSnapshot):
    """See `kb.index.vectors.protocol.VectorSnapshot`."""

    index: CodedIndex

    def nearest(
        self, query: NDArray[np.float32], limit: int, among: Among = None, *, exact: bool = False
    ) -> ScoredChunks:
        """Return the `limit` chunks nearest to a unit vector; of equals, the older."""
        if exact:
            return StoredSnapshot.nearest(self, query, limit, among)
        allowed = self.rows.mask(among)
        rows = self.index.candidates(query, allowed, rescored(limit, int(np.count_nonzero(allowed))))
        ids = self.ids[rows]
        return ScoredChunks(ids, self.cosines(query, ids)).best(limit)

    def vectors(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the vectors of these chunks by ascending id; zeros for a chunk without a vector."""
        vectors, are_known = self.index.cache.get(ids)
        if not are_known.all():
            unknown = ids[~are_known]
            vectors[~are_known] = read = self.reader.vectors(unknown)
            self.index.cache.put(unknown, read)
        return vectors


def rescored(limit: int, count: int) -> int:
    """Return the number of `count` chunks to compare exactly for a result of `limit` chunks."""
    rescored_count = min(RESCORED * limit * count**0.25, OF_LONG * math.sqrt(limit * count))
    return max(MIN_RESCORED, 2 * limit, int(rescored_count))


def _cosines(
    read: Callable[[NDArray[np.int64]], NDArray[np.float32]], query: NDArray[np.float32], ids: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the cosines of these chunks with a unit vector; their vectors are read in blocks."""
    scores = np.empty(ids.size)
    for start in range(0, ids.size, BLOCK):
        block = slice(start, start + BLOCK)
        scores[block] = np.vecdot(read(ids[block]), query)
    return scores


def _best(rows: NDArray[np.intp], estimates: NDArray[np.float32], limit: int) -> NDArray[np.intp]:
    """Return the `limit` rows with the highest estimates, ascending."""
    return ScoredChunks(rows, estimates.astype(np.float64)).best(limit).ids


def threshold(distances: NDArray[np.uint16], count: int) -> int:
    """Return a distance that at least `count` rows do not exceed: estimated from a sample, then checked."""
    sample = distances[:: max(1, distances.size // SAMPLED)]
    rank = min(count * sample.size // distances.size, sample.size - 1)
    near = min(int(np.partition(sample, rank)[rank]), FARTHEST - 1)
    while np.count_nonzero(distances <= near) < count:
        near += 1
    return near


class VectorCache:
    """The vectors of some chunks; a chunk's vector never changes once it is made. Safe to use from several threads.

    Each id has a single place. Its lookup takes almost no time, unlike a search for the least recently used vector.

    Args:
        dimensions: the length of a vector.
        size: the maximum number of bytes of vectors. The system allocates memory as vectors are added.
    """

    def __init__(self, dimensions: int, size: int) -> None:
        self._lock = threading.Lock()
        places = max(1, size // (dimensions * np.dtype(np.float32).itemsize))
        self._ids = np.full(places, NOBODY, np.int64)
        self._vectors = np.empty((places, dimensions), np.float32)

    @property
    def size(self) -> int:
        """The bytes of the cached vectors."""
        return int(np.count_nonzero(self._ids != NOBODY) * self._vectors[0].nbytes)

    def get(self, ids: NDArray[np.int64]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Return a vector for each chunk, shape (n, dimensions), and a mask of the chunks whose own vector it is."""
        places = ids % self._ids.size
        with self._lock:
            return self._vectors.take(places, axis=0), self._ids.take(places) == ids

    def put(self, ids: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        """Keep vectors and evict others from their places; zeros mean a missing vector and are not kept."""
        places, owners = ids % self._ids.size, np.where(vectors.any(axis=1), ids, NOBODY)
        with self._lock:
            self._ids[places], self._vectors[places] = owners, vectors
