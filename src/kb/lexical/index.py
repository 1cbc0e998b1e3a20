"""The postings of words at each moment that a transaction may see.

Words are loaded when they are asked for, by whoever asks, and are kept up to a limit. Each change is added to the words
that are kept; a reader looks only at the rows of its own moment, so it sees nothing of later ones.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict, defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from kb.lexical.moment import Key, Moment, NewChunk
    from kb.lexical.postings import Postings

KEPT_MOMENTS = 16
HEADER_WEIGHT = 2
"""How much more a word counts in a header than in a text."""


class Change:
    """What one change added: in which rows each word stands, and how often.

    Args:
        first: the row of the first of the chunks.
        added: the chunks.
    """

    def __init__(self, first: int, added: Sequence[NewChunk]) -> None:
        self._first = first
        self._added = added
        self._words: dict[str, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        for row, chunk in enumerate(added, first):
            counts = Counter(chunk.text)
            for token in chunk.header:
                counts[token] += HEADER_WEIGHT
            for token, count in counts.items():
                rows, weights = self._words[token]
                rows.append(row)
                weights.append(count)

    def __iter__(self) -> Iterator[str]:
        """Each token that was added, once."""
        return iter(self._words)

    def concerns(self, key: Key) -> bool:
        """Return whether every token of the word was added."""
        return all(token in self._words for token in key)

    def extend(self, key: Key, postings: Postings) -> Postings:
        """Return the postings of a word together with those that were added."""
        rows, counts = self._words[key[0]] if len(key) == 1 else self._phrase(key)
        return postings.extended(rows, counts) if rows else postings

    def without_texts(self) -> Change:
        """Return the change without what only phrases need."""
        change = Change(self._first, ())
        change._words = self._words
        return change

    def _phrase(self, key: Key) -> tuple[list[int], list[int]]:
        found = [
            (row, count)
            for row, chunk in enumerate(self._added, self._first)
            if (count := _occurrences(chunk.text, key) + HEADER_WEIGHT * _occurrences(chunk.header, key))
        ]
        return [row for row, _ in found], [count for _, count in found]


@dataclass(frozen=True, slots=True, eq=False)
class Word:
    """A word that is kept.

    Args:
        postings: up to the newest moment.
        since: the moment it was loaded at: it lacks chunks that were deleted before.
        epoch: that of its rows.
    """

    postings: Postings
    since: int
    epoch: int


class LexicalIndex:
    """The moments that transactions may still see, and words. One writer at a time; any number of readers.

    Args:
        moment: the newest.
        limit: how many bytes words may take; those that were not used for longest go first.
    """

    def __init__(self, moment: Moment, limit: int) -> None:
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._limit = limit
        self._newest = moment.number
        self._moments = {moment.number: moment}
        self._changes: dict[int, Change] = {}
        self._words: OrderedDict[Key, Word] = OrderedDict()
        self._phrases: dict[str, set[Key]] = defaultdict(set)
        self._loading: WeakValueDictionary[Key, threading.Lock] = WeakValueDictionary()
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
            moment = before.changed(number, (), removed)
            if moment.is_sparse:
                moment = moment.compacted()
            change = Change(moment.size, added)
            moment = moment.changed(number, added, ())
            with self._lock:
                concerned = self._concerned(change)
            # Outside of the lock, for readers need it; words that one loads meanwhile are extended inside.
            extended = {key: (word, _extended(key, word, change, moment)) for key, word in concerned.items()}
            with self._lock:
                if moment.epoch != before.epoch:
                    self._drop(key for key, word in self._words.items() if word.epoch != before.epoch)
                for key, word in self._concerned(change).items():
                    source, following = extended.get(key, (None, word))
                    self._put(key, following if source is word else _extended(key, word, change, moment))
                self._add(moment, change)
            before.release()

    def withdraw(self) -> None:
        """Take the newest moment back: its transaction was rolled back."""
        with self._writing, self._lock:
            del self._moments[self._newest]
            self._changes.pop(self._newest)
            self._newest -= 1
            moment = self._moments[self._newest]
            self._drop(key for key, word in self._words.items() if word.epoch > moment.epoch)
            for key, word in self._words.items():  # each stays where it is
                if word.epoch == moment.epoch:
                    self._words[key] = replace(word, postings=word.postings.before(moment.size))

    def reset(self, moment: Moment) -> None:
        """Forget every word, and take `moment` for the newest if it has its number."""
        with self._writing, self._lock:
            self._drop(self._words)
            if moment.number == self._newest:
                epoch = self._moments[self._newest].epoch + 1
                self._moments[self._newest] = moment.at_epoch(epoch)

    def _find(self, moment: Moment, key: Key) -> Postings | None:
        with self._lock:
            word = self._words.get(key)
            if word is None or word.since > moment.number or not 0 <= moment.epoch - word.epoch <= 1:
                return None
            self._words.move_to_end(key)
        if word.epoch == moment.epoch:
            return word.postings.before(moment.size)
        if moment.numbers is None:
            return None
        renumbered = _renumbered(word, moment)
        with self._lock:
            if self._words.get(key) is word and self._moments[self._newest].epoch == moment.epoch:
                self._put(key, renumbered)
        return renumbered.postings.before(moment.size)

    def _keep(self, moment: Moment, key: Key, postings: Postings) -> None:
        """Keep what was loaded at a moment, with what was added since, if that is known."""
        with self._lock:
            changes = [self._changes.get(number) for number in range(moment.number + 1, self._newest + 1)]
            if moment.epoch != self._moments[self._newest].epoch:
                return
            for change in changes:
                if change is None or (len(key) > 1 and change.concerns(key)):
                    return
                if change.concerns(key):
                    postings = change.extend(key, postings)
            self._put(key, Word(postings, moment.number, moment.epoch))
            self._words.move_to_end(key)
            self._evict()

    def _concerned(self, change: Change) -> dict[Key, Word]:
        """Return the words that are kept and that a change adds to."""
        words = {(token,): word for token in change if (word := self._words.get((token,)))}
        phrases = [key for token in self._phrases.keys() & set(change) for key in self._phrases[token]]
        return words | {key: self._words[key] for key in phrases if change.concerns(key)}

    def _add(self, moment: Moment, change: Change) -> None:
        self._newest = moment.number
        self._moments[moment.number] = moment
        self._changes[moment.number] = change.without_texts()
        self._moments.pop(moment.number - KEPT_MOMENTS, None)
        self._changes.pop(moment.number - KEPT_MOMENTS, None)
        self._evict()

    def _put(self, key: Key, word: Word) -> None:
        before = self._words.get(key)
        self._words[key] = word
        self.size += word.postings.nbytes - (before.postings.nbytes if before else 0)
        if len(key) > 1:
            self._phrases[key[0]].add(key)

    def _drop(self, keys: Iterable[Key]) -> None:
        for key in list(keys):
            self.size -= self._words.pop(key).postings.nbytes
            if len(key) > 1:
                self._phrases[key[0]].discard(key)
                if not self._phrases[key[0]]:
                    del self._phrases[key[0]]

    def _evict(self) -> None:
        while self.size > self._limit:
            self._drop([next(iter(self._words))])


def _extended(key: Key, word: Word, change: Change, moment: Moment) -> Word:
    if word.epoch != moment.epoch:
        word = _renumbered(word, moment)
    return replace(word, postings=change.extend(key, word.postings))


def _renumbered(word: Word, moment: Moment) -> Word:
    assert moment.numbers is not None  # noqa: S101 - the first epoch has no word of an earlier one
    return Word(word.postings.renumbered(moment.numbers), word.since, moment.epoch)


def _occurrences(tokens: list[str], phrase: Key) -> int:
    """Return how often the tokens of the phrase follow each other."""
    if phrase[0] not in tokens:
        return 0
    length = len(phrase)
    return sum(tuple(tokens[start : start + length]) == phrase for start in range(len(tokens) - length + 1))
