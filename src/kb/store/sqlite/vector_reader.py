"""Read vectors from disk in a transaction."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import apsw
import numpy as np
from numpy.typing import NDArray

from kb.index.vectors.flat_index import usable
from kb.index.vectors.scores import EMPTY_SCORES, ScoredChunks
from kb.store.sqlite.schema import VectorSchema
from kb.store.sqlite.statements import statements
from kb.store.sqlite.vector_codes import chunk_ids

BLOCKS: Final = "chunks_vec_vector_chunks00"
"""The table in which vec0 keeps blocks of vectors. Reading them directly takes less time than through `chunks_vec`."""

Place = tuple[int | None, int]
"""The block of a vector, and its number in it; the block is None if the vector is missing."""

DAMAGE: Final = (apsw.CorruptError, apsw.SQLError, ValueError)
"""The errors of a page that cannot be read, a missing block and a short one."""

# The maximum number of results of sqlite-vec.
MAX_NEAREST = 4096

# The difference up to which sqlite-vec may treat scores as equal.
EQUAL = 1e-6

BLOCK = 8192


class SqliteVectorReader:
    """See `kb.index.vectors.protocol.VectorReader`.

    Args:
        connection: a connection in a transaction.
        table: the columns of `chunks_vec`.
        report: is called if vectors cannot be read.
    """

    def __init__(
        self,
        connection: apsw.Connection,
        table: VectorSchema,
        dimensions: int,
        report: Callable[[Exception], None] = lambda _: None,
    ) -> None:
        self._connection = connection
        self._table = table
        self._dimensions = dimensions
        self._report = report

    def vectors(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        vectors = np.zeros((ids.size, self._dimensions), np.float32)
        if ids.size:  # carray refuses an empty array
            places: Any = self._connection.execute(statements("chunks_vec")["find"], (apsw.carray(ids),)).fetchall()
            self._read(places, vectors)
        return usable(vectors)

    def _read(self, places: Sequence[Place], vectors: NDArray[np.float32]) -> None:
        """Read the vectors at these places; a missing or unreadable one stays zero."""
        buffer, size = vectors.data.cast("B"), vectors[0].nbytes
        blob: apsw.Blob | None = None
        opened = None
        for row, (block, number) in enumerate(places):
            if block is None:
                continue
            try:
                if blob is None:
                    blob = self._connection.blob_open("main", BLOCKS, "vectors", block, False)  # noqa: FBT003 - it has no keyword
                elif block != opened:
                    blob.reopen(block)
                opened = block
                blob.seek(number * size)
                blob.read_into(buffer, row * size, size)
            except DAMAGE as error:
                vectors[row] = 0
                self._report(error)
                if blob:
                    blob.close(True)  # noqa: FBT003 - it has no keyword
                blob = None
        if blob:
            blob.close()

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
