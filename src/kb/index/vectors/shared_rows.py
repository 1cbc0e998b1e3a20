"""Rows in memory that later moments share with earlier ones."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kb.index import compaction

MIN_CAPACITY = 1024
GOLDEN = 0x9E3779B97F4A7C15
SUMMED = 16_384
"""The number of rows whose checksums are computed at once."""


@dataclass(frozen=True, slots=True)
class Rows:
    """One row per chunk: the first rows of two arrays that later `Rows` may share.

    Args:
        id_buffer: chunk ids, ascending, shape (at least n,).
        data_buffer: the data of each chunk, shape (at least n, width), in C or Fortran order.
        alive: False for deleted chunks, shape (n,).
    """

    id_buffer: NDArray[np.int64]
    data_buffer: NDArray[Any]
    alive: NDArray[np.bool_]

    @classmethod
    def of(cls, ids: NDArray[np.int64], data: NDArray[Any]) -> Rows:
        """Return rows of `data`, of shape (n, width), by ascending id; nothing is copied."""
        return cls(ids, data, np.ones(ids.size, np.bool_))

    @property
    def ids(self) -> NDArray[np.int64]:
        """The chunk ids, shape (n,)."""
        return self.id_buffer[: self.alive.size]

    @property
    def data(self) -> NDArray[Any]:
        """The data of each chunk, shape (n, width)."""
        return self.data_buffer[: self.alive.size]

    @property
    def count(self) -> int:
        """The number of rows that are alive."""
        return int(np.count_nonzero(self.alive))

    def mask(self, among: NDArray[np.int64] | NDArray[np.bool_] | None) -> NDArray[np.bool_]:
        """Return a mask of the living rows among these: ascending ids, a mask over the rows, or None for all."""
        if among is None:
            return self.alive
        if among.dtype == np.bool_:
            return self.alive & among.astype(np.bool_, copy=False)
        mask = np.zeros(self.alive.size, np.bool_)
        rows, present = self.find(among.astype(np.int64, copy=False))
        mask[rows[present]] = True
        return self.alive & mask

    def find(self, ids: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Return the rows of chunks, dead or alive, and a mask of the chunks that have a row."""
        rows = np.searchsorted(self.ids, ids)
        present = rows < self.ids.size
        present[present] = self.ids[rows[present]] == ids[present]
        return rows, present

    def changed(self, ids: NDArray[np.int64], data: NDArray[Any], removed: Collection[int]) -> Rows:
        """Return the next rows. Writes go only after these rows, so readers do not see them."""
        alive = self.alive & ~self.mask(np.fromiter(removed, np.int64)) if removed else self.alive
        following = Rows(self.id_buffer, self.data_buffer, alive)._without_dead()
        start, end = following.alive.size, following.alive.size + ids.size
        if end > following.id_buffer.size:
            following = following.with_room(end)
        following.id_buffer[start:end], following.data_buffer[start:end] = ids, data
        return Rows(following.id_buffer, following.data_buffer, np.append(following.alive, np.ones(ids.size, np.bool_)))

    def fill(self, ids: NDArray[np.int64], data: NDArray[Any]) -> None:
        """Set the data of rows whose data was not known yet. Earlier moments may see it too."""
        rows, present = self.find(ids)
        self.data[rows[present]] = data[present]

    def with_room(self, size: int | None = None) -> Rows:
        """Return a copy in buffers for `size` rows (by default the current number) and half as many more."""
        size = self.alive.size if size is None else size
        capacity = max(MIN_CAPACITY, size + size // 2)
        ids = np.empty(capacity, np.int64)
        data = np.empty((capacity, self.data_buffer.shape[1]), self.data_buffer.dtype, self._order)
        ids[: self.alive.size], data[: self.alive.size] = self.ids, self.data
        return Rows(ids, data, self.alive)

    def _without_dead(self) -> Rows:
        if not compaction.is_due(self.alive.size - self.count, self.alive.size):
            return self
        return Rows.of(self.ids[self.alive], np.asarray(self.data[self.alive], order=self._order))

    @property
    def _order(self) -> Literal["C", "F"]:
        return "C" if self.data_buffer.flags.c_contiguous else "F"


@dataclass(frozen=True, slots=True)
class RowIndex:
    """The base of every implementation of `kb.index.vectors.protocol.VectorIndex`."""

    rows: Rows

    @property
    def size(self) -> int:
        """The bytes of the rows, without spare capacity."""
        return self.rows.data.nbytes + self.rows.ids.nbytes

    @property
    def count(self) -> int:
        """The number of chunks in it."""
        return self.rows.count


def checksums(ids: NDArray[np.int64], data: NDArray[Any]) -> NDArray[np.uint64]:
    """Return a checksum of each row and its id, shape (n,), which differs if any bit differs.

    Args:
        ids: shape (n,).
        data: C-contiguous, shape (n, width), with elements of four or eight bytes.
    """
    words = data.view(np.uint32)
    # The factors are odd, so that a difference in one word is never lost modulo 2 ** 64.
    factors = np.arange(words.shape[1], dtype=np.uint64) * np.uint64(2 * GOLDEN % 2**64) + np.uint64(GOLDEN)
    sums = ids.astype(np.uint64) * np.uint64(GOLDEN)
    for start in range(0, ids.size, SUMMED):
        sums[start : start + SUMMED] += (words[start : start + SUMMED] * factors).sum(1, dtype=np.uint64)
    return sums ^ (sums >> np.uint64(32))
