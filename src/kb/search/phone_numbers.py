"""Phone numbers with and without the signs between their digits, and in their national and international forms."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations
from typing import Final

FEWEST, MOST = 7, 15
"""The number of digits of a phone number (E.164)."""

MOST_GROUPS: Final = 4
SHORTEST_GROUP: Final = 2

_WRITTEN: Final = re.compile(r"(?<![\w.,-])(?P<sign>\+|00|\(?0)\d(?:[ \u00a0()/.-]{0,3}\d)+(?![\w,-])")
_GROUP: Final = re.compile(r"\d+")


def phone_numbers(text: str) -> dict[str, list[str]]:
    """Return the phone numbers in a text as written, with their other forms, each as a sequence of words."""
    found = {match[0]: _forms(match[0], match["sign"]) for match in _WRITTEN.finditer(text)}
    return {written: forms for written, forms in found.items() if forms}


def other_forms(text: str) -> list[str]:
    return [form for forms in phone_numbers(text).values() for form in forms]


def _forms(written: str, sign: str) -> list[str]:
    groups = [group for group in _GROUP.findall(written) if group != "0"]
    if not FEWEST <= len("".join(groups)) <= MOST:
        return []
    if sign == "00":
        groups[0] = groups[0][2:]
    is_national = sign.endswith("0") and sign != "00"
    if is_national:
        zero, plain = groups, [groups[0].lstrip("0"), *groups[1:]]
        forms = [plain, ["".join(zero)]]
    else:
        local = groups[1:]
        forms = [["".join(groups)], ["".join(["0", *local])], [f"0{local[0]}", *local[1:]]] if local else []
    return [" ".join(filter(None, form)) for form in forms]


def grouped(digits: str) -> Iterator[str]:
    """Yield the groups in which the digits of a phone number may be written, each as a sequence of words."""
    if not (digits.isdecimal() and FEWEST <= len(digits) <= MOST):
        return
    for number in dict.fromkeys((digits, digits.lstrip("0"))):
        places = range(SHORTEST_GROUP, len(number) - SHORTEST_GROUP + 1)
        for count in range(1, MOST_GROUPS):
            for cuts in combinations(places, count):
                groups = [number[start:end] for start, end in zip((0, *cuts), (*cuts, len(number)), strict=True)]
                if min(map(len, groups)) >= SHORTEST_GROUP:
                    yield " ".join(groups)
