"""A client's connection: uvicorn's protocol with limits on its cost before authentication."""

from __future__ import annotations

import sys
from collections import OrderedDict
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, cast

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from kb.api.errors import HeadTooLarge, KbError, Overloaded
from kb.asgi.error_replies import problem
from kb.asgi.proxy_sign_in import PEER

if sys.platform != "win32":
    from fcntl import ioctl
    from termios import TIOCOUTQ

if TYPE_CHECKING:
    import asyncio

    from uvicorn._types import ASGI3Application

MAX_HEAD: Final = 64 << 10
"""Maximum size of the request line and headers in bytes. The parser joins the parts of a header in quadratic time."""

MAX_HEADERS: Final = 256
MAX_PIPELINED: Final = 100
"""Maximum number of requests before the first response."""

MAX_AT_ONCE: Final = 20
"""Requests cancelled in one step: each takes an app about a millisecond."""

LINGER_SECONDS: Final = 2
"""How long to read unwanted data: an immediate close would reset the connection before the response arrived."""

CLOSE: Final = {"Connection": "close"}
PROBE: Final = b"/healthz"
"""The path that is served despite the connection limit, to show that the process is alive."""


class Connections:
    """The open connections of a server, and how long each may keep it waiting.

    Args:
        limit: the maximum number of connections. Above it, the longest idle one is closed. If none is idle, the new
            connection receives a 503 response.
        seconds: the time limit for a request's head, for the next part of its body, and for reading the response.
    """

    def __init__(self, limit: int, seconds: float) -> None:
        self.limit = limit
        self.seconds = seconds
        self.owing: OrderedDict[HttpProtocol, float] = OrderedDict()
        """Idle connections, with the time when their last request ended."""
        self.sending: set[HttpProtocol] = set()
        """Connections whose request body is incomplete."""
        self.lagging: dict[HttpProtocol, tuple[int, float]] = {}
        """Connections that read their response too slowly: the bytes left, and the time when they last decreased."""

    def evict(self) -> bool:
        """Close the longest idle connection. Return whether there was one."""
        if not self.owing:
            return False
        connection, _ = self.owing.popitem(last=False)
        connection.drop()
        return True

    def forget(self, connection: HttpProtocol) -> None:
        self.owing.pop(connection, None)
        self.sending.discard(connection)
        self.lagging.pop(connection, None)

    def close_late(self, now: float) -> None:
        """Close connections that have kept the server waiting for too long."""
        latest = now - self.seconds
        while self.owing and next(iter(self.owing.values())) < latest:
            self.evict()
        late = (connection for connection in self.sending if connection.heard_at(now) < latest)
        for connection in list(islice(late, MAX_AT_ONCE)):
            connection.transport.close()
        for connection, (left, since) in list(self.lagging.items()):
            unsent = connection.unsent()
            if unsent < left:
                self.lagging[connection] = unsent, now
            elif since < latest:
                connection.transport.abort()


class HttpProtocol(HttpToolsProtocol):
    """One connection.

    Args:
        options: the options of uvicorn.
    """

    def __init__(self, connections: Connections, **options: Any) -> None:  # noqa: ANN401 - uvicorn's own
        super().__init__(**options)
        self._all = connections
        self._head: int | None = 0
        """The number of received bytes of a head; None while a body arrives."""
        self._heard = 0.0
        self._is_excess = self._is_refused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept the connection, and close another one if there are too many."""
        super().connection_made(cast("asyncio.Transport", transport))
        self._is_excess = len(self.connections) > self._all.limit and not self._all.evict()
        self._all.owing[self] = self.loop.time()

    def connection_lost(self, exc: Exception | None) -> None:
        self._all.forget(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count the bytes of a head before they are parsed."""
        if self._is_refused:
            return None
        if self._head is None:
            self._heard = self.loop.time()
            return super().data_received(data)
        while data and not (self._is_refused or self.transport.is_closing()):
            room = MAX_HEAD - (self._head or 0)
            if room <= 0:
                return self._refuse(HeadTooLarge())
            part, data = (data, b"") if len(data) <= room else (data[:room], data[room:])
            if self._head is not None:
                self._head += len(part)
            super().data_received(part)
        return None

    def on_headers_complete(self) -> None:
        """Start a request after the last byte of its head."""
        self._head = None
        self._heard = self.loop.time()
        self._all.owing.pop(self, None)
        self._all.sending.add(self)
        if len(self.headers) > MAX_HEADERS or len(self.pipeline) > MAX_PIPELINED:
            self._refuse(HeadTooLarge())
            raise HeadTooLarge  # stops the parser
        is_excess = self._is_excess and self.url != PROBE
        self.app = cast("ASGI3Application", problem(Overloaded(), CLOSE)) if is_excess else self.config.loaded_app
        cast("dict[str, object]", self.scope)[PEER] = self.client  # uvicorn changes the scope's own client later
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Handle the last byte of a body."""
        self._head = 0
        self._all.sending.discard(self)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Handle the last byte of a response; the connection is idle unless it has already sent the next request."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._note_lag()
        elif self.timeout_keep_alive_task:
            self._all.sending.discard(self)
            self._all.owing[self] = self.loop.time()

    def pause_writing(self) -> None:
        self._note_lag()
        super().pause_writing()

    def resume_writing(self) -> None:
        self._all.lagging.pop(self, None)
        super().resume_writing()

    def heard_at(self, now: float) -> float:
        """Return when the last part of the body arrived; `now` if none is expected."""
        if self.flow.read_paused or self.cycle.waiting_for_100_continue:
            self._heard = now
        return self._heard

    def drop(self) -> None:
        """Close the connection; a pending response still arrives."""
        if self.transport.get_write_buffer_size():
            self._note_lag()
            self.transport.close()
        else:
            self.transport.abort()

    def _note_lag(self) -> None:
        self._all.lagging[self] = self.unsent(), self.loop.time()

    def unsent(self) -> int:
        """Return the number of bytes that the client has not read, including megabytes in the system's buffer."""
        here = self.transport.get_write_buffer_size()
        if sys.platform != "win32":
            descriptor = self.transport.get_extra_info("socket").fileno()
            with suppress(OSError, ValueError):  # it is closed
                return here + int.from_bytes(ioctl(descriptor, TIOCOUTQ, bytes(4)), sys.byteorder)
        return here

    def _refuse(self, error: KbError) -> None:
        """Respond to an incomplete request, unless another response has begun."""
        self._is_refused = True
        self._all.owing.pop(self, None)
        if self.cycle and not self.cycle.response_complete:
            self.transport.abort()
            return
        answer = problem(error, CLOSE)
        headers = map(b": ".join, [*self.server_state.default_headers, *answer.raw_headers])
        self.transport.write(STATUS_LINE[error.status] + b"\r\n".join([*headers, b"", bytes(answer.body)]))
        self.transport.write_eof()
        self.loop.call_later(LINGER_SECONDS, self.transport.abort)

    def send_400_response(self, msg: str) -> None:
        """Respond to data that is not HTTP."""
        if not self._is_refused:
            super().send_400_response(msg)

    def _unsupported_upgrade_warning(self) -> None:
        """Suppress uvicorn's advice to install a package that is omitted on purpose."""
