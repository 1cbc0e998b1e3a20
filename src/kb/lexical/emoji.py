"""Emojis as words: the tokenizer leaves them out, so each is indexed by its number behind the text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

MARK: Final = "\ue2a4"
"""Before the number; the private characters before this one are marks of languages."""

EMOJI: Final = re.compile(
    "[\u2600-\u27bf\u2b50\u2b55\U0001f300-\U0001f3fa\U0001f400-\U0001faff]|[\U0001f1e6-\U0001f1ff]{2}"
)
"""One sign, or the two letters of a flag; tones of skin are none, and a family is found by each of its members."""

NUMBERS: Final = re.compile(rf"{MARK}([0-9]{{4,6}})")
INDEXED: Final = re.compile(rf"(?:{NUMBERS.pattern})+")
"""An emoji as it is indexed. People may write the mark as well: it is a sign in some fonts."""


def emojis(text: str) -> list[str]:
    """Return the emojis of a text as they are indexed."""
    return [indexed(match) for match in found_in(text)]


def found_in(text: str) -> Iterator[re.Match[str]]:
    """Yield the emojis of a text."""
    return iter(()) if text.isascii() else EMOJI.finditer(text)


def indexed(match: re.Match[str]) -> str:
    """Return an emoji that was found as it is indexed."""
    return "".join(f"{MARK}{ord(letter)}" for letter in match[0])


def written(word: str) -> str:
    """Return an emoji of a query as people write it, and any other word as it is."""
    sign = NUMBERS.sub(lambda match: chr(int(match[1])), word) if INDEXED.fullmatch(word) else ""
    return sign if EMOJI.fullmatch(sign) else word
