"""Keyword search and semantic search, in SQL and in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain

import apsw
import numpy as np
from numpy.typing import NDArray

from kb.index.vectors.protocol import Among, VectorSnapshot
from kb.index.vectors.scores import EMPTY_SCORES, NO_CONTEXT, Neighbourhood, ScoredChunks
from kb.index.words.compounds import Part
from kb.index.words.index import HEADER_WEIGHT
from kb.index.words.matches import Matches, Occurrences
from kb.index.words.other_scripts import languages_in
from kb.index.words.postings import merged
from kb.index.words.query_word_groups import alternatives
from kb.index.words.snapshot import Admitted, group_key
from kb.index.words.speller import Speller
from kb.index.words.stems import completed
from kb.store.analyzer import Analyzer, FtsTokenizer
from kb.store.row_mapping import Execute, listed_ids
from kb.store.rows import Filter
from kb.store.sql.conditions import EVERY_DOCUMENT
from kb.store.sql.index import Index
from kb.store.sqlite.context import ContextReader
from kb.store.sqlite.document_query import SqliteConditions, quoted
from kb.store.sqlite.full_text_cache import WordReader
from kb.store.sqlite.statements import statements
from kb.store.sqlite.vectors import Vectors
from kb.store.sqlite.vocabulary import SqliteVocabulary

Terms = tuple[str, ...]

# Without the plus, FTS5 would query its index once per chunk.
AMONG = "AND +rowid IN carray(?)"


class SqliteIndex(Index):
    """See `kb.store.protocol.Index`."""

    def __init__(self, connection: apsw.Connection, vectors: Vectors, words: WordReader | None) -> None:
        super().__init__(connection.execute, statements("search"))
        self._connection = connection
        self._snapshot = vectors.seen_by(connection)
        self._words = words

    @cached_property
    def analyzer(self) -> Analyzer:
        return Analyzer(FtsTokenizer(self._connection))

    @property
    def written(self) -> set[str]:
        blocks = self._words.blocks if self._words else ()
        return {*self.languages, *languages_in(blocks)}

    def known(self, tokens: Sequence[str]) -> set[str]:
        return SqliteVocabulary(self._connection, self._words, None).known(tokens) if self._words else set()

    def compounds(self, part: Part) -> list[str]:
        return self._words.compounds(part, lambda token: bool(self.known([token]))) if self._words else []

    def select(self, where: Filter) -> SqliteSelection:
        return SqliteSelection(self._connection, self._snapshot, self._words, where)

    def documents_of(self, chunk_ids: NDArray[np.int64]) -> list[int]:
        if self._words:
            rows, found_rows = self._words.snapshot.rows_of(chunk_ids)
            if found_rows.all():
                documents: list[int] = self._words.snapshot.documents[rows].tolist()
                return documents
        return super().documents_of(chunk_ids)


class SqliteSelection:
    """See `kb.store.protocol.Selection`. Computes the data for a query once, on first use.

    Args:
        connection: the transaction's.
        snapshot: the vectors.
        words: the words in memory; if None, SQLite searches.
        where: the filter.
    """

    def __init__(
        self, connection: apsw.Connection, snapshot: VectorSnapshot, words: WordReader | None, where: Filter
    ) -> None:
        self._connection = connection
        self._execute: Execute = connection.execute
        self._snapshot = snapshot
        self._words = words
        self._where = where
        self._admitted = self._admit(words) if words else None
        self._leg = MemoryLeg(words, self._admitted) if words else self._table
        self._legs: dict[Terms, MemoryLeg | TableLeg] = {}

    def chunk_ids(self) -> NDArray[np.int64]:
        if self._words and self._admitted:
            return self._words.snapshot.ids[self._admitted.rows].astype(np.int64)
        ids = admitted_chunk_ids(self._execute, self._where)
        return self._snapshot.ids if ids is None else ids

    def full_text(self, words: Sequence[str], limit: int) -> ScoredChunks:
        return self._leg_for(words).best(self._completed(words), limit) if words else EMPTY_SCORES

    def look_up(self, words: Iterable[str]) -> None:
        """Do nothing: words are in memory, or are read on first use."""

    def best_ids(self, words: Sequence[str], limit: int) -> NDArray[np.int64]:
        return self.full_text(words, limit).ids

    def full_text_scores(self, words: Sequence[str], ids: NDArray[np.int64]) -> NDArray[np.float64]:
        return self._leg_for(words).scores(self._completed(words), ids) if words else np.full(ids.size, np.nan)

    def occurrences(self, words: Sequence[str], ids: NDArray[np.int64]) -> list[Occurrences | None]:
        """Return the occurrences of each word; also None for a word that only SQLite can search."""
        if self._words is None:
            return [None] * len(words)
        rows, _ = self._words.snapshot.rows_of(ids)
        legs = [(word, self._leg_for((word,))) for word in words]
        return [leg.occurrences(word, rows) if isinstance(leg, MemoryLeg) else None for word, leg in legs]

    def nearest(self, vector: NDArray[np.float32], limit: int, *, exact: bool = False) -> ScoredChunks:
        return self._snapshot.nearest(vector, limit, self._leg.among(self._snapshot.ids), exact=exact)

    def cosines(self, vector: NDArray[np.float32], ids: NDArray[np.int64]) -> NDArray[np.float64]:
        return self._snapshot.cosines(vector, ids)

    def vectors(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        return self._snapshot.vectors(ids)

    def in_context(self, words: Sequence[str], vector: NDArray[np.float32], ids: NDArray[np.int64]) -> Neighbourhood:
        leg = self._leg_for(words)
        if self._words is None or not isinstance(leg, MemoryLeg):  # SQLite would read the length of every chunk
            return NO_CONTEXT
        reader = ContextReader(self._execute, self._words, self._admitted, self._snapshot)
        return reader.scores(leg.matches(tuple(words)), vector, ids)

    def unknown(self, words: Sequence[str]) -> dict[str, list[str]]:
        """Return the unknown words with suggestions, or nothing if the words are not in memory."""
        if self._words is None or not words:
            return {}
        return Speller(SqliteVocabulary(self._connection, self._words, self._admitted)).unknown(words)

    def _completed(self, words: Sequence[str]) -> Terms:
        """Return the words, and for each prefix among them the words that have the prefix but whose stems do not."""
        return completed(words, self._tokenizer.tokens)

    @cached_property
    def _tokenizer(self) -> FtsTokenizer:
        return FtsTokenizer(self._connection)

    def _leg_for(self, words: Sequence[str]) -> MemoryLeg | TableLeg:
        key = tuple(words)
        if key not in self._legs:
            self._legs[key] = self._table if self._words and self._words.lacks(key) else self._leg
        return self._legs[key]

    @cached_property
    def _table(self) -> TableLeg:
        return TableLeg(self._execute, admitted_chunk_ids(self._execute, self._where))

    def _admit(self, words: WordReader) -> Admitted | None:
        """Return the chunks that the filter admits; None for every chunk."""
        holding, lacking = self._where.holding, self._where.lacking
        known = {text: ids for text in (*holding, *lacking) if (ids := words.documents_with(text)) is not None}
        where = replace(
            self._where,
            holding=tuple(text for text in holding if text not in known),
            lacking=tuple(text for text in lacking if text not in known),
        )
        queries = SqliteConditions(self._execute).id_queries(where)
        groups = [(is_wanted, listed_ids(self._execute(sql, parameters).get)) for is_wanted, sql, parameters in queries]
        groups += [(True, known[text]) for text in holding if text in known]
        groups += [(False, known[text]) for text in lacking if text in known]
        return words.snapshot.admit(groups) if groups else None


class MemoryLeg:
    """Keyword search with the words in memory.

    Args:
        admitted: the chunks to choose from; None for all.
    """

    def __init__(self, words: WordReader, admitted: Admitted | None) -> None:
        self._words = words
        self._admitted = admitted
        self._matches: dict[Terms, Matches] = {}

    def among(self, ids: NDArray[np.int64]) -> Among:
        """Return the chunks to choose from, as a subset of these ascending ids; None for all."""
        return None if self._admitted is None else self._admitted.among(ids)

    def best(self, words: Terms, limit: int) -> ScoredChunks:
        """Return the `limit` chunks that match best."""
        if self._admitted is not None and not self._admitted.rows.size:
            return EMPTY_SCORES
        rows, scores = self.matches(words).best(limit, self._admitted)
        return ScoredChunks(self._words.snapshot.ids[rows].astype(np.int64), scores).best(limit)

    def scores(self, words: Terms, ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the scores of these chunks; NaN for chunks that do not match."""
        rows, present = self._words.snapshot.rows_of(ids)
        scores = np.full(ids.size, np.nan)
        scores[present] = self.matches(words).scores(rows)
        return scores

    def occurrences(self, word: str, rows: NDArray[np.int32]) -> Occurrences | None:
        """Return the occurrences of a word in the chunks of these rows."""
        return self.matches((word,)).occurrences(rows)

    def matches(self, words: Terms) -> Matches:
        """Return the chunks that have any of the words."""
        if words not in self._matches:
            groups = [keys for group in alternatives(words) if (keys := self._words.keys(group))]
            keyed = [(group_key(keys), merged([*map(self._words.postings, keys)])) for keys in groups]
            self._matches[words] = Matches(self._words.snapshot, keyed)
        return self._matches[words]


class TableLeg:
    """Keyword search with SQLite.

    Args:
        execute: the transaction's.
        ids: the chunks to choose from, ascending; None for all.
    """

    def __init__(self, execute: Execute, ids: NDArray[np.int64] | None) -> None:
        self._execute = execute
        self._ids = ids

    def among(self, ids: NDArray[np.int64]) -> Among:
        return self._ids

    def best(self, words: Terms, limit: int) -> ScoredChunks:
        """Return the `limit` chunks that match best."""
        if self._ids is not None and not self._ids.size:
            return EMPTY_SCORES
        among = "" if self._ids is None else AMONG
        parameters = () if self._ids is None else (apsw.carray(self._ids),)
        return self._scored(words, f"{among} ORDER BY score DESC, rowid LIMIT ?", (*parameters, limit))

    def scores(self, words: Terms, ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the scores of these chunks; NaN for chunks that do not match."""
        if not ids.size:
            return np.empty(0)
        return self._scored(words, AMONG, (apsw.carray(ids),)).scores_for(ids)

    def _scored(self, words: Terms, rest: str, parameters: tuple[object, ...]) -> ScoredChunks:
        rows = self._execute(
            f"SELECT rowid, -bm25(chunks_fts, 1.0, ?) AS score FROM chunks_fts WHERE chunks_fts MATCH ? {rest}",
            (float(HEADER_WEIGHT), match_expression(words), *parameters),
        ).fetchall()
        table = np.fromiter(chain.from_iterable(sorted(rows)), np.float64, 2 * len(rows)).reshape(-1, 2)
        return ScoredChunks(table[:, 0].astype(np.int64), table[:, 1])


def match_expression(words: Iterable[str]) -> str:
    """Return the FTS5 expression for any of the words. Each word is quoted, so no word can be a syntax error."""
    return " OR ".join(map(quoted, words))


def admitted_chunk_ids(execute: Execute, where: Filter) -> NDArray[np.int64] | None:
    """Return the ids of the chunks that a filter admits, ascending; None for all chunks."""
    condition, parameters = SqliteConditions(execute).admitted(where)
    if (condition, parameters) == EVERY_DOCUMENT:
        return None
    # CROSS JOIN makes SQLite start with the left side.
    ids = execute(
        f"SELECT group_concat(chunks.id) FROM (SELECT id AS admitted FROM documents WHERE {condition})"
        " CROSS JOIN chunks ON document_id = admitted",
        parameters,
    ).get
    return np.sort(listed_ids(ids))
