"""Whether a note says something that a similar note does not: another number, date or word, or a turned sentence."""

import calendar
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple
from unicodedata import decimal, normalize

from kb.api.date_parsing import COUNTS, WEEKDAYS
from kb.documents.turned_facts import NEGATIONS, is_turned
from kb.index.words.function_words import STOP_WORDS

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
MOST_COMPARED: Final = 50
"""How many sentences with the same words, such as lines of a log, are compared with a new one."""

SHORT_NOT: Final = re.compile(r"n['\u2019]t\b")
SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+|[\n;]")
BORN: Final = re.compile(r"\b(?:is|was) born\b", re.IGNORECASE)
SAID: Final = re.compile(
    r"\b(?:(?:is|are|be) (?:kept|stored|found|located|called|named)|(?:we|you can|you'll|you will) (?:keep|store|find)"
    r"|takes? place|listens? on)\b",
    re.IGNORECASE,
)
"""How a sentence says where, when or how something is: without it, the note says the same."""

ANY_WORD: Final = re.compile(r"\w+")
LEAST_PART: Final = 5
"""The least number of words of a text that counts as a part of another one."""

ENDINGS: Final = ("", "s", "es", "d", "ed", "ing")
SAME: Final = {
    f"{word}{ending}": first
    for first, *others in map(
        str.split,
        """
        contact reach call phone
        keep store hold
        like prefer love
        end expire finish
        begin start
        depart leave leaving
        need require take taking
        decide decision deciding
        allergic allergy allergies
        paediatrician pediatrician
        sign signature
        """.strip().splitlines(),
    )
    for word in (first, *others)
    for ending in ENDINGS
}
"""Words that say the same of a thing, in their regular forms, with the word that stands for them."""

FILLERS: Final = "please name number done make must allow get best every anything something ll ve re"
EMPTY: Final = frozenset(f"{word}{ending}" for word in FILLERS.split() for ending in ENDINGS).union(
    STOP_WORDS, NEGATIONS
)
"""Words that a note can have more than another one without saying more."""


def is_part(new: str, known: str) -> bool:
    """Return whether a text is a part of another one, word for word."""
    words, known_words = (f" {' '.join(ANY_WORD.findall(text.casefold()))} " for text in (new, known))
    return words.count(" ") > LEAST_PART and words in known_words


class Statement(NamedTuple):
    """A sentence with its numbers and the stems of its other words."""

    text: str
    numbers: list[str]
    words: frozenset[str]

    def adds_to(self, known: "Statement") -> bool:
        """Return whether it has a number that the known one lacks, or turns what that says with the same words."""
        is_reordered = self.numbers != known.numbers and sorted(self.numbers) == sorted(known.numbers)
        return bool({*self.numbers} - {*known.numbers}) or is_reordered or is_turned(self.text, known.text)


def says_more(new: str, known: str, stems: Callable[[str], Iterable[str]]) -> bool:
    """Return whether a text has a sentence that another one lacks: other numbers, dates or words, or turned ones.

    Args:
        new: the text that may say more.
        known: the similar text.
        stems: returns the stems of the words of a text, without stop words.
    """

    def statements(text: str) -> Iterator[Statement]:
        for sentence in dict.fromkeys(filter(str.strip, (text, *SENTENCE_END.split(text)))):
            words = (word for word in {*stems(_plain(sentence))} - NUMBER_WORDS.keys() if not NUMBER.fullmatch(word))
            yield Statement(sentence, _numbers(sentence), frozenset(words))

    if new == known:
        return False
    before = defaultdict[frozenset[str], dict[str, Statement]](dict)
    for statement in statements(known):
        before[statement.words][statement.text] = statement

    def is_new(statement: Statement) -> bool:
        others = before[statement.words]
        return statement.text not in others and all(map(statement.adds_to, islice(others.values(), MOST_COMPARED)))

    is_whole_new, *are_new = [*map(is_new, statements(new))] or [False]
    return is_whole_new and (not are_new or any(are_new))


def _plain(text: str) -> str:
    """Return a text without possessives and empty words, and with one word for all that say the same."""
    plain = SAID.sub("", BORN.sub("birthday", POSSESSIVE.sub("", SHORT_NOT.sub(" not", text))))
    return WORD.sub(lambda match: "" if (word := match[0].lower()) in EMPTY else SAME.get(word, match[0]), plain)


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
