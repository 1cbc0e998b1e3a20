"""The parts of a score, step by step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kb.api.search_models import ExplainedLeg, ExplainedTerm, Explanation
from kb.search.fusion import Ranking, or_none, placed


@dataclass(frozen=True, slots=True, eq=False)
class TermScores:
    """The contributions of a word to full-text scores, NaN without a match, with the reasons if known."""

    scores: NDArray[np.float64]
    idf: float | None
    counts: NDArray[np.float64] | None

    def of(self, number: int, word: str) -> ExplainedTerm:
        """Return the contribution to one candidate."""
        count = None if self.counts is None else int(self.counts[number])
        return ExplainedTerm(term=word, score=float(self.scores[number]), idf=self.idf, count=count)


def explained(ranking: Ranking, ids: NDArray[np.int64], by_word: Mapping[str, TermScores]) -> dict[int, Explanation]:
    """Return the explanations of the candidates with these ascending ids.

    Args:
        ranking: all candidates.
        ids: the candidates to explain.
        by_word: the contribution of each word to the full-text scores.
    """
    candidates, fused, context, limit = ranking.candidates, ranking.fused, ranking.candidates.context, ranking.limit
    rows = np.searchsorted(candidates.ids, ids)
    alone = fused.scores - fused.typed
    words = _leg(candidates.fts, fused.words, alone, dict(zip(context.ids, context.fts, strict=True)), limit)
    meaning = _leg(candidates.vec, fused.meaning, alone, dict(zip(context.ids, context.vec, strict=True)), limit)
    return {
        chunk_id: Explanation(
            terms=_terms(number, by_word),
            words=words(row, chunk_id),
            meaning=meaning(row, chunk_id),
            typed=float(fused.typed[row]),
        )
        for number, (chunk_id, row) in enumerate(zip(ids.tolist(), rows.tolist(), strict=True))
    }


def _terms(number: int, by_word: Mapping[str, TermScores]) -> list[ExplainedTerm]:
    terms = [scores.of(number, word) for word, scores in by_word.items() if not np.isnan(scores.scores[number])]
    return sorted(terms, key=lambda term: -term.score)


def _leg(
    scores: NDArray[np.float64],
    shares: NDArray[np.float64],
    alone: NDArray[np.float64],
    in_context: Mapping[int, float],
    limit: int,
) -> Callable[[int, int], ExplainedLeg | None]:
    """Return a function that explains a leg's score of a candidate, given its row and id.

    If a leg that ran `alone` has no score, the share is the score that the candidate got instead.
    """
    if np.isnan(scores).all():
        return lambda _row, _chunk_id: None
    places = placed(scores, limit)
    if np.isnan(shares).all():
        shares = np.where(np.isnan(scores), alone, scores)

    def leg(row: int, chunk_id: int) -> ExplainedLeg:
        together = float(in_context.get(chunk_id, np.nan))
        score, share = float(scores[row]), float(shares[row])
        return ExplainedLeg(place=places[row], score=or_none(score), in_context=or_none(together), share=share)

    return leg
