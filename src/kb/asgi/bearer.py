"""Access for callers with a key, and a limit on attempts to guess one."""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Receive, Scope, Send

from kb.api.errors import KbError, TooManyGuesses, Unauthorized
from kb.api.rights import Caller
from kb.asgi.error_replies import problem
from kb.asgi.key_check import Identify
from kb.asgi.rate_limit import GCRA, MAX_CALLERS

CALLER: Final = "kb.caller"
"""The name under which a request's scope contains the `Caller` of its key."""

GUESSES_PER_MINUTE: Final = 20
UNGUESSABLE: Final = 32
"""The minimum length of a key that cannot be guessed; the keys that kb makes are longer."""


class Guesses:
    """Counts wrong keys by the address that sent them. A repeated key, for example from an old setting, counts once."""

    def __init__(self) -> None:
        self._limiter = GCRA(GUESSES_PER_MINUTE)
        self._made: OrderedDict[tuple[str, int], None] = OrderedDict()

    def add(self, address: str, token: str) -> None:
        """Count a wrong key."""
        guess = address, hash(token)
        if guess not in self._made:
            self._limiter.acquire(address)
            self._made[guess] = None
            if len(self._made) > MAX_CALLERS:
                self._made.popitem(last=False)

    def wait(self, address: str) -> float:
        """Return the seconds until this address may try another key."""
        return self._limiter.wait(address)

    async def admit(self, address: str, token: str, identify: Identify) -> Caller:
        """Return the caller for a key that an address sent.

        An address that has sent too many wrong keys is refused for a while, except with a key too long to guess: other
        programs on the machine share its address and must not lock out its owner.

        Raises:
            TooManyGuesses: the address has sent too many wrong keys.
            Unauthorized: the key is wrong.
        """
        token = token.strip()  # spaces make no key long
        wait = self.wait(address)
        if wait and len(token) < UNGUESSABLE:
            raise TooManyGuesses.after(wait)
        if caller := await identify(token):
            return caller
        if wait:
            raise TooManyGuesses.after(wait)
        self.add(address, token)
        raise Unauthorized


class BearerMiddleware:
    """Requires a key for requests under some paths; other paths are open.

    Args:
        identify: returns the caller for a key.
        prefixes: the prefixes of the protected paths.
        guesses: counts wrong keys, if others count them, too.
        challenge: tells programs how to get access.
    """

    def __init__(
        self,
        app: ASGIApp,
        identify: Identify,
        prefixes: tuple[str, ...],
        guesses: Guesses | None = None,
        challenge: str = "",
    ) -> None:
        self.app = app
        self.identify = identify
        self.prefixes = prefixes
        self._guesses = guesses or Guesses()
        self._challenge = challenge or CHALLENGE

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 401 with a challenge (RFC 6750) or 429, or pass the request on with its caller."""
        if scope["type"] != "http" or not _is_under(scope, self.prefixes):
            return await self.app(scope, receive, send)
        scheme, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return await problem(Unauthorized(), {"WWW-Authenticate": self._challenge})(scope, receive, send)
        try:
            scope[CALLER] = await self._guesses.admit(client_network(scope), token, self.identify)
        except Unauthorized as error:
            invalid = f'{self._challenge}, error="invalid_token"'
            return await problem(error, {"WWW-Authenticate": invalid})(scope, receive, send)
        except KbError as error:
            return await problem(error)(scope, receive, send)
        return await self.app(scope, receive, send)


class FirstKeyMiddleware:
    """Guards an app by the first key as soon as that is made.

    Args:
        is_made: whether the first key is made.
        keyed: the guard from then on.
        unkeyed: the guard until then, if any.
    """

    def __init__(
        self, app: ASGIApp, is_made: Callable[[], bool], keyed: Middleware, unkeyed: Middleware | None = None
    ) -> None:
        self.is_made = is_made
        self.keyed = keyed.cls(app, *keyed.args, **keyed.kwargs)
        self.unkeyed = unkeyed.cls(app, *unkeyed.args, **unkeyed.kwargs) if unkeyed else app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request to the guard that applies now."""
        await (self.keyed if self.is_made() else self.unkeyed)(scope, receive, send)


CHALLENGE: Final = 'Bearer realm="kb"'


def client_network(scope: Scope) -> str:
    """Return the network of the address that a request is from."""
    return address_network(scope["client"][0]) if scope.get("client") else ""


@lru_cache(maxsize=1024)
def address_network(host: str) -> str:
    """Return the network of an address: one machine may have 2^64 addresses of version 6."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if address.version == 4:
        return host
    mapped = address.ipv4_mapped  # otherwise all of version 4 would be one network
    return str(mapped or ipaddress.ip_network((address, 64), strict=False))


def _is_under(scope: Scope, prefixes: tuple[str, ...]) -> bool:
    """Whether routes see the path under the prefixes, either with or without the path that the app is mounted under."""
    path: str = scope["path"]
    return path.startswith(prefixes) or path.removeprefix(scope.get("root_path", "")).startswith(prefixes)
