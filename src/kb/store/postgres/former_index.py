"""What a search as of a former moment asks of PostgreSQL: it reads how long every chunk is."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from kb.api.errors import StoreError
from kb.lexical.postings import Postings
from kb.lexical.segment import as_phrase
from kb.lexical.snapshot import MAX_ID, LexicalSnapshot
from kb.store.postgres.document_query import admitted, among
from kb.store.postgres.former_page import former_versions, ids_within
from kb.store.postgres.statements import statements

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from datetime import datetime

    from numpy.typing import NDArray

    from kb.api.access import Limit
    from kb.lexical.snapshot import Key
    from kb.store.analyzer import Tokenizer
    from kb.store.postgres.history import PostgresHistory
    from kb.store.postgres.index import PostgresIndex
    from kb.store.postgres.vectors import VectorTable
    from kb.store.postgres.words import FullText, Phrase
    from kb.store.row_mapping import Execute
    from kb.store.rows import Chunk, Filter, Version
    from kb.vectors.scores import ScoredChunks


class PostgresPresent:
    """See `kb.store.former_index.Present`.

    Args:
        execute: the transaction's.
        index: that of the transaction's own moment.
        words: its full text.
        vectors: its vectors.
        history: where former versions are.
    """

    def __init__(
        self,
        execute: Execute,
        index: PostgresIndex,
        words: FullText,
        vectors: VectorTable,
        history: PostgresHistory,
    ) -> None:
        self._execute = execute
        self._words = words
        self._history = history
        self.index = index
        self.vectors = ChosenVectors(vectors)

    @property
    def tokenizer(self) -> Tokenizer:
        """That of the full text."""
        return self._words.tokenizer

    @cached_property
    def words(self) -> AllWords:
        """The words of the chunks that are there."""
        return AllWords(self._execute, self._words)

    def chunk_ids(self, where: Filter) -> NDArray[np.int64]:
        """Return the chunks of the documents that a filter admits, ascending."""
        condition, parameters = among(admitted(self._words, where))
        rows = self._execute(statements("words")["select_chunk_ids"].format(among=condition), parameters)
        return np.array([chunk_id for (chunk_id,) in rows], np.int64)

    def former_versions(self, instant: datetime) -> list[Version]:
        """Return the versions that stood at a moment and do not any more."""
        return former_versions(self._execute, instant)

    def within(self, limit: Limit, ids: Collection[int]) -> set[int]:
        """Return which of these documents a limit admits as they are today, there or in the bin."""
        return ids_within(self._execute, limit, ids)

    def chunks(self, version: Version) -> list[Chunk]:
        """Return the chunks of a version."""
        return self._history.chunks(version)

    def vectors_of(self, version: Version, count: int) -> NDArray[np.float32] | None:
        """Return the vectors of a former version's chunks, if they are kept."""
        return self._history.vectors(version, count)


class AllWords:
    """See `kb.store.former_index.PresentWords`.

    Raises:
        StoreError: the ids of chunks are too high for it.
    """

    def __init__(self, execute: Execute, words: FullText) -> None:
        self._words = words
        rows = execute(statements("words")["select_all_lengths"]).fetchall()
        table = np.array(rows, np.int64).reshape(-1, 3)
        if table.max(initial=0) > MAX_ID:
            raise StoreError("There are too many chunks for a search as of a former moment.")
        self.snapshot = LexicalSnapshot.of(0, *(np.ascontiguousarray(column, np.int32) for column in table.T))

    def keys(self, words: Iterable[str]) -> list[Key]:
        """Return what the full text has of the words."""
        return [key for word in words if (key := tuple(self._words.tokenizer.tokens(as_phrase(word))))]

    def postings(self, key: Key) -> Postings:
        """Return in which rows a word stands."""
        return self._postings(self._words.phrase(key))

    def begun(self, beginning: str) -> Postings:
        """Return in which rows tokens stand that begin so, all as one word."""
        return self._postings(self._words.phrase([beginning], begins=True))

    def _postings(self, phrase: Phrase | None) -> Postings:
        if phrase is None:
            return Postings.of(np.empty(0, np.int32), np.empty(0, np.int64))
        rows, found = self.snapshot.rows_of(phrase.chunk_ids)
        return Postings.of(rows, phrase.counts[found])


class ChosenVectors:
    """See `kb.store.former_index.PresentVectors`."""

    def __init__(self, vectors: VectorTable) -> None:
        self._table = vectors

    def nearest(
        self, query: NDArray[np.float32], limit: int, among: NDArray[np.int64], *, exact: bool = False
    ) -> ScoredChunks:
        """Return the `limit` of these chunks nearest to a unit vector, after looking at each."""
        return self._table.nearest_of(query, limit, among)

    def cosines(self, query: NDArray[np.float32], ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how near these chunks are to a unit vector."""
        return self._table.cosines(query, ids)

    def vectors(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the vectors of these chunks by ascending id."""
        return self._table.vectors(ids)
