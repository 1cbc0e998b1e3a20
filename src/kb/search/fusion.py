"""One list of what both legs found.

Pure functions, so that the same request over the same data always has the same answer (requirement S-6). The
fusion is the average of z-scores, both legs' exact scores filled in for every candidate; measured against
reciprocal rank fusion in docs/adr/0003.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kb.vectors.scores import NO_CONTEXT, Context

if TYPE_CHECKING:
    from numpy.typing import NDArray

ALPHA = 0.5
"""The vectors' share of the score; anything between 0.4 and 0.6 does about as well."""


@dataclass(frozen=True)
class Candidates:
    """The union of the two legs' best chunks, by ascending id, each with both scores; higher is better.

    A score is NaN where the leg did not run, and in `fts` also where no word of the query matched. Those in `context`
    are ranked by what they score together with their neighbours.
    """

    ids: NDArray[np.int64]
    fts: NDArray[np.float64]
    vec: NDArray[np.float64]
    context: Context = NO_CONTEXT

    @cached_property
    def in_context(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Both legs' scores, those together with neighbours where there are any."""
        fts, vec = np.nan_to_num(self.fts), self.vec.copy()
        places = np.searchsorted(self.ids, self.context.ids)
        fts[places], vec[places] = np.nan_to_num(self.context.fts), self.context.vec
        return fts, vec


class Ranked(NamedTuple):
    """A candidate in its place; a leg's score is None where it has none."""

    chunk_id: int
    score: float
    fts_score: float | None
    vec_score: float | None
    context_score: float | None


def rank(candidates: Candidates, limit: int) -> list[Ranked]:
    """Return the `limit` best candidates, best first."""
    scores = fuse(candidates)
    return ranked(candidates, scores, best(candidates, scores, limit))


def ranked(candidates: Candidates, scores: NDArray[np.float64], order: NDArray[np.int64]) -> list[Ranked]:
    """Return the candidates with these indexes."""
    columns = (candidates.ids, scores, candidates.fts, candidates.vec, lent(candidates))
    rows = zip(*(column[order].tolist() for column in columns), strict=True)
    return [Ranked(chunk_id, score, *map(_or_none, others)) for chunk_id, score, *others in rows]


def fuse(candidates: Candidates) -> NDArray[np.float64]:
    """Return one score for each candidate, shape (n,), higher is better.

    A leg's missing scores count as its lowest possible ones: no matching word is a BM25 of 0. If only one leg ran,
    its own scores stand.
    """
    if np.isnan(candidates.vec).all():
        return candidates.fts
    if np.isnan(candidates.fts).all():
        return candidates.vec
    fts, vec = candidates.in_context
    return ALPHA * _z(vec) + (1 - ALPHA) * _z(fts)


def lent(candidates: Candidates) -> NDArray[np.float64]:
    """Return how much of each candidate's score its neighbours gave it, or took; NaN where it stands alone."""
    shares = np.full(candidates.ids.size, np.nan)
    if candidates.context.ids.size:
        fts, vec = candidates.in_context
        places = np.searchsorted(candidates.ids, candidates.context.ids)
        gained = ALPHA * (vec - candidates.vec) / (vec.std() or 1.0)
        gained += (1 - ALPHA) * (fts - np.nan_to_num(candidates.fts)) / (fts.std() or 1.0)
        shares[places] = gained[places]
    return shares


def best(candidates: Candidates, scores: NDArray[np.float64], limit: int) -> NDArray[np.int64]:
    """Return the indexes of the `limit` best candidates, best first; ties go to the older chunk."""
    return np.lexsort((candidates.ids, -scores))[:limit]


def _z(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    z: NDArray[np.float64] = (scores - scores.mean()) / (scores.std() or 1.0)
    return z


def _or_none(score: float) -> float | None:
    return None if math.isnan(score) else score
