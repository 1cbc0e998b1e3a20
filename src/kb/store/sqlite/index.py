"""The two legs of search, in SQL and in memory."""

from __future__ import annotations

import json
from itertools import chain
from typing import TYPE_CHECKING, Any

import apsw
import numpy as np

from kb.store.rows import Filter, Hit
from kb.store.sqlite.document_query import condition_of, without_unused
from kb.store.sqlite.statements import statements
from kb.store.sqlite.values import Execute, hit_of, mapped
from kb.vectors.scored import Scored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kb.store.sqlite.vectors import Vectors

HEADER_WEIGHT = 2.0
TOKENIZER = ("porter", ["unicode61", "remove_diacritics", "2"])
"""That of `chunks_fts`."""


class SqliteIndex:
    """See `kb.store.protocol.Index`."""

    def __init__(self, connection: apsw.Connection, vectors: Vectors) -> None:
        self._connection = connection
        self._execute: Execute = connection.execute
        self._snapshot = vectors.seen_by(connection)

    def matches(self, match: str, where: Filter) -> Scored:
        """Every chunk that matches, by BM25, the header's words counting more."""
        where = without_unused(self._execute, where)
        # The plus keeps FTS5 from asking its index anew for each chunk that the filter admits.
        among, parameters = ("", ()) if where == Filter() else _chunks_of(where)
        rows = self._execute(
            "SELECT rowid, -bm25(chunks_fts, 1.0, ?) FROM chunks_fts WHERE chunks_fts MATCH ?"
            f" {f'AND +rowid IN ({among})' if among else ''} ORDER BY rowid",
            (HEADER_WEIGHT, match, *parameters),
        ).fetchall()
        table = np.fromiter(chain.from_iterable(rows), np.float64, 2 * len(rows)).reshape(-1, 2)
        return Scored(table[:, 0].astype(np.int64), table[:, 1])

    def nearest(self, vector: NDArray[np.float32], where: Filter, limit: int) -> Scored:
        """The `limit` chunks nearest to a unit vector, by cosine."""
        return self._snapshot.nearest(vector, limit, self._allowed(where))

    def cosines(self, vector: NDArray[np.float32], ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """How near these chunks are to a unit vector."""
        return self._snapshot.cosines(vector, ids)

    def hits(self, chunk_ids: Sequence[int]) -> list[Hit]:
        """The chunks with their documents, in the order given."""
        rows = self._execute(statements("search")["select_hits"], (json.dumps(chunk_ids),))
        found = {hit.chunk_id: hit for hit in mapped(hit_of, rows)}
        return [found[chunk_id] for chunk_id in chunk_ids]

    def highlights(self, text: str, words: Sequence[str]) -> list[tuple[int, int]]:
        """The ranges of `text` that match one of `words`, as the full-text leg compares them."""
        raw = text.encode()
        wanted = {stem for word in words for _, _, stem in self._tokens(word.encode())}
        edges = [(start, end) for start, end, stem in self._tokens(raw) if stem in wanted]
        characters = _characters_at(raw, [edge for pair in edges for edge in pair])
        return list(zip(characters[::2], characters[1::2], strict=True))

    def _tokens(self, raw: bytes) -> list[tuple[int, int, str]]:
        tokenizer = self._connection.fts5_tokenizer(*TOKENIZER)
        tokens: Any = tokenizer(raw, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_colocated=False)
        return list(tokens)

    def _allowed(self, where: Filter) -> NDArray[np.int64] | None:
        """The ids of all chunks that `where` admits, ascending; None if it admits every one."""
        where = without_unused(self._execute, where)
        if where == Filter():
            return None
        among, parameters = _chunks_of(where)
        return np.array(self._execute(f"{among} ORDER BY id", parameters).fetchall(), np.int64).reshape(-1)


def _characters_at(raw: bytes, edges: Sequence[int]) -> list[int]:
    """The numbers of the characters at ascending byte offsets."""
    characters, count, last = [], 0, 0
    for edge in edges:
        count += len(raw[last:edge].decode())
        characters.append(count)
        last = edge
    return characters


def _chunks_of(where: Filter) -> tuple[str, tuple[object, ...]]:
    condition, parameters = condition_of(where)
    return f"SELECT id FROM chunks WHERE document_id IN (SELECT id FROM documents WHERE {condition})", parameters
