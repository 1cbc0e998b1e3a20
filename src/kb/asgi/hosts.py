"""Who may be asked for by which name: what keeps a page of another site from talking to an open server."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from kb.api.errors import ForeignOrigin, Misdirected
from kb.asgi.problem import problem

if TYPE_CHECKING:
    from collections.abc import Collection

    from starlette.types import ASGIApp, Receive, Scope, Send


class HostMiddleware:
    """Refuses names that are not ours (DNS rebinding) and pages that are not ours (cross-site requests).

    An address in numbers is always ours: no name leads to it that someone else could have pointed here.

    Args:
        names: the names, besides `localhost`, by which the server may be called.
    """

    def __init__(self, app: ASGIApp, names: Collection[str]) -> None:
        self.app = app
        self.names = {"localhost", *names}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 421 or 403, or pass the request on."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        headers = Headers(scope=scope)
        host, origin = _name(f"//{headers.get('host', '')}"), headers.get("origin")
        if not self._is_ours(host):
            return await problem(Misdirected())(scope, receive, send)
        if origin and _name(origin) not in (host, *LOOPBACK):
            return await problem(ForeignOrigin())(scope, receive, send)
        return await self.app(scope, receive, send)

    def _is_ours(self, host: str | None) -> bool:
        if host in self.names:
            return True
        try:
            ipaddress.ip_address(host or "")
        except ValueError:
            return False
        return True


LOOPBACK = ("localhost", "127.0.0.1", "::1")


def _name(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
