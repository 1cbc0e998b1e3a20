"""Keyword and semantic search, in SQL."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kb.index.vectors.scores import EMPTY_SCORES, Neighbourhood, ScoredChunks
from kb.index.words.compounds import Part
from kb.index.words.matches import Occurrences
from kb.index.words.speller import Speller
from kb.index.words.stems import completed
from kb.store.analyzer import Analyzer
from kb.store.postgres.context import ContextReader
from kb.store.postgres.document_query import PostgresConditions
from kb.store.postgres.full_text import FullText, StoredWord
from kb.store.postgres.statements import statements
from kb.store.postgres.vocabulary import PostgresVocabulary
from kb.store.row_mapping import Execute
from kb.store.rows import Filter
from kb.store.sql.conditions import among
from kb.store.sql.index import Index

if TYPE_CHECKING:
    from kb.store.postgres.vectors import VectorTable


class PostgresIndex(Index):
    """See `kb.store.protocol.Index`."""

    def __init__(self, execute: Execute, words: FullText, vectors: VectorTable) -> None:
        super().__init__(execute, statements("search"))
        self._words = words
        self._vectors = vectors

    @cached_property
    def analyzer(self) -> Analyzer:
        return Analyzer(self._words.tokenizer)

    def known(self, tokens: Sequence[str]) -> Collection[str]:
        return self._words.terms(tokens).keys()

    def compounds(self, part: Part) -> list[str]:
        return self._words.compounds(part)

    def select(self, where: Filter) -> PostgresSelection:
        return PostgresSelection(self._execute, self._words, self._vectors, where)


class PostgresSelection:
    """See `kb.store.protocol.Selection`. It reads the data for a query once, when first needed."""

    def __init__(self, execute: Execute, words: FullText, vectors: VectorTable, where: Filter) -> None:
        self._execute = execute
        self._words = words
        self._vectors = vectors
        self._condition = PostgresConditions(execute, words).admitted(where)
        self._looked_up: dict[tuple[str, ...], list[StoredWord]] = {}

    def chunk_ids(self) -> NDArray[np.int64]:
        where, parameters = among(self._condition)
        rows = self._execute(statements("words")["select_chunk_ids"].format(among=where), parameters).fetchall()
        return np.array([chunk_id for (chunk_id,) in rows], np.int64)

    def full_text(self, words: Sequence[str], limit: int) -> ScoredChunks:
        return self._words.best(self._look_up(words), self._condition, limit) if words else EMPTY_SCORES

    def look_up(self, words: Iterable[str]) -> None:
        self._words.learn(words)

    def best_ids(self, words: Sequence[str], limit: int) -> NDArray[np.int64]:
        return self._words.best_ids(self._look_up(words), self._condition, limit)

    def full_text_scores(self, words: Sequence[str], ids: NDArray[np.int64]) -> NDArray[np.float64]:
        return self._words.scores(self._look_up(words), ids)

    def occurrences(self, words: Sequence[str], ids: NDArray[np.int64]) -> list[Occurrences | None]:
        return self._words.occurrences(words, ids)

    def nearest(self, vector: NDArray[np.float32], limit: int, *, exact: bool = False) -> ScoredChunks:
        return self._vectors.nearest(vector, limit, self._condition, exact=exact)

    def cosines(self, vector: NDArray[np.float32], ids: NDArray[np.int64]) -> NDArray[np.float64]:
        return self._vectors.cosines(vector, ids)

    def vectors(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        return self._vectors.vectors(ids)

    def in_context(self, words: Sequence[str], vector: NDArray[np.float32], ids: NDArray[np.int64]) -> Neighbourhood:
        reader = ContextReader(self._execute, self._words, self._condition, self._vectors)
        return reader.scores(self._look_up(words), vector, ids)

    def unknown(self, words: Sequence[str]) -> dict[str, list[str]]:
        self._words.learn(words)
        return Speller(PostgresVocabulary(self._words, self._condition)).unknown(words) if words else {}

    def _look_up(self, words: Sequence[str]) -> list[StoredWord]:
        if (key := tuple(words)) not in self._looked_up:
            self._looked_up[key] = self._words.look_up(completed(words, self._words.tokenizer.tokens))
        return self._looked_up[key]
