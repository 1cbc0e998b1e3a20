"""Checks of host and origin, which keep pages of other sites from talking to an open server."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from kb.api.errors import ForeignOrigin, Misdirected
from kb.asgi.error_replies import refusal

PREFIX: Final = re.compile(r"[\w.~%-]+(?:/[\w.~%-]+)*", re.ASCII)
"""A path that a cookie may have."""

PORTS: Final = {"http": 80, "https": 443}
ELSEWHERE: Final = ("cross-site", "same-site")
"""Browsers send these for requests from a page of another origin; the same machine at another port is same-site."""

UNNAMED: Final = "Pages from other sites may not call this server, and the browser did not say where this page is from."
"""The refusal if no entry of KB_ALLOWED_HOSTS would help."""

OTHER_PORT: Final = (
    "This page is from {}, but the request names the host {}, without the same port. If a reverse proxy is in between,"
    " it must pass on the port: in nginx, proxy_set_header Host $http_host."
)


class OriginMiddleware:
    """Refuses requests that a browser makes for a page from another origin.

    Args:
        names: the hosts whose pages are also allowed, followed by a colon and the port unless it is the default.
    """

    def __init__(self, app: ASGIApp, names: Collection[str]) -> None:
        self.app = app
        self.pages = {scheme: {_place(f"//{name}", port) for name in names} for scheme, port in PORTS.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 403, or pass the request on."""
        if scope["type"] == "http" and self._is_foreign(headers := Headers(scope=scope)):
            return await refusal(scope, ForeignOrigin(_reason(headers)))(scope, receive, send)
        return await self.app(scope, receive, send)

    def _is_foreign(self, headers: Headers) -> bool:
        origin = headers.get("origin")
        if origin is None:
            # A page can use the answers that it fetches; after a click on a link, only the reader sees the answer.
            is_fetched = headers.get("sec-fetch-mode", "navigate") != "navigate"
            return is_fetched and headers.get("sec-fetch-site") in ELSEWHERE
        scheme = origin.partition(":")[0]
        if scheme not in PORTS:
            return True
        page, here = _place(origin, PORTS[scheme]), _place(f"//{headers.get('host', '')}", PORTS[scheme])
        return page is None or (page != here and page not in self.pages[scheme])


class HostMiddleware:
    """Refuses foreign host names (DNS rebinding) and foreign pages (cross-site requests).

    A numeric address is always allowed, because DNS rebinding needs a name.

    Args:
        names: the allowed host names in addition to `localhost`, in the form of `OriginMiddleware`.
    """

    def __init__(self, app: ASGIApp, names: Collection[str]) -> None:
        self.app = OriginMiddleware(app, names)
        self.names = {"localhost", *(place[0] for name in names if (place := _place(f"//{name}")))}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 421 or 403, or pass the request on."""
        if scope["type"] == "http" and not self._is_ours(Headers(scope=scope).get("host", "")):
            return await refusal(scope, Misdirected())(scope, receive, send)
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


def _reason(headers: Headers) -> str | None:
    """Return why a page is foreign, if adding its host to KB_ALLOWED_HOSTS would not be the remedy."""
    origin, host = headers.get("origin", ""), headers.get("host", "")
    if origin.partition(":")[0] not in PORTS:
        return UNNAMED
    page, here = _place(origin), _place(f"//{host}")
    if page and here and page[0] == here[0]:
        return OTHER_PORT.format(origin, host)
    return None


def _place(url: str, port: int = 0) -> tuple[str, int] | None:
    """Return a URL's host and port, with `port` as the default; None if it is not a URL."""
    try:
        parts = urlsplit(url)
        return (parts.hostname, parts.port or port) if parts.hostname else None
    except ValueError:
        return None


def outer_address(request: Request) -> str:
    """Return the address that a request was sent to, as a proxy before the server reports it, without a final slash."""
    scheme = "https" if request.headers.get("x-forwarded-proto") == "https" else request.url.scheme
    return f"{scheme}://{request.url.netloc}{outer_path(request).rstrip('/')}"


def outer_path(request: Request) -> str:
    """Return the path under which a proxy publishes the server, with slashes at both ends."""
    prefix = request.headers.get("x-forwarded-prefix", "").strip("/")
    return f"/{prefix}/" if PREFIX.fullmatch(prefix) else "/"
