"""Numbers as they are meant: 1,872.00 and 1.872,00 and 1872 are one."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

GROUPS: Final = ".,'\u2019\u00a0\u202f\u2009 "
NUMBER: Final = re.compile(
    rf"(?<![\w.,/-])(?P<grouped>[1-9]\d{{0,2}}(?:(?P<sign>[{GROUPS}])\d{{3}})(?:(?P=sign)\d{{3}})*|\d+)"
    r"(?:(?P<point>[.,])(?P<decimals>\d{1,2}))?(?![\w/-]|[.,]\d)"
)
"""A number with its groups of three digits, or without, and at most two decimals; versions and dates are none."""

AROUND: Final = "$€£¥₹ \u00a0"
GROUPED_FROM: Final = 4
"""How many digits have groups."""

PRICED_FROM: Final = 2
"""How many digits there are before the point of a number that is no version: 2.1 is another one than 2.10."""

YEARS: Final = ("1900", "2099")


class Number(NamedTuple):
    """What a number means: its digits before the point, and those behind it without zeros at the end."""

    whole: str
    decimals: str


def meant(written: str) -> Number | None:
    """Return what is meant by a text that is a number, and None by any other."""
    found = NUMBER.fullmatch(written.strip(AROUND))
    return number_of(found) if found else None


def is_grouped(found: re.Match[str]) -> bool:
    """Return whether a number says more than its digits by its signs."""
    return bool(found["sign"]) or (found["decimals"] or "1").strip("0") == ""


def is_year(number: Number) -> bool:
    """Return whether a number may be a year of our time, in which nobody writes a sign."""
    return not number.decimals and YEARS[0] <= number.whole <= YEARS[1] and len(number.whole) == GROUPED_FROM


def numbers_in(text: str) -> set[Number]:
    """Return the numbers of a text, as they are meant."""
    return {number_of(found) for found in NUMBER.finditer(text)}


def spellings(number: Number) -> list[str]:
    """Return how a number may be written, each as words that follow each other."""
    wholes = [number.whole]
    if len(number.whole) >= GROUPED_FROM:
        wholes.append(grouped(number.whole))
    decimals = [number.decimals]
    if len(number.decimals) == 1 and len(number.whole) >= PRICED_FROM:
        decimals.append(f"{number.decimals}0")
    return [" ".join(filter(None, (whole, end))) for whole in wholes for end in decimals]


def grouped(digits: str) -> str:
    """Return digits in groups of three, with a blank between them."""
    first = len(digits) % 3
    groups = [digits[:first], *(digits[start : start + 3] for start in range(first, len(digits), 3))]
    return " ".join(filter(None, groups))


def number_of(found: re.Match[str]) -> Number:
    """Return what a number that was found means."""
    whole = re.sub(r"\D", "", found["grouped"])
    return Number(whole.lstrip("0") or "0", (found["decimals"] or "").rstrip("0"))
