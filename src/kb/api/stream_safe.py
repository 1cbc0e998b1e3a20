"""Texts whose letters have no more marks than any language gives them: to compose others takes time without bounds."""

from __future__ import annotations

import re
from typing import Final
from unicodedata import combining, normalize

MOST_MARKS: Final = 30
"""How many marks follow each other at most in Unicode's Stream-Safe Text Format (UAX #15); no script needs more."""

SUSPECTS: Final = re.compile(rf"[^\w\s\x00-\x7f]{{{MOST_MARKS + 1},}}")
"""Marks are no letters: what stands in so long a run of others is looked at."""


def stream_safe(text: str) -> str:
    """Return a text without the marks of each letter beyond the first 30. Takes time that grows with its length."""
    return text if text.isascii() else SUSPECTS.sub(lambda run: _cut(run[0]), text)


def composed(text: str) -> str:
    """Return a text in NFC, `stream_safe` before."""
    return normalize("NFC", stream_safe(text))


def _cut(run: str) -> str:
    kept, marks = list[str](), 0
    for character in run:
        marks = marks + 1 if combining(character) else 0
        if marks <= MOST_MARKS:
            kept.append(character)
    return "".join(kept)
