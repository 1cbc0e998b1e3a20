"""Emojis as words: FTS5's tokenizer drops them, so kb indexes each by its number, after the text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

MARK: Final = "\ue2a4"
"""Precedes the number; the private characters before this one are language marks."""

EMOJI: Final = re.compile(
    "[\u2600-\u27bf\u2b50\u2b55\U0001f300-\U0001f3fa\U0001f400-\U0001faff]|[\U0001f1e6-\U0001f1ff]{2}"
)
"""One emoji, or the two letters of a flag. Skin tones do not match, and a family matches once for each member."""

NUMBERS: Final = re.compile(rf"{MARK}([0-9]{{4,6}})")
INDEXED: Final = re.compile(rf"(?:{NUMBERS.pattern})+")
"""An indexed emoji. The mark alone may also occur in texts, because some fonts use it as a sign."""


def emojis(text: str) -> list[str]:
    """Return the emojis of a text as indexed."""
    return [indexed(match) for match in found_in(text)]


def found_in(text: str) -> Iterator[re.Match[str]]:
    return iter(()) if text.isascii() else EMOJI.finditer(text)


def indexed(match: re.Match[str]) -> str:
    """Return a matched emoji as indexed."""
    return "".join(f"{MARK}{ord(letter)}" for letter in match[0])


def written(word: str) -> str:
    """Return an indexed emoji as people write it; other words stay unchanged."""
    sign = NUMBERS.sub(lambda match: chr(int(match[1])), word) if INDEXED.fullmatch(word) else ""
    return sign if EMOJI.fullmatch(sign) else word
