"""The postings of words at each snapshot that a transaction may see.

Words are loaded when they are asked for, by whoever asks, and are kept up to a limit. Chunks that are written later are
pending: they are added to a word when it is next asked for. A reader takes only what stands in its own snapshot's rows.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from sys import getsizeof, intern
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from kb.lexical.postings import Postings
from kb.lexical.snapshot import IndexedChunk, Key, LexicalSnapshot

KEPT_SNAPSHOTS = 16
HEADER_WEIGHT = 2
"""How much more a word counts in a header than in a text."""

MAX_PENDING = 256
"""How many new chunks wait before they are added to all words that are kept."""

PENDING_SHARE = 8
"""They take at most one part in so many of the memory."""

CHUNK_SIZE, TOKEN_SIZE, COUNT_SIZE = 300, 250, 130
"""About how many bytes the objects take of a chunk, of a token that it is the first to have, and of one in a chunk."""

MOST_ADDED = 10_000
"""How many new tokens are kept apart from the others, as objects."""


class Pending:
    """New chunks that are not yet added to the words that are kept, by their tokens.

    One writer changes it while readers look: these ask for rows that nobody changes.

    Args:
        first: the row of the first.
    """

    def __init__(self, first: int) -> None:
        self.first = first
        self.nbytes = 0
        self._chunks: list[tuple[list[str], list[str]]] = []
        self._counts: dict[str, list[tuple[int, int]]] = {}

    def __len__(self) -> int:
        return len(self._chunks)

    def add(self, added: Iterable[IndexedChunk]) -> None:
        """Append chunks."""
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
        """Forget the chunks from a row on."""
        for text, header in self._chunks[end - self.first :]:
            self.nbytes -= CHUNK_SIZE + getsizeof(text) + getsizeof(header)
            for token in {*text, *header}:
                counts = self._counts.get(token, [])
                while counts and counts[-1][0] >= end:
                    counts.pop()
                    self.nbytes -= COUNT_SIZE
        del self._chunks[end - self.first :]

    def has(self, key: Key) -> bool:
        """Return whether all tokens of a word are in some of the chunks."""
        return all(token in self._counts for token in key)

    def counts(self, key: Key, start: int, end: int) -> dict[int, int]:
        """Return the rows from `start` to before `end` in which a word stands, and how often."""
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
    """A word that is kept.

    Args:
        postings: where it stands in the rows before `end`.
        since: the snapshot it was loaded at: it lacks chunks that were deleted before.
        epoch: that of its rows.
        end: the row after those that were looked through.
    """

    postings: Postings
    since: int
    epoch: int
    end: int


class LexicalIndex:
    """The snapshots that transactions may still see, and words. One writer at a time; any number of readers.

    Args:
        snapshot: the newest.
        limit: how many bytes words may take; those that were not used for longest go first.
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

    @property
    def newest(self) -> int:
        """The number of the newest snapshot."""
        return self._newest

    @property
    def size(self) -> int:
        """How many bytes words take, and chunks that are pending."""
        return self._words_size + self._pending.nbytes

    @property
    def is_half_full(self) -> bool:
        """Whether words take half of what they may."""
        return self.size > self._limit // 2

    def snapshot(self, number: int) -> LexicalSnapshot | None:
        """Return the snapshot of this number, if it is kept."""
        return self._snapshots.get(number)

    def postings(self, snapshot: LexicalSnapshot, key: Key, load: Callable[[], Postings]) -> Postings:
        """Return a word's postings in a snapshot; `load` finds them if they are not kept, once for all who ask."""
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
        """Make the next snapshot, visible to those who read its number."""
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
            pending.cut(snapshot.size)  # what is there of a change that failed here
            pending.add(added)
            self.terms.add(token for chunk in added for token in (*chunk.text, *chunk.header))
            with self._lock:  # readers wait: what takes long is done
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

    def withdraw(self) -> None:
        """Take the newest snapshot back: its transaction was rolled back."""
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
        """Forget every word, and take `snapshot` for the newest if it has its number."""
        self.terms.since = None
        with self._writing, self._lock:
            self._drop(self._words)
            if snapshot.number == self._newest:
                snapshot = snapshot.at_epoch(self._snapshots[self._newest].epoch + 1)
                self._snapshots[self._newest] = snapshot
                self._begin(snapshot.size)

    def replace(self, snapshot: LexicalSnapshot) -> None:
        """Make a snapshot the newest whose chunks are those before, but have other words."""
        self.terms.since = None
        with self._writing, self._lock:
            snapshot = snapshot.at_epoch(self._snapshots[self._newest].epoch + 1)
            self._drop(self._words)
            self._newest = snapshot.number
            self._snapshots[snapshot.number] = snapshot
            self._snapshots.pop(snapshot.number - KEPT_SNAPSHOTS, None)
            self._begin(snapshot.size)

    def _find(self, snapshot: LexicalSnapshot, key: Key) -> Postings | None:
        """Return the postings of a word that is kept, with those of chunks that are pending up to the snapshot."""
        with self._lock:
            word = self._words.get(key)
            if word is None or word.since > snapshot.number or not _fits(word, snapshot):
                return None
            self._words.move_to_end(key)
            pending, is_newest_epoch = self._pending, self._snapshots[self._newest].epoch == snapshot.epoch
        if word.end >= snapshot.size and word.epoch == snapshot.epoch:
            return word.postings.before(snapshot.size)
        # Outside of the lock: two who do this at once write the same into the buffers, for no committed row changes.
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
        """Keep what was loaded at a snapshot, if every chunk is pending that was added since."""
        with self._lock:
            if snapshot.size >= self._kept_from and snapshot.epoch == self._snapshots[self._newest].epoch:
                self._put(key, Word(postings, snapshot.number, snapshot.epoch, snapshot.size))

    def _settle(self, snapshot: LexicalSnapshot) -> None:
        """Add the chunks that are pending to the words that are kept; no older word is kept from now on."""
        with self._lock:
            self._kept_from = snapshot.size
            keys = list(self._words)
        for key in filter(self._pending.has, keys):
            # Again if a reader of an earlier snapshot came first.
            while (word := self._words.get(key)) and (word.epoch != snapshot.epoch or word.end < snapshot.size):
                if self._find(snapshot, key) is None:
                    break

    def _begin(self, row: int) -> None:
        """Let nothing be pending; the next new chunk has this row."""
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
    """Return how often the tokens of a phrase follow each other."""
    starts = range(len(tokens) - len(key) + 1) if key[0] in tokens else ()
    return sum(tuple(tokens[start : start + len(key)]) == key for start in starts)


def _fits(word: Word, snapshot: LexicalSnapshot) -> bool:
    """Return whether a word has the snapshot's rows, or those of the epoch before."""
    return word.epoch == snapshot.epoch or (word.epoch == snapshot.epoch - 1 and snapshot.numbers is not None)


class TermFilter:
    """Tells of most tokens that stand nowhere that they do not, without looking in the database.

    A token takes eight bytes: its hash. It stays when its last chunk is deleted, and of another one the hash may be the
    same: whether one that may be there is, only the database knows. One writer and one reader of the database at a
    time; any number of those who ask.
    """

    def __init__(self) -> None:
        self._changing = threading.Lock()
        self._state = np.empty(0, np.int64), set[int]()
        self.since: int | None = None
        """The snapshot from which on every token is there; None while the database was not read."""

    def add(self, tokens: Iterable[str]) -> None:
        """Add those of chunks that are written."""
        new = _hashes({*tokens})
        with self._changing:
            hashes, added = self._state
            added.update(new[~_among(new, hashes)].tolist())
            if len(added) > MOST_ADDED:
                self._state = np.union1d(hashes, np.fromiter(added, np.int64)), set()

    def fill(self, blocks: Iterable[Sequence[str]], number: int) -> None:
        """Add those that the database has at a snapshot."""
        read = np.concatenate([np.empty(0, np.int64), *map(_hashes, blocks)])
        with self._changing:
            hashes, added = self._state
            self._state = np.union1d(hashes, read), added
        self.since = number

    def possible(self, tokens: Sequence[str], number: int) -> Sequence[str]:
        """Return those of the tokens that may stand in a chunk of a snapshot."""
        since = self.since
        if since is None or number < since:
            return tokens
        hashes, added = self._state
        present = _among(_hashes(tokens), hashes).tolist()
        return [token for token, is_there in zip(tokens, present, strict=True) if is_there or hash(token) in added]


def _hashes(tokens: Collection[str]) -> NDArray[np.int64]:
    return np.fromiter(map(hash, tokens), np.int64, len(tokens))


def _among(some: NDArray[np.int64], hashes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which of some are among the hashes, which ascend."""
    if not hashes.size:
        return np.zeros(some.size, np.bool_)
    present: NDArray[np.bool_] = hashes[np.minimum(np.searchsorted(hashes, some), hashes.size - 1)] == some
    return present
