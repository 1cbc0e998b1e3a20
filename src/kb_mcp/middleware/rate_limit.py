"""A limit on the calls of each key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastmcp.exceptions import ResourceError, ToolError
from fastmcp.server.dependencies import get_http_request
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext

from kb.asgi.bearer import CALLER

if TYPE_CHECKING:
    from fastmcp.resources import ResourceResult
    from fastmcp.tools import ToolResult
    from mcp_types import CallToolRequestParams, ReadResourceRequestParams

    from kb.asgi.rate import GCRA


class RateLimit(Middleware):
    """Refuses tool calls and reads of documents above the limit."""

    def __init__(self, limiter: GCRA) -> None:
        self._limiter = limiter

    async def on_call_tool(
        self,
        context: MiddlewareContext[CallToolRequestParams],
        call_next: CallNext[CallToolRequestParams, ToolResult],
    ) -> ToolResult:
        if refusal := self._refusal():
            raise ToolError(refusal)
        return await call_next(context)

    async def on_read_resource(
        self,
        context: MiddlewareContext[ReadResourceRequestParams],
        call_next: CallNext[ReadResourceRequestParams, ResourceResult],
    ) -> ResourceResult:
        if refusal := self._refusal():
            raise ResourceError(refusal)
        return await call_next(context)

    def _refusal(self) -> str:
        """Count a call of this request's key. Return why it is refused, or nothing."""
        wait = self._limiter.acquire(getattr(get_http_request().scope.get(CALLER), "name", ""))
        if not wait:
            return ""
        return (
            f"Too many calls: this key has {self._limiter.per_minute} a minute (KB_MCP_CALLS_PER_MINUTE)."
            f" Wait {wait:.1f} seconds, then call again."
        )
