"""SQLite's tokenizer, which splits texts into words for every database."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

import apsw
import numpy as np

from kb.index.words.segmentation import RUN, aligned, as_phrase, has_run, places, segmented, varied
from kb.index.words.stems import stems_in
from kb.index.words.word_variants import Variant, variants_in

TOKENIZER = ("porter", ["unicode61", "remove_diacritics", "2"])
"""The tokenizer of `chunks_fts`."""


class FtsTokenizer:
    """Splits texts into tokens as `chunks_fts` does."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._tokenize: Any = connection.fts5_tokenizer(*TOKENIZER)

    def tokens(self, text: str) -> list[str]:
        tokens: list[str] = self._tokenize(
            text.encode(), apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False
        )
        return tokens

    def indexed(self, text: str, language: str | None = None) -> list[str]:
        """Return the tokens under which a text in a language is indexed."""
        tokens = self.tokens(segmented(text) or text)
        forms = varied(text, language)
        return [*tokens, *self.tokens(forms)] if forms else tokens

    def places(self, raw: bytes) -> list[tuple[int, int, str]]:
        """Return the tokens of a UTF-8 text, each after the byte offsets of its beginning and end."""
        places: list[tuple[int, int, str]] = self._tokenize(
            raw, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_colocated=False
        )
        return places


class Analyzer:
    """Splits texts into words and compares them as keyword search does."""

    def __init__(self, tokenizer: FtsTokenizer) -> None:
        self._tokenizer = tokenizer

    def stems(self, text: str) -> Sequence[tuple[int, int, str]]:
        """Return the words of the text, each as the offsets of its beginning and end in characters, and its stem."""
        written, starts = aligned(text)
        if isinstance(starts, range):  # nothing was folded
            return self._folded_stems(written)
        return [(starts[start], _end(starts, end), stem) for start, end, stem in self._folded_stems(written)]

    def variants(self, text: str, language: str | None = None) -> Sequence[tuple[int, int, str]]:
        """Return the stems of other forms of the words of a text in a language, each with the offsets of its word."""
        written, starts = aligned(text)
        if not (forms := [*variants_in(written), *stems_in(written, language)]):
            return []
        return [
            (starts[variant.start], _end(starts, variant.end), stem) for variant, stem in self._stems_of_each(forms)
        ]

    def _stems_of_each(self, variants: Sequence[Variant]) -> Iterator[tuple[Variant, str]]:
        """Yield the stems of other forms, each with its form. One call splits all of them, because calls are slow."""
        raws = [variant.text.encode() for variant in variants]
        ends = list(accumulate(len(raw) + 1 for raw in raws))
        for start, _, stem in self._tokenizer.places(b" ".join(raws)):
            yield variants[bisect_right(ends, start)], stem

    def _folded_stems(self, text: str) -> Sequence[tuple[int, int, str]]:
        if not has_run(text):
            return self._stems(text)
        pairs = [
            (run.start() + start, run.start() + end, token)
            for run in RUN.finditer(text)
            for start, end, token in places(run[0])
        ]
        return sorted([*pairs, *self._stems(RUN.sub(lambda run: " " * len(run[0]), text))])

    def indexed(self, text: str) -> list[str]:
        """Return all stems under which searches find a text, including the stems of other forms of its words."""
        return self._tokenizer.indexed(text)

    def stems_of(self, word: str) -> list[str]:
        """Return the stems that a search for a word uses."""
        return self._tokenizer.tokens(as_phrase(word))

    def _stems(self, text: str) -> Sequence[tuple[int, int, str]]:
        raw = text.encode()
        tokens = self._tokenizer.places(raw)
        if len(raw) == len(text):
            return tokens
        characters = _characters_before(raw)
        return [(characters[start], characters[end], stem) for start, end, stem in tokens]


def _end(starts: Sequence[int], end: int) -> int:
    """Return the end of a folded word in its text: the end of the letter from which its last character comes."""
    while starts[end] == starts[end - 1] and end < len(starts) - 1:
        end += 1
    return starts[end]


def _characters_before(raw: bytes) -> list[int]:
    """Return the number of characters that begin before each byte of UTF-8, and the number of all characters."""
    begins = (np.frombuffer(raw, np.uint8) & 0xC0) != 0x80
    return [0, *np.cumsum(begins).tolist()]
