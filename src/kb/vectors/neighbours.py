"""Which chunks stand beside one another, and how near they are to a vector together.

Documents with one tag `thread:…` are a thread; of notes without one, those in the same folder are, by their paths. They
follow each other by their ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

Groups = NDArray[np.int32]
"""Rows, each with those beside it or `NOBODY`, of shape (n, 1 + 2 * REACH)."""

REACH = 2
"""How many neighbours on either side lend something; the statements find twice as many."""

WEIGHT = 0.25
"""What a word or a vector of a neighbour counts for."""

SHORT = 100
"""How many tokens a document has at most that lends something to others of its thread, and takes it."""

THREADED = 12
"""Of how many chunks, the best, threads are read."""

SHARES = np.where(np.arange(1 + 2 * REACH), WEIGHT, 1).astype(np.float32)
"""What each of a group counts for."""

NOBODY = -1
NO_GROUPS: Groups = np.empty((0, 1 + 2 * REACH), np.int32)
Line = tuple[int, "Sequence[int]", "Sequence[int]"]
"""A document, and the ids of those before it, the nearest first, and after it."""


def windows(lines: Iterable[Line]) -> dict[int, list[int]]:
    """Return the neighbours of documents, and those of the neighbours.

    One that is in two threads has different ones in each: its own line goes before those of others.
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
    """Return the rows of documents with those of their neighbours, of those that have one of each."""
    groups = [
        [row, *(row_of.get(member, NOBODY) for member in window)]
        for document, window in windows_of.items()
        if (row := row_of.get(document, NOBODY)) != NOBODY
    ]
    with_others = [group for group in groups if any(row != NOBODY for row in group[1:])]
    return np.array(with_others, np.int32).reshape(-1, 1 + 2 * REACH)


def joined(first: Groups, second: Groups) -> Groups:
    """Return both, by ascending row."""
    groups = np.concatenate([first, second]) if second.size else first
    return groups[np.argsort(groups[:, 0])]


def members(groups: Groups) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
    """Return the rows in groups, each once, ascending, with `NOBODY` if it is there; and where each of a group is."""
    rows, places = np.unique(groups, return_inverse=True)
    return rows, places.reshape(groups.shape)


def group_cosines(
    rows: NDArray[np.int32], places: NDArray[np.intp], vectors: NDArray[np.float32], vector: NDArray[np.float32]
) -> NDArray[np.float64]:
    """Return how near each group is to a unit vector as one text.

    Args:
        rows: those in groups, each once, ascending, with `NOBODY` if it is there.
        places: where each of a group is among them, shape (n, m).
        vectors: those of the rows without `NOBODY`.
        vector: the unit vector.
    """
    nobody = np.zeros((rows.size - len(vectors), vectors.shape[1]), np.float32)
    mixed: NDArray[np.float32] = np.einsum("nmd,m->nd", np.concatenate([nobody, vectors])[places], SHARES)
    lengths = np.maximum(np.sqrt(np.vecdot(mixed, mixed)), np.finfo(np.float32).tiny)
    cosines: NDArray[np.float64] = (np.vecdot(mixed, vector) / lengths).astype(np.float64)
    return cosines
