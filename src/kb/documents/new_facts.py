"""Whether a note says something that a similar note does not: another number, date or word in its place."""

import calendar
import re
from collections.abc import Callable, Iterable
from difflib import SequenceMatcher
from itertools import islice
from typing import Final
from unicodedata import decimal, normalize

from kb.api.date_parsing import COUNTS, WEEKDAYS

SAME_FORM: Final = 0.7
"""The least share of words in the same order of two notes that differ only in some words. See bench/alike.py."""

MOST_WORDS: Final = 500
"""How many words of each note are compared in their order."""

DIGITS: Final = re.compile(r"(?:(?<![\w)])[-\u2212](?=\d))?\d+(?:[.:]\d+)*")
"""A number, a time or a part of a date or a name. A hyphen after a space is a minus sign."""

NAME: Final = re.compile(r"\b(?=\w*\d[^\W\d_]+\d)\w+")
"""A name with several numbers between its letters, such as a checksum: it is compared as a word."""

THOUSANDS: Final = re.compile(r"(?<=\d)[,.'\u2019\u00a0\u202f ](?=\d{3}(?!\d))")
DECIMAL_COMMA: Final = re.compile(r"(?<=\d),(?=\d)")
MAY: Final = 5
ORDINALS: Final = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
NUMBER_WORDS: Final = (
    {word: str(number) for words in (COUNTS, ORDINALS) for number, word in enumerate(words, 1)}
    | {name.lower(): str(number) for number, name in enumerate(calendar.month_name) if number not in (0, MAY)}
    | {name.lower(): str(number) for number, name in enumerate(calendar.month_abbr) if number not in (0, MAY)}
    | {"May": str(MAY)}
    | {day: day for day in WEEKDAYS}
    | {f"{day}s": day for day in WEEKDAYS}
)
"""Words for numbers and dates with their values; *may* needs its capital letter."""

WORD: Final = re.compile(r"[^\W\d_]+")
NUMBER: Final = re.compile(r"\d+(?:st|nd|rd|th)?")
POSSESSIVE: Final = re.compile(r"['\u2019]s\b")
SPACELESS: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
PIECE: Final = re.compile(rf"[{SPACELESS}]|(?!\d+\b)[^\W{SPACELESS}]+")
"""A word, or a character of a language without spaces, but not a number."""

ANY_WORD: Final = re.compile(r"\w+")
LEAST_PART: Final = 5
"""The least number of words of a text that counts as a part of another one."""

NEGATIONS: Final = frozenset({"no", "not"})
"""Stop words that change the meaning of a note."""


def is_part(new: str, known: str) -> bool:
    """Return whether a text is a part of another one, word for word."""
    words, known_words = (f" {' '.join(ANY_WORD.findall(text.casefold()))} " for text in (new, known))
    return words.count(" ") > LEAST_PART and words in known_words


def says_more(new: str, known: str, stems: Callable[[str], Iterable[str]]) -> bool:
    """Return whether a text has a number or date that another one lacks, or other words in the same places.

    Args:
        new: the text that may say more.
        known: the similar text.
        stems: returns the stems of the words of a text, without stop words.
    """
    numbers, known_numbers = _numbers(new), _numbers(known)
    if set(numbers) - set(known_numbers):
        return True
    words, known_words = _pieces(new), _pieces(known)
    if SequenceMatcher(None, known_words, words, autojunk=False).ratio() < SAME_FORM:
        return False
    others = {*stems(POSSESSIVE.sub("", new))} - {*stems(POSSESSIVE.sub("", known))}
    is_reversed = NEGATIONS & {*words} != NEGATIONS & {*known_words}
    is_reordered = numbers != known_numbers and sorted(numbers) == sorted(known_numbers)
    return is_reversed or is_reordered or any(not NUMBER.fullmatch(word) for word in others - NUMBER_WORDS.keys())


def _numbers(text: str) -> list[str]:
    """Return the numbers, and the words for numbers and dates, of a text."""
    plain = NAME.sub("", DECIMAL_COMMA.sub(".", THOUSANDS.sub("", normalize("NFKC", text))))
    found = [(match.start(), _number(match[0])) for match in DIGITS.finditer(plain)]
    found += [
        (match.start(), number)
        for match in WORD.finditer(plain)
        if (number := NUMBER_WORDS.get(match[0]) or NUMBER_WORDS.get(match[0].lower()))
    ]
    return [number for _, number in sorted(found)]


def _number(digits: str) -> str:
    """Return a number without leading zeros and with one separator, in ASCII digits."""
    sign = "-" if digits[0] in "-\u2212" else ""
    plain = "".join(str(decimal(each)) if each.isdecimal() else "." for each in digits.lstrip("-\u2212"))
    return sign + ".".join(part.lstrip("0") or "0" for part in plain.split("."))


def _pieces(text: str) -> list[str]:
    return list(islice((match[0] for match in PIECE.finditer(text.lower())), MOST_WORDS))
