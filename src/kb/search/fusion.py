"""One ranked list from the results of both legs.

Pure functions, so that the same request over the same data always has the same answer (requirement S-6). The
score is a weighted average of z-scores, with the exact scores of both legs for every candidate. docs/adr/0003 compares
it with reciprocal rank fusion.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kb.embed.protocol import Likeness
from kb.index.vectors.scores import NO_CONTEXT, Neighbourhood

ALPHA = 0.5
"""The vectors' share of the score if the scores say too little about which leg is better."""

WORDS, LEAST_WORDS, MOST_WORDS = 1e-4, 0.05, 2.0
"""The factor of the words' weight next to the meaning, and its limits.

Chosen on eleven public collections, each left out in turn, and kept from lowering the four of the benchmarks
(docs/adr/0003).
"""

CAUTION = 0.8
"""The exponent that moves this factor towards 1, because scores tell only roughly which leg is better."""

ENOUGH = 50
"""The least number of candidates whose scores say which leg is better."""


TYPED = 6.0
"""The bonus for a passage that contains the whole query as typed: larger than all other parts of a score."""

TYPED_POWER = 5.0
"""The exponent that reduces the bonus if a passage contains only part of the query.

Chosen together with `RARE` on collections that the benchmarks do not use; see docs/adr/0003.
"""

LONE_MATCH = 1.0
"""The value of a word match if all candidates score alike: the highest possible cosine."""


ROUNDING = 1e-9
"""The tolerance for rounding when scores are equal."""


class Spread(NamedTuple):
    """The mean and the standard deviation of a leg's scores, for z-scores; the deviation is 0 if they are equal."""

    mean: float
    deviation: float


class Scale(NamedTuple):
    """The spreads that z-scores use, one for each leg, and the vectors' share of the score."""

    fts: Spread
    vec: Spread
    meaning: float = ALPHA


@dataclass(frozen=True, slots=True)
class Candidates:
    """The union of the two legs' best chunks, by ascending id, each with both scores; higher is better.

    A score is NaN if the leg did not run, in `fts` also if no word of the query matched, and in `vec` also if the
    vector of a new note is still to be made. The chunks in `context` are ranked by their scores together with their
    neighbours. `scale` is the scale of other candidates whose scores
    must be comparable; None to compute it from these.
    """

    ids: NDArray[np.int64]
    fts: NDArray[np.float64]
    vec: NDArray[np.float64]
    context: Neighbourhood = NO_CONTEXT
    scale: Scale | None = None


class Fused(NamedTuple):
    """The score of each candidate, shape (n,), higher is better, and its parts.

    Args:
        scores: the scores.
        words: the part of the full-text leg; NaN if only one leg ran.
        meaning: the part of the vector leg; NaN if only one leg ran.
        lent: the part of the score that neighbours added or took; NaN for a candidate without context.
        typed: the bonus for words that appear as typed.
    """

    scores: NDArray[np.float64]
    words: NDArray[np.float64]
    meaning: NDArray[np.float64]
    lent: NDArray[np.float64]
    typed: NDArray[np.float64]

    def with_typed(self, shares: NDArray[np.float64]) -> Fused:
        """Return the scores with the bonus for these shares of the query that appear as typed."""
        is_alone = np.isnan(self.words).all()
        typed = (float(self.scores.max(initial=0.0)) if is_alone else TYPED) * shares**TYPED_POWER
        return self._replace(scores=self.scores + typed, typed=typed)


@dataclass(frozen=True, slots=True)
class Ranking:
    """Candidates with their scores, computed once and shared by all users.

    Args:
        candidates: the candidates.
        fused: their scores.
        order: their indexes, best first, but replaced documents after their replacements.
        limit: the length of each leg's list.
        successors: the replacements of documents, nearest first.
    """

    candidates: Candidates
    fused: Fused
    order: NDArray[np.int64]
    limit: int
    successors: Mapping[int, Sequence[int]]


def fuse(candidates: Candidates, trust: float = 1.0) -> Fused:
    """Return the scores of candidates, without the bonus for words that appear as typed. `trust` in words is 0 to 1.

    Without a matching word, BM25 is 0. A missing vector counts as an average one. If only one leg ran, its scores are
    returned otherwise unchanged.
    """
    nothing, typed = np.full(candidates.ids.size, np.nan), np.zeros(candidates.ids.size)
    if (alone := _leg_alone(candidates)) is not None:
        return Fused(alone, nothing, nothing, nothing, typed)
    fts, vec = _in_context(candidates)
    scale = candidates.scale or _scale(fts, vec)
    words, meaning = trust * (1 - scale.meaning) * _z(fts, scale.fts), scale.meaning * _z(vec, scale.vec)
    return Fused(meaning + words, words, meaning, _lent(candidates, fts, vec, scale), typed)


def measure_scale(candidates: Candidates) -> Scale | None:
    """Return the scale of the candidates' scores; None if only one leg ran."""
    if _leg_alone(candidates) is not None:
        return None
    return candidates.scale or _scale(*_in_context(candidates))


def weighed(candidates: Candidates, matched: float, likeness: Likeness) -> Candidates:
    """Return candidates on a scale that gives the better leg more weight.

    The words weigh more the farther their best score is above the others and the more words of the query one passage
    contains; the meaning weighs more the farther the best cosine is above the others.

    Args:
        candidates: candidates with a scale.
        matched: the number of words of the query in the passage with most of them; rare words count more.
        likeness: the scale of the model's cosines.
    """
    scale = candidates.scale
    if scale is None or candidates.ids.size < ENOUGH or not (scale.fts.deviation and scale.vec.deviation):
        return candidates
    fts, vec = _in_context(candidates)
    above = (fts.max() - scale.fts.mean) / scale.fts.deviation
    nearer, spread = (likeness.query_slope * part for part in (vec.max() - scale.vec.mean, scale.vec.deviation))
    words = min(MOST_WORDS, max(LEAST_WORDS, (WORDS * above * matched / (nearer**3 * spread)) ** CAUTION))
    return replace(candidates, scale=scale._replace(meaning=float(1 / (1 + words))))


def _leg_alone(candidates: Candidates) -> NDArray[np.float64] | None:
    """Return the scores of the only leg that ran; None if both did."""
    if np.isnan(candidates.vec).all():
        return _or_zero(candidates.fts)
    return _or_mean(candidates.vec) if np.isnan(candidates.fts).all() else None


def _scale(fts: NDArray[np.float64], vec: NDArray[np.float64]) -> Scale:
    """Return the mean and the deviation of both legs.

    If all candidates score alike, for example because only one exists, the score is the cosine, and a word match
    adds `LONE_MATCH`, so that it ranks at least as high as any match by meaning only.
    """
    words, meaning = _spread(fts), _spread(vec)
    if words.deviation or meaning.deviation:
        return Scale(words, meaning)
    return Scale(Spread(words.mean - LONE_MATCH, 1 - ALPHA), Spread(0.0, ALPHA))


def _lent(
    candidates: Candidates, fts: NDArray[np.float64], vec: NDArray[np.float64], scale: Scale
) -> NDArray[np.float64]:
    """Return the change that neighbours made to each score; NaN for candidates without context."""
    shares = np.full(candidates.ids.size, np.nan)
    if candidates.context.ids.size:
        places = np.searchsorted(candidates.ids, candidates.context.ids)
        gained = scale.meaning * (vec - candidates.vec) / (scale.vec.deviation or 1.0)
        gained += (1 - scale.meaning) * (fts - _or_zero(candidates.fts)) / (scale.fts.deviation or 1.0)
        shares[places] = gained[places]
    return shares


def _in_context(candidates: Candidates) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return both legs' scores, including the neighbours' share for candidates with context."""
    fts, vec = _or_zero(candidates.fts), candidates.vec.copy()
    places = np.searchsorted(candidates.ids, candidates.context.ids)
    fts[places], vec[places] = _or_zero(candidates.context.fts), candidates.context.vec
    vec[np.isnan(candidates.vec)] = np.nan
    return fts, _or_mean(vec)


def _or_mean(cosines: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return cosines, with their mean for missing ones: an unknown meaning neither raises nor lowers a score."""
    are_missing = np.isnan(cosines)
    return np.where(are_missing, cosines[~are_missing].mean(), cosines) if are_missing.any() else cosines


def best(candidates: Candidates, scores: NDArray[np.float64], limit: int) -> NDArray[np.int64]:
    """Return the indexes of the `limit` best candidates, best first; ties go to the older chunk."""
    return np.lexsort((candidates.ids, -scores))[:limit]


def placed(scores: NDArray[np.float64], limit: int) -> list[int | None]:
    """Return the rank of each score in a leg's list of `limit` entries, from 1; None if it is not in the list."""
    above = np.searchsorted(np.sort(-scores), -scores)
    return [
        place + 1 if place < limit and not missing else None
        for place, missing in zip(above.tolist(), np.isnan(scores).tolist(), strict=True)
    ]


def _z(scores: NDArray[np.float64], spread: Spread) -> NDArray[np.float64]:
    z: NDArray[np.float64] = scores - spread.mean
    z /= spread.deviation or 1.0
    return z


def _spread(scores: NDArray[np.float64]) -> Spread:
    """Return the mean and the standard deviation, faster than numpy's own function."""
    mean = float(scores.mean())
    z = scores - mean
    deviation = math.sqrt(np.vecdot(z, z) / z.size)
    if deviation < ROUNDING and scores.min() == scores.max():
        return Spread(float(scores[0]), 0.0)
    return Spread(mean, deviation)


def _or_zero(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(np.isnan(scores), 0.0, scores)


def or_none(score: float) -> float | None:
    """Return a score, or None if it is NaN."""
    return None if math.isnan(score) else score
