"""The name of the calling program, as it reports it, for the history of its changes."""

import re
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Final, TypeVar

from fastmcp.server.dependencies import get_context
from starlette.types import Scope

from kb.api.version_check import USER_AGENT

Value = TypeVar("Value")

MAX_CLIENT: Final = 60
UNSAFE: Final = re.compile(r"[^\x20-\x27\x2a-\x7e]")
"""Characters that are invalid in a header or could imitate the brackets at its end."""

_client: ContextVar[str] = ContextVar("client", default="")
"""The program for which another one makes the call, such as curl."""

_headers: ContextVar[Iterable[tuple[bytes, bytes]]] = ContextVar("headers", default=())
"""The headers of the request."""


def note_headers(scope: Scope) -> None:
    _headers.set(scope.get("headers", ()))


@contextmanager
def holding(variable: ContextVar[Value], value: Value) -> Iterator[None]:
    """Give a variable a value during the block."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def acting_as_client(name: str) -> AbstractContextManager[None]:
    """Attribute calls to the engine in the block to a program, whichever program made the request."""
    return holding(_client, name)


def client_headers(method: str, path: str) -> dict[str, str]:
    """Return a header that names the program, for calls that may change something."""
    client = "" if method == "GET" or path == "search" else client_name()
    return {"User-Agent": f"{USER_AGENT} {client} (mcp)"} if client else {}


def client_name() -> str:
    """Return the name and version of the calling program, from MCP or otherwise from HTTP."""
    if name := _client.get():
        return name
    try:
        params = get_context().session.client_params
    except RuntimeError:  # not a tool call, such as an upload to a URL
        params = None
    info = params.client_info if params else None
    said = f"{info.name} {info.version}" if info else dict(_headers.get()).get(b"user-agent", b"").decode("latin-1")
    return UNSAFE.sub("_", said)[:MAX_CLIENT].strip()
