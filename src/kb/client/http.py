"""HTTP/1.1 to the engine, over connections that stay open.

A call of httpx2 or httpcore2 takes 0.3 to 0.45 ms of CPU, as long as the engine for a small answer; this takes 0.03 ms
(docs/adr/0012).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator
from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

import httptools

from kb.client.transport import BodyUnreadable, BrokenOff, Outgoing, Response

if TYPE_CHECKING:
    import ssl

CONNECT_SECONDS = 5
MAX_CONNECTIONS = 200
PORTS = {"http": 80, "https": 443}


class HTTPTransport:
    """A pool of connections to one server.

    Args:
        base_url: with `http` or `https`; its path precedes every target.
    """

    def __init__(self, base_url: str) -> None:
        url = urlsplit(base_url)
        self._host, self._port = url.hostname or "", url.port or PORTS[url.scheme]
        self._is_secure = url.scheme == "https"
        self._netloc, self._path = url.netloc.rpartition("@")[2], url.path
        self._idle: deque[Connection] = deque()
        self._slots = asyncio.Semaphore(MAX_CONNECTIONS)

    async def ask(self, request: Outgoing, seconds: float) -> Response:
        """Send the request over a connection that no other request uses. For the errors see `Transport`."""
        async with asyncio.timeout(seconds):
            await self._slots.acquire()
        try:
            return await self._exchange(request, seconds)
        finally:
            self._slots.release()

    async def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    async def _exchange(self, request: Outgoing, seconds: float) -> Response:
        connection = self._pop_idle() or await self._connect(min(seconds, CONNECT_SECONDS))
        try:
            answer = await connection.exchange(self._head(request), request, seconds)
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)
        return answer

    def _pop_idle(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open:
                return connection
        return None

    async def _connect(self, seconds: float) -> Connection:
        async with asyncio.timeout(seconds):
            loop = asyncio.get_running_loop()
            return (await loop.create_connection(Connection, self._host, self._port, ssl=self._tls))[1]

    @cached_property
    def _tls(self) -> ssl.SSLContext | None:
        if not self._is_secure:
            return None
        import httpx2  # it knows the location of certificates on each system

        return httpx2.create_ssl_context()

    def _head(self, request: Outgoing) -> bytes:
        headers = {"Host": self._netloc, **request.headers}
        lines = [f"{request.method} {self._path}{request.target} HTTP/1.1", *map(": ".join, headers.items()), "", ""]
        return "\r\n".join(lines).encode()


class Connection(asyncio.Protocol):
    """A connection that carries one exchange at a time."""

    def __init__(self) -> None:
        self._incoming: Incoming | None = None
        self._may_write = asyncio.Event()
        self._may_write.set()

    @property
    def is_open(self) -> bool:
        return not self._transport.is_closing()

    def close(self) -> None:
        self._transport.abort()

    async def exchange(self, head: bytes, request: Outgoing, seconds: float) -> Response:
        """Send a request and await its answer, which may precede the request's end. For the errors see `Transport`."""
        self._seconds = seconds
        incoming = self._incoming = Incoming()
        try:
            async with asyncio.timeout(seconds) as self._deadline:
                is_sent = await self._send(head, request, incoming)
                answer = await incoming.answer
        finally:
            self._incoming = None
        if not (is_sent and incoming.is_reusable):
            self.close()
        return answer

    async def _send(self, head: bytes, request: Outgoing, incoming: Incoming) -> bool:
        """Return whether the whole request was sent; the server may answer early."""
        headers = {name.lower(): value for name, value in request.headers.items()}
        is_chunked = "transfer-encoding" in headers
        left = int(headers.get("content-length", 0))
        self._transport.write(head)
        for part in _parts(request.body):
            left -= len(part)
            self._transport.write(b"%x\r\n%b\r\n" % (len(part), part) if is_chunked else part)
            await self._may_write.wait()
            if incoming.answer.done() or self._transport.is_closing():
                return False
            self._extend_deadline()
        if left and not is_chunked:
            raise BodyUnreadable("it changed its length while it was sent")
        if is_chunked:
            self._transport.write(b"0\r\n\r\n")
        return True

    def _extend_deadline(self) -> None:
        if not self._deadline.expired():
            self._deadline.reschedule(asyncio.get_running_loop().time() + self._seconds)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._may_write.set()

    def data_received(self, data: bytes) -> None:
        if self._incoming is None:
            self.close()  # no request is open
        else:
            self._extend_deadline()
            self._incoming.feed(data)
            if self._incoming.answer.done():
                self._may_write.set()  # the server does not want the rest of the request

    def connection_lost(self, error: Exception | None) -> None:
        self._may_write.set()
        if self._incoming:
            self._incoming.end(str(error or "the connection was closed"))


class Incoming:
    """An incoming answer. The parser calls the methods that begin with `on_`.

    Attributes:
        answer: done after the whole answer has arrived; fails with `BrokenOff`.
        is_reusable: whether the connection can carry another exchange.
    """

    def __init__(self) -> None:
        self.answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._parser = httptools.HttpResponseParser(self)
        self._headers: dict[str, str] = {}
        self._content: list[bytes] = []
        self._ends_with_connection = False
        self.is_reusable = False

    def feed(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(f"the response is not HTTP: {error}")

    def end(self, why: str) -> None:
        """Complete an answer that ends with the connection; fail any other."""
        if self._ends_with_connection:
            self.on_message_complete()
        else:
            self._fail(why)

    def on_message_begin(self) -> None:
        """Handle the first byte of an answer; an unrequested answer makes the connection unusable."""
        if self.answer.done():
            self.is_reusable = False

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self._ends_with_connection = not self._headers.keys() & {"content-length", "transfer-encoding"}

    def on_body(self, body: bytes) -> None:
        self._content.append(body)

    def on_message_complete(self) -> None:
        """Handle the end of an answer; an interim answer (1xx) does not count."""
        answer = Response(self._parser.get_status_code(), self._headers, b"".join(self._content))
        self._headers, self._content, self._ends_with_connection = {}, [], False
        if answer.status >= HTTPStatus.OK and not self.answer.done():
            self.is_reusable = self._parser.should_keep_alive()
            self.answer.set_result(answer)

    def _fail(self, why: str) -> None:
        self.is_reusable = False
        if not self.answer.done():
            self.answer.set_exception(BrokenOff(why))
            self.answer.exception()  # the caller may have left


def _parts(body: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the parts of a body.

    Raises:
        BodyUnreadable: one cannot be read.
    """
    try:
        yield from body
    except OSError as error:
        raise BodyUnreadable(error.strerror or str(error)) from error
