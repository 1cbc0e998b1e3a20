"""What a search as of a former moment asks of a database in a file."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from kb.lexical.index import LexicalIndex
from kb.store.analyzer import Tokenizer
from kb.store.sqlite.former_page import former_versions, ids_within
from kb.store.sqlite.index import chunk_ids_of
from kb.store.sqlite.words import WordReader, read_snapshot

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    import apsw
    import numpy as np
    from numpy.typing import NDArray

    from kb.api.access import Limit
    from kb.store.rows import Chunk, Filter, Version
    from kb.store.sqlite.history import SqliteHistory
    from kb.store.sqlite.index import SqliteIndex
    from kb.vectors.snapshot import VectorSnapshot


class SqlitePresent:
    """See `kb.store.former_index.Present`.

    Args:
        connection: the transaction's.
        index: that of the transaction's own moment.
        words: the words in memory at that moment; without them they are read.
        vectors: its vectors.
        history: where former versions are.
    """

    def __init__(
        self,
        connection: apsw.Connection,
        index: SqliteIndex,
        words: WordReader | None,
        vectors: VectorSnapshot,
        history: SqliteHistory,
    ) -> None:
        self._connection = connection
        self._words = words
        self._history = history
        self.index = index
        self.vectors = vectors

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """That of the full text."""
        return Tokenizer(self._connection)

    @cached_property
    def words(self) -> WordReader:
        """The words of the chunks that are there."""
        if self._words is not None:
            return self._words
        snapshot = read_snapshot(self._connection)
        return WordReader(self._connection, LexicalIndex(snapshot, 0), snapshot)

    def chunk_ids(self, where: Filter) -> NDArray[np.int64]:
        """Return the chunks of the documents that a filter admits, ascending."""
        ids = chunk_ids_of(self._connection.execute, where)
        assert ids is not None  # noqa: S101 - a filter as of a moment does not admit all there are
        return ids

    def former_versions(self, instant: datetime) -> list[Version]:
        """Return the versions that stood at a moment and do not any more."""
        return former_versions(self._connection.execute, instant)

    def within(self, limit: Limit, ids: Collection[int]) -> set[int]:
        """Return which of these documents a limit admits as they are today, there or in the bin."""
        return ids_within(self._connection.execute, limit, ids)

    def chunks(self, version: Version) -> list[Chunk]:
        """Return the chunks of a version."""
        return self._history.chunks(version)

    def vectors_of(self, version: Version, count: int) -> NDArray[np.float32] | None:
        """Return the vectors of a former version's chunks, if they are kept."""
        return self._history.vectors(version, count)
