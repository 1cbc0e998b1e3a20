"""The agents' keys (requirement G-4), and the caller on whose behalf the gateway uses the engine.

A key in the gateway's settings has the rights of the gateway. For any other key, the gateway asks the engine for its
owner and acts on behalf of that key, so that only the engine decides about access.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import Final, ParamSpec, Protocol, TypeVar

from starlette.types import ASGIApp, Receive, Scope, Send

from kb.api.errors import Forbidden, KbError, NotFound, SettingError, TooManyCalls, Unauthorized, Unavailable
from kb.api.rights import ANYONE, KEY_PREFIX, ON_BEHALF_OF, Caller, Right
from kb.asgi.bearer import CALLER
from kb.asgi.key_check import Identify, SettingsKeys, access_changes, identify_by
from kb.client.client import EngineClient
from kb.settings import listed
from kb_mcp.clients import holding, note_headers

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

FRESH_SECONDS: Final = 1.0
"""For how long an access token that ended at another process remains valid here."""

MOST_KNOWN: Final = 1000

_caller: ContextVar[Caller] = ContextVar("caller")
"""The caller. Without one, calls to the engine fail, so that forgetting to set it never grants the gateway's rights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCaller(Caller):
    """A program with an access token: the rights of a key as far as the person gave them to the program.

    `resource` is the address of the endpoint that the token is for. `could_write` is true if the key may write and the
    token may not.
    """

    resource: str = ""
    could_write: bool = False


class OwnKeys(Protocol):
    """The gateway's own keys."""

    async def __call__(self, token: str) -> Caller | None: ...
    def of_digest(self, digest: bytes) -> str | None: ...


def key_verifier(keys: str | None, file: Path | None) -> SettingsKeys | None:
    """Return the gateway's own keys, or None if there are no keys, which leaves the gateway open.

    Raises:
        SettingError: a setting for keys contains none.
    """
    given = listed(keys or "")
    if keys is not None and not given:
        raise SettingError("KB_MCP_API_KEY: contains commas but no key")
    return identify_by(given, file, "KB_MCP_API_KEY")


def with_named_keys(own: OwnKeys, engine: EngineClient) -> Identify:
    """Return a function that identifies the gateway's own keys, and the keys and access tokens of the engine."""
    known: dict[str, tuple[TokenCaller, float, int]] = {}

    async def identify(token: str) -> Caller | None:
        held = known.get(token)
        if held and held[1] > monotonic() and held[2] == access_changes.count:
            return held[0]
        if (caller := await own(token)) or not token.startswith(KEY_PREFIX):
            return caller
        changes = access_changes.count
        try:
            with acting_as(ANYONE):
                key = await engine.identify_key(sha256(token.encode()).hexdigest())
        except (NotFound, Unauthorized, Forbidden):
            return None
        except TooManyCalls:
            raise
        except KbError as error:
            raise Unavailable(error.detail) from error
        grant = key["grant"]
        if grant is None:
            return Caller(key["name"], key["right"], is_named=True)
        if not key["is_ours"] and not own.of_digest(bytes.fromhex(grant["key_digest"])):
            return None
        could_write = key["right"] == "read" and key["key_right"] != "read"
        caller = TokenCaller(
            key["name"],
            key["right"],
            is_named=key["is_ours"],
            resource=grant["resource"],
            could_write=could_write,
        )
        if key["per_minute"] is None:
            if len(known) >= MOST_KNOWN:
                known.clear()
            known[token] = caller, monotonic() + FRESH_SECONDS, changes
        return caller

    return identify


def at_resource(identify: Identify, resource: str | None) -> Identify:
    """Return a function that takes only access tokens for one resource; for None, it takes no access tokens."""

    async def checked(token: str) -> Caller | None:
        caller = await identify(token)
        return None if isinstance(caller, TokenCaller) and caller.resource != resource else caller

    return checked


def current_caller() -> Caller:
    """Return the caller.

    Raises:
        Unauthorized: no caller is set.
    """
    caller = _caller.get(None)
    if caller is None:
        raise Unauthorized
    return caller


def current_name() -> str | None:
    """Return the name of the caller's key, if it is a key of the engine."""
    caller = current_caller()
    return caller.name if caller.is_named else None


def acting_as(caller: Caller) -> AbstractContextManager[None]:
    """Act on behalf of a caller during the block."""
    return holding(_caller, caller)


def acting_for(name: str | None) -> AbstractContextManager[None]:
    """Act on behalf of the key with a name during the block; for None, of the gateway itself."""
    return acting_as(Caller(name, is_named=True) if name else ANYONE)


def behalf_headers(_method: str, _path: str) -> dict[str, str]:
    name = current_name()
    return {ON_BEHALF_OF: name} if name else {}


def needs(right: Right, tool: Callable[Arguments, Awaitable[Result]]) -> Callable[Arguments, Awaitable[Result]]:
    """Make a tool refuse callers without the right before it does anything."""

    @wraps(tool)
    async def wrapped(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        if not current_caller().may(right):
            own = current_caller().right
            raise Forbidden(f"This key may {own}, but not {right}. Ask the user for a key with the right to {right}.")
        return await tool(*args, **kwargs)

    return wrapped


class CallerMiddleware:
    """Sets the caller for calls to the engine during a request. Must run after the check of keys."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        note_headers(scope)
        with acting_as(scope.get(CALLER, ANYONE)):
            await self.app(scope, receive, send)
