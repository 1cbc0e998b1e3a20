"""The postings of words at each snapshot that a transaction may see.

Words are loaded on request and kept up to a limit. New chunks are pending: they are added to a word when it is next
requested. A reader uses only the rows of its own snapshot.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from sys import getsizeof, intern
from typing import TypeVar
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from kb.index.words.compounds import Compounds
from kb.index.words.other_scripts import blocks_of
from kb.index.words.postings import Postings
from kb.index.words.snapshot import IndexedChunk, Key, LexicalSnapshot

Tokens = TypeVar("Tokens", bound=Collection[str])

KEPT_SNAPSHOTS = 16
HEADER_WEIGHT = 2
"""The weight of a word in a header, relative to the text."""

MAX_PENDING = 256
"""The number of pending chunks that triggers an update of all kept words."""

PENDING_SHARE = 8
"""Pending chunks take at most one part in this many of the memory limit."""

CHUNK_SIZE, TOKEN_SIZE, COUNT_SIZE = 300, 250, 130
"""The approximate bytes of the objects for a chunk, for a new token, and for one token of a chunk."""

MOST_ADDED = 10_000
"""The number of new tokens that are kept apart from the others, as objects."""


class Pending:
    """New chunks, by token, that are not yet added to the kept words.

    One writer changes it while readers look; they request only rows that no longer change.

    Args:
        first: the row of the first chunk.
    """

    def __init__(self, first: int) -> None:
        self.first = first
        self.nbytes = 0
        self._chunks: list[tuple[list[str], list[str]]] = []
        self._counts: dict[str, list[tuple[int, int]]] = {}

    def __len__(self) -> int:
        return len(self._chunks)

    def add(self, added: Iterable[IndexedChunk]) -> None:
        for row, chunk in enumerate(added, self.first + len(self)):
            text, header = [*map(intern, chunk.text)], [*map(intern, chunk.header)]
            self._chunks.append((text, header))
            self.nbytes += CHUNK_SIZE + getsizeof(text) + getsizeof(header)
            counts = Counter(text)
            for token in header:
                counts[token] += HEADER_WEIGHT
            for token, count in counts.items():
                if token not in self._counts:
                    self._counts[token] = []
                    self.nbytes += TOKEN_SIZE + len(token)
                self._counts[token].append((row, count))
                self.nbytes += COUNT_SIZE

    def cut(self, end: int) -> None:
        """Remove the chunks from row `end` on."""
        for text, header in self._chunks[end - self.first :]:
            self.nbytes -= CHUNK_SIZE + getsizeof(text) + getsizeof(header)
            for token in {*text, *header}:
                counts = self._counts.get(token, [])
                while counts and counts[-1][0] >= end:
                    counts.pop()
                    self.nbytes -= COUNT_SIZE
        del self._chunks[end - self.first :]

    def has(self, key: Key) -> bool:
        """Whether each token of a word is in one of the chunks."""
        return all(token in self._counts for token in key)

    def counts(self, key: Key, start: int, end: int) -> dict[int, int]:
        """Return the number of occurrences of a word in each row from `start` to before `end` that contains it."""
        columns = [self._between(token, start, end) for token in key]
        if len(key) == 1:
            return columns[0]
        counts = {row: self._count(row, key) for row in columns[0] if all(row in rows for rows in columns)}
        return {row: count for row, count in counts.items() if count}

    def _count(self, row: int, key: Key) -> int:
        text, header = self._chunks[row - self.first]
        return occurrences(text, key) + HEADER_WEIGHT * occurrences(header, key)

    def _between(self, token: str, start: int, end: int) -> dict[int, int]:
        counts = self._counts.get(token, [])
        return dict(counts[bisect_left(counts, (start,)) : bisect_left(counts, (end,))])


@dataclass(frozen=True, slots=True, eq=False)
class Word:
    """A kept word.

    Args:
        postings: its occurrences in the rows before `end`.
        since: the snapshot at which it was loaded; it lacks chunks that were deleted earlier.
        epoch: the epoch of its rows.
        end: the row after the rows that were read.
    """

    postings: Postings
    since: int
    epoch: int
    end: int


class LexicalIndex:
    """The snapshots that transactions may still see, and words. One writer at a time; any number of readers.

    Args:
        snapshot: the newest snapshot.
        limit: the maximum number of bytes that words may take; the least recently used are dropped first.
    """

    def __init__(self, snapshot: LexicalSnapshot, limit: int) -> None:
        self._writing = threading.Lock()
        self._lock = threading.Lock()
        self._limit = limit
        self._newest = snapshot.number
        self._snapshots = {snapshot.number: snapshot}
        self._words: OrderedDict[Key, Word] = OrderedDict()
        self._loading: WeakValueDictionary[Key, threading.Lock] = WeakValueDictionary()
        self._words_size = 0
        self._pending = Pending(snapshot.size)
        self._kept_from = snapshot.size
        self.terms = TermFilter()
        self.compounds = Compounds()
        self.blocks = frozenset[int]()
        """The blocks of Unicode in which tokens begin, see `blocks_of`."""

    @property
    def newest(self) -> int:
        return self._newest

    @property
    def size(self) -> int:
        """The bytes that words and pending chunks take."""
        return self._words_size + self._pending.nbytes

    @property
    def is_half_full(self) -> bool:
        """Whether words take half of the limit."""
        return self.size > self._limit // 2

    def snapshot(self, number: int) -> LexicalSnapshot | None:
        """Return the snapshot with this number; None if it is not kept."""
        return self._snapshots.get(number)

    def postings(self, snapshot: LexicalSnapshot, key: Key, load: Callable[[], Postings]) -> Postings:
        """Return a word's postings in a snapshot; `load` reads missing ones, once for concurrent callers."""
        if (postings := self._find(snapshot, key)) is not None:
            return postings
        with self._lock:
            loading = self._loading.setdefault(key, threading.Lock())
        with loading:
            if (postings := self._find(snapshot, key)) is not None:
                return postings
            loaded = load()
            self._keep(snapshot, key, loaded)
        return loaded

    def publish(self, number: int, added: Sequence[IndexedChunk], removed: Collection[int]) -> None:
        """Publish the next snapshot to readers of its number."""
        with self._writing:
            before = self._snapshots[self._newest]
            snapshot = before.changed(number, removed)
            if snapshot.is_sparse:
                snapshot = snapshot.compacted()
            is_renumbered = snapshot.epoch != before.epoch
            if is_renumbered:
                self._settle(before)
            following = snapshot.with_chunks(added)
            pending = Pending(snapshot.size) if is_renumbered else self._pending
            pending.cut(snapshot.size)  # the remains of a failed change
            pending.add(added)
            tokens = {token for chunk in added for token in (*chunk.text, *chunk.header)}
            self.terms.add(tokens)
            self.noted(tokens)
            with self._lock:  # readers wait: the slow part is done
                if is_renumbered:
                    self._pending, self._kept_from = pending, pending.first
                    self._drop([key for key, word in self._words.items() if word.epoch != before.epoch])
                self._newest = number
                self._snapshots[number] = following
                self._snapshots.pop(number - KEPT_SNAPSHOTS, None)
            if len(pending) >= MAX_PENDING or pending.nbytes > self._limit // PENDING_SHARE:
                self._settle(following)
                with self._lock:
                    self._begin(following.size)
            before.release()

    def noted(self, tokens: Tokens) -> Tokens:
        """Return tokens, after what related words need of them was noted."""
        self.compounds.add(tokens)
        self.blocks |= blocks_of(tokens)
        return tokens

    def withdraw(self) -> None:
        """Withdraw the newest snapshot after its transaction was rolled back."""
        with self._writing, self._lock:
            withdrawn = self._snapshots.pop(self._newest)
            self._newest -= 1
            snapshot = self._snapshots[self._newest]
            if withdrawn.epoch == snapshot.epoch and self._pending.first <= snapshot.size:
                self._pending.cut(snapshot.size)
            else:
                self._begin(snapshot.size)
            self._drop([key for key, word in self._words.items() if word.epoch > snapshot.epoch])
            for key, word in self._words.items():
                if word.epoch == snapshot.epoch and word.end > snapshot.size:
                    self._words[key] = replace(word, postings=word.postings.before(snapshot.size), end=snapshot.size)

    def reset(self, snapshot: LexicalSnapshot) -> None:
        """Drop every word, and let `snapshot` replace the newest if it has the same number."""
        self.terms.forget()
        with self._writing, self._lock:
            self._drop(self._words)
            if snapshot.number == self._newest:
                snapshot = snapshot.at_epoch(self._snapshots[self._newest].epoch + 1)
                self._snapshots[self._newest] = snapshot
                self._begin(snapshot.size)

    def replace(self, snapshot: LexicalSnapshot) -> None:
        """Publish a snapshot with the same chunks but other words."""
        self.terms.forget()
        with self._writing, self._lock:
            snapshot = snapshot.at_epoch(self._snapshots[self._newest].epoch + 1)
            self._drop(self._words)
            self._newest = snapshot.number
            self._snapshots[snapshot.number] = snapshot
            self._snapshots.pop(snapshot.number - KEPT_SNAPSHOTS, None)
            self._begin(snapshot.size)

    def _find(self, snapshot: LexicalSnapshot, key: Key) -> Postings | None:
        """Return the postings of a kept word, including pending chunks up to the snapshot; None if it is not kept."""
        with self._lock:
            word = self._words.get(key)
            if word is None or word.since > snapshot.number or not _fits(word, snapshot):
                return None
            self._words.move_to_end(key)
            pending, is_newest_epoch = self._pending, self._snapshots[self._newest].epoch == snapshot.epoch
        if word.end >= snapshot.size and word.epoch == snapshot.epoch:
            return word.postings.before(snapshot.size)
        # Outside of the lock: concurrent callers write the same into the buffers, because committed rows never change.
        postings = word.postings
        if word.epoch != snapshot.epoch and snapshot.numbers is not None:
            postings = postings.renumbered(snapshot.numbers)
        first = max(word.end, pending.first) if word.epoch == snapshot.epoch else pending.first
        if is_newest_epoch and (counts := pending.counts(key, first, snapshot.size)):
            postings = postings.extended(list(counts), list(counts.values()))
        with self._lock:
            if self._words.get(key) is word and self._snapshots[self._newest].epoch == snapshot.epoch:
                self._put(key, Word(postings, word.since, snapshot.epoch, snapshot.size))
        return postings

    def _keep(self, snapshot: LexicalSnapshot, key: Key, postings: Postings) -> None:
        """Keep a word loaded at a snapshot if every chunk added since is still pending."""
        with self._lock:
            if snapshot.size >= self._kept_from and snapshot.epoch == self._snapshots[self._newest].epoch:
                self._put(key, Word(postings, snapshot.number, snapshot.epoch, snapshot.size))

    def _settle(self, snapshot: LexicalSnapshot) -> None:
        """Add the pending chunks to the kept words; from now on, no older word is kept."""
        with self._lock:
            self._kept_from = snapshot.size
            keys = list(self._words)
        for key in filter(self._pending.has, keys):
            # Repeat if a reader of an earlier snapshot came first.
            while (word := self._words.get(key)) and (word.epoch != snapshot.epoch or word.end < snapshot.size):
                if self._find(snapshot, key) is None:
                    break

    def _begin(self, row: int) -> None:
        """Clear the pending chunks; the next new chunk gets this row."""
        self._pending = Pending(row)
        self._kept_from = row

    def _put(self, key: Key, word: Word) -> None:
        if key in self._words:
            self._drop([key])
        if (size := _size(key, word)) > self._limit:
            return
        self._words[key] = word
        self._words_size += size
        while self._words and self.size > self._limit:
            self._drop([next(iter(self._words))])

    def _drop(self, keys: Iterable[Key]) -> None:
        for key in list(keys):
            self._words_size -= _size(key, self._words.pop(key))


def _size(key: Key, word: Word) -> int:
    return word.postings.nbytes + sum(map(getsizeof, key))


def occurrences(tokens: list[str], key: Key) -> int:
    """Return the number of times that the tokens of a phrase follow each other."""
    starts = range(len(tokens) - len(key) + 1) if key[0] in tokens else ()
    return sum(tuple(tokens[start : start + len(key)]) == key for start in starts)


def _fits(word: Word, snapshot: LexicalSnapshot) -> bool:
    """Whether a word has the rows of the snapshot, or of the epoch before."""
    return word.epoch == snapshot.epoch or (word.epoch == snapshot.epoch - 1 and snapshot.numbers is not None)


class TermFilter:
    """Detects, without a query to the database, most tokens that occur nowhere.

    A token takes eight bytes for its hash. The hash stays when the last chunk with the token is deleted, and another
    token may have the same hash, so only the database is certain about the other tokens. One writer and one reader of
    the database at a time; any number of callers of `possible`.
    """

    def __init__(self) -> None:
        self._changing = threading.Lock()
        self._state = np.empty(0, np.int64), set[int]()
        self.since: int | None = None
        """The first snapshot whose tokens are all known; None until the database has been read."""
        self.is_unreadable = False
        """Whether the tokens in the database are damaged, so that another attempt to read them would fail too."""

    def forget(self) -> None:
        """Let the tokens of the database be read again, because they changed."""
        self.since, self.is_unreadable = None, False

    def add(self, tokens: Iterable[str]) -> None:
        """Add the tokens of new chunks."""
        new = _hashes({*tokens})
        with self._changing:
            hashes, added = self._state
            added.update(new[~_among(new, hashes)].tolist())
            if len(added) > MOST_ADDED:
                self._state = np.union1d(hashes, np.fromiter(added, np.int64)), set()

    def fill(self, blocks: Iterable[Sequence[str]], number: int) -> None:
        """Add the tokens of the database at a snapshot."""
        read = np.concatenate([np.empty(0, np.int64), *map(_hashes, blocks)])
        with self._changing:
            hashes, added = self._state
            self._state = np.union1d(hashes, read), added
        self.since = number

    def possible(self, tokens: Sequence[str], number: int) -> Sequence[str]:
        """Return the tokens that may occur in a chunk of a snapshot."""
        since = self.since
        if since is None or number < since:
            return tokens
        hashes, added = self._state
        present = _among(_hashes(tokens), hashes).tolist()
        return [token for token, is_there in zip(tokens, present, strict=True) if is_there or hash(token) in added]


def _hashes(tokens: Collection[str]) -> NDArray[np.int64]:
    return np.fromiter(map(hash, tokens), np.int64, len(tokens))


def _among(some: NDArray[np.int64], hashes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return a mask of the values that are in the ascending `hashes`."""
    if not hashes.size:
        return np.zeros(some.size, np.bool_)
    present: NDArray[np.bool_] = hashes[np.minimum(np.searchsorted(hashes, some), hashes.size - 1)] == some
    return present
