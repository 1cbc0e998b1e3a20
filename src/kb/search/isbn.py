"""ISBNs, which some write with hyphens and others without."""

from __future__ import annotations

import re
from typing import Final

HYPHENS: Final = re.compile("[-\u2010-\u2015]")
ISBN: Final = re.compile(r"(97[89]|)([0-9]{9})([0-9x])")
GROUPS: Final = {
    "978": re.compile(r"[0-57]|6[0-4][0-9]|65|8[0-9]|9[0-4]|9[5-8][0-9]|99[0-8][0-9]|99900|99[0-9]{3}"),
    "979": re.compile(r"8|1[0-9]"),
}
"""What the number of a language or country may be."""

REGISTRANTS: Final = range(2, 8)
"""How many digits a publisher's number may have."""


def other_spellings(word: str) -> list[str]:
    """Return how else an ISBN may be written: without its hyphens, or with them. None if it is no ISBN."""
    digits = HYPHENS.sub("", word)
    found = ISBN.fullmatch(digits)
    if not (found and is_checked(digits)):
        return []
    return [digits] if digits != word else hyphenated(*found.groups())


def is_checked(digits: str) -> bool:
    """Return whether the last digit is that which the others give."""
    values = [10 if each == "x" else int(each) for each in digits]
    if len(values) == 10:
        return not sum(weight * value for weight, value in zip(range(10, 0, -1), values, strict=True)) % 11
    return "x" not in digits and not (sum(values[::2]) + 3 * sum(values[1::2])) % 10


def hyphenated(prefix: str, body: str, check: str) -> list[str]:
    """Return the ways to part an ISBN: how long a publisher's number is only its country knows."""
    group = GROUPS[prefix or "978"].match(body)
    if not group:
        return []
    rest = body[group.end() :]
    return [
        "-".join(filter(None, (prefix, group[0], rest[:size], rest[size:], check)))
        for size in REGISTRANTS
        if size < len(rest)
    ]
