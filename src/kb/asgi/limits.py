"""How large a request body may be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException

from kb.api.errors import TooLarge
from kb.asgi.problem import problem

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


class BodyLimitMiddleware:
    """Refuses larger bodies with 413, before they are read where their length is announced.

    Args:
        form_path: the one address that takes forms.
        max_form: the most bytes of a form sent there, which goes to disk.
        max_other: the most bytes of any other body, which is held in memory.
    """

    def __init__(self, app: ASGIApp, form_path: str, max_form: int, max_other: int) -> None:
        self.app = app
        self.form_path = form_path
        self.max_form = max_form
        self.max_other = max_other

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its bytes counted."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        headers = Headers(scope=scope)
        is_form = scope["path"] == self.form_path and headers.get("content-type", "").lower().startswith("multipart/")
        limit = self.max_form if is_form else self.max_other
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
    return f"The body is larger than {limit} bytes (for files: KB_MAX_UPLOAD_MB)."
