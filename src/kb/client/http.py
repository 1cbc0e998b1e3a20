"""HTTP to the engine over the connections that httpx2 keeps (docs/adr/0012).

Its transport is used without its client: cookies, redirects and proxies are not for a program that asks one server.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import httpx2

from kb.client.transport import Answer, BodyUnreadable, BrokenOff, Request

CONNECT_SECONDS = 5
MAX_CONNECTIONS = 200


class HTTPTransport:
    """A pool of connections to one server.

    Args:
        base_url: with `http` or `https`; a path in it goes before every target.
    """

    def __init__(self, base_url: str) -> None:
        self._base_url = base_url
        limits = httpx2.Limits(max_connections=MAX_CONNECTIONS, max_keepalive_connections=None, keepalive_expiry=None)
        self._pool = httpx2.AsyncHTTPTransport(verify=urlsplit(base_url).scheme == "https", limits=limits)

    async def ask(self, request: Request, seconds: float) -> Answer:
        """Send the request over a connection that no other uses meanwhile. For the errors see `Transport`."""
        timeout = httpx2.Timeout(seconds, connect=min(seconds, CONNECT_SECONDS)).as_dict()
        sent = httpx2.Request(
            request.method,
            self._base_url + request.target,
            headers=request.headers,
            content=_parts(request) if request.body else None,
            extensions={"timeout": timeout},
        )
        try:
            answer = await self._pool.handle_async_request(sent)
            return Answer(answer.status_code, dict(answer.headers), await answer.aread())
        except httpx2.TimeoutException as error:
            raise TimeoutError from error
        except httpx2.ConnectError as error:
            raise _reason(error) or OSError(str(error)) from None
        except httpx2.TransportError as error:
            raise BrokenOff(str(error) or "the connection was closed") from None

    async def close(self) -> None:
        """Close every connection."""
        await self._pool.aclose()


async def _parts(request: Request) -> AsyncIterator[bytes]:
    """Yield the parts of a body.

    Raises:
        BodyUnreadable: one cannot be read, or all of them are not as long as was announced.
    """
    announced = httpx2.Headers(request.headers).get("content-length")
    left = int(announced or 0)
    try:
        for part in request.body:
            left -= len(part)
            if announced and left < 0:
                break
            yield part
    except OSError as error:
        raise BodyUnreadable(error.strerror or str(error)) from error
    if announced and left:
        raise BodyUnreadable("it changed its length while it was sent")


def _reason(error: BaseException) -> OSError | None:
    """Return what the system said, which the libraries wrap into errors of their own."""
    inner = error.__cause__ or error.__context__
    reason = _reason(inner) if inner else None
    return reason or (error if isinstance(error, OSError) else None)
