"""Chunks with scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class ScoredChunks:
    """Chunks by ascending id, each with a score; higher is better. Both of shape (n,)."""

    ids: NDArray[np.int64]
    scores: NDArray[np.float64]

    def best(self, limit: int) -> ScoredChunks:
        """Return the `limit` best of them; of equals, the older."""
        if self.ids.size <= limit:
            return self
        # Partitioning first is faster than sorting everything.
        threshold = np.partition(self.scores, -limit)[-limit]
        rows = np.flatnonzero(self.scores >= threshold)
        if rows.size > limit:
            equal = np.flatnonzero(self.scores[rows] == threshold)
            rows = np.delete(rows, equal[limit - rows.size :])
        return ScoredChunks(self.ids[rows], self.scores[rows])

    def scores_for(self, ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the scores of these chunks, in their order; NaN if missing."""
        scores = np.full(ids.size, np.nan)
        rows = np.searchsorted(self.ids, ids)
        known = rows < self.ids.size
        known[known] = self.ids[rows[known]] == ids[known]
        scores[known] = self.scores[rows[known]]
        return scores


EMPTY_SCORES = ScoredChunks(np.empty(0, np.int64), np.empty(0))


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Chunks by ascending id, each with both scores together with its neighbours, of shape (n,)."""

    ids: NDArray[np.int64]
    fts: NDArray[np.float64]
    vec: NDArray[np.float64]


NO_CONTEXT = Neighbourhood(EMPTY_SCORES.ids, EMPTY_SCORES.scores, EMPTY_SCORES.scores)
