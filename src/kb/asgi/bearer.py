"""Bearer keys, compared in constant time (requirements G-4, R-5)."""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import TYPE_CHECKING

from starlette.datastructures import Headers

from kb.asgi.problem import problem
from kb.contract.errors import Unauthorized

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send


class Key:
    """A secret, kept as its SHA-256 digest; equal lengths make the comparison's time independent of the input."""

    def __init__(self, secret: str) -> None:
        self._digest = sha256(secret.encode()).digest()

    def matches(self, candidate: str) -> bool:
        """Whether `candidate` is the secret."""
        return hmac.compare_digest(sha256(candidate.encode(errors="replace")).digest(), self._digest)


class BearerMiddleware:
    """Serves requests under `prefix` only to those who send the key; other paths are open."""

    def __init__(self, app: ASGIApp, key: Key, prefix: str) -> None:
        self.app = app
        self.key = key
        self.prefix = prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 401 with a challenge (RFC 6750), or pass the request on."""
        if scope["type"] != "http" or not scope["path"].startswith(self.prefix) or self._allows(scope):
            return await self.app(scope, receive, send)
        response = problem(Unauthorized(), headers={"WWW-Authenticate": 'Bearer realm="kb"'})
        return await response(scope, receive, send)

    def _allows(self, scope: Scope) -> bool:
        scheme, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and self.key.matches(token.strip())
