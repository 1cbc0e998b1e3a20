"""What a JSON body may hold, found out before it is parsed.

A long text is parsed as fast as it is copied. A million small values take seconds to parse, to check and to complain
of, in steps that no other thread can interrupt; so what holds more of them than any request needs is refused unread.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from starlette.concurrency import run_in_threadpool

HARMLESS: Final = 2 << 10
"""A body of so few bytes is parsed without a look."""

QUICK: Final = 64 << 10
"""A body of so few bytes is looked at without a thread."""

PIECE: Final = 64 << 10
"""How much is looked at in one step, which no other thread can interrupt."""

ESCAPED_TEXT: Final = re.compile(rb'(?:[^"\\]++|\\.)++', re.DOTALL)


@dataclass(frozen=True, slots=True)
class JSONLimits:
    """What a body may hold: so many texts, names included, and so many bytes beside them."""

    texts: int
    other: int

    async def allow(self, body: bytes) -> bool:
        """Return whether `body` is within the limits."""
        if len(body) <= HARMLESS:
            return True
        return self.fits(body) if len(body) <= QUICK else await run_in_threadpool(self.fits, body)

    def fits(self, body: bytes) -> bool:
        """Return whether `body` is within the limits, and in UTF-8 as JSON should be."""
        if b"\0" in body[:4] or body[:1] in (b"\xff", b"\xfe"):
            return False
        texts, other, end = 0, 0, 0
        while (start := body.find(b'"', end)) >= 0:
            texts, other = texts + 1, other + start - end
            if texts > self.texts or other > self.other:
                return False
            end = end_of_text(body, start + 1)
        return other + len(body) - end <= self.other


def end_of_text(body: bytes, at: int) -> int:
    """Return where the text ends whose first byte stands at `at`: behind the next quote that is not escaped."""
    quote = body.find(b'"', at)
    if quote < 0 or body[quote - 1 : quote] != b"\\":
        return quote + 1 or len(body)
    while match := ESCAPED_TEXT.match(body, at, at + PIECE):
        at = match.end()
        if body[at : at + 1] == b'"':
            return at + 1
    return len(body)
