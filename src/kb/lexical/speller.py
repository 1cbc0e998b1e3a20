"""Words that no chunk has, and those of the full text that are spelled nearly alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Protocol

from kb.lexical.function_words import STOP_WORDS
from kb.lexical.snapshot import Key
from kb.lexical.spelling import LONG, SHORTEST, distance, edits, may_be_near, plain, spelled_out

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


class Vocabulary(Protocol):
    """The words of the chunks that a filter admits."""

    def tokens(self, text: str) -> list[str]:
        """Return the stems of a text's words."""

    def places(self, text: str) -> Iterable[tuple[int, int, str]]:
        """Return each word of a text: where it begins and ends, and its stem."""

    def keys(self, word: str) -> list[Key]:
        """Return what the full text has of a word; nothing if it has no token."""

    def known(self, stems: Sequence[str]) -> set[str]:
        """Return those of the stems that stand somewhere, admitted or not."""

    def begun(self, beginning: str, most: int) -> Iterable[str]:
        """Return stems that begin so, likewise."""

    def some_with(self, key: Key, most: int) -> tuple[int, list[int]]:
        """Return how many of the chunks have a word, and the first of them."""

    def sources(self, chunk_ids: Sequence[int]) -> Iterable[str]:
        """Return what chunks stand under and their texts, as they were written."""


class Speller:
    """Finds the words that none of some chunks has.

    Args:
        vocabulary: the words of the chunks.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    def unknown(self, words: Iterable[str]) -> dict[str, list[str]]:
        """Return those of the words that no chunk has, each with others that some have, the nearest first."""
        keys = {word: self._vocabulary.keys(word) for word in words}
        missing = [word for word, stems in keys.items() if stems and not self._vocabulary.some_with(stems[0], 1)[0]]
        corrected = [word for word in missing if len(word) >= SHORTEST][:CORRECTED]
        return {word: self._nearest(word) if word in corrected else [] for word in missing}

    def _nearest(self, word: str) -> list[str]:
        letters = plain(word)
        made = self._made(letters)
        stems = dict.fromkeys(made, 1) | {stem: far for stem, far in self._begun(letters) if stem not in made}
        # Those of other chunks do not count: who may not see them would miss what they took the place of.
        ordered = sorted(stems, key=lambda stem: (stems[stem], stem))
        having = ((stem, *self._vocabulary.some_with((stem,), READ)) for stem in ordered)
        known = ((stem, count, first) for stem, count, first in having if count)
        nearest = []
        for stem, count, first in islice(known, READ_STEMS):
            written = self._written(stem, letters, first)
            if written and written not in STOP_WORDS:
                far = distance(spelled_out(letters), spelled_out(plain(written)))
                if stem in made or far <= FAR:
                    nearest.append((far, -count, written))
        return [written for *_, written in sorted(nearest)[:NEAREST]]

    def _made(self, word: str) -> set[str]:
        """Return the stems of what the word becomes by one change."""
        return self._vocabulary.known(sorted(set(self._vocabulary.tokens(" ".join(sorted(edits(word)))))))

    def _begun(self, word: str) -> Iterator[tuple[str, int]]:
        """Yield the stems that have the first half of a long word and go on nearly as it does, and how far they are."""
        if len(word) < LONG:
            return
        half = word[: len(word) // 2]
        for stem in self._vocabulary.begun(half, SCANNED):
            begin = word[: max(len(stem), len(word) - ENDING)]
            if may_be_near(begin, stem, FAR) and (far := distance(begin, stem)) <= FAR:
                yield stem, far

    def _written(self, stem: str, letters: str, chunk_ids: Sequence[int]) -> str | None:
        """Return the word of that stem, in one of these chunks, which is most like these letters."""
        words = {
            text[start:end].lower()
            for text in self._vocabulary.sources(chunk_ids)
            for start, end, token in self._vocabulary.places(text)
            if token == stem
        }
        return min(words, key=lambda word: (distance(letters, plain(word)), word), default=None)
