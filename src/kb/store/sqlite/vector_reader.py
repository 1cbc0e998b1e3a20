"""Read vectors from disk in a transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import apsw
import numpy as np
from numpy.typing import NDArray

from kb.store.sqlite.schema import VectorSchema
from kb.store.sqlite.vector_codes import chunk_ids, read_copies
from kb.vectors.flat_index import usable
from kb.vectors.scores import EMPTY_SCORES, ScoredChunks

# The maximum number of results of sqlite-vec.
MAX_NEAREST = 4096

# The difference up to which sqlite-vec may treat scores as equal.
EQUAL = 1e-6

BLOCK = 8192


class SqliteVectorReader:
    """See `kb.vectors.protocol.VectorReader`.

    Args:
        connection: a connection in a transaction.
        table: the columns of `chunks_vec`, the source of truth.
        dimensions: the number of dimensions of a vector.
        report: receives the ids of chunks without an intact copy.
    """

    def __init__(
        self,
        connection: apsw.Connection,
        table: VectorSchema,
        dimensions: int,
        report: Callable[[NDArray[np.int64]], None] = lambda _: None,
    ) -> None:
        self._connection = connection
        self._table = table
        self._dimensions = dimensions
        self._report = report

    def vectors(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        if not ids.size:  # carray refuses an empty array
            return np.empty((0, self._dimensions), np.float32)
        stored_ids, copies = read_copies(self._connection, ids, self._dimensions)
        if stored_ids.size == ids.size:
            return usable(copies)
        missing = np.setdiff1d(ids, stored_ids, assume_unique=True)
        self._report(missing)
        vectors = np.empty((ids.size, self._dimensions), np.float32)
        vectors[np.searchsorted(ids, stored_ids)] = usable(copies)
        vectors[np.searchsorted(ids, missing)] = self.originals(missing)
        return vectors

    def originals(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the vectors like `vectors`, but from the source of truth, which takes longer."""
        vectors = np.zeros((ids.size, self._dimensions), np.float32)
        if not ids.size:  # carray refuses an empty array
            return vectors
        rows: list[Any] = self._connection.execute(self._table.sql("look_up"), (apsw.carray(ids),)).fetchall()
        stored_ids = np.fromiter((chunk_id for chunk_id, _ in rows), np.int64, len(rows))
        flat = np.frombuffer(b"".join(blob for _, blob in rows), np.float32)
        vectors[np.searchsorted(ids, stored_ids)] = flat.reshape(-1, self._dimensions)
        return usable(vectors)

    def nearest(self, query: NDArray[np.float32], limit: int, ids: NDArray[np.int64] | None) -> ScoredChunks:
        # Ask for more than `limit`, because the older of two equal chunks must win and sqlite-vec returns either.
        for count in (2 * limit, MAX_NEAREST):
            if limit < count <= MAX_NEAREST:
                scored_chunks = self._best(query, count, self._found(query, count, ids))
                best = scored_chunks.best(limit)
                if scored_chunks.ids.size < count or scored_chunks.scores.min() < best.scores.min() - EQUAL:
                    return best
        return self._best(query, limit, chunk_ids(self._connection) if ids is None else ids)

    def _found(self, query: NDArray[np.float32], limit: int, ids: NDArray[np.int64] | None) -> NDArray[np.int64]:
        """Return the ids of the chunks nearest to a unit vector, ascending; of equal chunks, any."""
        if ids is None:
            rows = self._connection.execute(self._table.sql("nearest"), (query.tobytes(), limit)).fetchall()
        else:
            parameters = (query.tobytes(), limit, apsw.carray(ids))
            rows = self._connection.execute(self._table.sql("nearest_among"), parameters).fetchall()
        return np.sort(np.fromiter((chunk_id for (chunk_id,) in rows), np.int64, len(rows)))

    def _best(self, query: NDArray[np.float32], limit: int, ids: NDArray[np.int64]) -> ScoredChunks:
        best = EMPTY_SCORES
        for start in range(0, ids.size, BLOCK):
            block = ids[start : start + BLOCK]
            scores = np.vecdot(self.vectors(block), query).astype(np.float64)
            both = np.concatenate([best.ids, block]), np.concatenate([best.scores, scores])
            best = ScoredChunks(*both).best(limit)
        return best
