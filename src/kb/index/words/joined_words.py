"""Words with a sign inside, as people type them without it: *oreilly* for *O'Reilly*, *email*, *nodejs*, or *usa*.

They are indexed after the text, like other forms of words. A word in an ordinary contraction, after a French or Italian
elision, or with an English genitive has no such form, because nobody types it so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from kb.index.words.apostrophes import ENDINGS, SIGNS, is_contraction
from kb.index.words.function_words import STOP_WORDS

MOST_LETTERS: Final = 24
KEPT: Final = 4096
LEAST_LETTERS: Final = 3
SHORT_PART: Final = 3
"""The maximum number of letters of the shortest part of a word with a hyphen: longer parts are words of their own."""

LETTER: Final = r"[^\W\d_\u0900-\u1dff\u2000-\uffff]"
"""A letter of a script with spaces and without marks between its letters."""

HYPHENS: Final = "\\-\u2010\u2011"
HYPHEN: Final = re.compile(f"[{HYPHENS}]")
OTHERS: Final = "\u00b7\u2027\u05f3\u05f4\u200c"
"""The point in Catalan *col·lecció*, the Hebrew signs of abbreviations, and the Persian sign within *می‌خواهم*."""

_SIGN: Final = f"[{SIGNS}{HYPHENS}{OTHERS}]"
_HEBREW: Final = r"(?<=[\u05d0-\u05ea])\"(?=[\u05d0-\u05ea])"
_SUSPECT: Final = re.compile(rf"(?:{_SIGN}|[\"&/.])(?<={LETTER}.)(?={LETTER})")
"""A sign between letters. A search that begins with the sign skips other text many times as fast."""

_JOINED: Final = re.compile(
    rf"(?<!\w)(?<!\w{_SIGN}){LETTER}+(?:(?:{_SIGN}|{_HEBREW}){LETTER}+){{1,3}}(?!{_SIGN}?\w)"
    r"|(?<![\w.&/])[A-Z]{1,4}[&/][A-Z]{1,4}(?![\w&/])|(?<![\w.])(?:[A-Z][a-z]?\.){2,6}(?:[A-Z](?!\w))?"
    rf"|(?<![\w.&/@-]){LETTER}{{2,}}\.(?i:js|io|ai)(?!\w|[.-]\w)"
)
_LETTERS_BEFORE: Final = re.compile(rf"(?:[A-Z][a-z]?\.)+[A-Z]\Z|{LETTER}+\Z")
_SPLIT: Final = re.compile(rf"{_SIGN}|[\"&/.]")
_ELIDED: Final = r"[cdjlmnst]|(?:jus|lors|puis|quoi)?qu|(?:d|n|s)?(?:al|el|ul)l|c?oll|un|quest|quell|com|dov|cos"
_ELISION: Final = re.compile(rf"\A(?i:{_ELIDED})[{SIGNS}](?=[^\WA-Z])")
_GENITIVE: Final = re.compile(rf"[{SIGNS}](?:{'|'.join(ENDINGS)})\Z", re.IGNORECASE)


def joined_words(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield such words of a text without their signs, each after the place of its word."""
    end = 0
    for sign in _SUSPECT.finditer(text):
        if sign.start() >= end and (word := _JOINED.match(text, _begin(text, sign.start()))):
            end = word.end()
            if joined := without_signs(word[0]):
                yield *word.span(), joined


def _begin(text: str, place: int) -> int:
    """Return the beginning of the letters before a sign."""
    before = _LETTERS_BEFORE.search(text, max(0, place - MOST_LETTERS), place)
    return before.start() if before else place


def joined_word(word: str) -> str | None:
    """Return such a word without its signs; None for another word."""
    return without_signs(word) if _JOINED.fullmatch(word) else None


@lru_cache(KEPT)
def without_signs(word: str) -> str | None:
    if is_contraction(word):
        return None
    body = _GENITIVE.sub("", _ELISION.sub("", word, count=1))
    parts = [part for part in _SPLIT.split(body) if part]
    joined = "".join(parts).lower()
    is_long_enough = len(joined) >= LEAST_LETTERS or body.isupper() or body[1:2] in "&/."
    has_short = min(map(len, parts), default=0) <= SHORT_PART or not HYPHEN.search(word)
    fits = len(parts) > 1 and has_short and is_long_enough and len(joined) <= MOST_LETTERS
    return joined if fits and joined not in STOP_WORDS else None
