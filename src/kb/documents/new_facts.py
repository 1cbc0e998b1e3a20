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

MINUS: Final = "-\u2013\u2212"
DIGITS: Final = re.compile(rf"(?:(?<![\w)])[{MINUS}](?=\.?\d))?(?:(?<![\w.])\.)?\d+(?:[.:]\d+)*")
"""A number, a time, or a part of a date or a name. A hyphen after a space is a sign; a point can begin a number."""

DAY: Final = 2
YEAR: Final = re.compile(r"(?:19|20)\d\d")

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
MOST_CHARACTERS: Final = 200_000
"""Longer texts are not compared sentence by sentence, and count as other ones: a note stored twice is no loss."""

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
        contact reach
        call phone
        keep store hold
        like prefer
        end expire finish
        begin start
        depart leave leaving
        need require
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


IN_NAME: Final = re.compile(r"(?<=[/_`@\\#.])[^\W\d_]+|(?<![^\W\d_])[^\W\d_]++(?=[/_`@\\(]|\.\w)")
"""A word in a path, an address or code."""

FORMS: Final = frozenset({"", "s", "es", "d", "ed", "e", "ing", "ly", "y", "ies", "ied", "ily"})
CONSONANTS: Final = re.compile("[b-df-hj-np-tv-xz]*")
"""What is no word, such as http: *s* is not its plural."""

PAST: Final = ("d", "ed", "ied")
AUXILIARY: Final = re.compile(
    r"\b(?:is|are|am|be|been|being|was|were|has|have|had|gets?|got)(?:n['\u2019]t)?\b", re.IGNORECASE
)
ACCENTS: Final = dict.fromkeys(map(ord, "\u0300\u0301\u0302\u0327"))
OF_NUMBERS: Final = NUMBER_WORDS.keys() | {"st", "nd", "rd", "th"}
MOST_FORMS: Final = 20
"""A statement with more words in another form than the known one says more."""


class Statement(NamedTuple):
    """A sentence with its numbers, the stems of its other words, and these words as written."""

    text: str
    numbers: list[str]
    words: frozenset[str]
    plain: str

    def adds_to(self, known: "Statement") -> bool:
        """Return whether it has other numbers than the known one, or turns what that says with the same words."""
        return (
            not _are_said(self.numbers, known.numbers)
            or _has_other_words(self, known)
            or is_turned(self.text, known.text)
        )


def says_more(new: str, known: str, stems: Callable[[str], Iterable[str]]) -> bool:
    """Return whether a text has a sentence that another one lacks: other numbers, dates or words, or turned ones.

    Args:
        new: the text that may say more.
        known: the similar text.
        stems: returns the stems of the words of a text, without stop words.
    """

    def statements(text: str) -> Iterator[Statement]:
        for sentence in dict.fromkeys(filter(str.strip, (text, *SENTENCE_END.split(text)))):
            plain = _plain(sentence)
            words = (word for word in {*stems(plain)} - NUMBER_WORDS.keys() if not NUMBER.fullmatch(word))
            yield Statement(sentence, _numbers(sentence), frozenset(words), plain)

    if new == known:
        return False
    if len(new) + len(known) > MOST_CHARACTERS:
        return True
    before = defaultdict[frozenset[str], dict[str, Statement]](dict)
    for statement in statements(known):
        before[statement.words][statement.text] = statement

    def is_new(statement: Statement) -> bool:
        others = before[statement.words]
        return statement.text not in others and all(map(statement.adds_to, islice(others.values(), MOST_COMPARED)))

    said = [*statements(new)]
    is_whole_new, *are_new = [*map(is_new, said)] or [False]
    is_other = any(each and before[sentence.words] for sentence, each in zip(said[1:], are_new, strict=True))
    return is_other or (is_whole_new and (not are_new or any(are_new)))


def _are_said(numbers: list[str], known: list[str]) -> bool:
    """Return whether the known numbers are the same, perhaps with a year that a later note leaves out."""
    differ = (place for place, (one, other) in enumerate(zip(numbers, known, strict=False)) if one != other)
    place = next(differ, len(numbers))
    return numbers == known or (numbers == known[:place] + known[place + 1 :] and bool(YEAR.fullmatch(known[place])))


def _has_other_words(new: Statement, known: Statement) -> bool:
    """Return whether one of two statements with the same stems has a word that is no form of the other's words."""
    forms, known_forms = _forms(new.plain), _forms(known.plain)
    if max(len(forms.keys() - known_forms.keys()), len(known_forms.keys() - forms.keys())) > MOST_FORMS:
        return True

    def has_other(these: dict[str, bool], those: dict[str, bool], text: str, other_text: str) -> bool:
        return any(
            not any(not (is_name and those[other]) and _is_form(word, other, text, other_text) for other in those)
            for word, is_name in these.items()
            if word not in those
        )

    return has_other(forms, known_forms, new.text, known.text) or has_other(known_forms, forms, known.text, new.text)


def _forms(plain: str) -> dict[str, bool]:
    """Return the words of a text without accents, and for each whether its last letter matters, as in names."""
    text = normalize("NFC", normalize("NFD", plain).translate(ACCENTS))
    words = WORD.findall(text)
    names = {*map(str.lower, (*IN_NAME.findall(text), *(word for word in words if word != word.lower())))}
    return {word: word in names for word in map(str.lower, words) if word not in OF_NUMBERS}


def _is_form(word: str, other: str, text: str, other_text: str) -> bool:
    """Return whether two words differ by a regular ending; a past form is one only with an auxiliary verb."""
    differ = (place for place, (one, two) in enumerate(zip(word, other, strict=False)) if one != two)
    stem = word[: next(differ, min(len(word), len(other)))]
    doubled = {f"{stem[-1:]}{ending}": ending for ending in ("ed", "ing")}
    ends = [doubled.get(end, end) for end in (word[len(stem) :], other[len(stem) :])]
    if not FORMS.issuperset(ends) or {*ends} == {"", "e"} or CONSONANTS.fullmatch(stem):
        return False
    is_past, was_past = (end in PAST for end in ends)
    return is_past == was_past or bool(AUXILIARY.search(text if is_past else other_text))


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
    """Return a number with one separator, in ASCII digits, and days and months without zeros: 0417 may be a code."""
    sign = "-" if digits[0] in MINUS else ""
    plain = "".join(str(decimal(each)) if each.isdecimal() else "." for each in digits.lstrip(MINUS))
    first, *rest = plain.split(".")
    parts = [first or "0", *rest] if len(rest) == 1 else [first, *rest]
    short = parts[:1] if len(rest) == 1 else parts  # the zero in 0.05 is not that in 04.05.2026
    return sign + ".".join(
        [*(part.lstrip("0") or "0" if len(part) <= DAY else part for part in short), *parts[len(short) :]]
    )
