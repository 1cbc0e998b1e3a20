"""Words that no chunk has, and those of the full text that are spelled nearly alike."""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from kb.lexical.segment import segmented
from kb.lexical.spelling import LONG, distance, edits, may_be_near, plain
from kb.lexical.stop_words import STOP_WORDS
from kb.store.analyzer import Tokenizer
from kb.store.sqlite.statements import statements
from kb.store.sqlite.words import LAST

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import apsw
    from numpy.typing import NDArray

    from kb.lexical.snapshot import Admitted, Key
    from kb.store.sqlite.words import WordReader

FAR = 2
"""How many letters of a long word may be wrong, behind its first half."""

CORRECTED = 3
"""For how many words of a query nearest ones are looked for."""

NEAREST = 3
"""How many are named."""

READ_STEMS = 10
"""Of how many stems at most it is read how they are written."""

SCANNED = 4000
"""How many stems that begin with half a word are looked through."""

READ = 3
"""In how many chunks that is read."""

ENDING = 3
"""How many letters a stem may have lost."""


class Speller:
    """Finds the words that none of some chunks has.

    Args:
        connection: the transaction's.
        words: the words of its moment.
        admitted: the chunks; None for all.
    """

    def __init__(self, connection: apsw.Connection, words: WordReader, admitted: Admitted | None) -> None:
        self._execute = connection.execute
        self._tokenizer = Tokenizer(connection)
        self._words = words
        self._admitted = admitted

    def unknown(self, words: Iterable[str]) -> dict[str, list[str]]:
        """Return those of the words that no chunk has, each with others that some have, the nearest first."""
        keys = {word: self._words.keys([word]) for word in words}
        missing = [word for word, found in keys.items() if found and not self._rows(found[0]).size]
        return {word: self._nearest(word) if number < CORRECTED else [] for number, word in enumerate(missing)}

    def _nearest(self, word: str) -> list[str]:
        letters = plain(word)
        made = self._made(letters)
        stems = dict.fromkeys(made, 1) | {stem: far for stem, far in self._begun(letters) if stem not in made}
        # Those of other chunks do not count: who may not see them would miss what they took the place of.
        ordered = sorted(stems, key=lambda stem: (stems[stem], stem))
        there = ((stem, rows) for stem in ordered if (rows := self._rows((stem,))).size)
        found = []
        for stem, rows in islice(there, READ_STEMS):
            written = self._written(stem, letters, rows)
            if written and written not in STOP_WORDS:
                far = distance(letters, plain(written))
                if stem in made or far <= FAR:
                    found.append((far, -rows.size, written))
        return [written for *_, written in sorted(found)[:NEAREST]]

    def _made(self, word: str) -> set[str]:
        """Return the stems of what the word becomes by one change."""
        stems = json.dumps(sorted(set(self._tokenizer.tokens(" ".join(sorted(edits(word)))))))
        return {stem for (stem,) in self._execute(statements("postings")["select_known"], (stems,))}

    def _begun(self, word: str) -> Iterator[tuple[str, int]]:
        """Yield the stems that have the first half of a long word and go on nearly as it does, and how far they are."""
        if len(word) < LONG:
            return
        half = word[: len(word) // 2]
        for (stem,) in self._execute(statements("postings")["select_beginning"], (half, half + LAST, SCANNED)):
            begin = word[: max(len(stem), len(word) - ENDING)]
            if may_be_near(begin, stem, FAR) and (far := distance(begin, stem)) <= FAR:
                yield stem, far

    def _written(self, stem: str, letters: str, rows: NDArray[np.int32]) -> str | None:
        """Return the word of that stem, in one of the first chunks that have it, which is most like these letters."""
        ids = self._words.snapshot.ids[rows[:READ]].tolist()
        texts = self._execute(statements("postings")["select_sources"], (json.dumps(ids),))
        found = {
            raw[start:end].decode().lower()
            for (text,) in texts
            for raw in [(segmented(text) or text).encode()]
            for start, end, token in self._tokenizer.places(raw)
            if token == stem
        }
        return min(found, key=lambda each: (distance(letters, plain(each)), each), default=None)

    def _rows(self, key: Key) -> NDArray[np.int32]:
        """Return where a word stands among the chunks."""
        rows = self._words.postings(key).rows
        if self._admitted is not None:
            return rows[self._admitted.mask[rows]]
        dead = self._words.snapshot.dead
        return rows[~np.isin(rows, dead)] if dead.size else rows
