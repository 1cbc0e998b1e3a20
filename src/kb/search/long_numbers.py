"""Phone numbers and other long numbers with and without the signs between their digits.

Phone numbers have a national and an international form. Numbers of accounts, cards and devices are written in groups.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations
from typing import Final

FEWEST, MOST = 7, 15
"""The number of digits of a phone number (E.164)."""

MOST_GROUPS, SHORTEST_GROUP = 4, 2
GROUP_SIZES: Final = (4, 2, 3)
SHORTEST_CODE: Final = 9

_WRITTEN: Final = re.compile(r"(?<![\w.,-])(?P<sign>\+|00|\(?0)\d(?:[ \u00a0()/.-]{0,3}\d)+(?![\w,-])")
_CODE: Final = re.compile(
    r"(?<!\w)(?:[A-Z]{2}\d{2}|\d{4})(?: [A-Z\d]{4}){2,7}(?: [A-Z\d]{1,4})?(?!\w)"
    r"|(?<![\w:-])[\dA-Fa-f]{2}(?:[:-][\dA-Fa-f]{2}){4,7}(?![\w:-])"
)
"""An account (IBAN), a card, or the address of a device (MAC)."""

_WORD: Final = re.compile(r"\w+")
_GROUP: Final = re.compile(r"\d+")


def in_text(text: str) -> dict[str, list[str]]:
    """Return the phone numbers and grouped codes in a text as written, with their other forms as sequences of words."""
    found = {match[0]: _forms(match[0], match["sign"]) for match in _WRITTEN.finditer(text)}
    found |= {match[0]: ["".join(_WORD.findall(match[0].lower()))] for match in _CODE.finditer(text)}
    return {written: forms for written, forms in found.items() if forms}


def other_forms(text: str) -> list[str]:
    return [form for forms in in_text(text).values() for form in forms]


def in_groups(code: str) -> Iterator[str]:
    """Yield a long code in groups of equal length, such as an account number, each as a sequence of words."""
    for size in GROUP_SIZES if len(code) >= SHORTEST_CODE else ():
        yield " ".join(code[start : start + size] for start in range(0, len(code), size))


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
