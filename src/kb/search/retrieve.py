"""The two legs of a search, and what their candidates say."""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from kb.search.fusion import Candidates
from kb.search.passages import Passage
from kb.vectors.scores import EMPTY_SCORES, NO_CONTEXT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future

    from numpy.typing import NDArray

    from kb.search.fusion import Ranked
    from kb.search.query import Query
    from kb.store.protocol import Index, Selection
    from kb.telemetry.instruments import Instruments
    from kb.vectors.scores import Context, ScoredChunks

IN_CONTEXT = 30
"""How many of each leg's best chunks bring their neighbours along."""


class Retriever:
    """Finds what answers a query at one moment of the store.

    Args:
        index: the store's, in a transaction.
        query: what to look for.
        vector: that of the query's text, of shape (dimensions,), as soon as the model has made it; None without text.
        instruments: the instruments.
    """

    def __init__(
        self,
        index: Index,
        query: Query,
        vector: Future[NDArray[np.float32]] | None,
        instruments: Instruments,
    ) -> None:
        self._index = index
        self._where = query.where
        self._terms = query.terms
        self._exact = query.exact
        self._vector = vector
        self._instruments = instruments

    def candidates(self, limit: int) -> Candidates:
        """Return the `limit` best chunks of each leg, and for each of them the other leg's score."""
        matches = EMPTY_SCORES
        if self._terms:  # while the model is at work
            with self._instruments.search("full_text"):
                matches = self._selection.full_text(self._terms, limit)
        if self._vector is None:
            return Candidates(matches.ids, matches.scores, np.full(matches.ids.size, np.nan))
        vector = self._vector.result()
        with self._instruments.search("vectors"):
            near = self._selection.nearest(vector, limit, exact=self._exact)
            context = self._context(matches, near, vector)
            ids = np.union1d(np.union1d(near.ids, matches.ids), context.ids)
            scores = filled(matches, ids, partial(self._selection.full_text_scores, self._terms))
            return Candidates(ids, scores, filled(near, ids, partial(self._selection.cosines, vector)), context)

    def _context(self, matches: ScoredChunks, near: ScoredChunks, vector: NDArray[np.float32]) -> Context:
        """Return the best of each leg in their context, unless one leg is to find what it finds by itself."""
        if not self._terms:
            return NO_CONTEXT
        best = np.union1d(near.best(IN_CONTEXT).ids, matches.best(IN_CONTEXT).ids)
        return self._selection.in_context(self._terms, vector, best)

    @cached_property
    def _selection(self) -> Selection:
        return self._index.select(self._where)

    def documents_of(self, ids: NDArray[np.int64]) -> list[int]:
        """Return the documents of chunks, in their order."""
        with self._instruments.search("fetch"):
            return self._index.documents_of(ids)

    def passages(self, ranked: Sequence[Ranked]) -> list[Passage]:
        """Return candidates with what the store knows of them, in their order."""
        with self._instruments.search("fetch"):
            hits = self._index.hits([each.chunk_id for each in ranked])
        return [Passage.of(hit, each) for hit, each in zip(hits, ranked, strict=True)]


def filled(
    found: ScoredChunks, ids: NDArray[np.int64], score: Callable[[NDArray[np.int64]], NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Return the scores of chunks, which `score` finds for those that have none yet."""
    scores = found.scores_for(ids)
    missing = np.isnan(scores)
    scores[missing] = score(ids[missing])
    return scores
