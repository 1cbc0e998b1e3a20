"""The chunks that contain any of some words, with their BM25 scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kb.index.words.bm25 import CONTEXT_B, K1, B, inverse_document_frequency
from kb.index.words.postings import Postings
from kb.index.words.snapshot import Admitted, Key, LexicalSnapshot

SLACK = 1e-5
"""The relative error of single precision: rows this close to the limit are also scored in double precision."""


LOOKUP = 4
"""The cost of finding a row in a word's postings, relative to adding one row's score."""

SPARSE = 16
"""A query whose words are in fewer than one of so many rows is scored at these rows alone, without a score per row."""


@dataclass(frozen=True, slots=True, eq=False)
class Occurrences:
    """The weight of a word, and its number of occurrences in each chunk; those in a header count twice.

    Args:
        idf: the weight.
        counts: the number of occurrences in each chunk.
        frequency: the number of chunks with the word.
        of: the number of all chunks.
    """

    idf: float
    counts: NDArray[np.float64]
    frequency: int
    of: int


class Matches:
    """The chunks of a snapshot that contain any of some words. As in FTS5, a repeated word counts twice.

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
        """Return rows, ascending, with their scores; the `limit` best are among them."""
        if not self._words or not self._snapshot.count:
            return np.empty(0, np.int32), np.empty(0)
        work = sum(postings.size for _, postings in self._words)
        if admitted is not None and admitted.rows.size * LOOKUP * len(self._words) < work:
            rows = admitted.rows
        elif work * SPARSE < self._snapshot.size:
            rows = self._rows(admitted)
        else:
            rows = self._candidates(limit, admitted)
        scores = self.scores(rows)
        matched = ~np.isnan(scores)
        return rows[matched], scores[matched]

    def scores(self, rows: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return the scores of these rows, whose chunks are not deleted; NaN for rows without any of the words."""
        if not self._words or not rows.size:
            return np.full(rows.size, np.nan)
        norms = K1 * (1 - B + B * self._snapshot.lengths[rows].astype(np.float64) / self._snapshot.mean_length)
        return self._added(norms, lambda postings: postings.counts_of(rows))

    def occurrences(self, rows: NDArray[np.int32]) -> Occurrences | None:
        """Return the occurrences of the only word in these rows; None if several words match, or none does."""
        if len(self._words) != 1:
            return None
        [(idf, postings)], [frequency] = self._words, self._frequencies
        return Occurrences(idf, postings.counts_of(rows), frequency, self._snapshot.count)

    def in_context(
        self, rows: NDArray[np.int32], places: NDArray[np.intp], weights: NDArray[np.floating[Any]]
    ) -> NDArray[np.float64]:
        """Return the score of each group of rows as one text; NaN for groups without any of the words.

        Args:
            rows: the rows of all groups, each once, ascending; a negative number is an empty place.
            places: shape (n, m), the places of each group's rows in `rows`.
            weights: shape (m,), the weight of an occurrence in each row of a group.
        """
        is_there = rows >= 0
        sums = np.where(is_there, self._snapshot.lengths[rows], 0)[places].sum(axis=1)
        lengths = sums / is_there[places].sum(axis=1)
        norms = K1 * (1 - CONTEXT_B + CONTEXT_B * lengths / self._snapshot.mean_length)
        return self._added(norms, lambda postings: postings.counts_of(rows)[places] @ weights)

    def _added(
        self, norms: NDArray[np.float64], counts_of: Callable[[Postings], NDArray[np.floating[Any]]]
    ) -> NDArray[np.float64]:
        """Return the sum of the words' scores; NaN without any of the words."""
        scores, matched = np.zeros(norms.size), np.zeros(norms.size, np.bool_)
        for idf, postings in self._words:  # in the order of FTS5's operations: another order would round differently
            counts = counts_of(postings)
            scores += idf * (counts * (K1 + 1) / (counts + norms))
            matched |= counts > 0
        scores[~matched] = np.nan
        return scores

    def _frequency(self, key: Key, postings: Postings) -> int:
        frequencies = self._snapshot.frequencies
        if (frequency := frequencies.get(key)) is None:
            frequency = self._snapshot.alive(postings.rows)
            if self._snapshot.dead.size:  # otherwise nothing was counted
                frequencies[key] = frequency
        return frequency

    def _rows(self, admitted: Admitted | None) -> NDArray[np.int32]:
        """Return the rows with any of the words, ascending."""
        rows: NDArray[np.int32] = np.unique(np.concatenate([postings.rows for _, postings in self._words]))
        if admitted is not None:
            return rows[admitted.mask[rows]]
        return rows[~np.isin(rows, self._snapshot.dead)] if self._snapshot.dead.size else rows

    def _candidates(self, limit: int, admitted: Admitted | None) -> NDArray[np.int32]:
        """Return the rows that may be among the `limit` best, ascending."""
        size = self._snapshot.size
        # The best row of each group is compared first, so that few groups and few of their rows remain. The rows of a
        # group are far apart, because numpy finds the maximum of each column several times as fast as of each row.
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
        """Return every row's score in single precision, padded with zeros."""
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
    """Return a word's count in each of the rows that contain it, from their BM25 scores for this word only."""
    if not rows.size:  # the snapshot may be empty
        return np.empty(0, np.int64)
    lengths = snapshot.lengths[rows]
    norms = K1 * (1 - B + B * lengths / snapshot.mean_length)
    shares = scores / (inverse_document_frequency(rows.size, snapshot.count) * (K1 + 1))
    counts: NDArray[np.int64] = np.rint(norms * shares / (1 - shares)).astype(np.int64)
    return counts


def _bound(scores: NDArray[np.float32], limit: int) -> float:
    """Return the lowest score among the `limit` best, less `SLACK`."""
    if scores.size <= limit:
        return 0.0
    return float(np.partition(scores, -limit)[-limit]) * (1 - SLACK)
