"""Passages with the same text in several documents become one result: the best, with the places of the others."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kb.index.words.segmentation import LETTER_MARKS
from kb.search.fusion import Ranking

ALIKE: Final = 0.8
"""The lowest cosine of copies, whose titles may differ. Only passages above it are compared."""

SAME_SHINGLES: Final = 0.85
"""The minimum share of three-word runs that near copies have in common (Broder's resemblance)."""

SHINGLE: Final = 3
SHORTEST: Final = 30
"""The minimum number of words of a near copy: in a short note, a single different word changes the meaning."""

AS_GOOD: Final = 0.03
"""The largest relative difference of near copies' full-text scores; above it, they differ in words of the query."""

WORD: Final = re.compile(rf"[\w{LETTER_MARKS}]+")

BLOCK: Final = 500
"""The number of candidates that are read at once."""

COUNTED: Final = 1000
"""The number of best candidates in which copies are still counted after enough results are found."""


class Deduplicated(NamedTuple):
    """The best candidates without copies of better ones, and the copies of each, best first."""

    kept: list[int]
    copies: dict[int, list[int]]


def deduplicate(
    ranking: Ranking,
    order: Sequence[int],
    top: int,
    vectors_of: Callable[[NDArray[np.int64]], NDArray[np.float32]],
    documents: Sequence[int],
    texts_of: Callable[[Sequence[int]], Sequence[str]],
) -> Deduplicated:
    """Return the `top` best candidates without copies in other documents.

    Each candidate is compared only with the candidates kept so far.

    Args:
        ranking: the candidates with their scores.
        order: the indexes of the candidates to compare, best first.
        top: the maximum number of candidates to keep.
        vectors_of: returns the vectors of chunks, by ascending id.
        documents: the document of each candidate in `order`.
        texts_of: returns the texts of chunks.
    """
    leaders, copies = list[int](), dict[int, list[int]]()
    comparison = _Comparison(ranking, order, documents, vectors_of, texts_of)
    for start in range(0, len(order), BLOCK):
        if len(leaders) >= top and start >= COUNTED:
            break
        block = range(start, min(start + BLOCK, len(order)))
        comparison.read(block, leaders, is_full=len(leaders) >= top)
        for number in block:
            alike = comparison.alike.get(number, ())
            repeated = (leader for leader in leaders if leader in alike and comparison.is_copy(number, leader))
            original = next(repeated, None)
            if original is not None:
                copies.setdefault(order[original], []).append(order[number])
            elif len(leaders) < top:
                leaders.append(number)
    return Deduplicated([order[number] for number in leaders], copies)


class _Comparison:
    """Compares candidates by their numbers in the order. A text is read only once, if another may be like it.

    `alike` has, for each candidate of the block read last, the earlier ones of other documents with a similar vector.
    """

    def __init__(
        self,
        ranking: Ranking,
        order: Sequence[int],
        documents: Sequence[int],
        vectors_of: Callable[[NDArray[np.int64]], NDArray[np.float32]],
        texts_of: Callable[[Sequence[int]], Sequence[str]],
    ) -> None:
        places = np.array(order, np.int64)
        self._ids = ranking.candidates.ids[places]
        self._owners = np.array(documents, np.int64)
        self._vectors_of, self._texts_of = vectors_of, texts_of
        self._vectors: dict[int, NDArray[np.float32]] = {}
        self.alike: dict[int, set[int]] = {}
        self._texts: dict[int, str] = {}
        self._words: dict[int, list[str]] = {}
        self._shingles: dict[int, frozenset[int]] = {}
        self._fts, self._typed = np.nan_to_num(ranking.candidates.fts[places]), ranking.fused.typed[places]

    def read(self, block: range, leaders: Sequence[int], *, is_full: bool) -> None:
        """Read the next candidates. Unless `is_full`, they may be kept, and are also compared with each other."""
        ids = self._ids[block.start : block.stop]
        by_id = np.argsort(ids)
        vectors = self._vectors_of(ids[by_id])[np.argsort(by_id)]
        self._vectors = {leader: self._vectors[leader] for leader in leaders} | dict(zip(block, vectors, strict=True))
        others = np.array([*leaders] if is_full else [*leaders, *block], np.int64)
        compared = np.array([self._vectors[other] for other in others.tolist()])
        numbers = np.arange(block.start, block.stop)
        is_alike = (vectors @ compared.reshape(-1, vectors.shape[1]).T >= ALIKE) & (others[None, :] < numbers[:, None])
        is_alike &= self._owners[numbers][:, None] != self._owners[others][None, :]
        self.alike = {}
        for row, column in zip(*map(np.ndarray.tolist, is_alike.nonzero()), strict=True):
            self.alike.setdefault(block.start + row, set()).add(others.item(column))
        involved = {member for number, alike in self.alike.items() for member in (number, *alike)}
        if missing := sorted(involved.difference(self._texts)):
            texts = self._texts_of(self._ids[missing].tolist())
            self._texts |= {number: " ".join(text.split()) for number, text in zip(missing, texts, strict=True)}

    def is_copy(self, one: int, other: int) -> bool:
        """Whether two passages have the same text, or differ too little to matter to the query."""
        if self._texts[one] == self._texts[other]:
            return True
        if self._typed[one] != self._typed[other]:
            return False
        best = max(self._fts[one], self._fts[other])
        if abs(self._fts[one] - self._fts[other]) > AS_GOOD * best:
            return False
        if min(len(self._words_of(one)), len(self._words_of(other))) < SHORTEST:
            return False
        a, b = self._shingles_of(one), self._shingles_of(other)
        return len(a & b) >= SAME_SHINGLES * len(a | b)

    def _words_of(self, number: int) -> list[str]:
        if number not in self._words:
            self._words[number] = WORD.findall(self._texts[number].lower())
        return self._words[number]

    def _shingles_of(self, number: int) -> frozenset[int]:
        if number not in self._shingles:
            self._shingles[number] = shingles(self._words_of(number))
        return self._shingles[number]


def shingles(words: Sequence[str]) -> frozenset[int]:
    """Return the hashes of the runs of words."""
    runs = (tuple(words[start : start + SHINGLE]) for start in range(len(words) - SHINGLE + 1))
    return frozenset(map(hash, runs))
