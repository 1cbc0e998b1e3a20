"""What stands beside a chunk: the others of its document, or the neighbours of a short note in its thread.

Documents with one tag `thread:…` are a thread; of notes without one, those in the same folder are, by their paths. They
follow each other by their ids. All is read when it is asked for, so that it is right after every change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import apsw
import numpy as np

from kb.store.sqlite.statements import statements
from kb.vectors.scores import NO_CONTEXT, Context

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from kb.lexical.bm25 import Matches
    from kb.lexical.snapshot import Admitted
    from kb.store.sqlite.row_mapping import Execute
    from kb.store.sqlite.words import WordReader
    from kb.vectors.snapshot import VectorSnapshot

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

NOBODY = -1
Neighbours = tuple[int, str | None, str | None]
"""A document, and the ids of those before it, the nearest first, and after it."""


class ContextReader:
    """Scores chunks together with what stands beside them.

    Args:
        execute: the transaction's.
        words: the words of its moment.
        admitted: the chunks that the filter admits; None for all.
        vectors: the vectors of its moment.
    """

    def __init__(self, execute: Execute, words: WordReader, admitted: Admitted | None, vectors: VectorSnapshot) -> None:
        self._execute = execute
        self._words = words
        self._admitted = admitted
        self._vectors = vectors

    def scores(self, matches: Matches, vector: NDArray[np.float32], ids: NDArray[np.int64]) -> Context:
        """Return the scores of those of these chunks, best first, that have neighbours, and of those in threads."""
        rows, _ = self._words.snapshot.rows_of(ids)
        siblings = self._siblings(rows)
        best = rows[:THREADED]
        groups = joined(siblings, self._threads(best[~np.isin(best, siblings[:, 0])]))
        if not groups.size:
            return NO_CONTEXT
        weights = np.where(np.arange(groups.shape[1]), WEIGHT, 1.0)
        fts = matches.in_context(groups, weights)
        return Context(
            self._words.snapshot.ids[groups[:, 0]].astype(np.int64), fts, self._cosines(groups, weights, vector)
        )

    def _cosines(
        self, groups: Groups, weights: NDArray[np.float64], vector: NDArray[np.float32]
    ) -> NDArray[np.float64]:
        rows, places = np.unique(groups, return_inverse=True)
        is_there = groups >= 0
        known = self._vectors.vectors(self._words.snapshot.ids[rows[rows >= 0]].astype(np.int64))
        padded = np.concatenate([np.zeros((np.count_nonzero(rows < 0), known.shape[1]), np.float32), known])
        shares = (is_there * weights).astype(np.float32)
        mixed: NDArray[np.float32] = np.einsum("nmd,nm->nd", padded[places.reshape(groups.shape)], shares)
        lengths = np.maximum(np.sqrt(np.vecdot(mixed, mixed)), np.finfo(np.float32).tiny)
        cosines: NDArray[np.float64] = (np.vecdot(mixed, vector) / lengths).astype(np.float64)
        return cosines

    def _siblings(self, rows: NDArray[np.int32]) -> Groups:
        """Return chunks with the others of their document, which was written at once, in order."""
        snapshot = self._words.snapshot
        near = rows[:, None] + np.array([step for step in range(-REACH, REACH + 1) if step], np.int32)
        inside = np.clip(near, 0, snapshot.size - 1)
        is_sibling = (near == inside) & (snapshot.documents[inside] == snapshot.documents[rows][:, None])
        is_sibling &= ~np.isin(inside, snapshot.dead)
        groups = np.column_stack([rows, np.where(is_sibling, near, NOBODY)])
        with_others: Groups = groups[is_sibling.any(axis=1)].astype(np.int32)
        return with_others

    def _threads(self, rows: NDArray[np.int32]) -> Groups:
        """Return those of these chunks that are short notes with their neighbours, and these with theirs."""
        snapshot = self._words.snapshot
        documents = np.unique(snapshot.documents[rows[snapshot.lengths[rows] <= SHORT]]).astype(np.int64)
        windows = self._windows(documents)
        row_of = self._rows({each for window in windows.values() for each in window}) if windows else {}
        groups = [
            [row, *(row_of.get(each, NOBODY) for each in window)]
            for document, window in windows.items()
            if (row := row_of.get(document, NOBODY)) != NOBODY
        ]
        with_others = [group for group in groups if any(row != NOBODY for row in group[1:])]
        return np.array(with_others, np.int32).reshape(-1, 1 + 2 * REACH)

    def _windows(self, documents: NDArray[np.int64]) -> dict[int, list[int]]:
        """Return the neighbours of documents, and those of the neighbours.

        One that is in two threads has different ones in each: its own line goes before those of others.
        """
        own: dict[int, list[int]] = {}
        windows: dict[int, list[int]] = {}
        for row in sorted(self._lines(documents), key=lambda row: row[0]):
            before, after = row[1:]
            line = [*reversed(_ids(before)), row[0], *_ids(after)]
            place = len(_ids(before))
            for index in range(max(0, place - REACH), min(len(line), place + REACH + 1)):
                near = line[max(0, index - REACH) : index] + line[index + 1 : index + 1 + REACH]
                window = near + [NOBODY] * (2 * REACH - len(near))
                (own if index == place else windows).setdefault(line[index], window)
        return windows | own

    def _lines(self, documents: NDArray[np.int64]) -> list[Neighbours]:
        """Return those of these documents that are in a thread, with those around them."""
        sql = statements("context")
        if not documents.size or not self._execute(sql["has_threads"]).get:
            return []
        found: list[Neighbours] = self._execute(sql["select_in_threads"], (apsw.carray(documents),)).fetchall()
        others = np.setdiff1d(documents, [document_id for document_id, _, _ in found])
        if others.size:
            found += self._execute(sql["select_in_folders"], (apsw.carray(others),)).fetchall()
        return found

    def _rows(self, documents: Iterable[int]) -> dict[int, int]:
        """Return the rows of those documents that are short and that the filter admits."""
        snapshot = self._words.snapshot
        wanted = np.array(sorted(documents), np.int64)
        pairs = self._execute(statements("context")["select_only_chunks"], (apsw.carray(wanted),)).fetchall()
        table = np.array(sorted(pairs, key=lambda pair: pair[1]), np.int64).reshape(-1, 2)
        rows, found = snapshot.rows_of(table[:, 1])
        is_taken = snapshot.lengths[rows] <= SHORT
        if self._admitted is not None:
            is_taken &= self._admitted.mask[rows]
        return dict(zip(table[found, 0][is_taken].tolist(), rows[is_taken].tolist(), strict=True))


def joined(first: Groups, second: Groups) -> Groups:
    """Return both, by ascending row."""
    groups = np.concatenate([first, second])
    return groups[np.argsort(groups[:, 0])]


def _ids(text: str | None) -> list[int]:
    return [int(each) for each in text.split(",")] if text else []
