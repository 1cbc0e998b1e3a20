"""Whether the best passages probably do not answer the query."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kb.search.passages import FoundPassage
from kb.search.query import Query
from kb.store.protocol import Selection

NEAR_ENOUGH = 0.55
"""The lowest cosine of a passage that answers a question in other words."""


def are_weak(passages: Sequence[FoundPassage], query: Query, selection: Selection) -> bool:
    """Whether each passage contains at most half of the query's words and is less similar than an answer would be."""
    telling = query.telling
    if not (passages and telling) or any((passage.vec_score or 0.0) >= NEAR_ENOUGH for passage in passages):
        return False
    ids = np.array(sorted(passage.chunk_id for passage in passages), np.int64)
    words = list(dict.fromkeys(form for group in telling for form in group.forms))
    present_in = {
        word: ~np.isnan(selection.full_text_scores((word,), ids)) if occurrences is None else occurrences.counts > 0
        for word, occurrences in zip(words, selection.occurrences(words, ids), strict=True)
    }
    shares = [np.mean([present_in[form] for form in group.forms], axis=0) > group.least for group in telling]
    return not bool((2 * np.sum(shares, axis=0) > len(shares)).any())
