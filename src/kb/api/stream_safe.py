"""Texts whose letters have no more marks than any language gives them: to compose others takes time without bounds."""

from __future__ import annotations

import re
from typing import Final
from unicodedata import combining, normalize

MOST_MARKS: Final = 30
"""How many marks follow each other at most in Unicode's Stream-Safe Text Format (UAX #15); no script needs more."""

SUSPECTS: Final = re.compile(rf"[^\w\s\x00-\x7f]{{{MOST_MARKS + 1},}}")
"""Marks are no letters: what stands in so long a run of others is looked at."""

IGNORED: Final = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""The letters that nobody sees ("default ignorable" in Unicode), as a class of a regular expression has them."""

CONTROLS: Final = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f"
"""Likewise the control characters that end no line."""

SIGN: Final = "\ufffd"
"""Is shown in the place of them."""


def stream_safe(text: str) -> str:
    """Return a text without the marks of each letter beyond the first 30. Takes time that grows with its length."""
    return text if text.isascii() else SUSPECTS.sub(lambda run: _cut(run[0]), text)


def composed(text: str) -> str:
    """Return a text in NFC, `stream_safe` before."""
    return normalize("NFC", stream_safe(text))


def _cut(run: str) -> str:
    characters, marks = list[str](), 0
    for character in run:
        marks = marks + 1 if combining(character) else 0
        if marks <= MOST_MARKS:
            characters.append(character)
    return "".join(characters)
