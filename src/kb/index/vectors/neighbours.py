"""The neighbours of chunks, and their common similarity to a vector.

Documents with the same tag `thread:…` form a thread; so do notes without such a tag in the same folder, by their paths.
Threads are ordered by document id.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

Groups = NDArray[np.int32]
"""Rows, each with its neighbours or `NOBODY`, of shape (n, 1 + 2 * REACH)."""

REACH = 2
"""The number of neighbours on either side that contribute; the statements find twice as many."""

WEIGHT = 0.25
"""The weight of a neighbour's word or vector."""

SHORT = 100
"""The maximum number of tokens of a document that shares context with the others of its thread."""

THREADED = 12
"""The number of best chunks whose threads are read."""

SHARES = np.where(np.arange(1 + 2 * REACH), WEIGHT, 1).astype(np.float32)
"""The weights of a group's members."""

NOBODY = -1
NO_GROUPS: Groups = np.empty((0, 1 + 2 * REACH), np.int32)
Line = tuple[int, "Sequence[int]", "Sequence[int]"]
"""A document, and the ids before it, nearest first, and after it."""


def windows(lines: Iterable[Line]) -> dict[int, list[int]]:
    """Return the neighbours of documents, and the neighbours of these neighbours.

    A document in two threads has different neighbours in each: its own line takes priority over lines of others.
    """
    own: dict[int, list[int]] = {}
    others: dict[int, list[int]] = {}
    for document_id, before, after in sorted(lines, key=lambda line: line[0]):
        line = [*reversed(before), document_id, *after]
        place = len(before)
        for index in range(max(0, place - REACH), min(len(line), place + REACH + 1)):
            near = line[max(0, index - REACH) : index] + line[index + 1 : index + 1 + REACH]
            window = near + [NOBODY] * (2 * REACH - len(near))
            (own if index == place else others).setdefault(line[index], window)
    return others | own


def grouped(windows_of: dict[int, list[int]], row_of: dict[int, int]) -> Groups:
    """Return the rows of documents with the rows of their neighbours, for documents with at least one neighbour."""
    groups = [
        [row, *(row_of.get(member, NOBODY) for member in window)]
        for document, window in windows_of.items()
        if (row := row_of.get(document, NOBODY)) != NOBODY
    ]
    with_others = [group for group in groups if any(row != NOBODY for row in group[1:])]
    return np.array(with_others, np.int32).reshape(-1, 1 + 2 * REACH)


def joined(first: Groups, second: Groups) -> Groups:
    """Return the union, by ascending row."""
    groups = np.concatenate([first, second]) if second.size else first
    return groups[np.argsort(groups[:, 0])]


def members(groups: Groups) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
    """Return the rows in groups, each once, ascending, including any `NOBODY`, and the places of the members."""
    rows, places = np.unique(groups, return_inverse=True)
    return rows, places.reshape(groups.shape)


def group_cosines(
    rows: NDArray[np.int32], places: NDArray[np.intp], vectors: NDArray[np.float32], vector: NDArray[np.float32]
) -> NDArray[np.float64]:
    """Return the cosine of each group, as one text, with a unit vector.

    Args:
        rows: the rows of all groups, each once, ascending, including any `NOBODY`.
        places: the places of each group's members in `rows`, shape (n, m).
        vectors: the vectors of the rows without `NOBODY`.
        vector: the unit vector.
    """
    nobody = np.zeros((rows.size - len(vectors), vectors.shape[1]), np.float32)
    mixed: NDArray[np.float32] = np.einsum("nmd,m->nd", np.concatenate([nobody, vectors])[places], SHARES)
    lengths = np.maximum(np.sqrt(np.vecdot(mixed, mixed)), np.finfo(np.float32).tiny)
    cosines: NDArray[np.float64] = (np.vecdot(mixed, vector) / lengths).astype(np.float64)
    return cosines
