"""One list of what both legs found.

Pure functions, so that the same request over the same data always has the same answer (requirement S-6). The
fusion is the average of z-scores, both legs' exact scores filled in for every candidate; measured against
reciprocal rank fusion in docs/adr/0003.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kb.vectors.scores import NO_CONTEXT, Neighbourhood

ALPHA = 0.5
"""The vectors' share of the score; anything between 0.4 and 0.6 does about as well."""


TYPED = 6.0
"""What it adds to a score if all of a query stands in a passage as it was typed: more than anything else can."""

TYPED_POWER = 5.0
"""How much less it counts if only a part of the query does. Chosen with `RARE` on collections other than those it is
measured on; see docs/adr/0003.
"""

LONE_MATCH = 1.0
"""What words add to the score of candidates that nothing tells apart: no cosine is higher."""


ROUNDING = 1e-9
"""How far equal scores may seem to be from their mean."""


class Spread(NamedTuple):
    """What makes a leg's scores z-scores: their mean and their standard deviation, 0 if they are equal."""

    mean: float
    deviation: float


class Scale(NamedTuple):
    """What the scores of both legs are measured by."""

    fts: Spread
    vec: Spread


@dataclass(frozen=True, slots=True)
class Candidates:
    """The union of the two legs' best chunks, by ascending id, each with both scores; higher is better.

    A score is NaN where the leg did not run, and in `fts` also where no word of the query matched. Those in `context`
    are ranked by what they score together with their neighbours. `scale` is that of other candidates, for scores that
    can be compared with theirs; None for their own.
    """

    ids: NDArray[np.int64]
    fts: NDArray[np.float64]
    vec: NDArray[np.float64]
    context: Neighbourhood = NO_CONTEXT
    scale: Scale | None = None


class Fused(NamedTuple):
    """The score of each candidate, shape (n,), higher is better, and what it is made of.

    Args:
        scores: the scores.
        words: what the full-text leg adds; NaN if it did not run, or ran alone.
        meaning: likewise the vector leg.
        lent: how much of the score neighbours gave, or took; NaN for a candidate that stands alone.
        typed: what it adds that the query stands there as it was typed.
    """

    scores: NDArray[np.float64]
    words: NDArray[np.float64]
    meaning: NDArray[np.float64]
    lent: NDArray[np.float64]
    typed: NDArray[np.float64]

    def with_typed(self, shares: NDArray[np.float64]) -> Fused:
        """Return the same scores, and what it adds that candidates have these shares of the query as it was typed."""
        is_alone = np.isnan(self.words).all()
        typed = (float(self.scores.max(initial=0.0)) if is_alone else TYPED) * shares**TYPED_POWER
        return self._replace(scores=self.scores + typed, typed=typed)


@dataclass(frozen=True, slots=True)
class Ranking:
    """Candidates with their scores, computed once for all who ask for them.

    Args:
        candidates: the candidates.
        fused: their scores.
        order: their indexes, best first, but what was replaced behind what replaced it.
        limit: how long each leg's list is.
        successors: what replaced the documents, the nearest first.
    """

    candidates: Candidates
    fused: Fused
    order: NDArray[np.int64]
    limit: int
    successors: Mapping[int, Sequence[int]]


def fuse(candidates: Candidates) -> Fused:
    """Return the scores of candidates, without what it adds that the query stands there as it was typed.

    A leg's missing scores count as its lowest possible ones: no matching word is a BM25 of 0. If only one leg ran,
    its own scores stand.
    """
    nothing, typed = np.full(candidates.ids.size, np.nan), np.zeros(candidates.ids.size)
    if (alone := _leg_alone(candidates)) is not None:
        return Fused(alone, nothing, nothing, nothing, typed)
    fts, vec = _in_context(candidates)
    scale = candidates.scale or _scale(fts, vec)
    words, meaning = (1 - ALPHA) * _z(fts, scale.fts), ALPHA * _z(vec, scale.vec)
    return Fused(meaning + words, words, meaning, _lent(candidates, fts, vec, scale), typed)


def measure_scale(candidates: Candidates) -> Scale | None:
    """Return what the scores of candidates are measured by; None if only one leg ran."""
    if _leg_alone(candidates) is not None:
        return None
    return candidates.scale or _scale(*_in_context(candidates))


def _leg_alone(candidates: Candidates) -> NDArray[np.float64] | None:
    """Return the scores of the leg that ran if only one did."""
    if np.isnan(candidates.vec).all():
        return _or_zero(candidates.fts)
    return candidates.vec if np.isnan(candidates.fts).all() else None


def _scale(fts: NDArray[np.float64], vec: NDArray[np.float64]) -> Scale:
    """Return the mean and the deviation of both legs.

    Where nothing tells candidates apart, as there is but one, the cosine stands, and a match of words adds as much as
    no cosine exceeds: it shows no less than what is only near.
    """
    words, meaning = _spread(fts), _spread(vec)
    if words.deviation or meaning.deviation:
        return Scale(words, meaning)
    return Scale(Spread(words.mean - LONE_MATCH, 1 - ALPHA), Spread(0.0, ALPHA))


def _lent(
    candidates: Candidates, fts: NDArray[np.float64], vec: NDArray[np.float64], scale: Scale
) -> NDArray[np.float64]:
    """Return how much neighbours changed each score, from the scores with them; NaN where there are none."""
    shares = np.full(candidates.ids.size, np.nan)
    if candidates.context.ids.size:
        places = np.searchsorted(candidates.ids, candidates.context.ids)
        gained = ALPHA * (vec - candidates.vec) / (scale.vec.deviation or 1.0)
        gained += (1 - ALPHA) * (fts - _or_zero(candidates.fts)) / (scale.fts.deviation or 1.0)
        shares[places] = gained[places]
    return shares


def _in_context(candidates: Candidates) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return both legs' scores, those together with neighbours where there are any."""
    fts, vec = _or_zero(candidates.fts), candidates.vec.copy()
    places = np.searchsorted(candidates.ids, candidates.context.ids)
    fts[places], vec[places] = _or_zero(candidates.context.fts), candidates.context.vec
    return fts, vec


def best(candidates: Candidates, scores: NDArray[np.float64], limit: int) -> NDArray[np.int64]:
    """Return the indexes of the `limit` best candidates, best first; ties go to the older chunk."""
    return np.lexsort((candidates.ids, -scores))[:limit]


def placed(scores: NDArray[np.float64], limit: int) -> list[int | None]:
    """Return the place of each score in a leg's list of so many, from 1; None for one that is not in it."""
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
    """Return the mean and the standard deviation, in less time than numpy's own takes."""
    mean = float(scores.mean())
    z = scores - mean
    deviation = math.sqrt(np.vecdot(z, z) / z.size)
    if deviation < ROUNDING and scores.min() == scores.max():
        return Spread(float(scores[0]), 0.0)
    return Spread(mean, deviation)


def _or_zero(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(np.isnan(scores), 0.0, scores)


def or_none(score: float) -> float | None:
    """Return a score, or None for one that there is not."""
    return None if math.isnan(score) else score
