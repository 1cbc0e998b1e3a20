"""A client's connection: uvicorn's, with bounds on what it may cost before anyone is asked for a key."""

from __future__ import annotations

import sys
from collections import OrderedDict
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, cast

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from kb.api.errors import HeadTooLarge, KbError, Overloaded
from kb.asgi.problem import problem

if sys.platform != "win32":
    from fcntl import ioctl
    from termios import TIOCOUTQ

if TYPE_CHECKING:
    import asyncio
    import socket

    from uvicorn._types import ASGI3Application

MAX_HEAD: Final = 64 << 10
"""The most bytes of a request's line and headers. The parser puts a header together from the parts that come, in a time
that grows with the square of its length."""

MAX_HEADERS: Final = 256
MAX_PIPELINED: Final = 100
"""The most requests that may come before the first of them is answered."""

MAX_AT_ONCE: Final = 20
"""How many requests are given up in one step: what each leads to in an app takes a millisecond."""

LINGER_SECONDS: Final = 2
"""How long to read what is not wanted: closed at once, the connection would be reset before the answer came."""

CLOSE: Final = {"Connection": "close"}
PROBE: Final = b"/healthz"
"""What is answered however many there are: the process lives."""


class Connections:
    """The open connections of a server, and how long each may keep it waiting.

    Args:
        limit: the most connections. Beyond it the one goes that has owed a request for the longest, and when each has
            one under way, the newcomer's is answered 503.
        seconds: how long a request's head, the next part of its body, and the taking of its answer may last.
    """

    def __init__(self, limit: int, seconds: float) -> None:
        self.limit = limit
        self.seconds = seconds
        self.owing: OrderedDict[HttpProtocol, float] = OrderedDict()
        """Those that have no request under way, by when the last one ended."""
        self.sending: set[HttpProtocol] = set()
        """Those whose request's body is not here yet."""
        self.lagging: dict[HttpProtocol, tuple[int, float]] = {}
        """Those that take their answer slower than it comes: the bytes left of it, and when they last grew fewer."""

    def evict(self) -> bool:
        """Close the connection that has owed a request for the longest. Return whether there was one."""
        if not self.owing:
            return False
        connection, _ = self.owing.popitem(last=False)
        connection.drop()
        return True

    def forget(self, connection: HttpProtocol) -> None:
        """Let go of a connection that has ended."""
        self.owing.pop(connection, None)
        self.sending.discard(connection)
        self.lagging.pop(connection, None)

    def close_late(self, now: float) -> None:
        """Close those that let the server wait for too long."""
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
        connections: those of the server.
        options: uvicorn's.
    """

    def __init__(self, connections: Connections, **options: Any) -> None:  # noqa: ANN401 - uvicorn's own
        super().__init__(**options)
        self._all = connections
        self._head: int | None = 0
        """How many bytes of a head have come; None while a body comes."""
        self._heard = 0.0
        self._is_excess = self._is_refused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection, and let another one go if there are too many."""
        super().connection_made(cast("asyncio.Transport", transport))
        self._is_excess = len(self.connections) > self._all.limit and not self._all.evict()
        self._all.owing[self] = self.loop.time()

    def connection_lost(self, exc: Exception | None) -> None:
        """Part of asyncio's protocol."""
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
        """The last byte of a head: the request begins."""
        self._head = None
        self._heard = self.loop.time()
        self._all.owing.pop(self, None)
        self._all.sending.add(self)
        if len(self.headers) > MAX_HEADERS or len(self.pipeline) > MAX_PIPELINED:
            self._refuse(HeadTooLarge())
            raise HeadTooLarge  # ends the parser's work on what has come
        is_excess = self._is_excess and self.url != PROBE
        self.app = cast("ASGI3Application", problem(Overloaded(), CLOSE)) if is_excess else self.config.loaded_app
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The last byte of a body."""
        self._head = 0
        self._all.sending.discard(self)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """The last byte of an answer is written; the client owes a request again, if it has not sent one before."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._note_lag()
        elif self.timeout_keep_alive_task:
            self._all.sending.discard(self)
            self._all.owing[self] = self.loop.time()

    def pause_writing(self) -> None:
        """Part of asyncio's protocol."""
        self._note_lag()
        super().pause_writing()

    def resume_writing(self) -> None:
        """Part of asyncio's protocol."""
        self._all.lagging.pop(self, None)
        super().resume_writing()

    def heard_at(self, now: float) -> float:
        """Return when a part of the body last came; now, while none is wanted."""
        if self.flow.read_paused or self.cycle.waiting_for_100_continue:
            self._heard = now
        return self._heard

    def drop(self) -> None:
        """Close the connection; an answer that is on its way still arrives."""
        if self.transport.get_write_buffer_size():
            self._note_lag()
            self.transport.close()
        else:
            self.transport.abort()

    def _note_lag(self) -> None:
        self._all.lagging[self] = self.unsent(), self.loop.time()

    def unsent(self) -> int:
        """Return how many bytes the client has not taken: the system holds megabytes, and asks for more late."""
        return self.transport.get_write_buffer_size() + _held(self.transport.get_extra_info("socket"))

    def _refuse(self, error: KbError) -> None:
        """Answer what is no request yet, unless an answer is under way."""
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
        """Answer what is no HTTP."""
        if not self._is_refused:
            super().send_400_response(msg)

    def _unsupported_upgrade_warning(self) -> None:
        """Say nothing: uvicorn would advise to install what is left out on purpose."""


def _held(connection: socket.socket) -> int:
    """Return how many bytes the system holds for a client; 0 where it does not tell."""
    if sys.platform == "win32":
        return 0
    try:
        return int.from_bytes(ioctl(connection.fileno(), TIOCOUTQ, bytes(4)), sys.byteorder)
    except (OSError, ValueError):  # it is closed
        return 0
