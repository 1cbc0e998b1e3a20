"""The vectors of chunks. kb compares all of them if the choice is small; otherwise an index finds the nearest."""

import math
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kb.index.vectors.flat_index import usable
from kb.index.vectors.scores import EMPTY_SCORES, ScoredChunks
from kb.store.postgres.statements import statements
from kb.store.postgres.vector_space import TABLES
from kb.store.row_mapping import Execute
from kb.store.rows import VectorSpace
from kb.store.sql.conditions import EVERY_DOCUMENT, Condition, among

EXACT = 20_000
"""The most chunks to choose from for which kb compares every vector."""

CROSSING = 100
"""With a filter, the limit is at least this factor times the root of the number of chunks. The fewer chunks the filter
admits, the longer the index searches.
"""

MOST_BY_INDEX = 500
"""The most chunks that kb requests from the index."""

EXPLORED = 5
"""For each requested chunk, kb compares the exact vectors of this number of chunks from the index."""

OF_MANY = 2
"""The least number to compare is this factor times the root of the number of chunks. Among a million chunks, this finds
0.99 of the ten nearest.
"""

AT_ONCE = 200
"""The number of chunks that each step of an index scan searches for."""

MOST_SCANNED = 100_000
"""The number of scanned chunks after which the index gives up, and kb compares every chunk."""

MARGIN = 16
"""The number of extra chunks that the database finds, because it may round differently."""

HEADER = 4
"""The bytes before the numbers of a vector that pgvector sends; they contain its length."""


class VectorTable:
    """The vectors in use, as a transaction sees them. Their space is read when first needed."""

    def __init__(self, execute: Execute) -> None:
        self._execute = execute
        self._sql = statements("vectors")

    @property
    def name(self) -> str:
        return self._in_use[0]

    @property
    def space(self) -> VectorSpace:
        return self._in_use[1]

    @property
    def other(self) -> str:
        """The table that is not in use."""
        return next(table for table in TABLES if table != self.name)

    @cached_property
    def _count(self) -> int:
        """The number of chunks."""
        return int(self._execute(self._sql["count_all"]).get)

    @cached_property
    def _in_use(self) -> tuple[str, VectorSpace]:
        name, *columns = self._execute(self._sql["select_in_use"]).fetchone()
        return name, VectorSpace(*columns)

    def vectors(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        vectors = np.zeros((ids.size, self.space.dimensions), np.float32)
        stored_ids, stored = self._read(ids)
        vectors[np.isin(np.sort(ids), stored_ids)] = stored
        return vectors

    def cosines(self, vector: NDArray[np.float32], ids: NDArray[np.int64]) -> NDArray[np.float64]:
        order = np.argsort(ids)
        cosines = np.empty(ids.size)
        cosines[order] = np.vecdot(self.vectors(ids), vector)
        return cosines

    def nearest(
        self, vector: NDArray[np.float32], limit: int, condition: Condition, *, exact: bool = False
    ) -> ScoredChunks:
        """Return the `limit` chunks of a condition's documents nearest to a unit vector; of equals, the older ones."""
        if not limit:
            return EMPTY_SCORES
        if not exact and limit <= MOST_BY_INDEX and not self._admits_few(condition):
            rows = self._nearest_by_index(vector, limit, condition)
            if len(rows) >= limit:  # otherwise the index gave up: the admitted chunks are far away
                return self._best(vector, limit, rows)
        return self._best(vector, limit, self._nearest_exactly(vector, limit, condition))

    def _best(self, vector: NDArray[np.float32], limit: int, rows: Iterable[tuple[int]]) -> ScoredChunks:
        nearest_ids = np.sort(np.array([chunk_id for (chunk_id,) in rows], np.int64))
        return ScoredChunks(nearest_ids, self.cosines(vector, nearest_ids)).best(limit)

    def _admits_few(self, condition: Condition) -> bool:
        if condition == EVERY_DOCUMENT:
            return self._count <= EXACT
        few = max(EXACT, int(CROSSING * math.sqrt(self._count)))
        sql = self._sql["count_admitted"].format(condition=condition[0])
        return bool(self._execute(sql, (*condition[1], few + 1)).get <= few)

    def _nearest_exactly(self, vector: NDArray[np.float32], limit: int, condition: Condition) -> Sequence[tuple[int]]:
        where, parameters = among(condition)
        name = "nearest_admitted" if where else "nearest_exactly"
        sql = self._sql[name].format(vectors=self.name, among=where)
        rows: Sequence[tuple[int]] = self._execute(sql, (vector, *parameters, limit + MARGIN)).fetchall()
        return rows

    def _nearest_by_index(self, vector: NDArray[np.float32], limit: int, condition: Condition) -> Sequence[tuple[int]]:
        explored = max(EXPLORED * (limit + MARGIN), int(OF_MANY * math.sqrt(self._count)))
        self._execute(self._sql["tune_index"], (str(AT_ONCE), str(MOST_SCANNED)))
        where, parameters = among(condition)
        sql = self._sql["nearest_by_index"].format(vectors=self.name, among=where, dimensions=self.space.dimensions)
        rows: Sequence[tuple[int]] = self._execute(
            sql, (vector, *parameters, vector, explored, limit + MARGIN)
        ).fetchall()
        return rows

    def _read(self, ids: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        sql = self._sql["select_vectors"].format(vectors=self.name)
        rows = self._execute(sql, (ids.tolist(),), binary=True).fetchall()
        stored_ids = np.array([chunk_id for chunk_id, _ in rows], np.int64)
        numbers = np.frombuffer(b"".join(bytes(sent)[HEADER:] for _, sent in rows), ">f4").astype(np.float32)
        return stored_ids, usable(numbers.reshape(-1, self.space.dimensions))
