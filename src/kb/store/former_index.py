"""Both legs of search as of a former moment: over the chunks that were there then, with the scores that they had.

Chunks that are there still are looked for as always; those of former versions are read for the search, and counted with
them.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from kb.lexical.alternatives import alternatives
from kb.lexical.beginnings import completed
from kb.lexical.bm25 import Matches, Occurrences
from kb.lexical.index import Pending
from kb.lexical.postings import Postings, merged
from kb.lexical.segment import as_phrase
from kb.lexical.snapshot import Admitted, LexicalSnapshot, NewChunk, group_key
from kb.store.former_documents import admits
from kb.store.rows import Filter, Hit
from kb.vectors.scores import EMPTY_SCORES, NO_CONTEXT, Context, ScoredChunks

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from datetime import datetime

    from numpy.typing import NDArray

    from kb.api.access import Limit
    from kb.lexical.snapshot import Key
    from kb.store.analyzer import Tokenizer
    from kb.store.protocol import Analyzer, Index
    from kb.store.rows import Author, Chunk, Document, Version


class FormerChunk(NamedTuple):
    """A chunk of a former version, the document as it stood then, and who had made it so."""

    document: Document
    chunk: Chunk
    author: Author


class PresentWords(Protocol):
    """The words of the chunks that are there."""

    @property
    def snapshot(self) -> LexicalSnapshot: ...
    def keys(self, words: Iterable[str]) -> list[Key]:
        """Return what the full text has of the words."""

    def postings(self, key: Key) -> Postings:
        """Return in which of the snapshot's rows a word stands."""

    def begun(self, beginning: str) -> Postings:
        """Return in which rows tokens stand that begin so, all as one word."""


class PresentVectors(Protocol):
    """The vectors of the chunks that are there."""

    def nearest(
        self, query: NDArray[np.float32], limit: int, among: NDArray[np.int64], *, exact: bool = False
    ) -> ScoredChunks:
        """Return the `limit` of these chunks nearest to a unit vector."""

    def cosines(self, query: NDArray[np.float32], ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how near these chunks are to a unit vector."""

    def vectors(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the vectors of these chunks by ascending id."""


class Present(Protocol):
    """What a store has at a transaction's own moment, from which it is told what it had before."""

    @property
    def index(self) -> Index: ...
    @property
    def tokenizer(self) -> Tokenizer: ...
    @property
    def words(self) -> PresentWords: ...
    @property
    def vectors(self) -> PresentVectors: ...
    def chunk_ids(self, where: Filter) -> NDArray[np.int64]:
        """Return the chunks of the documents that a filter admits, ascending."""

    def former_versions(self, instant: datetime) -> list[Version]:
        """Return the versions that stood at a moment and do not any more."""

    def within(self, limit: Limit, ids: Collection[int]) -> set[int]:
        """Return which of these documents a limit admits as they are today, there or in the bin."""

    def chunks(self, version: Version) -> list[Chunk]: ...
    def vectors_of(self, version: Version, count: int) -> NDArray[np.float32] | None:
        """Return the vectors of a former version's chunks, if they are kept."""


class FormerIndex:
    """See `kb.store.protocol.Index`.

    Args:
        present: what is there at the transaction's own moment.
        instant: the former moment.
    """

    def __init__(self, present: Present, instant: datetime) -> None:
        self._present = present
        self._index = present.index
        self._tokenizer = present.tokenizer
        self._instant = instant
        self._former: dict[int, FormerChunk] = {}
        self._gone: dict[int, NDArray[np.float32] | None] = {}
        self._read()

    @property
    def analyzer(self) -> Analyzer:
        """The analyzer of the full-text index."""
        return self._index.analyzer

    @property
    def languages(self) -> Sequence[str]:
        """The languages that documents are in."""
        return self._index.languages

    def select(self, where: Filter) -> FormerSelection:
        """Return the chunks that `where` admitted then."""
        former = {each.document.id: each.document for each in self._former.values()}
        within = self._present.within(where.limit, former) if where.limit else former
        there = {each for each in within if admits(where, former[each]) and self._has_texts(each, where)}
        admitted = [id_ for id_, each in self._former.items() if each.document.id in there]
        ids = np.union1d(self._present.chunk_ids(where), np.array(admitted, np.int64))
        return FormerSelection(self.words, self._present.vectors, ids, self._gone)

    def documents_of(self, chunk_ids: NDArray[np.int64]) -> list[int]:
        """Return the documents that the chunks are of, in the order given."""
        is_former = np.isin(chunk_ids, np.fromiter(self._former, np.int64, len(self._former)))
        documents = np.empty(chunk_ids.size, np.int64)
        documents[is_former] = [self._former[id_].document.id for id_ in chunk_ids[is_former].tolist()]
        documents[~is_former] = self._index.documents_of(chunk_ids[~is_former])
        found: list[int] = documents.tolist()
        return found

    def hits(self, chunk_ids: Sequence[int]) -> list[Hit]:
        """Return the chunks with their documents, in the order given."""
        current = [id_ for id_ in chunk_ids if id_ not in self._former]
        found = dict(zip(current, self._index.hits(current), strict=True))
        return [found[id_] if id_ in found else _hit(*self._former[id_]) for id_ in chunk_ids]

    @cached_property
    def words(self) -> FormerWords:
        """The words of all chunks that were there then."""
        there = np.array([id_ for id_ in self._former if id_ not in self._gone], np.int64)
        kept = np.union1d(self._present.chunk_ids(Filter(as_of=self._instant)), there)
        gone = [self._former[id_] for id_ in sorted(self._gone)]
        return FormerWords(self._present.words, self._tokenizer, kept, gone)

    def _has_texts(self, document_id: int, where: Filter) -> bool:
        """Return whether a former version holds what it must, and nothing of what it must not."""
        if not (where.holding or where.lacking):
            return True
        columns = [
            self._tokenizer.indexed(text)
            for chunk in self._chunks_of[document_id]
            for text in (chunk.text, chunk.header)
        ]

        def stands(text: str) -> bool:
            written = as_phrase(text, begins=True)
            phrase = self._tokenizer.tokens(written)
            return any(follows(phrase, tokens, begins=written.endswith("*")) for tokens in columns)

        return all(map(stands, where.holding)) and not any(map(stands, where.lacking))

    @cached_property
    def _chunks_of(self) -> dict[int, list[Chunk]]:
        found: dict[int, list[Chunk]] = {}
        for each in self._former.values():
            found.setdefault(each.document.id, []).append(each.chunk)
        return found

    def _read(self) -> None:
        """Read the former versions that stood then: their chunks, and the vectors of those that are there no more."""
        for version in self._present.former_versions(self._instant):
            chunks = self._present.chunks(version)
            self._former |= {chunk.id: FormerChunk(version.document, chunk, version.author) for chunk in chunks}
            if version.content_id is not None:
                kept = self._present.vectors_of(version, len(chunks))
                rows = [None] * len(chunks) if kept is None else kept
                self._gone |= dict(zip((chunk.id for chunk in chunks), rows, strict=True))


class FormerSelection:
    """See `kb.store.protocol.Selection`.

    Args:
        words: those of all chunks that were there then.
        snapshot: the vectors of the chunks that are there.
        ids: the chunks to choose from, ascending.
        gone: the chunks that are there no more, with their vectors where they are kept.
    """

    def __init__(
        self,
        words: FormerWords,
        snapshot: PresentVectors,
        ids: NDArray[np.int64],
        gone: dict[int, NDArray[np.float32] | None],
    ) -> None:
        self._words = words
        self._snapshot = snapshot
        self._ids = ids
        self._gone = gone
        self._gone_ids = np.fromiter(gone, np.int64, len(gone))

    def chunk_ids(self) -> NDArray[np.int64]:
        """Return the chunks, ascending."""
        return self._ids

    def full_text(self, words: Sequence[str], limit: int) -> ScoredChunks:
        """Return the `limit` chunks that match any of the words best."""
        return self._words.best(words, self._ids, limit) if words and self._ids.size else EMPTY_SCORES

    def look_up(self, words: Iterable[str]) -> None:
        """Return: each word is read when it is asked for."""

    def best_ids(self, words: Sequence[str], limit: int) -> NDArray[np.int64]:
        """Return the ids, ascending, of the `limit` chunks that match any of the words best."""
        return self.full_text(words, limit).ids

    def full_text_scores(self, words: Sequence[str], ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how well these chunks match; NaN for one that has none of the words."""
        return self._words.scores(words, ids) if words else np.full(ids.size, np.nan)

    def occurrences(self, words: Sequence[str], ids: NDArray[np.int64]) -> list[Occurrences | None]:
        """Return the occurrences of each word in these chunks; None for a beginning, or where there are none."""
        return [self._words.occurrences(word, ids) for word in words]

    def nearest(self, vector: NDArray[np.float32], limit: int, *, exact: bool = False) -> ScoredChunks:
        """Return the `limit` chunks nearest to a unit vector, by cosine."""
        is_gone = np.isin(self._ids, self._gone_ids)
        near, gone = self._snapshot.nearest(vector, limit, self._ids[~is_gone], exact=exact), self._ids[is_gone]
        ids = np.concatenate([near.ids, gone])
        scores = np.concatenate([near.scores, self.cosines(vector, gone)])
        order = np.argsort(ids)
        return ScoredChunks(ids[order], scores[order]).best(limit)

    def cosines(self, vector: NDArray[np.float32], ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how near these chunks are to a unit vector; 0 for one without a vector."""
        is_there = ~np.isin(ids, self._gone_ids)
        scores = np.zeros(ids.size)
        scores[is_there] = self._snapshot.cosines(vector, ids[is_there])
        for place in np.flatnonzero(~is_there):
            kept = self._gone[int(ids[place])]
            scores[place] = 0.0 if kept is None else float(kept @ vector)
        return scores

    def vectors(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the vectors of those of these chunks that are there still."""
        return self._snapshot.vectors(ids)

    def in_context(self, words: Sequence[str], vector: NDArray[np.float32], ids: NDArray[np.int64]) -> Context:
        """Return nothing: what stood beside a note at a former moment is not known."""
        return NO_CONTEXT

    def unknown(self, words: Sequence[str]) -> dict[str, list[str]]:
        """Return nothing: what is searched as of a moment is what was asked for."""
        return {}


class FormerWords:
    """Full text over the chunks that were there at a moment.

    Args:
        reader: the words of the chunks that are there.
        tokenizer: cuts the texts of the others.
        kept: the chunks that are there still, ascending.
        gone: those that are not.
    """

    def __init__(
        self,
        reader: PresentWords,
        tokenizer: Tokenizer,
        kept: NDArray[np.int64],
        gone: Sequence[FormerChunk],
    ) -> None:
        chunks = [
            NewChunk(
                chunk.id,
                document.id,
                tokenizer.indexed(chunk.text, document.language),
                tokenizer.indexed(chunk.header, document.language),
            )
            for document, chunk, _ in gone
        ]
        rows, found = reader.snapshot.rows_of(kept)
        lengths = [len(chunk.text) + len(chunk.header) for chunk in chunks]
        ids = np.concatenate([kept[found], np.array([chunk.id for chunk in chunks], np.int64)])
        order = np.argsort(ids)
        documents = np.zeros(ids.size, np.int32)  # filters are resolved before
        self._snapshot = LexicalSnapshot.of(
            0,
            ids[order].astype(np.int32),
            documents,
            np.concatenate([reader.snapshot.lengths[rows], np.array(lengths, np.int32)])[order],
        )
        places = np.argsort(order).astype(np.int32)
        self._numbers = np.full(reader.snapshot.size, -1, np.int32)
        self._numbers[rows] = places[: rows.size]
        self._reader = reader
        self._tokenizer = tokenizer
        self._gone = Pending(0)
        self._gone.add(chunks)
        self._gone_rows = places[rows.size :]

    def best(self, words: Sequence[str], ids: NDArray[np.int64], limit: int) -> ScoredChunks:
        """Return the `limit` of these chunks that match best."""
        mask = np.zeros(self._snapshot.size, np.bool_)
        mask[self._snapshot.rows_of(ids)[0]] = True
        rows, scores = self._matches(words).best(limit, Admitted(self._snapshot, mask))
        return ScoredChunks(self._snapshot.ids[rows].astype(np.int64), scores).best(limit)

    def scores(self, words: Sequence[str], ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the scores of these chunks; NaN where there is none."""
        rows, found = self._snapshot.rows_of(ids)
        scores = np.full(ids.size, np.nan)
        scores[found] = self._matches(words).scores(rows)
        return scores

    def occurrences(self, word: str, ids: NDArray[np.int64]) -> Occurrences | None:
        """Return those of a word in these chunks, of which each was there; None for a beginning of words."""
        if word.endswith("*"):
            return None
        return self._matches((word,)).occurrences(self._snapshot.rows_of(ids)[0])

    def _matches(self, words: Sequence[str]) -> Matches:
        sought = completed(words, self._tokenizer.tokens)
        found = []
        for group in alternatives(sought):
            if keys := self._reader.keys(group):
                begins = group[0].endswith("*")
                found.append((group_key(keys), merged([self._postings(key, begins=begins) for key in keys])))
        return Matches(self._snapshot, found)

    def _postings(self, key: Key, *, begins: bool) -> Postings:
        """Return where a word stands; with `begins`, where one does that it is the beginning of, if it is one token."""
        if begins and len(key) == 1:
            kept, gone = self._reader.begun(key[0]), self._gone.begun(key[0])
        else:
            kept, gone = self._reader.postings(key), self._gone.counts(key, 0, len(self._gone))
        kept = kept.renumbered(self._numbers)
        rows = np.concatenate([kept.rows, self._gone_rows[np.fromiter(gone, np.int64, len(gone))]])
        counts = np.concatenate([kept.counts.astype(np.int64), np.fromiter(gone.values(), np.int64, len(gone))])
        order = np.argsort(rows)
        return Postings.of(rows[order], counts[order])


def follows(phrase: Sequence[str], tokens: Sequence[str], *, begins: bool = False) -> bool:
    """Return whether the tokens of a phrase follow each other somewhere; one without any stands nowhere.

    With `begins`, the last may go on.
    """
    if not phrase:
        return False
    *first, last = phrase
    ends = (place for place, token in enumerate(tokens) if token == last or (begins and token.startswith(last)))
    return any(tokens[max(0, end - len(first)) : end] == first for end in ends)


def _hit(document: Document, chunk: Chunk, author: Author) -> Hit:
    return Hit(
        chunk.id,
        chunk.index,
        document.id,
        document.title,
        document.source_path,
        document.doc_type,
        chunk.text,
        chunk.place,
        document.tags,
        document.created_at,
        document.updated_at,
        document.date,
        document.source,
        document.language,
        author,
    )
