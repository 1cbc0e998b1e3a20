"""Vectors as two bits a dimension: on which side of the mean each lies, and whether far from it.

Hamming distances between the signs find candidates. Factors beside each code make of the query's own numbers and the
signs an estimate of the cosine, and with the sizes a finer one, which ranks them so well that few need their vectors.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kb.vectors.shared_rows import checksums

WORD = 64
BLOCK = 32_768
LOW = np.uint64(0xFFFFFFFF)
HIGH = np.uint64(32)
PLANES = 6
"""In so many bits a query's numbers are taken for the first estimate."""

SUMMED = 4096
"""Of how many codes an estimate is made at once."""

FAR = 0.98
"""A number is large that is more than so many times the root of the squares' mean; what large and other ones are
taken for is the best for a normal distribution (Max, "Quantizing for minimum distortion", 1960).
"""

SMALL, LARGE = 0.4528, 1.5104


@dataclass(frozen=True)
class Quantizer:
    """Makes codes of vectors.

    A code is a row of `words` numbers with the signs, a bit a dimension, padded with zeros, as many with the sizes, and
    one more: in its low half the factors of the two estimates as float16, a checksum in its high one.

    Args:
        mean: that of the vectors, shape (dimensions,).
    """

    mean: NDArray[np.float32]

    @cached_property
    def words(self) -> int:
        """How many numbers hold a bit of each dimension."""
        return -(-self.mean.size // WORD)

    @property
    def width(self) -> int:
        """How many numbers a code has."""
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
        """Return which of these codes are as they were made for these chunks."""
        bare = codes.copy()
        bare[:, -1] &= LOW
        intact: NDArray[np.bool_] = checksums(ids, bare) << HIGH >> HIGH == codes[:, -1] >> HIGH
        return intact

    def distances(self, query: NDArray[np.float32], codes: NDArray[np.uint64]) -> NDArray[np.uint16]:
        """Return the Hamming distance of each code to that of the query, shape (n,).

        In blocks that stay in the processor's cache, and are long enough for numpy to let other threads run.
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
        """Return estimates of the cosines of these rows' vectors, each less one and the same number; shape (n,)."""
        signs = _words(codes[:, : self.words], rows)
        least, step, planes = self._planes(query)
        above = sum(_popcounts(signs & plane[:, None]) << number for number, plane in enumerate(planes))
        sums: NDArray[np.float32] = (2 * (least * _popcounts(signs) + step * above) - query.sum()).astype(np.float32)
        return sums * _factors_in(codes, rows)[:, 0]

    def refined(
        self, query: NDArray[np.float32], codes: NDArray[np.uint64], rows: NDArray[np.intp]
    ) -> NDArray[np.float32]:
        """Return the same from signs and sizes, which is nearer."""
        signs, sizes = _bytes(codes[:, : self.words], rows), _bytes(codes[:, self.words : -1], rows)
        halves = np.empty((*signs.shape, 2), np.uint8)  # each with the signs of four dimensions, then their sizes
        halves[..., 0] = signs & 0xF0 | sizes >> 4
        halves[..., 1] = signs << 4 | sizes & 0x0F
        return _sums(self._table(query), halves.reshape(rows.size, -1)) * _factors_in(codes, rows)[:, 1]

    def _packed(self, bits: NDArray[np.bool_]) -> NDArray[np.uint64]:
        packed = np.zeros((len(bits), self.words * 8), np.uint8)
        packed[:, : -(-self.mean.size // 8)] = np.packbits(bits, axis=1)
        return packed.view(np.uint64)

    def _planes(self, query: NDArray[np.float32]) -> tuple[float, float, NDArray[np.uint64]]:
        """Return the least number of a query, a step, and the bits of how many each is above it, the low ones first."""
        least, highest = float(query.min()), float(query.max())
        step = (highest - least) / (2**PLANES - 1) or 1.0
        steps = np.rint((query - least) / step).astype(np.uint8)
        return least, step, self._packed(steps >> np.arange(PLANES, dtype=np.uint8)[:, None] & 1 > 0)

    def _table(self, query: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return what each byte adds, of which each place has another: its numbers times the query's."""
        padded = np.zeros((self.words * WORD // len(SIZES), len(SIZES)), np.float32)
        padded.ravel()[: query.size] = query
        table: NDArray[np.float32] = padded @ SIZES
        return table


BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)
SIZES = (np.where(BITS[:, :4], 1, -1) * np.where(BITS[:, 4:], LARGE, SMALL)).astype(np.float32).T
"""The numbers that four signs and four sizes stand for, shape (4, 256)."""


def _factors(centred: NDArray[np.float32], products: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return what makes an estimate of the product with a vector of that with its code.

    Args:
        centred: the vectors.
        products: of each with its own code.
    """
    return np.divide(np.vecdot(centred, centred), products, out=np.zeros_like(products), where=products > 0)


def _words(codes: NDArray[np.uint64], rows: NDArray[np.intp]) -> NDArray[np.uint64]:
    """Return the columns of some rows, shape (words, n)."""
    # Column by column, as they are in memory: from all at once `take` would copy every code first.
    return np.array([column.take(rows) for column in codes.T])


def _popcounts(words: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """Return how many bits are set in each column."""
    counts: NDArray[np.uint32] = np.bitwise_count(words).sum(axis=0, dtype=np.uint32)
    return counts


def _bytes(codes: NDArray[np.uint64], rows: NDArray[np.intp]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(_words(codes, rows).T).view(np.uint8)


def _factors_in(codes: NDArray[np.uint64], rows: NDArray[np.intp]) -> NDArray[np.float16]:
    return (codes[:, -1].take(rows) & LOW).astype(np.uint32).view(np.float16).reshape(-1, 2)


def _sums(table: NDArray[np.float32], codes: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return the sum of what each byte of a row adds; in blocks, for the places in the table take much memory."""
    sums, places = np.empty(len(codes), np.float32), np.arange(0, table.size, 256)
    for start in range(0, len(codes), SUMMED):
        block = slice(start, start + SUMMED)
        sums[block] = table.take(codes[block] + places).sum(1)
    return sums
