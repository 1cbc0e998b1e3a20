"""BM25 as FTS5 computes it, to the last bit."""

from __future__ import annotations

import math

K1 = 1.2
B = 0.75
"""BM25's parameters, which are fixed in FTS5."""


LEAST_IDF = 1e-6
"""That of a word which stands in more than half of all chunks."""

CONTEXT_B = 0.5
"""How much length counts of a text together with its neighbours: less than its own, for it says less about it."""


def inverse_document_frequency(frequency: int, count: int) -> float:
    """Return how much a word counts that stands in so many of all chunks."""
    idf = math.log((count - frequency + 0.5) / (frequency + 0.5)) if count else 0.0
    return idf if idf > 0 else LEAST_IDF
