"""The postings of words at each moment that a transaction may see.

Words are loaded when they are asked for, by whoever asks, and are kept up to a limit. What is written later is noted by
word, and added to a word when it is next asked for. A reader takes only what stands in the rows of its own moment.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from kb.lexical.moment import Key, Moment, NewChunk
    from kb.lexical.postings import Postings

KEPT_MOMENTS = 16
HEADER_WEIGHT = 2
"""How much more a word counts in a header than in a text."""

MAX_NOTES = 256
"""How many new chunks are noted before their words are added to those that are kept."""


class Note:
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
        since: the moment it was loaded at: it lacks chunks that were deleted before.
        epoch: that of its rows.
        end: the row after those that were looked through.
    """

    postings: Postings
    since: int
    epoch: int
    end: int


class LexicalIndex:
    """The moments that transactions may still see, and words. One writer at a time; any number of readers.

    Args:
        moment: the newest.
        limit: how many bytes words may take; those that were not used for longest go first.
    """

    def __init__(self, moment: Moment, limit: int) -> None:
        self._writing = threading.Lock()
        self._lock = threading.Lock()
        self._limit = limit
        self._newest = moment.number
        self._moments = {moment.number: moment}
        self._words: OrderedDict[Key, Word] = OrderedDict()
        self._loading: WeakValueDictionary[Key, threading.Lock] = WeakValueDictionary()
        self._notes: list[Note] = []
        self._first_noted = self._kept_from = moment.size
        self.size = 0

    @property
    def newest(self) -> int:
        """The number of the newest moment."""
        return self._newest

    @property
    def is_half_full(self) -> bool:
        """Whether words take half of what they may."""
        return self.size > self._limit // 2

    def moment(self, number: int) -> Moment | None:
        """Return the moment of this number, if it is kept."""
        return self._moments.get(number)

    def postings(self, moment: Moment, key: Key, load: Callable[[], Postings]) -> Postings:
        """Return a word's postings in a moment; `load` finds them if they are not kept, once for all who ask."""
        if (kept := self._find(moment, key)) is not None:
            return kept
        with self._lock:
            loading = self._loading.setdefault(key, threading.Lock())
        with loading:
            if (kept := self._find(moment, key)) is not None:
                return kept
            loaded = load()
            self._keep(moment, key, loaded)
        return loaded

    def publish(self, number: int, added: Sequence[NewChunk], removed: Collection[int]) -> None:
        """Make the next moment, visible to those who read its number."""
        with self._writing:
            before = self._moments[self._newest]
            moment = before.changed(number, removed)
            if moment.is_sparse:
                moment = moment.compacted()
            is_settled = moment.epoch != before.epoch or len(self._notes) >= MAX_NOTES
            if is_settled:
                self._settle(before)
            notes = [Note(chunk) for chunk in added]
            following = moment.with_chunks(added)
            with self._lock:  # readers wait: what takes long is done
                if is_settled:
                    self._start_noting(moment.size)
                if moment.epoch != before.epoch:
                    self._drop([key for key, word in self._words.items() if word.epoch != before.epoch])
                self._notes += notes
                self._newest = number
                self._moments[number] = following
                self._moments.pop(number - KEPT_MOMENTS, None)
            before.release()

    def withdraw(self) -> None:
        """Take the newest moment back: its transaction was rolled back."""
        with self._writing, self._lock:
            withdrawn = self._moments.pop(self._newest)
            self._newest -= 1
            moment = self._moments[self._newest]
            if withdrawn.epoch != moment.epoch:
                self._start_noting(moment.size)
            else:
                del self._notes[moment.size - self._first_noted :]

    def reset(self, moment: Moment) -> None:
        """Forget every word, and take `moment` for the newest if it has its number."""
        with self._writing, self._lock:
            self._drop(self._words)
            if moment.number == self._newest:
                moment = moment.at_epoch(self._moments[self._newest].epoch + 1)
                self._moments[self._newest] = moment
                self._start_noting(moment.size)

    def _find(self, moment: Moment, key: Key) -> Postings | None:
        """Return the postings of a word that is kept, together with what was noted for it up to the moment."""
        with self._lock:
            word = self._words.get(key)
            if word is None or word.since > moment.number or not _fits(word, moment):
                return None
            self._words.move_to_end(key)
            first, notes = self._noted(word, moment)
        if word.end >= moment.size and word.epoch == moment.epoch:
            return word.postings.before(moment.size)
        # Outside of the lock: two who do this at once write the same into the buffers, for no committed row changes.
        postings = word.postings
        if word.epoch != moment.epoch and moment.numbers is not None:
            postings = postings.renumbered(moment.numbers)
        if counts := [(row, count) for row, note in enumerate(notes, first) if (count := note.count(key))]:
            postings = postings.extended([row for row, _ in counts], [count for _, count in counts])
        with self._lock:
            if self._words.get(key) is word and self._moments[self._newest].epoch == moment.epoch:
                self._put(key, Word(postings, word.since, moment.epoch, moment.size))
        return postings

    def _keep(self, moment: Moment, key: Key, postings: Postings) -> None:
        """Keep what was loaded at a moment, if everything is noted that was added since."""
        with self._lock:
            if moment.size >= self._kept_from and moment.epoch == self._moments[self._newest].epoch:
                self._put(key, Word(postings, moment.number, moment.epoch, moment.size))

    def _settle(self, moment: Moment) -> None:
        """Add what was noted up to the newest moment to the words that are kept; no older word is kept from now on."""
        with self._lock:
            self._kept_from = moment.size
            kept = list(self._words)
        tokens = set[str]().union(*(note.counts for note in self._notes))
        for key in filter(tokens.issuperset, kept):
            # Again if a reader of an earlier moment came first.
            while (word := self._words.get(key)) and (word.epoch != moment.epoch or word.end < moment.size):
                if self._find(moment, key) is None:
                    break

    def _start_noting(self, row: int) -> None:
        self._notes = []
        self._first_noted = self._kept_from = row

    def _noted(self, word: Word, moment: Moment) -> tuple[int, list[Note]]:
        """Return the chunks up to a moment that were not looked through for a word, and the row of the first."""
        if self._moments[self._newest].epoch != moment.epoch:
            return moment.size, []
        first = max(word.end, self._first_noted) if word.epoch == moment.epoch else self._first_noted
        end = max(moment.size, first)
        return first, self._notes[first - self._first_noted : end - self._first_noted]

    def _put(self, key: Key, word: Word) -> None:
        before = self._words.get(key)
        self._words[key] = word
        self.size += word.postings.nbytes - (before.postings.nbytes if before else 0)
        while self.size > self._limit:
            self._drop([next(iter(self._words))])

    def _drop(self, keys: Iterable[Key]) -> None:
        for key in list(keys):
            self.size -= self._words.pop(key).postings.nbytes


def _occurrences(tokens: list[str], key: Key) -> int:
    """Return how often the tokens of a phrase follow each other."""
    starts = range(len(tokens) - len(key) + 1) if key[0] in tokens else ()
    return sum(tuple(tokens[start : start + len(key)]) == key for start in starts)


def _fits(word: Word, moment: Moment) -> bool:
    """Return whether a word has the moment's rows, or those of the epoch before."""
    return word.epoch == moment.epoch or (word.epoch == moment.epoch - 1 and moment.numbers is not None)
