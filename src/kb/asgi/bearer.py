"""Bearer keys, compared in constant time (requirements G-4, R-5)."""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from starlette.datastructures import Headers

from kb.api.errors import Unauthorized
from kb.asgi.problem import problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from starlette.types import ASGIApp, Receive, Scope, Send

    Identify = Callable[[str], str | None]
    """Answers the name of the key that a token is; None if it is none."""

CALLER: Final = "kb.caller"
"""Where a request's scope names the key that it came with."""


class Keys:
    """Secrets, kept as their SHA-256 digests; equal lengths make the comparison's time independent of the input."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._digests = {_name(secret): sha256(secret.encode()).digest() for secret in secrets}

    def identify(self, token: str) -> str | None:
        """Return the name of the key that `token` is, which does not tell the key; None if it is none of them."""
        digest = sha256(token.encode(errors="replace")).digest()
        # All of them are compared, so that the time does not tell which one it was.
        matching = [name for name, known in self._digests.items() if hmac.compare_digest(digest, known)]
        return matching[0] if matching else None


class BearerMiddleware:
    """Serves requests under some paths only to those who send a key; other paths are open.

    Args:
        identify: tells whose key a token is.
        prefixes: what the paths begin with.
    """

    def __init__(self, app: ASGIApp, identify: Identify, prefixes: tuple[str, ...]) -> None:
        self.app = app
        self.identify = identify
        self.prefixes = prefixes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 401 with a challenge (RFC 6750), or pass the request on with its caller's name."""
        if scope["type"] != "http" or not _is_under(scope, self.prefixes):
            return await self.app(scope, receive, send)
        scheme, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
        is_bearer = scheme.lower() == "bearer"
        if is_bearer and (name := self.identify(token.strip())):
            scope[CALLER] = name
            return await self.app(scope, receive, send)
        challenge = 'Bearer realm="kb"' + (', error="invalid_token"' if is_bearer else "")
        return await problem(Unauthorized(), headers={"WWW-Authenticate": challenge})(scope, receive, send)


def _is_under(scope: Scope, prefixes: tuple[str, ...]) -> bool:
    """Whether routes see the path under the prefixes: what an app is mounted under stands before it for them, too."""
    path: str = scope["path"]
    return path.startswith(prefixes) or path.removeprefix(scope.get("root_path", "")).startswith(prefixes)


def _name(secret: str) -> str:
    return sha256(b"name of " + secret.encode()).hexdigest()[:8]
