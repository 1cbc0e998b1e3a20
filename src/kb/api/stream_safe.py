"""Limits the marks per letter, because composing letters with very many marks takes unbounded time."""

import re
from typing import Final
from unicodedata import combining, normalize

MOST_MARKS: Final = 30
"""The maximum number of marks in a row in Unicode's Stream-Safe Text Format (UAX #15). No script needs more."""

SUSPECTS: Final = re.compile(rf"[^\w\s\x00-\x7f]{{{MOST_MARKS + 1},}}")
"""A run of other characters than letters that is long enough to exceed the limit of marks."""

IGNORED: Final = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Invisible characters ("default ignorable" in Unicode), for a class of a regular expression."""

CONTROLS: Final = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f"
"""Control characters that do not end lines, for a class of a regular expression."""

SIGN: Final = "\ufffd"
"""The sign that kb shows instead of these characters."""


def stream_safe(text: str) -> str:
    """Return a text with at most 30 marks per letter, in time linear in its length."""
    return text if text.isascii() else SUSPECTS.sub(lambda run: _cut(run[0]), text)


def composed(text: str) -> str:
    """Return a text in NFC, after `stream_safe`."""
    return normalize("NFC", stream_safe(text))


def _cut(run: str) -> str:
    characters, marks = list[str](), 0
    for character in run:
        marks = marks + 1 if combining(character) else 0
        if marks <= MOST_MARKS:
            characters.append(character)
    return "".join(characters)
