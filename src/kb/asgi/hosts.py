"""Who may be asked for by which name: what keeps a page of another site from talking to an open server."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from kb.api.errors import ForeignOrigin, Misdirected
from kb.asgi.problem import problem

PORTS: Final = {"http": 80, "https": 443}
ELSEWHERE: Final = ("cross-site", "same-site")
"""What browsers say of a request that a page of another origin made; the same machine at another port is same-site."""


class OriginMiddleware:
    """Refuses requests that a browser makes for a page that did not come from here.

    Args:
        names: the hosts whose pages may, too, with a port that is not the usual one behind a colon.
    """

    def __init__(self, app: ASGIApp, names: Collection[str]) -> None:
        self.app = app
        self.pages = {scheme: {_place(f"//{name}", port) for name in names} for scheme, port in PORTS.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 403, or pass the request on."""
        if scope["type"] == "http" and self._is_foreign(Headers(scope=scope)):
            return await problem(ForeignOrigin())(scope, receive, send)
        return await self.app(scope, receive, send)

    def _is_foreign(self, headers: Headers) -> bool:
        origin = headers.get("origin")
        if origin is None:
            # What a page fetches, it may use; a link that is followed shows an answer to its reader alone.
            is_fetched = headers.get("sec-fetch-mode", "navigate") != "navigate"
            return is_fetched and headers.get("sec-fetch-site") in ELSEWHERE
        scheme = origin.partition(":")[0]
        if scheme not in PORTS:
            return True
        page, here = _place(origin, PORTS[scheme]), _place(f"//{headers.get('host', '')}", PORTS[scheme])
        return page is None or (page != here and page not in self.pages[scheme])


class HostMiddleware:
    """Refuses names that are not ours (DNS rebinding) and pages that are not ours (cross-site requests).

    An address in numbers is always ours: no name leads to it that someone else could have pointed here.

    Args:
        names: those, besides `localhost`, by which the server may be called; as for `OriginMiddleware`.
    """

    def __init__(self, app: ASGIApp, names: Collection[str]) -> None:
        self.app = OriginMiddleware(app, names)
        self.names = {"localhost", *(place[0] for name in names if (place := _place(f"//{name}")))}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 421 or 403, or pass the request on."""
        if scope["type"] == "http" and not self._is_ours(Headers(scope=scope).get("host", "")):
            return await problem(Misdirected())(scope, receive, send)
        return await self.app(scope, receive, send)

    def _is_ours(self, host: str) -> bool:
        place = _place(f"//{host}")
        name = place[0] if place else ""
        if name in self.names:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


def _place(url: str, port: int = 0) -> tuple[str, int] | None:
    """Return a URL's host and port, which is `port` if it names none; None if it is no URL."""
    try:
        parts = urlsplit(url)
        return (parts.hostname, parts.port or port) if parts.hostname else None
    except ValueError:
        return None


def outer_address(request: Request) -> str:
    """Return the address that a request was sent to, as far as a proxy before the server says it; without an end."""
    scheme = "https" if request.headers.get("x-forwarded-proto") == "https" else request.url.scheme
    prefix = request.headers.get("x-forwarded-prefix", "").rstrip("/")
    return f"{scheme}://{request.url.netloc}{prefix}"
