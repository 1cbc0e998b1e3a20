"""Answers at once to those who ask for nothing else."""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, cast

from fastmcp.server.http import StreamableHTTPASGIApp
from mcp.server.transport_security import RequestBodyLimitMiddleware
from starlette.routing import Route

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from starlette.applications import Starlette
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

PROGRESS = b'"progressToken"'
"""What a request holds whose sender wants to be told of progress."""


class DirectAnswers:
    """Answers with JSON what needs no stream: tasks and channels for one take a fifth of the time of a small call.

    Args:
        streaming: the endpoint; it keeps the requests that ask for progress, and those that come in parts.
    """

    def __init__(self, streaming: StreamableHTTPASGIApp) -> None:
        self._streaming = streaming

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the request."""
        first = await receive()
        is_heard = False

        async def again() -> Message:
            nonlocal is_heard
            if is_heard:
                return await receive()
            is_heard = True
            return first

        needs_stream = first.get("more_body") or PROGRESS in first.get("body", b"")
        await (self._streaming if needs_stream else self._direct)(scope, again, send)

    @cached_property
    def _direct(self) -> ASGIApp:
        """The same, but for the form of its answers. An app starts once, and is asked after that."""
        direct = copy(cast("StreamableHTTPSessionManager", self._streaming.session_manager))
        direct.json_response = True
        return RequestBodyLimitMiddleware(direct._handle_request, direct.max_request_body_size)


def answer_directly(app: Starlette) -> Starlette:
    """The app of a FastMCP server, with its endpoint made faster."""
    for route in app.routes:
        if isinstance(route, Route) and isinstance(route.endpoint, StreamableHTTPASGIApp):
            route.app = DirectAnswers(route.endpoint)
    return app
