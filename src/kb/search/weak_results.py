"""Whether the best passages probably do not answer the query."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kb.lexical.bm25 import inverse_document_frequency
from kb.search.passages import FoundPassage
from kb.search.query import Query
from kb.search.unknown_words import is_identifier
from kb.store.protocol import Selection

NEAR_ENOUGH = 0.55
"""The lowest cosine of a passage that answers a question in other words."""

ENOUGH_WORDS = 0.5
"""An answer contains more than this share of the words, each counted once or by its weight."""


def are_weak(passages: Sequence[FoundPassage], query: Query, selection: Selection) -> bool:
    """Whether no passage contains most of the query's words or one of its identifiers, or is similar enough."""
    telling = query.telling
    if not (passages and telling) or any((passage.vec_score or 0.0) >= NEAR_ENOUGH for passage in passages):
        return False
    ids = np.array(sorted(passage.chunk_id for passage in passages), np.int64)
    words = list(dict.fromkeys(form for group in telling for form in group.forms))
    present_in, weights = _words(words, ids, selection)
    shares = np.array([np.mean([present_in[form] for form in group.forms], axis=0) > group.least for group in telling])
    least_common = np.array([min(weights[form] for form in group.forms) for group in telling])
    counted = np.maximum(shares.mean(axis=0), least_common @ shares / least_common.sum())
    return not bool((counted > ENOUGH_WORDS).any() or _has_identifier(query, present_in))


def _words(
    words: Sequence[str], ids: NDArray[np.int64], selection: Selection
) -> tuple[dict[str, NDArray[np.bool_]], dict[str, float]]:
    """Return, for each word, a mask of the chunks that contain it, and its weight."""
    occurrences = selection.occurrences(words, ids)
    of = max((found.of for found in occurrences if found), default=1)
    present_in, weights = dict[str, NDArray[np.bool_]](), dict[str, float]()
    for word, found in zip(words, occurrences, strict=True):
        present_in[word] = found.counts > 0 if found else ~np.isnan(selection.full_text_scores((word,), ids))
        weights[word] = inverse_document_frequency(found.frequency if found else 0, of)
    return present_in, weights


def _has_identifier(query: Query, present_in: dict[str, NDArray[np.bool_]]) -> bool:
    forms = [form for unit in query.units if is_identifier(unit) for form in unit.forms]
    return any(present_in[form].any() for form in forms if form in present_in)
