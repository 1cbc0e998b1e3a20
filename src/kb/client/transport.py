"""What a client and its way to the engine say to each other."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request.

    Args:
        method: in capitals.
        target: the path, percent-encoded, with its query.
        headers: all but Host and those of the connection.
        body: in parts; it can be gone through a second time.
    """

    method: str
    target: str
    headers: Mapping[str, str]
    body: Iterable[bytes] = ()


@dataclass(frozen=True, slots=True)
class Response:
    """An HTTP response.

    Args:
        status: its number.
        headers: by their names in lower case.
        content: all of the body.
    """

    status: int
    headers: Mapping[str, str]
    content: bytes

    def json(self) -> Any:  # noqa: ANN401 - whatever was sent
        """Return what the body says.

        Raises:
            ValueError: it is no JSON.
        """
        return json.loads(self.content)


class BrokenOff(ConnectionError):
    """The connection ended before the answer did, or what came is no HTTP."""


class BodyUnreadable(Exception):
    """What was to be sent could not be read, or is not as long as was announced; the connection is closed."""


class Transport(Protocol):
    """A way to the engine."""

    async def ask(self, request: Request, seconds: float) -> Response:
        """Send the request, and read all of the answer.

        Args:
            request: it may have arrived even if there is no answer.
            seconds: how long to wait for each part of the answer.

        Raises:
            TimeoutError: nothing came for so long.
            BrokenOff: there is no whole answer.
            BodyUnreadable: the body could not be read; a part of it may have been sent.
            OSError: there is no connection; nothing was sent.
        """

    async def close(self) -> None:
        """End what is kept open."""
