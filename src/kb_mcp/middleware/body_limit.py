"""Read the body of a request whole, with limits, before it is parsed."""

import json
from http import HTTPStatus
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kb.api.limit_errors import message_limit
from kb.asgi.body_limits import JSONLimits

MAX_BODY: Final = 4 << 20
"""The limit of the MCP library, which a part of an upload needs."""

MAX_PLAIN: Final = 256 << 10
"""Maximum size in bytes of a message that does not call one of these tools, which take a text or a file's bytes."""

LARGE_TOOLS: Final = (b'"kb_upload_start"', b'"kb_upload_chunk"', b'"kb_addnote"', b'"kb_update_note"')
LIMITS: Final = JSONLimits(texts=2000, other=64 << 10)
"""Far above the arguments of any tool."""

TOO_MANY: Final = "Too many values: no tool accepts this many. Send fewer, for example fewer tags."


class BoundedBody:
    """Reads the body, refuses it if it is too large or has too many values, and passes it on as one message."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond with 413, or pass the request on."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        announced = int(Headers(scope=scope).get("content-length", "0"))
        message = await _read(receive) if announced <= MAX_BODY else None
        if message and message["type"] == "http.disconnect":
            return None
        body = message.get("body", b"") if message else b""
        if message is None or (len(body) > MAX_PLAIN and not any(tool in body for tool in LARGE_TOOLS)):
            return await _refusal(message_limit(MAX_PLAIN, MAX_BODY))(scope, receive, send)
        if not await LIMITS.allow(body):
            return await _refusal(TOO_MANY)(scope, receive, send)
        return await self._app(scope, replayed(message, receive), send)


def replayed(first: Message, receive: Receive) -> Receive:
    """Return a receive function that repeats the first message, then continues."""
    messages = [first]

    async def replay() -> Message:
        return messages.pop() if messages else await receive()

    return replay


async def _read(receive: Receive) -> Message | None:
    """Return the whole body as one message, or the message of a disconnect; None if the body is too large."""
    first = await receive()
    if not first.get("more_body"):
        return first
    parts, size = [first["body"]], len(first["body"])
    while size <= MAX_BODY:
        message = await receive()
        if message["type"] != "http.request":
            return message
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if not message.get("more_body"):
            return {"type": "http.request", "body": b"".join(parts)} if size <= MAX_BODY else None
    return None


def _refusal(why: str) -> Response:
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": why}}
    return Response(json.dumps(error), HTTPStatus.REQUEST_ENTITY_TOO_LARGE, media_type="application/json")
