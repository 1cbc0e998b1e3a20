"""The rows with a word, and its number of occurrences in each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.unsignedinteger[Any]]

ROOM = 4
"""A buffer that must grow gets spare capacity: one entry for every `ROOM` needed, plus `ROOM`."""

OVERHEAD = 600
"""The approximate bytes of the objects that hold one word's arrays."""


@dataclass(frozen=True, slots=True, eq=False)
class Postings:
    """The first `size` entries of two buffers that later postings of the word may share. These never change.

    Args:
        row_buffer: rows, ascending.
        count_buffer: the number of occurrences in each row, weighted by column.
        size: the number of entries.
    """

    row_buffer: NDArray[np.int32]
    count_buffer: Counts
    size: int

    @classmethod
    def of(cls, rows: NDArray[np.int32], counts: NDArray[np.int64]) -> Postings:
        """Return the postings of these rows, with counts in the smallest type that fits."""
        dtype = np.min_scalar_type(int(counts.max(initial=0)))
        return cls(rows, counts.astype(dtype), rows.size)

    @property
    def rows(self) -> NDArray[np.int32]:
        return self.row_buffer[: self.size]

    @property
    def counts(self) -> Counts:
        return self.count_buffer[: self.size]

    @property
    def nbytes(self) -> int:
        """The bytes that they take."""
        return self.row_buffer.nbytes + self.count_buffer.nbytes + OVERHEAD

    def counts_of(self, rows: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return the number of occurrences in each of these rows; the word must be in some row."""
        places = self.rows.searchsorted(rows)
        is_there = self.rows.take(places, mode="clip") == rows
        counts: NDArray[np.float64] = np.multiply(self.counts.take(places, mode="clip"), is_there, dtype=np.float64)
        return counts

    def before(self, row: int) -> Postings:
        if not self.size or self.row_buffer[self.size - 1] < row:
            return self
        return Postings(self.row_buffer, self.count_buffer, int(np.searchsorted(self.rows, row)))

    def extended(self, rows: Sequence[int], counts: Sequence[int]) -> Postings:
        """Return the postings with more entries, in rows after all existing ones."""
        end = self.size + len(rows)
        dtype = np.promote_types(self.count_buffer.dtype, np.min_scalar_type(max(counts)))
        grown = self
        if end > self.row_buffer.size or dtype != self.count_buffer.dtype:
            grown = self._with_room(end + end // ROOM + ROOM, dtype)
        grown.row_buffer[self.size : end] = rows
        grown.count_buffer[self.size : end] = counts
        return Postings(grown.row_buffer, grown.count_buffer, end)

    def renumbered(self, numbers: NDArray[np.int32]) -> Postings:
        """Return the postings with new row numbers; a negative number removes the row."""
        rows = numbers.take(self.rows)
        alive = rows >= 0
        return Postings(rows[alive], self.counts[alive], int(np.count_nonzero(alive)))

    def _with_room(self, capacity: int, dtype: np.dtype[Any]) -> Postings:
        rows, counts = np.empty(capacity, np.int32), np.empty(capacity, dtype)
        rows[: self.size], counts[: self.size] = self.rows, self.counts
        return Postings(rows, counts, self.size)


def merged(spellings: Sequence[Postings]) -> Postings:
    """Return the postings of spellings of one word, with the count of the most frequent spelling in each row."""
    if len(spellings) == 1:
        return spellings[0]
    rows = np.concatenate([spelling.rows for spelling in spellings])
    counts = np.concatenate([spelling.counts.astype(np.int64) for spelling in spellings])
    order = np.lexsort((-counts, rows))
    rows, counts = rows[order], counts[order]
    is_first = np.flatnonzero(np.diff(rows, prepend=-1))
    return Postings.of(rows[is_first], counts[is_first])
