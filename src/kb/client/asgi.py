"""The transport to an ASGI app in this process."""

import asyncio

from starlette.types import ASGIApp, Message, Scope

from kb.client.transport import BrokenOff, Outgoing, Response


class ASGITransport:
    """Calls the app as a server would; calls have no time limit.

    Args:
        app: an app that always answers, such as one with a `RequestMiddleware`.
        address: the address of the caller, which the app uses to count wrong keys.
    """

    def __init__(self, app: ASGIApp, address: str | None = None) -> None:
        self._app = app
        self._client = (address, 0) if address else None

    async def ask(self, request: Outgoing, seconds: float) -> Response:
        """Let the app answer. For the errors see `Transport`."""
        body, has_all, is_answered = iter(request.body), False, asyncio.Event()
        messages: list[Message] = []

        async def receive() -> Message:
            nonlocal has_all
            if has_all:
                await is_answered.wait()
                return {"type": "http.disconnect"}
            part = next(body, None)
            has_all = part is None
            return {"type": "http.request", "body": part or b"", "more_body": not has_all}

        async def send(message: Message) -> None:
            messages.append(message)

        try:
            await self._app({**asgi_scope(request), "client": self._client}, receive, send)
        finally:
            is_answered.set()
        if not messages or messages[-1].get("more_body", messages[-1]["type"] == "http.response.start"):
            raise BrokenOff("the app stopped in the middle")
        return read_response(messages)

    async def close(self) -> None:
        """Do nothing: no connection is open."""


def asgi_scope(request: Outgoing) -> Scope:
    """Return the request as a server passes it to an app."""
    path, _, query = request.target.partition("?")
    headers = {"host": "localhost", **request.headers}
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        "server": ("localhost", 80),
    }


def read_response(messages: list[Message]) -> Response:
    start, *parts = messages
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in start["headers"]}
    return Response(start["status"], headers, b"".join(part.get("body", b"") for part in parts))
