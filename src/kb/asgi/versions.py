"""Engine and client tell each other their versions (requirement S-9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders

from kb import __version__
from kb.api.errors import WrongVersion
from kb.api.versions import HEADER, client_mismatch
from kb.asgi.problem import problem

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


class VersionMiddleware:
    """Says this engine's version in every answer, and refuses clients that are too old to understand it."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 426, or pass the request on."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)

        async def send_version(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[HEADER] = __version__
            await send(message)

        if reason := client_mismatch(Headers(scope=scope).get("user-agent", "")):
            return await problem(WrongVersion(reason))(scope, receive, send_version)
        return await self.app(scope, receive, send_version)
