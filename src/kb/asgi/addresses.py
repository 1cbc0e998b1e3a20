"""The server's address as its callers see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.requests import Request


def outer_address(request: Request) -> str:
    """Return the address that a request was sent to, as far as a proxy before the server says it; without an end."""
    scheme = "https" if request.headers.get("x-forwarded-proto") == "https" else request.url.scheme
    prefix = request.headers.get("x-forwarded-prefix", "").rstrip("/")
    return f"{scheme}://{request.url.netloc}{prefix}"
