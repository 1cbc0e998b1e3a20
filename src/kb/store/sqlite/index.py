"""The two legs of search, in SQL and in memory."""

from __future__ import annotations

import json
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import apsw
import numpy as np

from kb.store.sqlite.document_query import EVERY_DOCUMENT, admitted
from kb.store.sqlite.row_mapping import Execute, hit_of, mapped
from kb.store.sqlite.statements import statements
from kb.vectors.scores import EMPTY_SCORES, ScoredChunks

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from kb.store.rows import Filter, Hit
    from kb.store.sqlite.vectors import Vectors
    from kb.vectors.snapshot import Snapshot

HEADER_WEIGHT = 2.0
TOKENIZER = ("porter", ["unicode61", "remove_diacritics", "2"])
"""That of `chunks_fts`."""

QUOTED = str.maketrans({'"': '""', "\0": " "})
"""How a word stands between quotation marks in FTS5's syntax."""


class SqliteIndex:
    """See `kb.store.protocol.Index`."""

    def __init__(self, connection: apsw.Connection, vectors: Vectors) -> None:
        self._connection = connection
        self._execute: Execute = connection.execute
        self._snapshot = vectors.seen_by(connection)

    @cached_property
    def analyzer(self) -> Fts5Analyzer:
        """The analyzer of the full-text index."""
        return Fts5Analyzer(self._connection)

    def select(self, where: Filter) -> SqliteSelection:
        """Return the chunks that `where` admits."""
        return SqliteSelection(self._execute, self._snapshot, where)

    def hits(self, chunk_ids: Sequence[int]) -> list[Hit]:
        """Return the chunks with their documents, in the order given."""
        rows = self._execute(statements("search")["select_hits"], (json.dumps(chunk_ids),))
        found = {hit.chunk_id: hit for hit in mapped(hit_of, rows)}
        return [found[chunk_id] for chunk_id in chunk_ids]


class SqliteSelection:
    """See `kb.store.protocol.Selection`. What a query needs is found out once, when it is first needed."""

    def __init__(self, execute: Execute, snapshot: Snapshot, where: Filter) -> None:
        self._execute = execute
        self._snapshot = snapshot
        self._where = where
        self._matched: dict[tuple[str, ...], ScoredChunks] = {}

    def full_text(self, words: Sequence[str], limit: int) -> ScoredChunks:
        """Return the `limit` chunks that match any of the words best."""
        return self._matches(words).best(limit)

    def full_text_scores(self, words: Sequence[str], ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how well these chunks match; NaN for one that has none of the words."""
        return self._matches(words).scores_for(ids)

    def nearest(self, vector: NDArray[np.float32], limit: int, *, exact: bool = False) -> ScoredChunks:
        """Return the `limit` chunks nearest to a unit vector, by cosine."""
        return self._snapshot.nearest(vector, limit, self._ids, exact=exact)

    def cosines(self, vector: NDArray[np.float32], ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how near these chunks are to a unit vector."""
        return self._snapshot.cosines(vector, ids)

    @cached_property
    def _ids(self) -> NDArray[np.int64] | None:
        """The ids of the chunks, ascending; None if they are all there are."""
        condition, parameters = admitted(self._execute, self._where)
        if (condition, parameters) == EVERY_DOCUMENT:
            return None
        # One text is read faster than a row for each id. CROSS JOIN: SQLite shall begin on the left.
        ids = self._execute(
            f"SELECT group_concat(chunks.id) FROM (SELECT id AS admitted FROM documents WHERE {condition})"
            " CROSS JOIN chunks ON document_id = admitted",
            parameters,
        ).get
        return np.sort(np.fromstring(ids, np.int64, sep=",")) if ids else EMPTY_SCORES.ids

    def _matches(self, words: Sequence[str]) -> ScoredChunks:
        """Return every chunk that matches, by BM25: SQLite finds no limited number of them any faster."""
        key = tuple(words)
        if key not in self._matched:
            is_empty = not key or (self._ids is not None and not self._ids.size)
            self._matched[key] = EMPTY_SCORES if is_empty else self._match(key)
        return self._matched[key]

    def _match(self, words: tuple[str, ...]) -> ScoredChunks:
        # The plus keeps FTS5 from asking its index anew for each chunk that the filter admits.
        among = "" if self._ids is None else "AND +rowid IN carray(?)"
        parameters = () if self._ids is None else (apsw.carray(self._ids),)
        rows = self._execute(
            f"SELECT rowid, -bm25(chunks_fts, 1.0, ?) FROM chunks_fts WHERE chunks_fts MATCH ? {among} ORDER BY rowid",
            (HEADER_WEIGHT, match_expression(words), *parameters),
        ).fetchall()
        table = np.fromiter(chain.from_iterable(rows), np.float64, 2 * len(rows)).reshape(-1, 2)
        return ScoredChunks(table[:, 0].astype(np.int64), table[:, 1])


class Fts5Analyzer:
    """See `kb.store.protocol.Analyzer`."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._tokenize: Any = connection.fts5_tokenizer(*TOKENIZER)

    def stems(self, text: str) -> Iterable[tuple[int, int, str]]:
        """Return each word of the text: where it begins and ends, and its stem."""
        raw = text.encode()
        tokens: list[tuple[int, int, str]] = self._tokenize(
            raw, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_colocated=False
        )
        if len(raw) == len(text):
            return tokens
        characters = _characters_before(raw)
        return ((characters[start], characters[end], stem) for start, end, stem in tokens)


def match_expression(words: Iterable[str]) -> str:
    """Return the FTS5 expression for any of the words; as each is quoted, none is a syntax error."""
    return " OR ".join(f'"{word.translate(QUOTED)}"' for word in words)


def _characters_before(raw: bytes) -> list[int]:
    """Return how many characters begin before each byte of UTF-8, and in all of it."""
    begins = (np.frombuffer(raw, np.uint8) & 0xC0) != 0x80
    return [0, *np.cumsum(begins).tolist()]
