"""The neighbours of a chunk: other chunks of its document, or for a short note, other notes of its thread, in SQL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kb.index.vectors.neighbours import (
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
from kb.index.vectors.scores import NO_CONTEXT, Neighbourhood
from kb.store.postgres.full_text import FullText, SomeChunks, StoredWord
from kb.store.postgres.statements import statements
from kb.store.row_mapping import Execute
from kb.store.sql.conditions import Condition, among

if TYPE_CHECKING:
    from kb.store.postgres.vectors import VectorTable


class ContextReader:
    """Scores chunks together with their neighbours.

    Args:
        execute: the transaction's.
        words: the transaction's full-text index.
        condition: the condition of the filter on documents.
        vectors: the transaction's vectors.
    """

    def __init__(self, execute: Execute, words: FullText, condition: Condition, vectors: VectorTable) -> None:
        self._execute = execute
        self._words = words
        self._condition = condition
        self._vectors = vectors
        self._sql = statements("context")

    def scores(self, words: Sequence[StoredWord], vector: NDArray[np.float32], ids: NDArray[np.int64]) -> Neighbourhood:
        """Return the scores of chunks, given best first, that have neighbours, and of their neighbours in threads."""
        near = np.array(self._execute(self._sql["select_near"], (REACH, ids.tolist())).fetchall(), np.int64)
        near = near.reshape(-1, 4)  # id, document, index, length
        by_chunk = windows(self._lines(_short(near, ids[:THREADED])))
        chunk_of = self._only_chunks(
            {chunk_id for window in by_chunk.values() for chunk_id in window} | by_chunk.keys()
        )
        some = self._words.some(np.union1d(near[:, 0], np.array(list(chunk_of.values()), np.int64)))
        row_of = {document: int(some.rows(np.array([chunk]))[0][0]) for document, chunk in chunk_of.items()}
        groups = joined(_siblings(some, near, ids), grouped(by_chunk, row_of))
        return self._scored(some, groups, words, vector) if groups.size else NO_CONTEXT

    def _scored(
        self, some: SomeChunks, groups: Groups, words: Sequence[StoredWord], vector: NDArray[np.float32]
    ) -> Neighbourhood:
        rows, places = members(groups)
        fts = self._words.matches(some, words).in_context(rows, places, SHARES)
        vectors = self._vectors.vectors(some.chunk_ids[rows[rows >= 0]])
        return Neighbourhood(some.chunk_ids[groups[:, 0]], fts, group_cosines(rows, places, vectors, vector))

    def _lines(self, documents: Sequence[int]) -> list[Line]:
        """Return the documents that are in a thread, with their neighbours there."""
        if not documents:
            return []
        rows: list[Line] = self._execute(self._sql["select_in_threads"], (list(documents),)).fetchall()
        others = set(documents).difference(document_id for document_id, _, _ in rows)
        return rows + self._execute(self._sql["select_in_folders"], (list(others),)).fetchall() if others else rows

    def _only_chunks(self, documents: Iterable[int]) -> dict[int, int]:
        """Return the chunk of each document that consists of one short chunk, if the filter admits the document."""
        where, parameters = among(self._condition)
        sql = self._sql["select_only_chunks"].format(among=where)
        known = [document for document in documents if document != NOBODY]
        return dict(self._execute(sql, (known, SHORT, *parameters)).fetchall()) if known else {}


def _short(near: NDArray[np.int64], ids: NDArray[np.int64]) -> list[int]:
    """Return the documents that consist of one short chunk among these chunks."""
    documents_near, counts = np.unique(near[:, 1], return_counts=True)
    is_wanted = np.isin(near[:, 0], ids) & (near[:, 3] <= SHORT) & np.isin(near[:, 1], documents_near[counts == 1])
    documents: list[int] = np.unique(near[is_wanted, 1]).tolist()
    return documents


def _siblings(some: SomeChunks, near: NDArray[np.int64], ids: NDArray[np.int64]) -> Groups:
    """Return chunks with their neighbours in the document, in order."""
    chunk_at = {(document, index): chunk for chunk, document, index, _ in near.tolist()}
    own = [row for row in near.tolist() if row[0] in set(ids.tolist())]
    steps = [step for step in range(-REACH, REACH + 1) if step]
    chunks = [[chunk, *(chunk_at.get((document, index + step)) for step in steps)] for chunk, document, index, _ in own]
    numbers = {chunk: number for number, chunk in enumerate(some.chunk_ids.tolist())} | {None: NOBODY}
    groups = [[numbers[chunk] for chunk in group] for group in chunks if any(chunk is not None for chunk in group[1:])]
    return np.array(groups, np.int32).reshape(-1, 1 + 2 * REACH)
