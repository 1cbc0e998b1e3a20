"""Plain HTTP with the standard library: a command with one request needs neither an event loop nor a pool."""

from collections.abc import Coroutine
from contextlib import closing
from http.client import HTTPConnection, HTTPException
from typing import Any, TypeVar
from urllib.parse import urlsplit

from kb.client.transport import BrokenOff, Outgoing, Response

T = TypeVar("T")


class StdlibTransport:
    """One connection for each request, without any await.

    Args:
        base_url: with `http`.
    """

    def __init__(self, base_url: str) -> None:
        url = urlsplit(base_url)
        self._host, self._port, self._path = url.hostname or "", url.port or 80, url.path

    async def ask(self, request: Outgoing, seconds: float) -> Response:
        """Send the request, and read the whole answer. For the errors see `Transport`."""
        with closing(HTTPConnection(self._host, self._port, timeout=seconds)) as connection:
            connection.connect()
            try:
                connection.request(
                    request.method, self._path + request.target, b"".join(request.body), dict(request.headers)
                )
                answer = connection.getresponse()
                headers = {name.lower(): value for name, value in answer.getheaders()}
                return Response(answer.status, headers, answer.read())
            except TimeoutError:
                raise
            except (OSError, HTTPException) as error:
                raise BrokenOff(str(error) or type(error).__name__) from None

    async def close(self) -> None:
        """Do nothing: no connection is open."""


def run(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that never awaits."""
    try:
        work.send(None)
    except StopIteration as ended:
        answer: T = ended.value
        return answer
    raise RuntimeError("it waits, and needs an event loop")
