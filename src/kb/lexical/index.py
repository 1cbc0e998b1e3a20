"""The postings of words at each snapshot that a transaction may see.

Words are loaded when they are asked for, by whoever asks, and are kept up to a limit. Chunks that are written later are
pending: they are added to a word when it is next asked for. A reader takes only what stands in its own snapshot's rows.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from dataclasses import dataclass
from sys import getsizeof
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from kb.lexical.postings import Postings
    from kb.lexical.snapshot import Key, NewChunk, Snapshot

KEPT_SNAPSHOTS = 16
HEADER_WEIGHT = 2
"""How much more a word counts in a header than in a text."""

MAX_PENDING = 256
"""How many new chunks wait before they are added to all words that are kept."""


class PendingChunk:
    """A new chunk's tokens."""

    __slots__ = ("_chunk", "counts")

    def __init__(self, chunk: NewChunk) -> None:
        self._chunk = chunk
        self.counts = Counter(chunk.text)
        for token in chunk.header:
            self.counts[token] += HEADER_WEIGHT

    def count(self, key: Key) -> int:
        """Return how often a word stands in the chunk."""
        if len(key) == 1:
            return self.counts.get(key[0], 0)
        if not self.counts.keys() >= set(key):
            return 0
        return _occurrences(self._chunk.text, key) + HEADER_WEIGHT * _occurrences(self._chunk.header, key)


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

    def __init__(self, snapshot: Snapshot, limit: int) -> None:
        self._writing = threading.Lock()
        self._lock = threading.Lock()
        self._limit = limit
        self._newest = snapshot.number
        self._snapshots = {snapshot.number: snapshot}
        self._words: OrderedDict[Key, Word] = OrderedDict()
        self._loading: WeakValueDictionary[Key, threading.Lock] = WeakValueDictionary()
        self._pending: list[PendingChunk] = []
        self._first_pending = self._kept_from = snapshot.size
        self.size = 0

    @property
    def newest(self) -> int:
        """The number of the newest snapshot."""
        return self._newest

    @property
    def is_half_full(self) -> bool:
        """Whether words take half of what they may."""
        return self.size > self._limit // 2

    def snapshot(self, number: int) -> Snapshot | None:
        """Return the snapshot of this number, if it is kept."""
        return self._snapshots.get(number)

    def postings(self, snapshot: Snapshot, key: Key, load: Callable[[], Postings]) -> Postings:
        """Return a word's postings in a snapshot; `load` finds them if they are not kept, once for all who ask."""
        if (kept := self._find(snapshot, key)) is not None:
            return kept
        with self._lock:
            loading = self._loading.setdefault(key, threading.Lock())
        with loading:
            if (kept := self._find(snapshot, key)) is not None:
                return kept
            loaded = load()
            self._keep(snapshot, key, loaded)
        return loaded

    def publish(self, number: int, added: Sequence[NewChunk], removed: Collection[int]) -> None:
        """Make the next snapshot, visible to those who read its number."""
        with self._writing:
            before = self._snapshots[self._newest]
            snapshot = before.changed(number, removed)
            if snapshot.is_sparse:
                snapshot = snapshot.compacted()
            is_settled = snapshot.epoch != before.epoch or len(self._pending) >= MAX_PENDING
            if is_settled:
                self._settle(before)
            pending = [PendingChunk(chunk) for chunk in added]
            following = snapshot.with_chunks(added)
            with self._lock:  # readers wait: what takes long is done
                if is_settled:
                    self._clear_pending(snapshot.size)
                if snapshot.epoch != before.epoch:
                    self._drop([key for key, word in self._words.items() if word.epoch != before.epoch])
                self._pending += pending
                self._newest = number
                self._snapshots[number] = following
                self._snapshots.pop(number - KEPT_SNAPSHOTS, None)
            before.release()

    def withdraw(self) -> None:
        """Take the newest snapshot back: its transaction was rolled back."""
        with self._writing, self._lock:
            withdrawn = self._snapshots.pop(self._newest)
            self._newest -= 1
            snapshot = self._snapshots[self._newest]
            if withdrawn.epoch != snapshot.epoch:
                self._clear_pending(snapshot.size)
            else:
                del self._pending[snapshot.size - self._first_pending :]

    def reset(self, snapshot: Snapshot) -> None:
        """Forget every word, and take `snapshot` for the newest if it has its number."""
        with self._writing, self._lock:
            self._drop(self._words)
            if snapshot.number == self._newest:
                snapshot = snapshot.at_epoch(self._snapshots[self._newest].epoch + 1)
                self._snapshots[self._newest] = snapshot
                self._clear_pending(snapshot.size)

    def _find(self, snapshot: Snapshot, key: Key) -> Postings | None:
        """Return the postings of a word that is kept, with those of chunks that are pending up to the snapshot."""
        with self._lock:
            word = self._words.get(key)
            if word is None or word.since > snapshot.number or not _fits(word, snapshot):
                return None
            self._words.move_to_end(key)
            first, pending = self._pending_for(word, snapshot)
        if word.end >= snapshot.size and word.epoch == snapshot.epoch:
            return word.postings.before(snapshot.size)
        # Outside of the lock: two who do this at once write the same into the buffers, for no committed row changes.
        postings = word.postings
        if word.epoch != snapshot.epoch and snapshot.numbers is not None:
            postings = postings.renumbered(snapshot.numbers)
        if counts := [(row, count) for row, chunk in enumerate(pending, first) if (count := chunk.count(key))]:
            postings = postings.extended([row for row, _ in counts], [count for _, count in counts])
        with self._lock:
            if self._words.get(key) is word and self._snapshots[self._newest].epoch == snapshot.epoch:
                self._put(key, Word(postings, word.since, snapshot.epoch, snapshot.size))
        return postings

    def _keep(self, snapshot: Snapshot, key: Key, postings: Postings) -> None:
        """Keep what was loaded at a snapshot, if every chunk is pending that was added since."""
        with self._lock:
            if snapshot.size >= self._kept_from and snapshot.epoch == self._snapshots[self._newest].epoch:
                self._put(key, Word(postings, snapshot.number, snapshot.epoch, snapshot.size))

    def _settle(self, snapshot: Snapshot) -> None:
        """Add the chunks that are pending to the words that are kept; no older word is kept from now on."""
        with self._lock:
            self._kept_from = snapshot.size
            kept = list(self._words)
        tokens = set[str]().union(*(chunk.counts for chunk in self._pending))
        for key in filter(tokens.issuperset, kept):
            # Again if a reader of an earlier snapshot came first.
            while (word := self._words.get(key)) and (word.epoch != snapshot.epoch or word.end < snapshot.size):
                if self._find(snapshot, key) is None:
                    break

    def _clear_pending(self, row: int) -> None:
        self._pending = []
        self._first_pending = self._kept_from = row

    def _pending_for(self, word: Word, snapshot: Snapshot) -> tuple[int, list[PendingChunk]]:
        """Return the chunks up to a snapshot that were not looked through for a word, and the row of the first."""
        if self._snapshots[self._newest].epoch != snapshot.epoch:
            return snapshot.size, []
        first = max(word.end, self._first_pending) if word.epoch == snapshot.epoch else self._first_pending
        end = max(snapshot.size, first)
        return first, self._pending[first - self._first_pending : end - self._first_pending]

    def _put(self, key: Key, word: Word) -> None:
        before = self._words.get(key)
        self._words[key] = word
        self.size += word.postings.nbytes - before.postings.nbytes if before else _size(key, word)
        while self.size > self._limit:
            self._drop([next(iter(self._words))])

    def _drop(self, keys: Iterable[Key]) -> None:
        for key in list(keys):
            self.size -= _size(key, self._words.pop(key))


def _size(key: Key, word: Word) -> int:
    return word.postings.nbytes + sum(map(getsizeof, key))


def _occurrences(tokens: list[str], key: Key) -> int:
    """Return how often the tokens of a phrase follow each other."""
    starts = range(len(tokens) - len(key) + 1) if key[0] in tokens else ()
    return sum(tuple(tokens[start : start + len(key)]) == key for start in starts)


def _fits(word: Word, snapshot: Snapshot) -> bool:
    """Return whether a word has the snapshot's rows, or those of the epoch before."""
    return word.epoch == snapshot.epoch or (word.epoch == snapshot.epoch - 1 and snapshot.numbers is not None)
