"""Vectors as one bit a dimension: on which side of the mean each lies.

Hamming distances between such codes find candidates. A factor beside each code makes of the query's own numbers and
the code's signs an estimate of the cosine, which ranks them well enough that few need their vectors.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from kb.vectors.checksums import checksums

if TYPE_CHECKING:
    from numpy.typing import NDArray

WORD = 64
BLOCK = 32_768
LOW = np.uint64(0xFFFFFFFF)
HIGH = np.uint64(32)


@dataclass(frozen=True)
class Quantizer:
    """Makes codes of vectors.

    A code is a row of `words` numbers with a bit a dimension, padded with zeros, and one more: the factor of the
    estimate as float32 in its low half, a checksum in its high one.

    Args:
        mean: that of the vectors, shape (dimensions,).
    """

    mean: NDArray[np.float32]

    @cached_property
    def words(self) -> int:
        """How many numbers hold the bits."""
        return -(-self.mean.size // WORD)

    def encode(self, ids: NDArray[np.int64], vectors: NDArray[np.float32]) -> NDArray[np.uint64]:
        """Return the codes of chunks, shape (n, words + 1)."""
        centred = vectors - self.mean
        codes = np.zeros((ids.size, self.words + 1), np.uint64)
        codes[:, :-1] = self._bits(centred)
        codes[:, -1] = _factors(centred).view(np.uint32)
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
        bits = self._bits((query - self.mean)[None])[0]
        found = np.empty(len(codes), np.uint16)
        for start in range(0, len(codes), BLOCK):
            block = found[start : start + BLOCK]
            words, counts = np.empty(block.size, np.uint64), np.empty(block.size, np.uint8)
            block[:] = 0
            for column, word in enumerate(bits):
                np.bitwise_xor(codes[start : start + BLOCK, column], word, out=words)
                block += np.bitwise_count(words, out=counts)
        return found

    def estimates(self, query: NDArray[np.float32], codes: NDArray[np.uint64]) -> NDArray[np.float32]:
        """Return an estimate of the cosine of each code's vector, less one and the same number for all; shape (n,)."""
        table = self._table(query)
        places = np.ascontiguousarray(codes[:, :-1]).view(np.uint8) + np.arange(0, table.size, 256)
        sums: NDArray[np.float32] = table.take(places).sum(1)
        factors: NDArray[np.float32] = (codes[:, -1] & LOW).astype(np.uint32).view(np.float32)
        sums *= factors
        return sums

    def _bits(self, centred: NDArray[np.float32]) -> NDArray[np.uint64]:
        packed = np.zeros((len(centred), self.words * 8), np.uint8)
        packed[:, : -(-self.mean.size // 8)] = np.packbits(centred > 0, axis=1)
        return packed.view(np.uint64)

    def _table(self, query: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return what each byte of a code adds: the query's numbers with its signs; 256 for each place."""
        padded = np.zeros((self.words * 8, 8), np.float32)
        padded.ravel()[: query.size] = query
        table: NDArray[np.float32] = (padded @ SIGNS).ravel()
        return table


SIGNS = np.where(np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1), 1, -1).astype(np.float32).T
"""The signs that a byte stands for, shape (8, 256)."""


def _factors(centred: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return what makes an estimate of the product with a vector of that with its signs."""
    length: NDArray[np.float32] = np.abs(centred).sum(1)
    np.divide(np.vecdot(centred, centred), length, out=length, where=length > 0)
    return length
