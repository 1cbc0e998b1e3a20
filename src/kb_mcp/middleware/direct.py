"""The shortest way through middleware for a tool call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastmcp.server.middleware import Middleware
from mcp_types import CallToolRequestParams

if TYPE_CHECKING:
    from fastmcp.server.middleware import CallNext, MiddlewareContext


class DirectMiddleware(Middleware):
    """Takes a tool call straight to `on_call_tool`; FastMCP would ask `on_message` and `on_request` first.

    A subclass must not have those.
    """

    async def __call__(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:  # noqa: ANN401 - the protocol's
        """Run the hooks that the message has."""
        # Not by the method: a call that is malformed comes by with what it was sent as.
        if isinstance(context.message, CallToolRequestParams):
            return await self.on_call_tool(context, call_next)
        return await super().__call__(context, call_next)
