"""The two legs of a search, and what their candidates say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kb.search.fusion import Candidates, rank
from kb.search.passages import Passage
from kb.vectors.scores import EMPTY_SCORES

if TYPE_CHECKING:
    from concurrent.futures import Future

    from numpy.typing import NDArray

    from kb.search.query import Query
    from kb.store.protocol import Index
    from kb.telemetry.instruments import Instruments


class Retriever:
    """Finds what answers a query at one moment of the store.

    Args:
        index: the store's, in a transaction.
        query: what to look for.
        vector: that of the query's text, of shape (dimensions,), as soon as the model has made it; None without text.
        instruments: the instruments.
    """

    def __init__(
        self, index: Index, query: Query, vector: Future[NDArray[np.float32]] | None, instruments: Instruments
    ) -> None:
        self._index = index
        self._selection = index.select(query.where)
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
        ids = np.union1d(near.ids, matches.ids)
        scores = self._selection.full_text_scores(self._terms, ids)
        return Candidates(ids, scores, self._selection.cosines(vector, ids))

    def passages(self, candidates: Candidates, limit: int) -> list[Passage]:
        """Return the `limit` best candidates with what the store knows of them, best first."""
        ranked = rank(candidates, limit)
        with self._instruments.search("fetch"):
            hits = self._index.hits([each.chunk_id for each in ranked])
        return [Passage.of(hit, each) for hit, each in zip(hits, ranked, strict=True)]
