"""The two legs of a search, and what their candidates say."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from kb.search.explain import explained
from kb.search.fusion import Candidates, best, fuse
from kb.search.passages import Passage
from kb.vectors.scores import EMPTY_SCORES, ScoredChunks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from concurrent.futures import Future

    from numpy.typing import NDArray

    from kb.search.fusion import Ranked
    from kb.search.query import Query
    from kb.store.protocol import Index, Selection
    from kb.telemetry.instruments import Instruments

IN_CONTEXT = 50
"""How many of the best chunks are ranked by what stands beside them, too."""


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
        self._found, self._limit = self._candidates(limit), limit
        return self._found

    def explain(self, passages: Iterable[Passage]) -> None:
        """Say of some of the candidates that were last returned what their scores are made of."""
        shown = [*passages]
        ids = np.array(sorted({passage.chunk_id for passage in shown}), np.int64)
        by_word = {word: self._selection.full_text_scores((word,), ids) for word in self._terms}
        explanations = explained(self._found, self._limit, ids, by_word)
        for passage in shown:
            passage.explanation = explanations[passage.chunk_id]

    def _candidates(self, limit: int) -> Candidates:
        matches = EMPTY_SCORES
        if self._terms:  # while the model is at work
            with self._instruments.search("full_text"):
                matches = self._selection.full_text(self._terms, limit)
        if self._vector is None:
            return Candidates(matches.ids, matches.scores, np.full(matches.ids.size, np.nan))
        vector = self._vector.result()
        with self._instruments.search("vectors"):
            near = self._selection.nearest(vector, limit, exact=self._exact)
            ids = np.union1d(near.ids, matches.ids)
            scores = filled(matches, ids, partial(self._selection.full_text_scores, self._terms))
            found = Candidates(ids, scores, filled(near, ids, partial(self._selection.cosines, vector)))
            return found if np.isnan(scores).all() else self._in_context(found, vector)

    def _in_context(self, found: Candidates, vector: NDArray[np.float32]) -> Candidates:
        """Return candidates of both legs with the context of the best, and with the neighbours these brought along."""
        seeds = found.ids[best(found, fuse(found).scores, IN_CONTEXT)]
        context = self._selection.in_context(self._terms, vector, seeds)
        ids = np.union1d(found.ids, context.ids)
        if ids.size == found.ids.size:
            return replace(found, context=context)
        fts, vec = (ScoredChunks(found.ids, scores) for scores in (found.fts, found.vec))
        return Candidates(
            ids,
            filled(fts, ids, partial(self._selection.full_text_scores, self._terms)),
            filled(vec, ids, partial(self._selection.cosines, vector)),
            context,
        )

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
