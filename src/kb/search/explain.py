"""What a score is made of, step by step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kb.search.fusion import or_none, placed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from kb.search.fusion import Ranking


@dataclass(frozen=True, slots=True)
class Term:
    """A word that was looked for, and what it adds to the full-text score.

    Args:
        term: the word.
        score: what it adds.
        idf: how much it counts; None where that is not known, as of a word with several forms.
        count: how often its most frequent form stands in the passage, twice in its header; None where that is unknown.
    """

    term: str
    score: float
    idf: float | None
    count: int | None


@dataclass(frozen=True, slots=True, eq=False)
class TermScores:
    """What a word adds to the full-text scores of some candidates, NaN where it does not stand, and why, if known."""

    scores: NDArray[np.float64]
    idf: float | None
    counts: NDArray[np.float64] | None

    def of(self, number: int, word: str) -> Term:
        """Return what it adds to one of them."""
        count = None if self.counts is None else int(self.counts[number])
        return Term(word, float(self.scores[number]), self.idf, count)


@dataclass(frozen=True, slots=True)
class Leg:
    """What one leg says of a passage.

    Args:
        place: where it stands in the leg's list, from 1; None if it is not in it.
        score: its own.
        in_context: that of it with its neighbours; None if it stands alone.
        share: what of the result's score comes from here.
    """

    place: int | None
    score: float | None
    in_context: float | None
    share: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """What the score of a passage is made of: the sum of both shares and of `typed`. A leg that did not run is None.

    `typed` is what it adds that the query, or some of it, stands there as it was typed, or is the document's name.
    """

    terms: list[Term]
    words: Leg | None
    meaning: Leg | None
    typed: float


def explained(ranking: Ranking, ids: NDArray[np.int64], by_word: Mapping[str, TermScores]) -> dict[int, Explanation]:
    """Return what the scores of candidates with these ascending ids are made of.

    Args:
        ranking: all candidates.
        ids: those to explain.
        by_word: what each word adds to their full-text scores.
    """
    found, fused, context, limit = ranking.candidates, ranking.fused, ranking.candidates.context, ranking.limit
    rows = np.searchsorted(found.ids, ids)
    words = _leg(found.fts, fused.words, dict(zip(context.ids, context.fts, strict=True)), limit)
    meaning = _leg(found.vec, fused.meaning, dict(zip(context.ids, context.vec, strict=True)), limit)
    return {
        chunk_id: Explanation(
            _terms(number, by_word), words(row, chunk_id), meaning(row, chunk_id), float(fused.typed[row])
        )
        for number, (chunk_id, row) in enumerate(zip(ids.tolist(), rows.tolist(), strict=True))
    }


def _terms(number: int, by_word: Mapping[str, TermScores]) -> list[Term]:
    terms = [found.of(number, word) for word, found in by_word.items() if not np.isnan(found.scores[number])]
    return sorted(terms, key=lambda term: -term.score)


def _leg(
    scores: NDArray[np.float64], shares: NDArray[np.float64], in_context: Mapping[int, float], limit: int
) -> Callable[[int, int], Leg | None]:
    """Return what tells of a candidate, by its row and id, what the leg says."""
    if np.isnan(scores).all():
        return lambda _row, _chunk_id: None
    places = placed(scores, limit)
    is_alone = np.isnan(shares).all()

    def leg(row: int, chunk_id: int) -> Leg:
        together = float(in_context.get(chunk_id, np.nan))
        share = float(scores[row] if is_alone else shares[row])
        return Leg(places[row], or_none(float(scores[row])), or_none(together), share)

    return leg
