"""Errors of messages that are no JSON-RPC."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from starlette.datastructures import Headers, MutableHeaders

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MALFORMED: Final = 'Not a JSON-RPC message: it needs "jsonrpc": "2.0", an id, a method, and params that are an object.'
PYDANTIC: Final = b"pydantic.dev"
"""Stands in every report of pydantic's."""


class FriendlyJSONRPCErrors:
    """Puts one line in the place of pydantic's report, which quotes the message and names the MCP library's types."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        held: Message | None = None

        async def send_friendly(message: Message) -> None:
            nonlocal held
            if message["type"] == "http.response.start" and is_json_refusal(message):
                held = message
                return
            if held:
                message = {**message, "body": replace_report(message["body"])}
                MutableHeaders(scope=held)["content-length"] = str(len(message["body"]))
                await send(held)
                held = None
            await send(message)

        await self._app(scope, receive, send_friendly)


def is_json_refusal(start: Message) -> bool:
    """Whether a response is a 400 with JSON. The MCP library sends the body of such a response in one message."""
    return start["status"] == HTTPStatus.BAD_REQUEST and Headers(scope=start).get("content-type") == "application/json"


def replace_report(body: bytes) -> bytes:
    if PYDANTIC not in body:
        return body
    response = json.loads(body)
    response["error"]["message"] = MALFORMED
    return json.dumps(response).encode()
