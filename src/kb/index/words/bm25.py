"""BM25 as FTS5 computes it, to the last bit."""

from __future__ import annotations

import math

K1 = 1.2
B = 0.75
"""BM25's parameters, fixed in FTS5."""


LEAST_IDF = 1e-6
"""The inverse document frequency of a word in more than half of all chunks."""

CONTEXT_B = 0.5
"""The weight of length for a text with its neighbours: lower than `B`, because this length says less about the text."""


def inverse_document_frequency(frequency: int, count: int) -> float:
    """Return the weight of a word that is in `frequency` of `count` chunks."""
    idf = math.log((count - frequency + 0.5) / (frequency + 0.5)) if count else 0.0
    return idf if idf > 0 else LEAST_IDF
