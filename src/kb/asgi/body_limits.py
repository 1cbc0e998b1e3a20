"""Limits of a body, checked before it is parsed: its length, UTF-8 for forms, and the number of values in JSON.

Parsing a long text is as fast as copying it. A million small values take seconds to parse, validate and report, in
steps that block all other threads. Therefore JSON with more values than any request needs is refused unread.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kb.api.errors import Invalid, TooLarge
from kb.api.limit_errors import body_limit
from kb.asgi.error_replies import problem

HARMLESS: Final = 2 << 10
"""The maximum number of bytes of a body that is parsed without a check."""

QUICK: Final = 64 << 10
"""The maximum number of bytes of a body that is checked without a thread."""

PIECE: Final = 64 << 10
"""The number of bytes checked in one step, which blocks all other threads."""

ESCAPED_TEXT: Final = re.compile(rb'(?:[^"\\]++|\\.)++', re.DOTALL)


@dataclass(frozen=True, slots=True)
class JSONLimits:
    """The maximum number of texts in a body, names included, and of bytes outside of texts."""

    texts: int
    other: int

    async def allow(self, body: bytes) -> bool:
        """Whether `body` is within the limits."""
        if len(body) <= HARMLESS:
            return True
        return self.fits(body) if len(body) <= QUICK else await run_in_threadpool(self.fits, body)

    def fits(self, body: bytes) -> bool:
        """Whether `body` is within the limits, and in UTF-8 as JSON should be."""
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
    """Return the end of the text whose first byte is at `at`: the position after the next unescaped quote."""
    quote = body.find(b'"', at)
    if quote < 0 or body[quote - 1 : quote] != b"\\":
        return quote + 1 or len(body)
    while match := ESCAPED_TEXT.match(body, at, at + PIECE):
        at = match.end()
        if body[at : at + 1] == b'"':
            return at + 1
    return len(body)


MAX_FIELD: Final = 64 << 10
"""The maximum number of bytes of a field, which is held in memory; the web interface allows more for notes."""

UTF_8: Final = re.compile(r""";\s*charset\s*=\s*"?utf-?8"?\s*(;|\Z)""")


def check_charset(headers: Headers) -> None:
    """Refuse a form in an encoding other than UTF-8: Python has some that take very long to decode.

    Raises:
        Invalid: the form names another encoding.
    """
    declared = headers.get("content-type", "").lower()
    if (named := declared.count("charset")) and (named > 1 or not UTF_8.search(declared)):
        raise Invalid("form: send it in UTF-8.")


class BodyLimitMiddleware:
    """Refuses larger bodies with 413; if a body's length is declared, before reading it.

    Args:
        most: returns the maximum number of bytes for a path, given whether they are a form.
    """

    def __init__(self, app: ASGIApp, most: Callable[[str, bool], int]) -> None:
        self.app = app
        self.most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and count its bytes."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        headers = Headers(scope=scope)
        limit = self.most(scope["path"], headers.get("content-type", "").lower().startswith("multipart/"))
        if int(headers.get("content-length", "0")) > limit:
            return await problem(TooLarge(body_limit(limit)))(scope, receive, send)
        return await self.app(scope, _counted(receive, limit), send)


def _counted(receive: Receive, limit: int) -> Receive:
    received = 0

    async def counting() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > limit:
            # FastAPI passes on only this exception while it reads a body.
            raise HTTPException(TooLarge.status, body_limit(limit))
        return message

    return counting
