"""The chunks that have any of some words, with their scores by BM25."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kb.lexical.bm25 import CONTEXT_B, K1, B, inverse_document_frequency
from kb.lexical.postings import Postings
from kb.lexical.snapshot import Admitted, Key, LexicalSnapshot

SLACK = 1e-5
"""How far single precision may be off, relatively: what is so near to the limit is scored in double precision too."""


LOOKUP = 4
"""Looking a row up in a word's postings costs about as much as adding up so many of them."""


@dataclass(frozen=True, slots=True, eq=False)
class Occurrences:
    """How much a word counts, and how often it stands in each of some chunks, twice in a header.

    Args:
        idf: how much it counts.
        counts: how often it stands in each.
        frequency: in how many of all chunks it stands.
        of: how many chunks there are.
    """

    idf: float
    counts: NDArray[np.float64]
    frequency: int
    of: int


class Matches:
    """The chunks of a snapshot that have any of some words; one that is given twice counts twice, as in FTS5.

    Args:
        snapshot: the chunks.
        words: each word with its postings in that snapshot.
    """

    def __init__(self, snapshot: LexicalSnapshot, words: Sequence[tuple[Key, Postings]]) -> None:
        self._snapshot = snapshot
        standing = [(key, postings) for key, postings in words if postings.size]
        self._frequencies = [self._frequency(key, postings) for key, postings in standing]
        idfs = (inverse_document_frequency(frequency, snapshot.count) for frequency in self._frequencies)
        self._words = [(idf, postings) for idf, (_, postings) in zip(idfs, standing, strict=True)]

    def best(self, limit: int, admitted: Admitted | None) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return rows, ascending, with their scores: the `limit` best are among them."""
        if not self._words or not self._snapshot.count:
            return np.empty(0, np.int32), np.empty(0)
        work = sum(postings.size for _, postings in self._words)
        if admitted is not None and admitted.rows.size * LOOKUP * len(self._words) < work:
            rows = admitted.rows
        else:
            rows = self._candidates(limit, admitted)
        scores = self.scores(rows)
        matched = ~np.isnan(scores)
        return rows[matched], scores[matched]

    def scores(self, rows: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return the scores of these rows, which are not of deleted chunks; NaN where none of the words stands."""
        if not self._words or not rows.size:
            return np.full(rows.size, np.nan)
        norms = K1 * (1 - B + B * self._snapshot.lengths[rows].astype(np.float64) / self._snapshot.mean_length)
        return self._added(norms, lambda postings: postings.counts_of(rows))

    def occurrences(self, rows: NDArray[np.int32]) -> Occurrences | None:
        """Return those of the word in these rows; None unless it is one."""
        if len(self._words) != 1:
            return None
        [(idf, postings)], [frequency] = self._words, self._frequencies
        return Occurrences(idf, postings.counts_of(rows), frequency, self._snapshot.count)

    def in_context(
        self, rows: NDArray[np.int32], places: NDArray[np.intp], weights: NDArray[np.floating[Any]]
    ) -> NDArray[np.float64]:
        """Return the score of each group of rows as one text; NaN where none of the words stands.

        Args:
            rows: those in groups, each once, ascending; a negative one is no row.
            places: shape (n, m), where each of a group is among the rows.
            weights: shape (m,), what an occurrence counts for in each.
        """
        is_there = rows >= 0
        sums = np.where(is_there, self._snapshot.lengths[rows], 0)[places].sum(axis=1)
        lengths = sums / is_there[places].sum(axis=1)
        norms = K1 * (1 - CONTEXT_B + CONTEXT_B * lengths / self._snapshot.mean_length)
        return self._added(norms, lambda postings: postings.counts_of(rows)[places] @ weights)

    def _added(
        self, norms: NDArray[np.float64], counts_of: Callable[[Postings], NDArray[np.floating[Any]]]
    ) -> NDArray[np.float64]:
        """Return what the words add up to; NaN where none of them stands."""
        scores, matched = np.zeros(norms.size), np.zeros(norms.size, np.bool_)
        for idf, postings in self._words:  # in the order of FTS5's operations: another one would round otherwise
            counts = counts_of(postings)
            scores += idf * (counts * (K1 + 1) / (counts + norms))
            matched |= counts > 0
        scores[~matched] = np.nan
        return scores

    def _frequency(self, key: Key, postings: Postings) -> int:
        frequencies = self._snapshot.frequencies
        if (frequency := frequencies.get(key)) is None:
            frequency = self._snapshot.alive(postings.rows)
            if self._snapshot.dead.size:  # else there was nothing to count
                frequencies[key] = frequency
        return frequency

    def _candidates(self, limit: int, admitted: Admitted | None) -> NDArray[np.int32]:
        """Return the rows that may be among the `limit` best, ascending."""
        size = self._snapshot.size
        # Of so many rows each the best is compared first: then the groups and the rows of the best of them are few. A
        # group's rows are far apart, for numpy finds the highest of each column several times as fast as of each row.
        height = max(1, math.isqrt(size // limit))
        width = -(-size // height)
        sums = self._summed(height * width)
        if admitted is not None:
            sums[:size] *= admitted.mask
        groups = sums.reshape(height, width)
        highest = groups.max(axis=0)
        near = np.flatnonzero(highest >= _bound(highest, limit))
        scores = groups[:, near]
        lines, columns = np.nonzero((scores > 0) & (scores >= _bound(scores.ravel(), limit)))
        return (lines * width + near[columns]).astype(np.int32)

    def _summed(self, size: int) -> NDArray[np.float32]:
        """Return every row's score in single precision, and zeros behind them."""
        sums = np.zeros(size, np.float32)
        for idf, postings in self._words:
            counts = postings.counts.astype(np.float32)
            norms = self._snapshot.norms.take(postings.rows)
            norms += counts
            counts *= np.float32(idf * (K1 + 1))
            counts /= norms
            np.add.at(sums, postings.rows, counts)
        return sums


def term_frequencies(
    snapshot: LexicalSnapshot, rows: NDArray[np.int32], scores: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return how often a word stands in the rows that have it, which score so for it alone: BM25, solved for that."""
    if not rows.size:  # nor may there be any chunk
        return np.empty(0, np.int64)
    lengths = snapshot.lengths[rows]
    norms = K1 * (1 - B + B * lengths / snapshot.mean_length)
    shares = scores / (inverse_document_frequency(rows.size, snapshot.count) * (K1 + 1))
    counts: NDArray[np.int64] = np.rint(norms * shares / (1 - shares)).astype(np.int64)
    return counts


def _bound(scores: NDArray[np.float32], limit: int) -> float:
    """Return what each of the `limit` best reaches."""
    if scores.size <= limit:
        return 0.0
    return float(np.partition(scores, -limit)[-limit]) * (1 - SLACK)
