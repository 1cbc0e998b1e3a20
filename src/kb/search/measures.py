"""Letters and digits with or without a blank between them: *16gb* is *16 gb*, *M8x40* is *M8 x 40*, *5W-30* is *5W30*.

Fractions and powers as one sign, or in signs of their own: ½ is *1/2*, 10⁶ is *10^6*.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from typing import Final
from unicodedata import normalize

from kb.index.words.function_words import FUNCTION_WORDS
from kb.index.words.segmentation import folded, has_run
from kb.search import numbers

LONGEST: Final = 5
"""The maximum number of letters or digits of words that are written as one, apart from numbers."""

MOST_PARTS: Final = 4
MOST_JOINED: Final = 3

_PART: Final = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+")
_VERSION: Final = re.compile(r"v\d+(?:\.\d+)+")
_TIMES: Final = re.compile(r"(?<=\d)\u00d7(?=\d)")
_POWERS: Final = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_POWER: Final = re.compile(r"(\d+)(?:\^(\d{1,3})|([⁰¹²³⁴⁵⁶⁷⁸⁹]{1,3}))")
_FRACTIONS: Final = {normalize("NFKC", sign).replace("\u2044", "/"): sign for sign in "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"}
_BY_SIGN: Final = {sign: written for written, sign in _FRACTIONS.items()}
_GAPS: Final = frozenset(("", "-", "\u2010", "\u2011", "\u2013"))


def apart(word: str) -> list[str]:
    """Return the forms of a word of letters and digits with blanks between these, each as a sequence of words."""
    typed = _TIMES.sub("x", folded(word.lower()))
    parts = [] if has_run(typed) or _VERSION.fullmatch(typed) else _PART.findall(typed)
    if not (
        1 < len(parts) <= MOST_PARTS and _GAPS.issuperset(_PART.split(typed)) and any(map(_is_break, parts, parts[1:]))
    ):
        return []
    columns = [_forms(parts[0], is_measured=len(parts) == 2)]
    for before, part in pairwise(parts):
        columns += [["", " "] if _is_break(before, part) else [" "], _forms(part)]
    forms = ["".join(column) for column in product(*columns)]
    forms += [form.replace(" x ", " ") for form in forms if " x " in form]
    return [form for form in dict.fromkeys(forms) if form != word]


def in_other_signs(word: str) -> list[str]:
    """Return a fraction or a power in its other form."""
    if other := _FRACTIONS.get(word) or _BY_SIGN.get(word):
        return [other]
    power = _POWER.fullmatch(word)
    if not power:
        return []
    base, exponent, raised = power.groups()
    return [base + exponent.translate(_POWERS)] if exponent else [f"{base}^{normalize('NFKC', raised)}"]


def joined(words: Sequence[str]) -> Iterator[tuple[range, str]]:
    """Yield adjacent words, as their places, with the form in which they are one word."""
    plain = [_joinable(word) for word in words]
    for size in range(2, MOST_JOINED + 1):
        for start in range(len(words) - size + 1):
            window = plain[start : start + size]
            if all(window) and all(map(_is_break, window, window[1:])):
                yield range(start, start + size), "".join(window)


def _joinable(word: str) -> str:
    """Return a short word or a number in its shortest form; empty for another word."""
    lower = folded(word.lower())
    if number := numbers.meant(lower):
        return number.whole if not number.decimals else ""
    return lower if lower.isalnum() and len(lower) <= LONGEST and lower not in FUNCTION_WORDS else ""


def _forms(part: str, *, is_measured: bool = False) -> list[str]:
    number = numbers.meant(part) if is_measured else None
    return numbers.spellings(number) if number else [" ".join(re.findall(r"\w+", part))]


def _is_break(before: str, after: str) -> bool:
    """Whether a letter follows a digit, or a digit a letter."""
    return before[-1].isdigit() != after[0].isdigit()
