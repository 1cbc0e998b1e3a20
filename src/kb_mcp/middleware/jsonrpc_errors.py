"""What a client is told of a message that is none."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MALFORMED = 'Not a JSON-RPC message: it needs "jsonrpc": "2.0", an id, a method, and params that are an object.'


class PlainRefusals:
    """Says in one line what the MCP library says in pydantic's report, which quotes the message and names types."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the request."""
        held: Message | None = None

        async def sending(message: Message) -> None:
            nonlocal held
            if message["type"] == "http.response.start" and is_json_refusal(message):
                held = message
                return
            if held:
                message = {**message, "body": plain(message["body"])}
                MutableHeaders(scope=held)["content-length"] = str(len(message["body"]))
                await send(held)
                held = None
            await send(message)

        await self._app(scope, receive, sending)


def is_json_refusal(start: Message) -> bool:
    """Whether a response is a 400 with JSON, which is sent as a whole."""
    return start["status"] == HTTPStatus.BAD_REQUEST and Headers(scope=start).get("content-type") == "application/json"


def plain(body: bytes) -> bytes:
    """The same, or one line if it is pydantic's report."""
    if b"pydantic.dev" not in body:
        return body
    answer = json.loads(body)
    answer["error"]["message"] = MALFORMED
    return json.dumps(answer).encode()
