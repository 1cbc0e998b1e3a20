"""The words of a passage that a search highlights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from kb.index.words.segmentation import is_letter
from kb.index.words.stems import completions, stem_language
from kb.store.analyzer import Analyzer


class Highlighter:
    """Finds the words of a query in texts; a word with several tokens matches if they follow each other."""

    def __init__(self, analyzer: Analyzer, words: Iterable[str]) -> None:
        self._analyzer = analyzer
        given = list(words)
        begun = [word.removesuffix("*") for word in given if word.endswith("*")]
        whole = [tuple(analyzer.stems_of(word)) for word in given]
        beginnings = [tuple(analyzer.stems_of(word)) for word in begun]
        for word, stems in zip(begun, beginnings, strict=True):
            whole += [(*stems[:-1], stem) for stem in completions(word, analyzer.stems_of)]
        self._stems = {stems[0] for stems in whole if len(stems) == 1}
        self._beginnings = tuple(stems[0] for stems in beginnings if len(stems) == 1)
        self._phrases = {stems for stems in whole if len(stems) > 1}
        self._begun_phrases = {stems for stems in beginnings if len(stems) > 1}
        self._languages = {stem_language(word) for word in given}
        self._letters = {word for word in begun if is_letter(word)}

    def ranges(self, text: str, language: str | None = None) -> list[tuple[int, int]]:
        """Return the ranges of the words in a text, in characters, end excluded; overlapping ranges are merged."""
        if not (self._stems or self._phrases):
            return []
        spans: list[tuple[int, int]] = []
        for start, end in self._places(text, language if language in self._languages else None):
            if spans and start < spans[-1][1]:
                spans[-1] = spans[-1][0], max(end, spans[-1][1])
            else:
                spans.append((start, self._end(text, start, end)))
        return spans

    def _places(self, text: str, language: str | None) -> list[tuple[int, int]]:
        others = self._places_among(self._analyzer.variants(text, language))
        places = self._places_among(self._analyzer.stems(text))
        return sorted({*places, *others}) if others else places

    def _places_among(self, tokens: Sequence[tuple[int, int, str]]) -> list[tuple[int, int]]:
        if not (self._phrases or self._beginnings or self._begun_phrases):
            return [(start, end) for start, end, stem in tokens if stem in self._stems]
        stems = [stem for _, _, stem in tokens]
        places = {place for place, stem in enumerate(stems) if stem in self._stems or stem.startswith(self._beginnings)}
        for phrase in self._phrases:
            places.update(_phrase_places(phrase, stems, begins=False))
        for phrase in self._begun_phrases:
            places.update(_phrase_places(phrase, stems, begins=True))
        return [tokens[place][:2] for place in sorted(places)]

    def _end(self, text: str, start: int, end: int) -> int:
        """Return the end of a word, or of its first letter if the query contained only that letter."""
        return next((start + len(letter) for letter in self._letters if text.startswith(letter, start)), end)


def _phrase_places(phrase: Sequence[str], stems: Sequence[str], *, begins: bool) -> Iterator[int]:
    """Yield the places of a phrase's stems that follow each other; with `begins`, the last stem is a prefix."""
    *first, last = phrase
    start = -1
    with suppress(ValueError):  # no further match
        while (end := (start := stems.index(first[0], start + 1)) + len(first)) < len(stems):
            is_last = stems[end] == last or (begins and stems[end].startswith(last))
            if is_last and stems[start:end] == first:
                yield from range(start, end + 1)
