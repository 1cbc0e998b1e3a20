"""The interface between the client and its transports."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Outgoing:
    """An HTTP request.

    Args:
        method: in capitals.
        target: the path, percent-encoded, with its query.
        headers: all except Host and the connection's own.
        body: in parts; it can be iterated again.
    """

    method: str
    target: str
    headers: Mapping[str, str]
    body: Iterable[bytes] = ()


@dataclass(frozen=True, slots=True)
class Response:
    """An HTTP response.

    Args:
        headers: by lower-case name.
        content: the whole body.
    """

    status: int
    headers: Mapping[str, str]
    content: bytes

    def json(self) -> Any:  # noqa: ANN401 - any JSON
        """Return the parsed body.

        Raises:
            ValueError: it is not JSON.
        """
        return json.loads(self.content)


class BrokenOff(ConnectionError):
    """The connection ended before the answer did, or the response is not HTTP."""


class BodyUnreadable(Exception):
    """The request's body could not be read, or does not have its declared length; the connection is closed."""


class Transport(Protocol):
    """A way to reach the engine."""

    async def ask(self, request: Outgoing, seconds: float) -> Response:
        """Send the request, and read the whole answer.

        Args:
            request: the request; it may have arrived even without an answer.
            seconds: the time to wait for each part of the answer.

        Raises:
            TimeoutError: nothing arrived within this time.
            BrokenOff: the answer is incomplete.
            BodyUnreadable: the body could not be read; a part of it may have been sent.
            OSError: the connection failed; nothing was sent.
        """

    async def close(self) -> None:
        """Close all open connections."""
