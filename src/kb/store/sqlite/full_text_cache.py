"""The words of the table `chunks_fts` in memory, at each point in time that a transaction may see.

`chunks_fts` is the source of truth: the first transaction that needs a word reads it from there.
Snapshots are numbered like the snapshots of the vectors; see vectors.py.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, TypeVar

import apsw
import numpy as np
from numpy.typing import NDArray

from kb.index.words.compounds import Part
from kb.index.words.index import HEADER_WEIGHT, LexicalIndex
from kb.index.words.matches import term_frequencies
from kb.index.words.postings import Postings
from kb.index.words.segmentation import as_phrase
from kb.index.words.snapshot import MAX_ID, IndexedChunk, Key, LexicalSnapshot
from kb.store.analyzer import FtsTokenizer
from kb.store.sqlite.document_query import quoted
from kb.store.sqlite.statements import statements
from kb.store.sqlite.vectors import generation

logger = logging.getLogger(__name__)

Integer = TypeVar("Integer", np.int32, np.int64)

DEFAULT_LIMIT = 256 << 20

# The cache keeps no postings of words with more tokens.
MAX_TOKENS = 8

# No token contains this character: a prefix followed by it sorts after all tokens with the prefix.
LAST = chr(0x10FFFF)

# Tokens per read.
TERMS = 20_000

PHRASE_ROW = np.dtype([("id", ">u4"), ("score", ">u8")])
SCORE_BITS = 57
"""A row of `select_phrase` is a chunk's id and its score times `2**SCORE_BITS`."""

# The maximum number of bytes of a column's length.
MAX_VARINT = 4

# The columns of `chunks_fts`: the length of a chunk is one number per column.
COLUMNS = 2

# Chunks per read of lengths: reading takes many times the memory of the result.
BLOCK = 65_536


class Words:
    """The snapshots and words that transactions may still see. One writer at a time; any number of readers.

    Args:
        connection: the connection for reading the newest snapshot.
        limit: the memory for words, in bytes.
    """

    def __init__(self, connection: apsw.Connection, limit: int = DEFAULT_LIMIT) -> None:
        self.faults = 0
        self._index: LexicalIndex | None = None
        try:
            if _fits(connection):
                self._index = LexicalIndex(read_snapshot(connection), limit)
        except (apsw.CorruptError, ValueError) as error:
            self.give_up(error)

    @property
    def newest(self) -> int | None:
        """The number of the newest snapshot; None if ids are too high or the full text is damaged."""
        return index.newest if (index := self._index) else None

    @property
    def size(self) -> int:
        """The memory that words take, in bytes."""
        return index.size if (index := self._index) else 0

    @property
    def is_half_full(self) -> bool:
        """Whether words take half of the limit."""
        return not (index := self._index) or index.is_half_full

    def seen_by(self, connection: apsw.Connection) -> WordReader | None:
        """Return the words of the snapshot that the connection's transaction sees; None if it is not in memory."""
        if (index := self._index) and (snapshot := index.snapshot(generation(connection))):
            return WordReader(connection, index, snapshot)
        return None

    def publish(self, connection: apsw.Connection, number: int, added: Sequence[int], removed: Collection[int]) -> None:
        """Make the next snapshot from the chunks that the connection's transaction wrote and removed.

        Transactions that read its number see it.
        """
        if self._index and not _fits(connection):
            self._index = None
        if index := self._index:
            index.publish(number, indexed_chunks(connection, added), removed)

    def replace(self, connection: apsw.Connection, number: int, changed: Sequence[int]) -> None:
        """Make the next snapshot, with the new words of some chunks."""
        if (index := self._index) and (snapshot := index.snapshot(index.newest)):
            index.replace(snapshot.with_lengths(number, *chunk_lengths(connection, changed)))

    def withdraw(self) -> None:
        """Remove the newest snapshot, because its transaction was rolled back."""
        if index := self._index:
            index.withdraw()

    def reset(self, connection: apsw.Connection) -> None:
        """Read everything again after an error in memory was found."""
        self.faults += 1
        try:
            if index := self._index:
                index.reset(read_snapshot(connection))
        except (apsw.CorruptError, ValueError) as error:
            self.give_up(error)

    def learn_terms(self, connection: apsw.Connection) -> None:
        """Read every token that the connection's transaction sees, unless they are in memory or damaged."""
        if not (index := self._index) or index.terms.is_unreadable:
            return
        try:
            learn_terms(connection, index)
        except apsw.CorruptError:
            index.terms.is_unreadable = True
            raise

    def give_up(self, reason: object) -> None:
        """Keep no words in memory until the next start, because the full text in the database is damaged."""
        self.faults += 1
        self._index = None
        logger.warning(
            "the keyword index in the database is damaged (%s), so that kb searches it on disk, which takes longer:"
            " run 'kb doctor'",
            reason,
        )


class WordReader:
    """The words of the snapshot of a transaction. Words that are not in memory are read in the same transaction."""

    def __init__(self, connection: apsw.Connection, index: LexicalIndex, snapshot: LexicalSnapshot) -> None:
        self._connection = connection
        self._index = index
        self._keys: dict[str, Key] = {}
        self._phrases: dict[Key, str] = {}
        self.snapshot = snapshot

    def keys(self, words: Iterable[str]) -> list[Key]:
        """Return the keys of the words in the index; words without tokens are left out."""
        return [key for word in words if (key := self._key(word))]

    def lacks(self, words: Sequence[str]) -> bool:
        """Return whether SQLite must search for the words: if one is a prefix or has too many tokens."""
        return any(word.endswith("*") for word in words) or any(len(key) > MAX_TOKENS for key in self.keys(words))

    def postings(self, key: Key) -> Postings:
        """Return the rows that contain a word."""
        return self._index.postings(self.snapshot, key, lambda: self._load(key))

    def documents_with(self, text: str) -> NDArray[np.int64] | None:
        """Return the documents that contain a text, some of them repeatedly; None if SQLite must search for it."""
        key = self._key(text)
        if not 0 < len(key) <= MAX_TOKENS or quoted(text, begins=True).endswith("*"):
            return None
        rows = self.postings(key).rows
        standing = rows[~np.isin(rows, self.snapshot.dead)] if self.snapshot.dead.size else rows
        return self.snapshot.documents[standing].astype(np.int64)

    def possible(self, tokens: Sequence[str]) -> Sequence[str]:
        """Return the tokens that may occur in a chunk; much faster than an exact answer."""
        return self._index.terms.possible(tokens, self.snapshot.number)

    @property
    def blocks(self) -> Collection[int]:
        """The blocks of Unicode in which tokens begin."""
        return self._index.blocks

    def compounds(self, part: Part, is_known: Callable[[str], bool]) -> list[str]:
        """Return the tokens that are compounds with a word."""
        learn_terms(self._connection, self._index)
        return self._index.compounds.containing(part, is_known)

    def _key(self, word: str) -> Key:
        if word not in self._keys:
            text = word.removesuffix("*")
            self._keys[word] = tuple(self._tokenizer.tokens(as_phrase(text)))
            self._phrases[self._keys[word]] = text
        return self._keys[word]

    def _load(self, key: Key) -> Postings:
        if len(self.possible(key)) < len(key):
            return Postings.of(np.empty(0, np.int32), np.empty(0, np.int64))
        return self._phrase(key) if len(key) > 1 else self._token(key[0])

    def _token(self, token: str) -> Postings:
        blob = self._connection.execute(statements("postings")["select_token"], (token,)).get
        values = _numbers(blob, ">u4", np.int64)
        ids, counts = _counted(values >> 1, values & 1)
        rows, present = self.snapshot.rows_of(ids)
        return Postings.of(rows, counts[present])

    def _phrase(self, key: Key) -> Postings:
        """Return the rows in which FTS5 finds a phrase, with frequencies computed from scores instead of positions."""
        expression = quoted(self._phrases[key])
        blob = self._connection.execute(statements("postings")["select_phrase"], (expression,)).get
        hits = np.frombuffer(blob or b"", PHRASE_ROW)
        rows, known = self.snapshot.rows_of(hits["id"].astype(np.int64))
        scores = np.ldexp(hits["score"].astype(np.float64), -SCORE_BITS)
        return Postings.of(rows, term_frequencies(self.snapshot, rows, scores[known]))

    @cached_property
    def _tokenizer(self) -> FtsTokenizer:
        return FtsTokenizer(self._connection)


def learn_terms(connection: apsw.Connection, index: LexicalIndex) -> None:
    """Read every token that the connection's transaction sees, unless they are in memory."""
    if index.terms.since is None:
        index.terms.fill(map(index.noted, _terms(connection)), generation(connection))


def _terms(connection: apsw.Connection) -> Iterator[list[str]]:
    last = ""
    while rows := connection.execute(statements("postings")["select_terms"], (last, TERMS)).get:
        yield (block := rows.split(" "))
        last = block[-1]


def _fits(connection: apsw.Connection) -> bool:
    highest: int = connection.execute(statements("postings")["highest_id"]).get
    return highest <= MAX_ID


def read_snapshot(connection: apsw.Connection) -> LexicalSnapshot:
    """Return the snapshot that the connection's transaction sees.

    Raises:
        ValueError: the lengths of the chunks are damaged.
    """
    [(ids_blob, lengths_blob, sizes_blob)] = connection.execute(statements("postings")["select_lengths"])
    ids, sizes = (_numbers(blob, ">u4", np.int32) for blob in (ids_blob, sizes_blob))
    lengths = _lengths(lengths_blob or b"", sizes)
    pairs_blob = connection.execute(statements("postings")["select_document_ids"]).get
    pairs = _numbers(pairs_blob, ">u4", np.int32).reshape(-1, 2)
    order = np.argsort(ids, kind="stable")
    pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
    if not np.array_equal(ids[order], pairs[:, 0]):
        raise ValueError("the keyword index and the database have different chunks")
    columns = (pairs[:, 0], pairs[:, 1], lengths[order])
    return LexicalSnapshot.of(generation(connection), *(np.ascontiguousarray(column) for column in columns))


def chunk_lengths(connection: apsw.Connection, ids: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the ids of the chunks, ascending, and their lengths in tokens."""
    if not ids:
        return np.empty(0, np.int64), np.empty(0, np.int32)
    sql = statements("postings")["select_lengths_of"]
    rows: list[Any] = connection.execute(sql, (apsw.carray(np.array(ids, np.int64)),)).fetchall()
    sizes = np.array([len(size) for _, size in rows], np.int32)
    return np.array([chunk_id for chunk_id, _ in rows], np.int64), _lengths(b"".join(size for _, size in rows), sizes)


def indexed_chunks(connection: apsw.Connection, ids: Sequence[int]) -> list[IndexedChunk]:
    if not ids:
        return []
    tokenizer = FtsTokenizer(connection)
    rows = connection.execute(statements("postings")["select_texts"], (apsw.carray(np.array(ids, np.int64)),))
    return [
        IndexedChunk(id_, document_id, tokenizer.tokens(text), tokenizer.tokens(header))
        for id_, document_id, text, header in rows
    ]


def _counted(ids: NDArray[np.int64], in_header: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return each id once, and its frequency, with more weight for headers. Equal ids must be adjacent."""
    if not ids.size:
        return ids, ids
    first = np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]]))
    return ids[first], np.add.reduceat(np.where(in_header, HEADER_WEIGHT, 1), first)


def _numbers(blob: bytes | None, dtype: str, number: type[Integer]) -> NDArray[Integer]:
    return np.frombuffer(blob or b"", dtype).astype(number)


def _lengths(blob: bytes, sizes: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the length of each chunk in tokens; `sizes` are the numbers of bytes per chunk.

    Raises:
        ValueError: FTS5 does not write such bytes.
    """
    if len(blob) != sizes.sum(dtype=np.int64):
        raise ValueError("the lengths of the chunks cannot be read")
    lengths, start = np.empty(sizes.size, np.int32), 0
    for first in range(0, sizes.size, BLOCK):
        block = slice(first, first + BLOCK)
        ends = np.cumsum(sizes[block], dtype=np.int64)
        lengths[block] = _parse_lengths(blob[start : start + ends[-1]], ends)
        start += int(ends[-1])
    return lengths


def _parse_lengths(blob: bytes, ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the lengths of some chunks; `ends` are the ends of their bytes. Raises like `_lengths`."""
    lasts = np.flatnonzero(np.frombuffer(blob, np.uint8) < 0x80)  # the last byte of each number
    if lasts.size != COLUMNS * ends.size or not np.array_equal(lasts[COLUMNS - 1 :: COLUMNS], ends - 1):
        raise ValueError("the lengths of the chunks have the wrong number of columns")
    if np.diff(lasts, prepend=-1).max(initial=0) > MAX_VARINT:
        raise ValueError("the lengths of the chunks are not valid numbers")
    lengths: NDArray[np.int64] = _varints(blob).reshape(-1, COLUMNS).sum(axis=1)
    return lengths


def _varints(blob: bytes) -> NDArray[np.int64]:
    """Return the numbers from SQLite's variable-length integers, with seven bits per byte."""
    values = np.frombuffer(blob, np.uint8).astype(np.int64)
    ends = np.flatnonzero(values < 0x80)
    lengths = np.diff(ends, prepend=-1)
    numbers = np.zeros(ends.size, np.int64)
    for back in range(int(lengths.max(initial=0))):
        reaches = lengths > back
        numbers[reaches] += (values[ends[reaches] - back] & 0x7F) << (7 * back)
    return numbers
