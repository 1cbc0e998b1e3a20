"""Checksums of many rows at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

GOLDEN = 0x9E3779B97F4A7C15
BLOCK = 16_384


def checksums(ids: NDArray[np.int64], data: NDArray[Any]) -> NDArray[np.uint64]:
    """Return a checksum of each row and its id, shape (n,): a bit that differs makes another one.

    Args:
        ids: shape (n,).
        data: C-contiguous, shape (n, width), of four or eight bytes each.
    """
    words = data.view(np.uint32)
    # Odd factors: no difference of one word is lost in a product modulo 2 ** 64.
    factors = np.arange(words.shape[1], dtype=np.uint64) * np.uint64(2 * GOLDEN % 2**64) + np.uint64(GOLDEN)
    sums = ids.astype(np.uint64) * np.uint64(GOLDEN)
    for start in range(0, ids.size, BLOCK):
        sums[start : start + BLOCK] += (words[start : start + BLOCK] * factors).sum(1, dtype=np.uint64)
    return sums ^ (sums >> np.uint64(32))
