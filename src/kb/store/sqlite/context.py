"""The context of a chunk: its neighbours in its document, or the neighbours of a short note in its thread.

kb reads the context for each search, so it is correct after every change.
"""

from collections.abc import Iterable

import apsw
import numpy as np
from numpy.typing import NDArray

from kb.index.vectors.neighbours import (
    NO_GROUPS,
    NOBODY,
    REACH,
    SHARES,
    SHORT,
    THREADED,
    Groups,
    Line,
    group_cosines,
    grouped,
    joined,
    members,
    windows,
)
from kb.index.vectors.protocol import VectorSnapshot
from kb.index.vectors.scores import NO_CONTEXT, Neighbourhood
from kb.index.words.matches import Matches
from kb.index.words.snapshot import Admitted
from kb.store.row_mapping import Execute
from kb.store.sqlite.full_text_cache import WordReader
from kb.store.sqlite.statements import statements

STEPS = [step for step in range(-REACH, REACH + 1) if step]


class ContextReader:
    """Scores chunks together with their neighbours.

    Args:
        execute: the transaction's `execute`.
        words: the words that the transaction sees.
        admitted: the chunks that the filter admits; None for all.
        vectors: the vectors that the transaction sees.
    """

    def __init__(self, execute: Execute, words: WordReader, admitted: Admitted | None, vectors: VectorSnapshot) -> None:
        self._execute = execute
        self._words = words
        self._admitted = admitted
        self._vectors = vectors

    def scores(self, matches: Matches, vector: NDArray[np.float32], ids: NDArray[np.int64]) -> Neighbourhood:
        """Return the scores of the chunks that have neighbours, and of the notes in their threads.

        The ids must be in order of score, best first: only the first `THREADED` chunks get neighbours from threads.
        """
        rows, _ = self._words.snapshot.rows_of(ids)
        siblings = self._siblings(rows)
        best = rows[:THREADED]
        groups = joined(siblings, self._threads(np.setdiff1d(best, siblings[:, 0], assume_unique=True)))
        if not groups.size:
            return NO_CONTEXT
        chunk_ids = self._words.snapshot.ids
        rows, places = members(groups)
        vectors = self._vectors.vectors(chunk_ids[rows[rows >= 0]].astype(np.int64))
        return Neighbourhood(
            chunk_ids[groups[:, 0]].astype(np.int64),
            matches.in_context(rows, places, SHARES),
            group_cosines(rows, places, vectors, vector),
        )

    def _siblings(self, rows: NDArray[np.int32]) -> Groups:
        """Return chunks with their neighbours in their document, in order.

        The chunks of a document have adjacent rows, unless an edit kept some of them.
        """
        snapshot = self._words.snapshot
        near = rows[:, None] + np.array(STEPS, np.int32)
        inside = np.clip(near, 0, snapshot.size - 1)
        is_sibling = (near == inside) & (snapshot.documents[inside] == snapshot.documents[rows][:, None])
        if snapshot.dead.size:
            is_sibling &= ~np.isin(inside, snapshot.dead)
        siblings = np.where(is_sibling, near, NOBODY)
        self._correct_scattered(rows, siblings)
        groups = np.column_stack([rows, siblings])
        with_others: Groups = groups[(siblings != NOBODY).any(axis=1)].astype(np.int32)
        return with_others

    def _correct_scattered(self, rows: NDArray[np.int32], siblings: NDArray[np.int32]) -> None:
        """Set the neighbours of those chunks whose documents do not have adjacent rows."""
        snapshot, sql = self._words.snapshot, statements("context")
        documents = snapshot.documents[rows]
        wanted = apsw.carray(np.unique(documents).astype(np.int64))
        scattered = [document_id for (document_id,) in self._execute(sql["select_scattered"], (wanted,))]
        if not scattered:
            return
        places = np.flatnonzero(np.isin(documents, scattered))
        ids = snapshot.ids[rows[places]].astype(np.int64)
        siblings[places] = NOBODY
        found = self._execute(sql["select_siblings"], (apsw.carray(ids), REACH, REACH)).fetchall()
        own, steps, others = np.array(found, np.int64).reshape(-1, 3).T
        other_rows, present = snapshot.rows_of(others)
        place_of = dict(zip(ids.tolist(), places.tolist(), strict=True))
        columns = [STEPS.index(step) for step in steps[present].tolist()]
        siblings[[place_of[chunk_id] for chunk_id in own[present].tolist()], columns] = other_rows

    def _threads(self, rows: NDArray[np.int32]) -> Groups:
        """Return the short notes among these chunks with their neighbours, and the neighbours with theirs."""
        snapshot = self._words.snapshot
        documents = np.unique(snapshot.documents[rows[snapshot.lengths[rows] <= SHORT]]).astype(np.int64)
        if not (by_chunk := windows(self._lines(documents))):
            return NO_GROUPS
        return grouped(
            by_chunk, self._rows({chunk_id for window in by_chunk.values() for chunk_id in window} | by_chunk.keys())
        )

    def _lines(self, documents: NDArray[np.int64]) -> list[Line]:
        """Return the documents that are in a thread, with the ids before and after each."""
        sql = statements("context")
        if not documents.size or not self._execute(sql["has_threads"]).get:
            return []
        rows = self._execute(sql["select_in_threads"], (apsw.carray(documents),)).fetchall()
        others = np.setdiff1d(documents, [document_id for document_id, _, _ in rows])
        if others.size:
            rows += self._execute(sql["select_in_folders"], (apsw.carray(others),)).fetchall()
        return [(document_id, _ids(before), _ids(after)) for document_id, before, after in rows]

    def _rows(self, documents: Iterable[int]) -> dict[int, int]:
        """Return the rows of the short documents that the filter admits, by document."""
        snapshot = self._words.snapshot
        document_ids = np.array(sorted(documents), np.int64)
        pairs = self._execute(statements("context")["select_only_chunks"], (apsw.carray(document_ids),)).fetchall()
        table = np.array(sorted(pairs, key=lambda pair: pair[1]), np.int64).reshape(-1, 2)
        rows, present = snapshot.rows_of(table[:, 1])
        is_taken = snapshot.lengths[rows] <= SHORT
        if self._admitted is not None:
            is_taken &= self._admitted.mask[rows]
        return dict(zip(table[present, 0][is_taken].tolist(), rows[is_taken].tolist(), strict=True))


def _ids(text: str | None) -> list[int]:
    return [int(number) for number in text.split(",")] if text else []
