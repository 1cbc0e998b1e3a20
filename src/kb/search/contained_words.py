"""The words of a query that each of some chunks contains."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kb.index.words.bm25 import inverse_document_frequency
from kb.index.words.matches import Occurrences
from kb.search.query import Query

ENOUGH: Final = 0.4
"""The share of a query's telling words, by weight, that the best chunk must contain for words to count in full."""

OccurrencesOf = Callable[[Sequence[str], NDArray[np.int64]], Sequence[Occurrences | None]]
"""Returns the occurrences of words in chunks; None for a word that only the database can search for."""


class ContainedWords(NamedTuple):
    """The words with a meaning of their own, shape (words,), and whether each chunk contains them.

    Args:
        ids: the chunks, ascending.
        are_there: whether a chunk contains a word in one of its forms, shape (words, chunks).
        weights: the weights of the words: rare ones weigh more.
        forms: the chunks that contain each form, as a mask.
    """

    ids: NDArray[np.int64]
    are_there: NDArray[np.bool_]
    weights: NDArray[np.float64]
    forms: dict[str, NDArray[np.bool_]]

    @property
    def best_share(self) -> float:
        """The share of the words in the chunk with most of them; rare words count more."""
        return float((self.weights @ self.are_there).max() / self.weights.sum())

    def among(self, ids: NDArray[np.int64]) -> ContainedWords | None:
        """Return the same for some of the chunks; None if another chunk is among them."""
        places = np.searchsorted(self.ids, ids).clip(max=self.ids.size - 1)
        if not np.array_equal(self.ids[places], ids):
            return None
        forms = {form: mask[places] for form, mask in self.forms.items()}
        return ContainedWords(ids, self.are_there[:, places], self.weights, forms)


def contained_words(
    query: Query,
    ids: NDArray[np.int64],
    occurrences_of: OccurrencesOf,
    scores_of: Callable[[Sequence[str], NDArray[np.int64]], NDArray[np.float64]],
) -> ContainedWords | None:
    """Return which words of a query the chunks with these ascending ids contain; None if it has none.

    `scores_of` scores chunks by words about which nothing else is known.
    """
    telling = query.telling
    if not telling or not ids.size:
        return None
    words = list(dict.fromkeys(form for group in telling for form in group.forms))
    occurrences = occurrences_of(words, ids)
    of = max((found.of for found in occurrences if found), default=1)
    forms, weights = dict[str, NDArray[np.bool_]](), dict[str, float]()
    for word, found in zip(words, occurrences, strict=True):
        forms[word] = found.counts > 0 if found else ~np.isnan(scores_of((word,), ids))
        weights[word] = inverse_document_frequency(found.frequency if found else 0, of)
    are_there = [_holding([forms[form] for form in group.forms], group.least) for group in telling]
    least_common = [min(weights[form] for form in group.forms) for group in telling]
    return ContainedWords(ids, np.array(are_there), np.array(least_common), forms)


def trust_in_words(contained: ContainedWords | None) -> float:
    """Return how much matches of words count, from 0 to 1: little if no chunk has a good part of the telling words.

    A question in another language than the documents shares only function words and chance matches with them.
    """
    if contained is None:
        return 1.0
    return min(1.0, contained.best_share / ENOUGH) ** 2


def _holding(forms: Sequence[NDArray[np.bool_]], least: float) -> NDArray[np.bool_]:
    """Return the chunks with more than a share of the forms."""
    return forms[0] if len(forms) == 1 else np.mean(forms, axis=0) > least
