"""Whether the best passages probably do not answer the query."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kb.search.contained_words import ContainedWords
from kb.search.passages import FoundPassage
from kb.search.query import Query
from kb.search.unknown_words import is_identifier

NEAR_ENOUGH = 0.55
"""The lowest cosine of a passage that answers a question in other words."""

ENOUGH_WORDS = 0.5
"""An answer contains more than this share of the words, each counted once or by its weight."""


def are_near(passages: Sequence[FoundPassage]) -> bool:
    """Whether a passage is similar enough to answer in other words."""
    return any((passage.vec_score or 0.0) >= NEAR_ENOUGH for passage in passages)


def are_wordless(query: Query, contained: ContainedWords) -> bool:
    """Whether no passage contains most of the query's words or one of its identifiers."""
    shares = contained.are_there.mean(axis=0)
    weighted = contained.weights @ contained.are_there / contained.weights.sum()
    if (np.maximum(shares, weighted) > ENOUGH_WORDS).any():
        return False
    identifiers = [form for unit in query.units if is_identifier(unit) for form in unit.forms]
    return not any(contained.forms[form].any() for form in identifiers if form in contained.forms)
