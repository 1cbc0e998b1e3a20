"""The agents' keys (requirement G-4), and on whose behalf the engine is asked.

A key of the gateway's own settings may do what the gateway may. Every other one is the engine's to know: the gateway
asks it whose key that is, and from then on asks on that key's behalf, so that the engine alone decides what it may see.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from hashlib import sha256
from pathlib import Path
from typing import ParamSpec, TypeVar

from starlette.types import ASGIApp, Receive, Scope, Send

from kb.api.errors import Forbidden, KbError, NotFound, SettingError, Unauthorized, Unavailable
from kb.api.rights import ANYONE, KEY_PREFIX, ON_BEHALF_OF, Caller, Right
from kb.asgi.bearer import CALLER
from kb.asgi.key_check import Identify, identify_by
from kb.client.client import EngineClient
from kb.settings import listed
from kb_mcp.clients import note_headers

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_caller: ContextVar[Caller] = ContextVar("caller")
"""Who called. Where nobody did, the engine is not asked: what forgets to say so must not act with the gateway's key."""


def key_verifier(keys: str | None, file: Path | None) -> Identify | None:
    """Return what identifies the gateway's own keys; None if there are none: the gateway is open then.

    Raises:
        SettingError: a setting that should bring a key brings none.
    """
    given = listed(keys or "")
    if keys is not None and not given:
        raise SettingError("KB_MCP_API_KEY: holds no key, only commas")
    return identify_by(given, file, "KB_MCP_API_KEY")


def with_named_keys(own: Identify, engine: EngineClient) -> Identify:
    """Return what identifies the gateway's own keys, and those that the engine knows."""

    async def identify(token: str) -> Caller | None:
        if (caller := await own(token)) or not token.startswith(KEY_PREFIX):
            return caller
        try:
            with acting_as(ANYONE):
                key = await engine.identify_key(sha256(token.encode()).hexdigest())
        except (NotFound, Unauthorized, Forbidden):
            return None
        except KbError as error:
            raise Unavailable(error.detail) from error
        return Caller(key["name"], key["right"], is_named=True)

    return identify


def current_caller() -> Caller:
    """Return who called.

    Raises:
        Unauthorized: nobody did.
    """
    caller = _caller.get(None)
    if caller is None:
        raise Unauthorized
    return caller


def current_name() -> str | None:
    """Return the name of the caller's key, if the engine knows it by one."""
    caller = current_caller()
    return caller.name if caller.is_named else None


@contextmanager
def acting_as(caller: Caller) -> Iterator[None]:
    """Ask the engine on behalf of a caller."""
    token = _caller.set(caller)
    try:
        yield
    finally:
        _caller.reset(token)


@contextmanager
def acting_for(name: str | None) -> Iterator[None]:
    """Ask the engine on behalf of the key with a name; of the gateway itself for None."""
    with acting_as(Caller(name, is_named=True) if name else ANYONE):
        yield


def behalf_headers(_method: str, _path: str) -> dict[str, str]:
    """Return what says on whose behalf the engine is called."""
    name = current_name()
    return {ON_BEHALF_OF: name} if name else {}


def needs(right: Right, tool: Callable[Arguments, Awaitable[Result]]) -> Callable[Arguments, Awaitable[Result]]:
    """Have a tool refuse who has not the right, before it does anything itself."""

    @wraps(tool)
    async def wrapped(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        if not current_caller().may(right):
            raise Forbidden(f"This key may {current_caller().right}, not {right}: tell the user.")
        return await tool(*args, **kwargs)

    return wrapped


class CallerMiddleware:
    """Remembers who called, for what the engine is asked meanwhile. It stands behind the check of keys."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        note_headers(scope)
        with acting_as(scope.get(CALLER, ANYONE)):
            await self.app(scope, receive, send)
