"""Vectors as two bits per dimension: the side of the mean on which the value lies, and whether it is far from the mean.

Hamming distances between the signs find candidates. With a factor stored in each code, the query's own numbers and the
signs yield an estimate of the cosine. The sizes refine it so well that few candidates need their vectors.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kb.index.vectors.shared_rows import checksums

WORD = 64
BLOCK = 32_768
LOW = np.uint64(0xFFFFFFFF)
HIGH = np.uint64(32)
PLANES = 6
"""The number of bits to which the query's numbers are rounded for the first estimate."""

SUMMED = 4096
"""The number of codes that are estimated at once."""

FAR = 0.98
"""A number above this multiple of the root mean square is large.

`SMALL` and `LARGE` are the best substitutes for a normal distribution (Max, "Quantizing for minimum distortion", 1960).
"""

SMALL, LARGE = 0.4528, 1.5104


@dataclass(frozen=True)
class Quantizer:
    """Makes codes of vectors.

    A code is a row of integers: `words` for the signs, one bit per dimension, padded with zeros; as many for the sizes;
    and one more with the factors of both estimates as float16 in its low half and a checksum in its high half.

    Args:
        mean: the mean of the vectors, shape (dimensions,).
    """

    mean: NDArray[np.float32]

    @cached_property
    def words(self) -> int:
        """The number of integers for one bit per dimension."""
        return -(-self.mean.size // WORD)

    @property
    def width(self) -> int:
        """The number of integers in a code."""
        return 2 * self.words + 1

    def encode(self, ids: NDArray[np.int64], vectors: NDArray[np.float32]) -> NDArray[np.uint64]:
        """Return the codes of chunks, shape (n, width)."""
        centred = vectors - self.mean
        sizes = np.abs(centred)
        are_large = sizes > FAR * np.sqrt(np.vecdot(centred, centred) / self.mean.size)[:, None]
        factors = np.empty((ids.size, 2), np.float16)
        factors[:, 0] = _factors(centred, sizes.sum(1))
        factors[:, 1] = _factors(centred, np.vecdot(sizes, np.where(are_large, np.float32(LARGE), np.float32(SMALL))))
        codes = np.zeros((ids.size, self.width), np.uint64)
        codes[:, : self.words] = self._packed(centred > 0)
        codes[:, self.words : -1] = self._packed(are_large)
        codes[:, -1] = factors.view(np.uint32).ravel()
        codes[:, -1] |= checksums(ids, codes) << HIGH
        return codes

    def intact(self, ids: NDArray[np.int64], codes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Return a mask of the codes that are undamaged and belong to these chunks."""
        bare = codes.copy()
        bare[:, -1] &= LOW
        intact: NDArray[np.bool_] = checksums(ids, bare) << HIGH >> HIGH == codes[:, -1] >> HIGH
        return intact

    def agree(self, codes: NDArray[np.uint64], vectors: NDArray[np.float32]) -> NDArray[np.bool_]:
        """Return a mask of the codes that have the signs of these vectors, which every processor computes alike."""
        agree: NDArray[np.bool_] = (codes[:, : self.words] == self._packed(vectors - self.mean > 0)).all(1)
        return agree

    def distances(self, query: NDArray[np.float32], codes: NDArray[np.uint64]) -> NDArray[np.uint16]:
        """Return the Hamming distance of each code to the query's code, shape (n,).

        The blocks fit into the processor's cache, and are long enough for numpy to let other threads run.
        """
        bits = self._packed((query > self.mean)[None])[0]
        distances = np.empty(len(codes), np.uint16)
        for start in range(0, len(codes), BLOCK):
            block = distances[start : start + BLOCK]
            words, counts = np.empty(block.size, np.uint64), np.empty(block.size, np.uint8)
            block[:] = 0
            for column, word in enumerate(bits):
                np.bitwise_xor(codes[start : start + BLOCK, column], word, out=words)
                block += np.bitwise_count(words, out=counts)
        return distances

    def estimates(
        self, query: NDArray[np.float32], codes: NDArray[np.uint64], rows: NDArray[np.intp]
    ) -> NDArray[np.float32]:
        """Return estimates of the cosines of these rows' vectors, all less the same constant; shape (n,)."""
        signs = _words(codes[:, : self.words], rows)
        least, step, planes = self._planes(query)
        above = sum(_popcounts(signs & plane[:, None]) << number for number, plane in enumerate(planes))
        sums: NDArray[np.float32] = (2 * (least * _popcounts(signs) + step * above) - query.sum()).astype(np.float32)
        return sums * _factors_in(codes, rows)[:, 0]

    def refined(
        self, query: NDArray[np.float32], codes: NDArray[np.uint64], rows: NDArray[np.intp]
    ) -> NDArray[np.float32]:
        """Return the estimates from signs and sizes, which are more accurate."""
        signs, sizes = _bytes(codes[:, : self.words], rows), _bytes(codes[:, self.words : -1], rows)
        halves = np.empty((*signs.shape, 2), np.uint8)  # each contains the signs of four dimensions, then their sizes
        halves[..., 0] = signs & 0xF0 | sizes >> 4
        halves[..., 1] = signs << 4 | sizes & 0x0F
        return _sums(self._table(query), halves.reshape(rows.size, -1)) * _factors_in(codes, rows)[:, 1]

    def _packed(self, bits: NDArray[np.bool_]) -> NDArray[np.uint64]:
        packed = np.zeros((len(bits), self.words * 8), np.uint8)
        packed[:, : -(-self.mean.size // 8)] = np.packbits(bits, axis=1)
        return packed.view(np.uint64)

    def _planes(self, query: NDArray[np.float32]) -> tuple[float, float, NDArray[np.uint64]]:
        """Return the lowest number of a query, the step, and the bit planes of the steps above it, low bits first."""
        least, highest = float(query.min()), float(query.max())
        step = (highest - least) / (2**PLANES - 1) or 1.0
        steps = np.rint((query - least) / step).astype(np.uint8)
        return least, step, self._packed(steps >> np.arange(PLANES, dtype=np.uint8)[:, None] & 1 > 0)

    def _table(self, query: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the contribution of each byte at each place: its numbers times the query's."""
        padded = np.zeros((self.words * WORD // len(SIZES), len(SIZES)), np.float32)
        padded.ravel()[: query.size] = query
        table: NDArray[np.float32] = padded @ SIZES
        return table


BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)
SIZES = (np.where(BITS[:, :4], 1, -1) * np.where(BITS[:, 4:], LARGE, SMALL)).astype(np.float32).T
"""The numbers that four signs and four sizes represent, shape (4, 256)."""


def _factors(centred: NDArray[np.float32], products: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the factors that turn the product with a code into an estimate of the product with the vector.

    Args:
        centred: the vectors.
        products: the product of each vector with its own code.
    """
    return np.divide(np.vecdot(centred, centred), products, out=np.zeros_like(products), where=products > 0)


def _words(codes: NDArray[np.uint64], rows: NDArray[np.intp]) -> NDArray[np.uint64]:
    """Return the columns of some rows, shape (words, n)."""
    # Column by column, as they are in memory: for all at once, `take` would first copy every code.
    return np.array([column.take(rows) for column in codes.T])


def _popcounts(words: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """Return the number of set bits in each column."""
    counts: NDArray[np.uint32] = np.bitwise_count(words).sum(axis=0, dtype=np.uint32)
    return counts


def _bytes(codes: NDArray[np.uint64], rows: NDArray[np.intp]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(_words(codes, rows).T).view(np.uint8)


def _factors_in(codes: NDArray[np.uint64], rows: NDArray[np.intp]) -> NDArray[np.float16]:
    return (codes[:, -1].take(rows) & LOW).astype(np.uint32).view(np.float16).reshape(-1, 2)


def _sums(table: NDArray[np.float32], codes: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return the sum of the contributions of each row's bytes, in blocks because the table indexes take much memory."""
    sums, places = np.empty(len(codes), np.float32), np.arange(0, table.size, 256)
    for start in range(0, len(codes), SUMMED):
        block = slice(start, start + SUMMED)
        sums[block] = table.take(codes[block] + places).sum(1)
    return sums
