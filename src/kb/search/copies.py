"""Passages that say the same in several documents are one result: the best of them, with the places of the others."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from kb.search.fusion import Candidates

ALIKE: Final = 0.8
"""Which cosine the vectors of copies have at least: their titles may differ. Only such passages are compared."""

SAME_SHINGLES: Final = 0.85
"""Which share of their runs of three words near copies have in common (Broder's resemblance)."""

SHINGLE: Final = 3
SHORTEST: Final = 30
"""How many words a near copy has at least: where a word is another in a short note, the note says something else."""

AS_GOOD: Final = 0.03
"""By which share the full-text scores of near copies differ at most: else they differ in words of the query."""

WORD: Final = re.compile(r"\w+")


class Folded(NamedTuple):
    """Candidates without those that repeat another, and for each of these that repeat it, best first."""

    kept: list[int]
    copies: dict[int, list[int]]


def fold(
    candidates: Candidates,
    order: Sequence[int],
    vectors_of: Callable[[NDArray[np.int64]], NDArray[np.float32]],
    documents: Sequence[int],
    texts_of: Callable[[Sequence[int]], Sequence[str]],
) -> Folded:
    """Return candidates without copies in other documents.

    Args:
        candidates: what was found.
        order: the indexes of those to compare, best first.
        vectors_of: the vectors of chunks, by ascending id.
        documents: the document of each in the order.
        texts_of: the texts of chunks.
    """
    places = np.array(order, np.int64)
    ids = candidates.ids[places]
    by_id = np.argsort(ids)
    vectors = np.empty((ids.size, 0), np.float32)
    if ids.size:
        vectors = vectors_of(ids[by_id])[np.argsort(by_id)]
    owners = np.array(documents, np.int64)
    alike = (vectors @ vectors.T >= ALIKE) & (owners[:, None] != owners[None, :])
    involved = np.flatnonzero(np.triu(alike, 1).any(axis=0) | np.triu(alike, 1).any(axis=1))
    if not involved.size:
        return Folded([*order], {})
    texts = dict(zip(involved.tolist(), texts_of(ids[involved].tolist()), strict=True))
    compared = _Comparison(candidates, places, texts)
    kept, copies = list[int](), dict[int, list[int]]()
    for number in range(ids.size):
        original = next((each for each in kept if alike[number, each] and compared.is_copy(number, each)), None)
        if original is None:
            kept.append(number)
        else:
            copies.setdefault(order[original], []).append(order[number])
    return Folded([order[number] for number in kept], copies)


class _Comparison:
    """Compares passages by what they say, each read once."""

    def __init__(self, candidates: Candidates, places: NDArray[np.int64], texts: dict[int, str]) -> None:
        self._words = {number: WORD.findall(text.lower()) for number, text in texts.items()}
        self._shingles: dict[int, frozenset[int]] = {}
        typed = candidates.typed if candidates.typed is not None else np.zeros(candidates.ids.size)
        self._fts, self._typed = np.nan_to_num(candidates.fts[places]), typed[places]

    def is_copy(self, one: int, other: int) -> bool:
        """Return whether two passages say the same, or so nearly that the query cannot mean where they differ."""
        first, second = self._words[one], self._words[other]
        if first == second:
            return True
        if min(len(first), len(second)) < SHORTEST or self._typed[one] != self._typed[other]:
            return False
        best = max(self._fts[one], self._fts[other])
        if abs(self._fts[one] - self._fts[other]) > AS_GOOD * best:
            return False
        a, b = self._shingles_of(one), self._shingles_of(other)
        return len(a & b) >= SAME_SHINGLES * len(a | b)

    def _shingles_of(self, number: int) -> frozenset[int]:
        if number not in self._shingles:
            words = self._words[number]
            runs = (tuple(words[start : start + SHINGLE]) for start in range(len(words) - SHINGLE + 1))
            self._shingles[number] = frozenset(map(hash, runs))
        return self._shingles[number]
