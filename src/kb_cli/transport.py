"""Plain HTTP by the standard library: a command that asks once is done before httpx2's own transport is imported."""

from __future__ import annotations

from contextlib import closing
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING

import httpx2

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any, TypeVar

    T = TypeVar("T")


class PlainTransport(httpx2.AsyncBaseTransport):
    """One connection for each request, which never waits for anything else: what uses it needs no event loop."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request, and read all of the answer.

        Raises:
            httpx2.TransportError: there is none.
        """
        body = b"".join([part async for part in request.stream])  # type: ignore[union-attr] # an async client's is
        try:
            return _exchange(request, body)
        except TimeoutError:
            raise httpx2.ReadTimeout("timed out", request=request) from None
        except (OSError, HTTPException) as error:
            raise httpx2.ConnectError(str(error) or type(error).__name__, request=request) from None


def _exchange(request: httpx2.Request, body: bytes) -> httpx2.Response:
    seconds = request.extensions["timeout"]["read"]
    with closing(HTTPConnection(request.url.host, request.url.port, timeout=seconds)) as connection:
        connection.putrequest(request.method, request.url.raw_path.decode(), skip_host=True, skip_accept_encoding=True)
        for name, value in request.headers.raw:
            connection.putheader(name, value)
        connection.endheaders(body)
        answer = connection.getresponse()
        return httpx2.Response(answer.status, headers=answer.getheaders(), content=answer.read())


def run(work: Coroutine[Any, Any, T]) -> T:
    """What a coroutine answers that never waits."""
    try:
        work.send(None)
    except StopIteration as ended:
        answer: T = ended.value
        return answer
    raise RuntimeError("it waits, and needs an event loop")
