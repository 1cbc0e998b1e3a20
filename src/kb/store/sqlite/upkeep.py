"""Background work for the words in memory: preload common words, check for errors."""

import logging
from collections import Counter
from collections.abc import Callable
from functools import cached_property
from itertools import pairwise
from time import perf_counter

import apsw
import numpy as np

from kb.api.errors import KbError
from kb.index.words.function_words import STOP_WORDS
from kb.index.words.query_word_groups import alternatives
from kb.store.analyzer import FtsTokenizer
from kb.store.sqlite.full_text_cache import WordReader, indexed_chunks
from kb.store.sqlite.index import MemoryLeg, TableLeg
from kb.store.sqlite.statements import statements
from kb.store.sqlite.store import SqliteStore, SqliteTransaction
from kb.threads import BackgroundThread

logger = logging.getLogger(__name__)

# The number of chunks that are read to find the common words.
SAMPLE = 1000

CHECK_SECONDS = 60.0
# The length of the result list that is compared with SQLite's list.
CHECKED = 100

MAX_WORDS = 3
TOLERANCE = 1e-9


class Upkeep(BackgroundThread):
    """A thread that preloads the common words of a store and then regularly compares memory with SQLite.

    Args:
        store: the store, which must stay open while the thread runs.
        seconds: the time between two checks.
        delay: the time to wait before the work starts, in seconds.
    """

    def __init__(self, store: SqliteStore, seconds: float = CHECK_SECONDS, delay: float = 0) -> None:
        super().__init__("kb-words")
        self._store = store
        self._seconds = seconds
        self._delay = delay

    @cached_property
    def _numbers(self) -> np.random.Generator:
        return np.random.default_rng()  # NumPy imports its random module on first use

    def learn_terms(self) -> None:
        """Read the list of all tokens, unless it is in memory."""
        with self._store.read() as tx:
            self._store.words.learn_terms(tx.connection)

    def warm(self) -> None:
        """Read the common words, except stop words, until half of the memory limit is used."""
        for token in self._common():
            if self._stopping.is_set() or self._store.words.is_half_full:
                return
            begun = perf_counter()
            with self._store.read() as tx:
                if tx.words:
                    tx.words.postings((token,))
            # Use at most half of a core, because searches have priority.
            self._stopping.wait(perf_counter() - begun)

    def check(self) -> None:
        """Search for some words of a chunk in memory and with SQLite; if the results differ, read everything again."""
        with self._store.read() as tx:
            if (reader := tx.words) and reader.snapshot.count:
                words = self._words(tx, reader)
                if words and not agree(tx, reader, words):
                    logger.warning("the keyword index in memory differed from the database; reading it again")
                    self._store.words.reset(tx.connection)
                    again = self._store.words.seen_by(tx.connection)
                    if again and again.snapshot is not reader.snapshot and not agree(tx, again, words):
                        self._store.words.give_up("it still differed from memory after it was read again")
                    self._store.words.learn_terms(tx.connection)

    def _run(self) -> None:
        if self._stopping.wait(self._delay):
            return
        self._try(self.learn_terms)
        self._try(self.warm)
        while not self._stopping.wait(self._seconds):
            self._try(self.learn_terms)  # again after words were indexed again
            self._try(self.check)

    def _try(self, act: Callable[[], None]) -> None:
        """Run `act`, and log its errors."""
        try:
            act()
        except (KbError, apsw.BusyError) as error:
            logger.warning("could not maintain the keyword index; retrying in %.0f s: %s", self._seconds, error)
        except (apsw.Error, MemoryError, ValueError, IndexError):
            self._store.words.faults += 1
            logger.exception("could not maintain the keyword index in memory")

    def _common(self) -> list[str]:
        """Return the words in more than one chunk of a sample, the most common first."""
        with self._store.read() as tx:
            chunks = indexed_chunks(tx.connection, self._sample(tx.words, SAMPLE)) if tx.words else []
            stopped = set(FtsTokenizer(tx.connection).tokens(" ".join(STOP_WORDS)))
        counts = Counter(token for chunk in chunks for token in {*chunk.text, *chunk.header})
        return [token for token, count in counts.most_common() if count > 1 and token not in stopped]

    def _sample(self, reader: WordReader, size: int) -> list[int]:
        """Return the ids of up to `size` random chunks, ascending."""
        snapshot = reader.snapshot
        alive = np.ones(snapshot.size, np.bool_)
        alive[snapshot.dead] = False
        rows = np.flatnonzero(alive)
        chosen = self._numbers.choice(rows, min(size, rows.size), replace=False)
        ids: list[int] = snapshot.ids[np.sort(chosen)].tolist()
        return ids

    def _words(self, tx: SqliteTransaction, reader: WordReader) -> tuple[str, ...]:
        """Return a few words of a random chunk, as written there; the first may be a pair of adjacent words."""
        tokenizer = FtsTokenizer(tx.connection)
        for text, _ in tx.connection.execute(statements("postings")["select_text"], self._sample(reader, 1)):
            raw = text.encode()
            words = [raw[start:end].decode(errors="replace") for start, end, _ in tokenizer.places(raw)]
            chosen = [word for word in words if word.lower() not in STOP_WORDS]
            pairs = [f"{first} {second}" for first, second in pairwise(words) if {first, second} <= {*chosen}]
            self._numbers.shuffle(pairs)
            self._numbers.shuffle(chosen)
            return (*pairs[: self._numbers.integers(2)], *chosen[:MAX_WORDS])
        return ()


def agree(tx: SqliteTransaction, reader: WordReader, words: tuple[str, ...]) -> bool:
    """Return whether memory and SQLite find chunks with the same scores."""
    words = tuple(word for word, *_ in alternatives(words))  # FTS5 would count other spellings of a word twice
    memory = MemoryLeg(reader, None)
    actual, expected = memory.best(words, CHECKED), TableLeg(tx.connection.execute, None).best(words, CHECKED)
    return bool(
        actual.ids.size == expected.ids.size
        and np.allclose(memory.scores(words, expected.ids), expected.scores, rtol=TOLERANCE)
        and np.allclose(np.sort(actual.scores), np.sort(expected.scores), rtol=TOLERANCE)
    )
