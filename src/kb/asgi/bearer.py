"""Who may call: those who send a key, and not those who try many."""

from __future__ import annotations

import ipaddress
import math
from collections import OrderedDict
from functools import lru_cache
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from kb.api.errors import KbError, TooManyGuesses, Unauthorized
from kb.asgi.key_check import Identify
from kb.asgi.problem import problem
from kb.asgi.rate_limit import GCRA, MAX_CALLERS

CALLER: Final = "kb.caller"
"""Where a request's scope has the `Caller` whose key it came with."""

GUESSES_PER_MINUTE: Final = 20
UNGUESSABLE: Final = 32
"""How many characters a key has that nobody finds by trying: those that kb makes have more."""


class Guesses:
    """Keys that are none, by the address that they came from. The same one again, as of an old setting, is no guess."""

    def __init__(self) -> None:
        self._limiter = GCRA(GUESSES_PER_MINUTE)
        self._made: OrderedDict[tuple[str, int], None] = OrderedDict()

    def add(self, address: str, token: str) -> None:
        """Count a key that is none."""
        guess = address, hash(token)
        if guess not in self._made:
            self._limiter.acquire(address)
            self._made[guess] = None
            if len(self._made) > MAX_CALLERS:
                self._made.popitem(last=False)

    def wait(self, address: str) -> float:
        """Return for how many seconds no key of this address is looked at."""
        return self._limiter.wait(address)


class BearerMiddleware:
    """Serves requests under some paths only to those who send a key; other paths are open.

    An address that has sent too many wrong keys is refused until a while has passed, unless it sends one that is too
    long to be found by trying: other programs on a machine have the same address, and must not shut out its owner.

    Args:
        identify: tells whose key a token is.
        prefixes: what the paths begin with.
    """

    def __init__(self, app: ASGIApp, identify: Identify, prefixes: tuple[str, ...]) -> None:
        self.app = app
        self.identify = identify
        self.prefixes = prefixes
        self._guesses = Guesses()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 401 with a challenge (RFC 6750) or 429, or pass the request on with its caller."""
        if scope["type"] != "http" or not _is_under(scope, self.prefixes):
            return await self.app(scope, receive, send)
        scheme, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return await problem(Unauthorized(), {"WWW-Authenticate": CHALLENGE})(scope, receive, send)
        address = address_network(scope["client"][0]) if scope.get("client") else ""
        wait = self._guesses.wait(address)
        refused = problem(TooManyGuesses(), {"Retry-After": str(math.ceil(wait))})
        if wait and len(token) < UNGUESSABLE:
            return await refused(scope, receive, send)
        try:
            caller = await self.identify(token.strip())
        except KbError as error:
            return await problem(error)(scope, receive, send)
        if caller:
            scope[CALLER] = caller
            return await self.app(scope, receive, send)
        if wait:
            return await refused(scope, receive, send)
        self._guesses.add(address, token)
        invalid = f'{CHALLENGE}, error="invalid_token"'
        return await problem(Unauthorized(), {"WWW-Authenticate": invalid})(scope, receive, send)


CHALLENGE: Final = 'Bearer realm="kb"'


@lru_cache(maxsize=1024)
def address_network(host: str) -> str:
    """Return what stands for an address: one machine has 2^64 of version 6."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if address.version == 4:
        return host
    mapped = address.ipv4_mapped  # all of version 4 would be one network
    return str(mapped or ipaddress.ip_network((address, 64), strict=False))


def _is_under(scope: Scope, prefixes: tuple[str, ...]) -> bool:
    """Whether routes see the path under the prefixes: what an app is mounted under stands before it for them, too."""
    path: str = scope["path"]
    return path.startswith(prefixes) or path.removeprefix(scope.get("root_path", "")).startswith(prefixes)
