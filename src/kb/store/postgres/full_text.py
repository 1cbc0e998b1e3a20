"""The full-text index in tables: the positions of terms, and BM25 over them with FTS5's scores.

The transaction that writes chunks also writes their terms, positions and the total counts, so the counts match the
chunks that a search sees. The database finds the best chunks. Their scores are then computed in the same way and order
as in `kb.index.words`.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw
import numpy as np
from numpy.typing import NDArray

from kb.index.vectors.scores import EMPTY_SCORES, ScoredChunks
from kb.index.words.bm25 import K1, LEAST_IDF, B, inverse_document_frequency
from kb.index.words.compounds import Part, fitting
from kb.index.words.index import HEADER_WEIGHT
from kb.index.words.matches import Matches, Occurrences
from kb.index.words.postings import Postings
from kb.index.words.query_word_groups import alternatives
from kb.index.words.segmentation import as_phrase
from kb.index.words.snapshot import LexicalSnapshot
from kb.store.analyzer import FtsTokenizer
from kb.store.postgres.statements import statements
from kb.store.sql.conditions import EVERY_DOCUMENT, Condition, among

if TYPE_CHECKING:
    from kb.store.postgres.connection import Connection

LONGEST = 500
"""The most bytes of a term. A longer one does not fit an index, so kb keeps its beginning and a digest."""

BEGINNING, DIGEST_MARK = 100, "\ufdd1"
LAST = chr(0x10FFFF)
"""A character that no term contains; it sorts after all terms with the same prefix."""

MAX_TOKENS = 8
"""The most tokens of a word whose occurrences are counted, as in SQLite."""

MARGIN = 16
"""The number of extra chunks that the database finds, because it may round differently."""

NO_PHRASE = np.empty((0, 4), np.int64)
MOST_BEGUN = 10_000
"""The most terms that a prefix matches."""


@dataclass(frozen=True, slots=True)
class NewText:
    """A chunk to write: the tokens of its text and of its header."""

    chunk_id: int
    document_id: int
    text: list[str]
    header: list[str]

    @property
    def length(self) -> int:
        """The number of its tokens."""
        return len(self.text) + len(self.header)

    def postings(self) -> list[tuple[str, int, list[int]]]:
        """Return each term with its weighted count and positions: twice its index, plus one in the header."""
        places = defaultdict[str, list[int]](list)
        for is_header, tokens in enumerate((self.text, self.header)):
            for place, token in enumerate(tokens):
                places[index_term(token)].append(2 * place + is_header)
        extra = HEADER_WEIGHT - 1
        return [(term, len(where) + extra * sum(place & 1 for place in where), where) for term, where in places.items()]


@dataclass(frozen=True, slots=True, eq=False)
class Phrase:
    """The chunks in which terms follow each other.

    Args:
        table: the chunk, its document, its length and the number of matches, by ascending chunk id; shape (n, 4).
    """

    table: NDArray[np.int64]

    @property
    def chunk_ids(self) -> NDArray[np.int64]:
        return self.table[:, 0]

    @property
    def counts(self) -> NDArray[np.int64]:
        """The number of matches in each chunk."""
        return self.table[:, 3]


@dataclass(frozen=True, slots=True, eq=False)
class StoredWord:
    """A word of a query: a single term to look up, or a phrase or prefix with its matches.

    Args:
        frequency: the number of chunks that contain it.
    """

    frequency: int
    term_id: int | None = None
    phrase: Phrase | None = None


class WordKey(NamedTuple):
    """The tokens of a word, and whether the last token is a prefix."""

    tokens: tuple[str, ...]
    begins: bool


@dataclass(frozen=True, eq=False)
class SomeChunks(LexicalSnapshot):
    """Some chunks, with the counts of the whole index.

    Args:
        chunk_ids: their ids, ascending; the snapshot itself uses row numbers.
        whole: the number of all chunks.
        words: the number of words in all chunks.
    """

    chunk_ids: NDArray[np.int64] = field(kw_only=True)
    whole: int = field(kw_only=True)
    words: int = field(kw_only=True)

    @property
    def count(self) -> int:
        return self.whole

    @property
    def mean_length(self) -> float:
        return self.words / self.whole

    def rows(self, ids: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """Return the row numbers of the chunks that are among these, and a mask of such chunks in `ids`."""
        rows = np.searchsorted(self.chunk_ids, ids)
        present = rows < self.chunk_ids.size
        present[present] = self.chunk_ids[rows[present]] == ids[present]
        return rows[present].astype(np.int32), present


class FullText:
    """The full-text index as a transaction sees it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._execute: Any = connection.execute
        self._sql = statements("words")
        self._known: dict[WordKey, StoredWord | None] = {}
        self._merges: dict[tuple[int, ...], StoredWord] = {}
        self._terms: dict[str, tuple[int, int] | None] = {}
        self._some: dict[bytes, SomeChunks] = {}

    @cached_property
    def tokenizer(self) -> FtsTokenizer:
        """SQLite's tokenizer, so that words are the same in every store."""
        return FtsTokenizer(apsw.Connection(":memory:"))

    def new_text(self, chunk_id: int, document_id: int, text: str, header: str, language: str | None) -> NewText:
        """Return the index entry of a chunk whose document is in this language."""
        columns = (self.tokenizer.indexed(part, language) for part in (text, header))
        return NewText(chunk_id, document_id, *columns)

    def add(self, chunks: Sequence[NewText]) -> None:
        """Write the positions of the terms of chunks."""
        postings = [chunk.postings() for chunk in chunks]
        ids = self._count(Counter(term for posting in postings for term, *_ in posting))
        with self._connection.cursor().copy(self._sql["copy_postings"]) as copy:
            for chunk, terms in zip(chunks, postings, strict=True):
                for term, count, where in terms:
                    copy.write_row((chunk.chunk_id, chunk.document_id, ids[term], count, chunk.length, where))
        self._execute(self._sql["count_chunks"], (len(chunks), sum(chunk.length for chunk in chunks)))
        self._forget()

    def remove(self, document_id: int, ids: Sequence[int]) -> None:
        """Remove the words of a document's chunks, before these are deleted."""
        chunks = document_id, list(ids)
        self._execute(self._sql["discount_chunks"], chunks)
        unused = [term_id for (term_id,) in self._execute(self._sql["delete_postings"], chunks)]
        self._execute(self._sql["delete_terms"], (unused,))
        self._forget()

    @property
    def backfilled(self) -> int | None:
        """The last document that an upgrade has indexed again; None if all are."""
        number: int | None = self._execute(self._sql["select_backfilled"]).get
        return number

    def index_older(self, limit: int) -> bool:
        """Index again some documents of an older kb; return whether more may follow."""
        if (done := self.backfilled) is None:
            return False
        documents = self._execute(self._sql["select_next_documents"], (done, limit)).fetchall()
        for document_id, language in documents:
            self._index_again(document_id, language)
        if documents:
            self._execute(self._sql["note_backfilled"], (documents[-1][0],))
        else:
            self._execute(self._sql["finish_backfill"])
        return bool(documents)

    def _index_again(self, document_id: int, language: str | None) -> None:
        rows = self._execute(self._sql["select_texts"], (document_id,)).fetchall()
        texts = [self.new_text(chunk_id, document_id, text, header, language) for chunk_id, text, header in rows]
        ids = [text.chunk_id for text in texts]
        self.remove(document_id, ids)
        self._execute(self._sql["set_lengths"], (ids, [text.length for text in texts], document_id))
        self.add(texts)

    @cached_property
    def statistics(self) -> tuple[int, int]:
        """The number of chunks, and the number of their words."""
        [(chunks, words)] = self._execute(self._sql["select_statistics"])
        return chunks, words

    def documents_with(self, text: str) -> list[int]:
        """Return the documents that contain a text; a text that ends in a star, or a single letter, is a prefix."""
        tokens, begins = self._tokens(text, begins=True)
        phrase = self.phrase(tokens, begins=begins)
        return np.unique(phrase.table[:, 1]).tolist() if phrase else []

    def learn(self, words: Iterable[str]) -> None:
        """Look up all the words with one statement, for later calls."""
        self._found(map(self._key, words))

    def look_up(self, words: Iterable[str]) -> list[StoredWord]:
        """Return the words that some chunk contains; spellings of the same word are merged."""
        keys = [[self._key(word) for word in group] for group in alternatives(words)]
        if any(len(key.tokens) > MAX_TOKENS for group in keys for key in group):  # SQLite then searches separately
            keys = [[key] for group in keys for key in group]
        by_key = self._found(key for group in keys for key in group)
        groups = ([word for key in group if (word := by_key[key])] for group in keys)
        return [self._merged(group) if len(group) > 1 else group[0] for group in groups if group]

    def terms(self, names: Iterable[str]) -> dict[str, tuple[int, int]]:
        """Return the id and the number of chunks of each term that occurs in some chunk."""
        unique = list(dict.fromkeys(names))
        if missing := [name for name in unique if name not in self._terms]:
            rows = self._execute(self._sql["select_terms"], (missing,))
            self._terms |= dict.fromkeys(missing) | {term: (term_id, chunks) for term, term_id, chunks in rows}
        return {name: term for name in unique if (term := self._terms[name])}

    def begun(self, beginning: str, most: int = MOST_BEGUN) -> dict[str, tuple[int, int]]:
        """Return at most `most` terms with this prefix, in the same form as `terms`."""
        rows = self._execute(self._sql["select_begun"], (beginning, beginning + LAST, most))
        return {term: (term_id, chunks) for term, term_id, chunks in rows}

    def compounds(self, part: Part) -> list[str]:
        """Return the terms that are compounds with a word."""
        mark = part.stem[0]
        rows = self._execute(
            self._sql["select_compounds"], (mark, mark + LAST, f"%{part.ending}", list(part.beginnings))
        )
        return fitting((term for (term,) in rows), part, lambda term: bool(self.terms([term])))

    def best(self, words: Sequence[StoredWord], condition: Condition, limit: int) -> ScoredChunks:
        """Return the `limit` best matching chunks among the documents of a condition."""
        ids = self._near_best(words, condition, limit)
        return ScoredChunks(ids, self.scores(words, ids)).best(limit)

    def best_ids(self, words: Sequence[StoredWord], condition: Condition, limit: int) -> NDArray[np.int64]:
        """Return the ids of the chunks of `best`, ascending; scores them only if more than `limit` are found."""
        ids = self._near_best(words, condition, limit)
        return ids if ids.size <= limit else ScoredChunks(ids, self.scores(words, ids)).best(limit).ids

    def _near_best(self, words: Sequence[StoredWord], condition: Condition, limit: int) -> NDArray[np.int64]:
        """Return the ids, ascending, of the `limit` best chunks and a few more."""
        if not words:
            return EMPTY_SCORES.ids
        chunks, length = self.statistics
        terms = [(word.term_id, self._weight(word)) for word in words if word.phrase is None]
        phrases = [(word.phrase, self._weight(word)) for word in words if word.phrase is not None]
        table = np.concatenate([NO_PHRASE, *(phrase.table for phrase, _ in phrases)])
        weights = [weight for phrase, weight in phrases for _ in range(phrase.chunk_ids.size)]
        where, parameters = among(condition)
        sql = self._sql["select_best"].format(among=where, least=K1 * (1 - B), slope=K1 * B * chunks / length)
        term_columns = [term_id for term_id, _ in terms], [weight for _, weight in terms]
        rows = self._execute(sql, (*term_columns, *table.T.tolist(), weights, *parameters, limit + MARGIN))
        return np.sort(np.array([chunk_id for (chunk_id,) in rows], np.int64))

    def scores(self, words: Sequence[StoredWord], ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the scores of these chunks; NaN for a chunk without any of the words."""
        scores = np.full(ids.size, np.nan)
        if ids.size and words:
            some = self.some(ids)
            rows, present = some.rows(ids)
            scores[present] = self.matches(some, words).scores(rows)
        return scores

    def occurrences(self, words: Sequence[str], ids: NDArray[np.int64]) -> list[Occurrences | None]:
        """See `kb.store.protocol.Selection.occurrences`."""
        keys = [self._key(word) for word in words]
        by_key = self._found(key for key in keys if not key.begins and len(key.tokens) <= MAX_TOKENS)
        standing = {key: word for key, word in by_key.items() if word}
        some = self.some(ids)
        rows, _ = some.rows(ids)
        postings = dict(zip(standing, self._postings(some, [*standing.values()]), strict=True))
        return [_occurrences(standing[key], some, postings[key], rows) if key in standing else None for key in keys]

    def some(self, ids: NDArray[np.int64]) -> SomeChunks:
        """Return these chunks with the counts of the whole index."""
        if (key := ids.tobytes()) not in self._some:
            self._some[key] = self._chunks(ids)
        return self._some[key]

    def _chunks(self, ids: NDArray[np.int64]) -> SomeChunks:
        rows = self._execute(self._sql["select_lengths"], (ids.tolist(),)).fetchall()
        table = np.array(rows, np.int64).reshape(-1, 3)
        documents = np.unique(table[:, 1], return_inverse=True)[1]  # their numbers may be larger than a snapshot's
        chunks, words = self.statistics
        numbers = np.arange(len(table), dtype=np.int32)
        return SomeChunks(
            *(0, 0, len(table), numbers, documents.astype(np.int32), table[:, 2].astype(np.int32)),
            np.empty(0, np.int32),
            0,
            chunk_ids=table[:, 0].copy(),
            whole=chunks,
            words=words,
        )

    def matches(self, some: SomeChunks, words: Sequence[StoredWord]) -> Matches:
        matches = []
        for number, (word, postings) in enumerate(zip(words, self._postings(some, words), strict=True)):
            some.frequencies[str(number),] = word.frequency
            matches.append(((str(number),), postings))
        return Matches(some, matches)

    def _postings(self, some: SomeChunks, words: Sequence[StoredWord]) -> list[Postings]:
        """Return the chunks that contain each word, among some chunks."""
        ids = [word.term_id for word in words if word.term_id is not None]
        counted = defaultdict[int, list[tuple[int, int]]](list)
        for term_id, chunk_id, count in self._execute(self._sql["select_counts"], (ids, some.chunk_ids.tolist())):
            counted[term_id].append((chunk_id, count))
        postings = []
        for word in words:
            if word.phrase is not None:
                chunk_ids, counts = word.phrase.chunk_ids, word.phrase.counts
            else:
                chunk_ids, counts = np.array(counted[word.term_id or 0], np.int64).reshape(-1, 2).T
            rows, known = some.rows(chunk_ids)
            postings.append(Postings.of(rows, counts[known]))
        return postings

    def some_with(self, tokens: Sequence[str], condition: Condition, most: int) -> tuple[int, list[int]]:
        """Return the number of a condition's chunks that contain the tokens as a phrase, and the first of them."""
        term_id, frequency = self.terms([index_term(tokens[0])]).get(index_term(tokens[0]), (None, 0))
        if len(tokens) == 1 and condition == EVERY_DOCUMENT:  # a term's own row has its number of chunks
            rows = self._execute(self._sql["select_first_with"], (term_id, most)).fetchall()
            return frequency, [chunk_id for (chunk_id,) in rows]
        phrase = self.phrase(list(tokens), begins=False) if len(tokens) > 1 else None
        if len(tokens) > 1 and phrase is None:
            return 0, []
        chunks = phrase.chunk_ids.tolist() if phrase else None
        where, parameters = among(condition)
        sql = self._sql["select_some_with"].format(among=where)
        [(count, first)] = self._execute(sql, (most, term_id, chunks, chunks, *parameters))
        return count, first or []

    def sources(self, chunk_ids: Sequence[int]) -> list[str]:
        """Return the original headers and texts of chunks."""
        return [text for (text,) in self._execute(self._sql["select_sources"], (list(chunk_ids),))]

    def phrase(
        self, tokens: Sequence[str], *, begins: bool = False, known: dict[str, tuple[int, int]] | None = None
    ) -> Phrase | None:
        """Return the chunks in which the tokens follow each other; None if a token has no term.

        Args:
            begins: whether the last token is a prefix.
            known: the terms of the tokens, if they were looked up already.
        """
        known = self.terms({index_term(token) for token in tokens}) if known is None else known
        forms = [[known[term]] if (term := index_term(token)) in known else [] for token in tokens]
        if begins and tokens:
            forms[-1] = list(self.begun(tokens[-1]).values())
        if not forms or not all(forms):
            return None
        return self._phrase([[term_id for term_id, _ in terms] for terms in forms], _rarest(forms))

    def _phrase(self, ids: Sequence[Sequence[int]], rarest: int = 0) -> Phrase:
        """Return the chunks in which terms follow each other, one of several per place; searches the rarest first."""
        others = [(ids[place], 2 * (place - rarest)) for place in range(len(ids)) if place != rarest]
        sql = self._sql["select_phrase"].format(followed=self._sql["is_followed"] * len(others))
        rows = self._execute(sql, (ids[rarest], *(value for other in others for value in other))).fetchall()
        return Phrase(np.array(rows, np.int64).reshape(-1, 4))

    def _count(self, chunks: Counter[str]) -> dict[str, int]:
        """Add to the terms' numbers of chunks; return the terms' ids."""
        columns = list(chunks), list(chunks.values())
        ids = dict(self._execute(self._sql["count_terms"], columns).fetchall())
        new = [term for term in chunks if term not in ids]
        if new:
            ids |= dict(self._execute(self._sql["insert_terms"], (new, [chunks[term] for term in new])).fetchall())
        return ids

    def _weight(self, word: StoredWord) -> float:
        chunks, _ = self.statistics
        idf = math.log((chunks - word.frequency + 0.5) / (word.frequency + 0.5))
        return (idf if idf > 0 else LEAST_IDF) * (K1 + 1)

    def _key(self, word: str) -> WordKey:
        tokens, begins = self._tokens(word)
        return WordKey(tuple(tokens), begins)

    def _found(self, keys: Iterable[WordKey]) -> dict[WordKey, StoredWord | None]:
        """Return words by their tokens, None for a word that no chunk contains; reads each word once."""
        by_key = dict.fromkeys(keys)
        if missing := [key for key in by_key if key not in self._known]:
            terms = self.terms({index_term(token) for key in missing for token in key.tokens})
            self._known |= {key: self._word(key, terms) for key in missing}
        return {key: self._known[key] for key in by_key}

    def _merged(self, words: Sequence[StoredWord]) -> StoredWord:
        """Merge the spellings of a word; in each chunk, only the most frequent spelling counts."""
        if (key := tuple(map(id, words))) not in self._merges:  # cleared with its parts, so ids stay valid
            self._merges[key] = self._merge(words)
        return self._merges[key]

    def _merge(self, words: Sequence[StoredWord]) -> StoredWord:
        phrases = (word.phrase or self._phrase([[word.term_id or 0]]) for word in words)
        table = np.concatenate([phrase.table for phrase in phrases])
        table = table[np.lexsort((-table[:, 3], table[:, 0]))]
        table = table[np.flatnonzero(np.diff(table[:, 0], prepend=-1))]
        return StoredWord(len(table), phrase=Phrase(table))

    def _forget(self) -> None:
        """Forget cached terms after a change, so that they are read again."""
        self._known.clear()
        self._merges.clear()
        self._terms.clear()
        self._some.clear()

    def _tokens(self, text: str, *, begins: bool = False) -> tuple[list[str], bool]:
        """Return the tokens of a word, and whether the last token is a prefix."""
        phrase = as_phrase(text.removesuffix("*"), begins=begins)
        return self.tokenizer.tokens(phrase.removesuffix("*")), text.endswith("*") or phrase.endswith("*")

    def _word(self, key: WordKey, terms: dict[str, tuple[int, int]]) -> StoredWord | None:
        if len(key.tokens) == 1 and not key.begins:
            term_id, frequency = terms.get(index_term(key.tokens[0]), (None, 0))
            return StoredWord(frequency, term_id) if term_id is not None else None
        phrase = self.phrase(key.tokens, begins=key.begins, known=terms)
        return StoredWord(phrase.chunk_ids.size, phrase=phrase) if phrase and phrase.chunk_ids.size else None


def _rarest(groups: Sequence[Sequence[tuple[int, int]]]) -> int:
    """Return the place whose terms occur in the fewest chunks."""
    return min(range(len(groups)), key=lambda place: sum(chunks for _, chunks in groups[place]))


def _occurrences(word: StoredWord, some: SomeChunks, postings: Postings, rows: NDArray[np.int32]) -> Occurrences:
    counts = postings.counts_of(rows) if postings.size else np.zeros(rows.size)
    return Occurrences(inverse_document_frequency(word.frequency, some.count), counts, word.frequency, some.count)


def index_term(token: str) -> str:
    """Return the token in the form of the index, which has a limit of length."""
    raw = token.encode()
    return token if len(raw) <= LONGEST else f"{token[:BEGINNING]}{DIGEST_MARK}{hashlib.sha256(raw).hexdigest()}"
