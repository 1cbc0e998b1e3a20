"""Readings: the small letters over words in Japanese and Chinese texts that show their pronunciation (ruby)."""

from __future__ import annotations

import re
from typing import Final

_BEGIN, _MIDDLE, _END = "\ufdd0", "\ufdd1", "\ufdd2"  # no text contains these
_MARKED: Final = re.compile(f"{_BEGIN}([^{_BEGIN}-{_END}]*){_MIDDLE}([^{_BEGIN}-{_END}]*){_END}")


class Readings:
    """Gathers the readings in a line, to be shown after it: between the letters, they would break the words."""

    def __init__(self) -> None:
        self._words: list[str] = []
        self._is_within = False

    def add(self, reading: str) -> None:
        """Add the reading of a word, or of the next part of it."""
        if reading and self._is_within:
            self._words[-1] += reading
        elif reading:
            self._words.append(reading)
            self._is_within = True

    def end_word(self) -> None:
        self._is_within = False

    def take(self) -> str:
        """Return the text to add to the line, such as ` (みなと, りょうし)`, and begin a new line."""
        words, self._words, self._is_within = self._words, [], False
        return f" ({', '.join(words)})" if words else ""


def marked(base: str, reading: str) -> str:
    """Return a word with its reading, as a piece of a line for `with_readings_after`."""
    return f"{_BEGIN}{base}{_MIDDLE}{reading}{_END}"


def with_readings_after(line: str) -> str:
    """Return a line with the readings of its marked words after it."""
    if _BEGIN not in line:
        return line
    readings, end = Readings(), 0
    for word in _MARKED.finditer(line):
        if word.start() > end:
            readings.end_word()
        readings.add(word[2].strip())
        end = word.end()
    return _MARKED.sub(r"\1", line).rstrip() + readings.take()
