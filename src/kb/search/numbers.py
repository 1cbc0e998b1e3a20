"""Numbers as they are meant: 1,872.00 and 1.872,00 and 1872 are one."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

GROUPS: Final = ".,'\u2019\u00a0\u202f\u2009 "
NUMBER: Final = re.compile(
    rf"(?<![\w.,/-])(?P<grouped>[1-9]\d{{0,2}}(?:(?P<sign>[{GROUPS}])\d{{3}})(?:(?P=sign)\d{{3}})*|0|[1-9]\d*)"
    r"(?:(?P<point>[.,])(?P<decimals>\d{1,2}))?(?![\w/-]|[.,]\d)"
)
"""A number with its groups of three digits, or without, and at most two decimals. Versions, dates and codes that begin
with a zero, such as 01067, do not match."""

AROUND: Final = "$€£¥₹ \u00a0"
GROUPED_FROM: Final = 4
"""How many digits have groups."""

PRICED_FROM: Final = 2
"""From how many digits before the point on zeros behind it say nothing: 12.50 is 12.5, but version 2.10 is not 2.1."""

YEARS: Final = ("1900", "2099")


class Number(NamedTuple):
    """What a number means: its digits before the point, and those behind it, without zeros that say nothing."""

    whole: str
    decimals: str


def meant(written: str) -> Number | None:
    """Return what is meant by a text that is a number, and None by any other."""
    found = NUMBER.fullmatch(written.strip(AROUND))
    return number_of(found) if found else None


def is_grouped(found: re.Match[str]) -> bool:
    """Return whether the parts of a number say nothing by themselves; what a blank parts may be two numbers."""
    return bool((found["sign"] or "").strip()) or (found["decimals"] is not None and not number_of(found).decimals)


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
    whole, decimals = re.sub(r"\D", "", found["grouped"]), found["decimals"] or ""
    return Number(whole, decimals.rstrip("0") if len(whole) >= PRICED_FROM else decimals)
