"""The words of a query that each of some chunks contains."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kb.lexical.bm25 import inverse_document_frequency
from kb.search.query import Query
from kb.store.protocol import Selection


class ContainedWords(NamedTuple):
    """The words with a meaning of their own, shape (words,), and whether each chunk contains them.

    Args:
        are_there: whether a chunk contains a word in one of its forms, shape (words, chunks).
        weights: the weights of the words: rare ones weigh more.
        forms: the chunks that contain each form, as a mask.
    """

    are_there: NDArray[np.bool_]
    weights: NDArray[np.float64]
    forms: dict[str, NDArray[np.bool_]]


def contained_words(query: Query, ids: NDArray[np.int64], selection: Selection) -> ContainedWords | None:
    """Return which words of a query the chunks with these ascending ids contain; None if it has none."""
    telling = query.telling
    if not telling or not ids.size:
        return None
    words = list(dict.fromkeys(form for group in telling for form in group.forms))
    occurrences = selection.occurrences(words, ids)
    of = max((found.of for found in occurrences if found), default=1)
    forms, weights = dict[str, NDArray[np.bool_]](), dict[str, float]()
    for word, found in zip(words, occurrences, strict=True):
        forms[word] = found.counts > 0 if found else ~np.isnan(selection.full_text_scores((word,), ids))
        weights[word] = inverse_document_frequency(found.frequency if found else 0, of)
    are_there = [np.mean([forms[form] for form in group.forms], axis=0) > group.least for group in telling]
    least_common = [min(weights[form] for form in group.forms) for group in telling]
    return ContainedWords(np.array(are_there), np.array(least_common), forms)
