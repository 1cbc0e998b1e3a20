"""The shortest way through middleware for a tool call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastmcp.server.middleware import Middleware
from mcp_types import CallToolRequestParams

if TYPE_CHECKING:
    from fastmcp.server.middleware import CallNext, MiddlewareContext


class DirectMiddleware(Middleware):
    """Takes a tool call straight to its hook: no other one, of which FastMCP asks two more, may mind calls."""

    async def __call__(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:  # noqa: ANN401 - the protocol's
        """Run the hooks that the message has."""
        # Not by the method: a call that is malformed comes by with what it was sent as.
        if isinstance(context.message, CallToolRequestParams):
            return await self.on_call_tool(context, call_next)
        return await super().__call__(context, call_next)
