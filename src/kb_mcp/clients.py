"""Which program an agent is, as it says itself: the history of what it changes tells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from fastmcp.server.dependencies import get_context
from starlette.types import Scope

from kb.api.version_check import USER_AGENT

MAX_CLIENT: Final = 60
UNSAFE: Final = re.compile(r"[^\x20-\x27\x2a-\x7e]")
"""What has no place in a header, or could pass as the brackets at its end."""

_client: ContextVar[str] = ContextVar("client", default="")
"""The program on whose behalf another one calls, such as curl."""

_headers: ContextVar[Iterable[tuple[bytes, bytes]]] = ContextVar("headers", default=())
"""Those of the request."""


def note_headers(scope: Scope) -> None:
    """Remember what a request says of the program that makes it."""
    _headers.set(scope.get("headers", ()))


@contextmanager
def acting_as_client(name: str) -> Iterator[None]:
    """Have what the engine is asked for meanwhile be a program's, whichever program made the request."""
    token = _client.set(name)
    try:
        yield
    finally:
        _client.reset(token)


def client_headers(method: str, path: str) -> dict[str, str]:
    """Return what says, with each change that the engine is asked for, which program wants it."""
    client = "" if method == "GET" or path == "search" else client_name()
    return {"User-Agent": f"{USER_AGENT} {client} (mcp)"} if client else {}


def client_name() -> str:
    """Return the name and version of the program that calls: as it said over MCP, or else over HTTP."""
    if name := _client.get():
        return name
    try:
        params = get_context().session.client_params
    except RuntimeError:  # no call of a tool, such as an upload to its address
        params = None
    info = params.client_info if params else None
    said = f"{info.name} {info.version}" if info else dict(_headers.get()).get(b"user-agent", b"").decode("latin-1")
    return UNSAFE.sub("_", said)[:MAX_CLIENT].strip()
