"""How large a request body may be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException

from kb.api.errors import TooLarge
from kb.asgi.problem import problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send


class BodyLimitMiddleware:
    """Refuses larger bodies with 413, before they are read where their length is announced.

    Args:
        most: answers the most bytes that a path takes, given whether they are a form.
    """

    def __init__(self, app: ASGIApp, most: Callable[[str, bool], int]) -> None:
        self.app = app
        self.most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its bytes counted."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        headers = Headers(scope=scope)
        limit = self.most(scope["path"], headers.get("content-type", "").lower().startswith("multipart/"))
        if int(headers.get("content-length", "0")) > limit:
            return await problem(TooLarge(_detail(limit)))(scope, receive, send)
        return await self.app(scope, _counted(receive, limit), send)


def _counted(receive: Receive, limit: int) -> Receive:
    received = 0

    async def counting() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > limit:
            # The one exception that FastAPI lets through while it reads a body.
            raise HTTPException(TooLarge.status, _detail(limit))
        return message

    return counting


def _detail(limit: int) -> str:
    return f"The body is larger than {limit} bytes (for files: KB_MAX_UPLOAD_MB, for notes: KB_MAX_NOTE_CHARS)."
