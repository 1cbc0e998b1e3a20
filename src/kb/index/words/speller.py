"""Words that no chunk contains, and known words with nearly the same spelling."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Protocol

from kb.index.words.edit_distance import LONG, SHORTEST, distance, edits, may_be_near, plain, spelled_out
from kb.index.words.function_words import STOP_WORDS
from kb.index.words.snapshot import Key

FAR = 2
"""The maximum number of wrong letters in the second half of a long word."""

CORRECTED = 3
"""The number of words of a query that are corrected."""

NEAREST = 3
"""The number of suggestions per word."""

READ_STEMS = 10
"""The maximum number of stems whose written forms are read."""

SCANNED = 4000
"""The maximum number of stems with the first half of a word that are compared."""

READ = 3
"""The number of chunks in which the written form is read."""

ENDING = 3
"""The maximum number of letters that a stem may lack."""


class Vocabulary(Protocol):
    """The words of the chunks that a filter admits."""

    def tokens(self, text: str) -> list[str]:
        """Return the stems of a text's words."""

    def places(self, text: str) -> Iterable[tuple[int, int, str]]:
        """Return the start, end and stem of each word of a text."""

    def keys(self, word: str) -> list[Key]:
        """Return the keys of a word in the full text; an empty list if it has no token."""

    def known(self, stems: Sequence[str]) -> set[str]:
        """Return the stems that occur somewhere, even outside the filter."""

    def begun(self, beginning: str, most: int) -> Iterable[str]:
        """Return stems with this prefix, even outside the filter."""

    def some_with(self, key: Key, most: int) -> tuple[int, list[int]]:
        """Return the number of chunks with a word, and the first of them."""

    def sources(self, chunk_ids: Sequence[int]) -> Iterable[str]:
        """Return the titles, headings and texts of chunks, as written."""


class Speller:
    """Finds the words that none of some chunks contains.

    Args:
        vocabulary: the words of the chunks.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    def unknown(self, words: Iterable[str]) -> dict[str, list[str]]:
        """Return the words that no chunk contains, each with known words, the nearest first."""
        keys = {word: self._vocabulary.keys(word) for word in words}
        missing = [word for word, stems in keys.items() if stems and not self._vocabulary.some_with(stems[0], 1)[0]]
        corrected = [word for word in missing if len(word) >= SHORTEST][:CORRECTED]
        return {word: self._nearest(word) if word in corrected else [] for word in missing}

    def _nearest(self, word: str) -> list[str]:
        letters = plain(word)
        made = self._made(letters)
        stems = dict.fromkeys(made, 1) | {stem: far for stem, far in self._begun(letters) if stem not in made}
        # Stems of other chunks do not count: a caller who cannot see these would miss the suggestions they displace.
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
        """Return the known stems that are one change away from the word."""
        return self._vocabulary.known(sorted(set(self._vocabulary.tokens(" ".join(sorted(edits(word)))))))

    def _begun(self, word: str) -> Iterator[tuple[str, int]]:
        """Yield the stems with the first half of a long word and a similar second half, with their distances."""
        if len(word) < LONG:
            return
        half = word[: len(word) // 2]
        for stem in self._vocabulary.begun(half, SCANNED):
            begin = word[: max(len(stem), len(word) - ENDING)]
            if may_be_near(begin, stem, FAR) and (far := distance(begin, stem)) <= FAR:
                yield stem, far

    def _written(self, stem: str, letters: str, chunk_ids: Sequence[int]) -> str | None:
        """Return the word with that stem, from these chunks, that is nearest to these letters."""
        words = {
            text[start:end].lower()
            for text in self._vocabulary.sources(chunk_ids)
            for start, end, token in self._vocabulary.places(text)
            if token == stem
        }
        return min(words, key=lambda word: (distance(letters, plain(word)), word), default=None)
