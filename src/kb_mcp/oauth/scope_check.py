"""A call that a token may not make, although its key may: the client can then ask for more (RFC 6750, 3.1)."""

import json

from fastmcp import FastMCP
from starlette.types import ASGIApp, Receive, Scope, Send

from kb.api.errors import Forbidden
from kb.asgi.bearer import CALLER
from kb.asgi.error_replies import problem
from kb_mcp.auth import TokenCaller
from kb_mcp.middleware.body_limit import replayed


class ScopeCheck:
    """Answers 403 to calls of tools that write, if a token lacks the scope. Expects a whole body, see `BoundedBody`.

    Args:
        app: handles other requests.
        server: has the tools.
        challenge: tells programs how to get access.
    """

    def __init__(self, app: ASGIApp, server: FastMCP, challenge: str) -> None:
        self._app = app
        self._server = server
        self._challenge = challenge

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller = scope.get(CALLER)
        if not isinstance(caller, TokenCaller) or not caller.could_write:
            return await self._app(scope, receive, send)
        first = await receive()
        if await self._writes(first.get("body", b"")):
            error = Forbidden("This access only lets the program read. Connect the program again, and let it write.")
            header = {"WWW-Authenticate": f'{self._challenge}, error="insufficient_scope"'}
            return await problem(error, header)(scope, receive, send)
        return await self._app(scope, replayed(first, receive), send)

    async def _writes(self, body: bytes) -> bool:
        try:
            message = json.loads(body)
            name = message["params"]["name"] if message["method"] == "tools/call" else None
        except (ValueError, TypeError, KeyError):
            return False
        tool = await self._server.get_tool(name) if isinstance(name, str) else None
        return tool is not None and tool.annotations is not None and not tool.annotations.read_only_hint
