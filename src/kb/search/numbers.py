"""Numbers by value: 1,872.00, 1.872,00 and 1872 are equal. ISBNs with and without hyphens."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from kb.index.words.unicode_forms import DIGITS

GROUPS: Final = "_.,'\u2019\u00a0\u202f\u2009\u066c "
NUMBER: Final = re.compile(
    rf"(?<![\w.,/-])(?P<grouped>(?!0)\d{{1,3}}(?:(?P<sign>[{GROUPS}])\d{{3}})(?:(?P=sign)\d{{3}})*|0|(?!0)\d+)"
    r"(?:(?P<point>[.,\u066b])(?P<decimals>\d{1,2}))?(?![\w/-]|[.,]\d)"
)
"""A number with or without groups of three digits, and with at most two decimals. Versions, dates and codes that begin
with a zero, such as 01067, do not match.
"""

AROUND: Final = "$€£¥₹ \u00a0"
GROUPED_FROM: Final = 4
"""The minimum number of digits that are written in groups."""

PRICED_FROM: Final = 2
"""After this many digits or more, trailing decimal zeros do not matter: 12.50 is 12.5, but version 2.10 is not 2.1."""

YEARS: Final = ("1900", "2099")

HYPHENS: Final = re.compile("[-\u2010-\u2015]")
ISBN: Final = re.compile(r"(97[89]|)([0-9]{9})([0-9x])")
COUNTRIES: Final = {
    "978": re.compile(r"[0-57]|6[0-4][0-9]|65|8[0-9]|9[0-4]|9[5-8][0-9]|99[0-8][0-9]|99900|99[0-9]{3}"),
    "979": re.compile(r"8|1[0-9]"),
}
"""The possible numbers of a language or country."""

REGISTRANTS: Final = range(2, 8)
"""The possible lengths of a publisher's number."""


class Number(NamedTuple):
    """The value of a number: the digits before and after the point, without irrelevant zeros."""

    whole: str
    decimals: str


def meant(written: str) -> Number | None:
    """Return the value of a text that is a number; otherwise None."""
    match = NUMBER.fullmatch(written.strip(AROUND))
    return parse_number(match) if match else None


def is_grouped(match: re.Match[str]) -> bool:
    """Whether the parts of a number carry no meaning. Digits separated by a space may be two numbers."""
    return bool((match["sign"] or "").strip()) or (match["decimals"] is not None and not parse_number(match).decimals)


def is_year(number: Number) -> bool:
    """Whether a number may be a modern year, which nobody writes with a separator."""
    return not number.decimals and YEARS[0] <= number.whole <= YEARS[1] and len(number.whole) == GROUPED_FROM


def numbers_in(text: str) -> set[Number]:
    """Return the values of the numbers in a text."""
    return {parse_number(match) for match in NUMBER.finditer(text)}


def spellings(number: Number) -> list[str]:
    """Return the spellings of a number, each as a sequence of words."""
    wholes = [number.whole]
    if len(number.whole) >= GROUPED_FROM:
        wholes.append(grouped(number.whole))
    decimals = [number.decimals]
    if len(number.decimals) == 1 and len(number.whole) >= PRICED_FROM:
        decimals.append(f"{number.decimals}0")
    return [" ".join(filter(None, (whole, end))) for whole in wholes for end in decimals]


def grouped(digits: str) -> str:
    """Return digits in groups of three, separated by spaces."""
    first = len(digits) % 3
    groups = [digits[:first], *(digits[start : start + 3] for start in range(first, len(digits), 3))]
    return " ".join(filter(None, groups))


def parse_number(match: re.Match[str]) -> Number:
    """Return the value of a matched number."""
    whole, decimals = (re.sub(r"\D", "", match[name] or "").translate(DIGITS) for name in ("grouped", "decimals"))
    return Number(whole, decimals.rstrip("0") if len(whole) >= PRICED_FROM else decimals)


def other_spellings(word: str) -> list[str]:
    """Return the other spellings of an ISBN, without or with hyphens; an empty list if the word is not an ISBN."""
    digits = HYPHENS.sub("", word)
    match = ISBN.fullmatch(digits)
    if not (match and is_checked(digits)):
        return []
    return [digits] if digits != word else hyphenated(*match.groups())


def is_checked(digits: str) -> bool:
    """Whether the check digit is right."""
    values = [10 if digit == "x" else int(digit) for digit in digits]
    if len(values) == 10:
        return not sum(weight * value for weight, value in zip(range(10, 0, -1), values, strict=True)) % 11
    return "x" not in digits and not (sum(values[::2]) + 3 * sum(values[1::2])) % 10


def hyphenated(prefix: str, body: str, check: str) -> list[str]:
    """Return the possible ways to hyphenate an ISBN: only its country knows the length of the publisher's number."""
    group = COUNTRIES[prefix or "978"].match(body)
    if not group:
        return []
    rest = body[group.end() :]
    return [
        "-".join(filter(None, (prefix, group[0], rest[:size], rest[size:], check)))
        for size in REGISTRANTS
        if size < len(rest)
    ]
