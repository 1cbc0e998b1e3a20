"""Notes that say nearly the same as a new one."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kb.api.models import NOTE, Alike
from kb.formats.readers.front_matter import fact_of
from kb.store.protocol import Index, Transaction
from kb.store.rows import Content, Filter, Hit

MOST_ALIKE: Final = 3
LOOKED_AT: Final = 10
"""How many passages are compared from each of the searches by words and by vectors."""

MOST_WORDS: Final = 64
"""How many words of a note the search by words looks for."""

SHOWN: Final = 120
"""How many characters of an alike note an answer shows."""

NEAR: Final = 0.85
"""The least cosine of notes that are alike by vectors."""

SHARED: Final = 0.6
"""The least share of common words, of all words of both, of notes that are alike by words."""


def find_alike(
    tx: Transaction, content: Content, *, has_vectors: bool, besides: Collection[int | None] = ()
) -> list[Alike]:
    """Return the notes nearly as a new one, the nearest first; without vectors, only by their words.

    Notes that others replace are left out, and so are those in `besides`.
    """
    index = tx.index
    text = fact_of("".join(chunk.text for chunk in content.chunks))
    vector = _mean(content.vectors) if has_vectors else None
    found = _candidates(index, text, vector)
    cosines = np.zeros(found.size) if vector is None else index.select(Filter()).cosines(vector, found)
    words = set(index.analyzer.indexed(text))
    best = dict[int, tuple[float, Hit]]()
    for hit, cosine in zip(index.hits(found.tolist()), cosines.tolist(), strict=True):
        nearness = max(cosine / NEAR, _overlap(words, set(index.analyzer.indexed(fact_of(hit.text)))) / SHARED)
        if nearness >= max(1.0, best.get(hit.document_id, (0.0, hit))[0]) and hit.document_id not in besides:
            best[hit.document_id] = nearness, hit
    replaced = tx.documents.successors(best)
    ranked = sorted(best.items(), key=lambda item: (-item[1][0], item[0]))
    notes = [hit for document_id, (_, hit) in ranked if document_id not in replaced]
    return [Alike(document_id=hit.document_id, title=hit.title, text=_shown(hit.text)) for hit in notes[:MOST_ALIKE]]


def _candidates(index: Index, text: str, vector: NDArray[np.float32] | None) -> NDArray[np.int64]:
    """Return the passages of notes that may be alike, by ascending id."""
    notes = index.select(Filter(doc_type=NOTE))
    found = notes.full_text(list(_words(index, text)), LOOKED_AT).ids
    return found if vector is None else np.union1d(found, notes.nearest(vector, LOOKED_AT).ids)


def _words(index: Index, text: str) -> Iterator[str]:
    words = dict.fromkeys(text[start:end].lower() for start, end, _ in index.analyzer.stems(text))
    yield from list(words)[:MOST_WORDS]


def _overlap(one: set[str], other: set[str]) -> float:
    return len(one & other) / max(len(one | other), 1)


def _mean(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    total: NDArray[np.float32] = vectors.sum(axis=0)
    return total / np.float32(max(float(np.linalg.norm(total)), float(np.finfo(np.float32).tiny)))


def _shown(text: str) -> str:
    return " ".join(fact_of(text).split())[:SHOWN]
