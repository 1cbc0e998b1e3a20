"""Measures of a ranking, computed as in trec_eval, with confidence intervals."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

NDCG_DEPTH: Final = 10
RECALL_DEPTH: Final = 100
RESAMPLES: Final = 1000
CONFIDENCE: Final = 0.95


@dataclass(frozen=True, slots=True)
class Measures:
    """The measures of one ranking.

    Args:
        ndcg: nDCG@10.
        recall: recall@100.
        mrr: MRR@10.
    """

    ndcg: float
    recall: float
    mrr: float

    @classmethod
    def of(cls, ranked: Sequence[int], relevant_grades: Sequence[int]) -> Measures:
        """Return the measures of a ranking.

        Args:
            ranked: the grade of each result, best result first.
            relevant_grades: the grades of all relevant documents.
        """
        ideal = _gain(sorted(relevant_grades, reverse=True))
        first = next((place for place, grade in enumerate(ranked[:NDCG_DEPTH], 1) if grade > 0), None)
        relevant = sum(grade > 0 for grade in relevant_grades)
        return cls(
            _gain(ranked) / ideal if ideal else 0.0,
            sum(grade > 0 for grade in ranked[:RECALL_DEPTH]) / relevant if relevant else 0.0,
            1 / first if first else 0.0,
        )


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean with its confidence interval."""

    value: float
    low: float
    high: float


def mean(values: Sequence[float]) -> Mean:
    """Return the mean of values and its 95% bootstrap interval; the same values always give the same interval."""
    draws = random.Random(0)  # noqa: S311 - not for secrets
    means = sorted(fmean(draws.choices(values, k=len(values))) for _ in range(RESAMPLES))
    cut = round(RESAMPLES * (1 - CONFIDENCE) / 2)
    return Mean(fmean(values), means[cut], means[-cut - 1])


def _gain(grades: Sequence[int]) -> float:
    return sum(max(grade, 0) / math.log2(place + 1) for place, grade in enumerate(grades[:NDCG_DEPTH], 1))
