"""A projection of vectors to two dimensions for a map."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

ROUNDS: Final = 30
"""The number of iterations for the axes; more do not change the picture."""


def project(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the positions of vectors on the two axes of greatest variance, from -1 to 1; shape (n, 2).

    At least one vector is needed. The vectors are overwritten, because they may take much memory.
    """
    vectors -= vectors.mean(axis=0)
    places: NDArray[np.float32] = vectors @ principal_axes(vectors)
    low, high = places.min(axis=0), places.max(axis=0)
    reach = np.maximum(high - low, np.finfo(np.float32).tiny)
    within: NDArray[np.float32] = (2 * places - low - high) / reach
    return within


def evened(places: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return places halfway to their ranks on each axis, so that many similar documents do not crowd the others out."""
    return np.stack([(axis + _ranks(axis)) / 2 for axis in places.T], axis=1)


def _ranks(axis: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the ranks of numbers, from -1 to 1; equal numbers share the mean of theirs."""
    _, places, counts = np.unique(axis, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts + 1) / 2
    within: NDArray[np.float32] = (2 * ranks[places] / max(1, len(axis) - 1) - 1).astype(np.float32)
    return within


def principal_axes(centred: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the two axes of greatest variance for vectors around 0, shape (dimensions, 2), by subspace iteration.

    The same vectors always have the same axes: the largest component of each axis is positive.
    """
    axes = np.linalg.qr(np.random.default_rng(0).normal(size=(centred.shape[1], 2)).astype(np.float32))[0]
    for _ in range(ROUNDS):
        axes = np.linalg.qr(centred.T @ (centred @ axes))[0]
    spread = np.square(centred @ axes).sum(axis=0)
    axes = axes[:, np.argsort(-spread)]
    signs = np.sign(axes[np.abs(axes).argmax(axis=0), [0, 1]])
    turned: NDArray[np.float32] = axes * signs
    return turned
