"""How often a key may call."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from fastmcp.exceptions import ResourceError, ToolError
from fastmcp.server.dependencies import get_http_request
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext

from kb.asgi.bearer import CALLER

if TYPE_CHECKING:
    from collections.abc import Callable

    from fastmcp.resources import ResourceResult
    from fastmcp.tools import ToolResult
    from mcp_types import CallToolRequestParams, ReadResourceRequestParams


class Rate:
    """So many calls a minute for each caller, at once or spread over it (a generic cell rate algorithm).

    Args:
        per_minute: how many.
        clock: seconds that never go back.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.per_minute = per_minute
        self._apart = 60 / per_minute
        self._clock = clock
        self._full_again: dict[str, float] = {}

    def wait(self, caller: str) -> float:
        """Count a call; answers 0 if it may be made, or after how many seconds one may."""
        now = self._clock()
        full_again = max(self._full_again.get(caller, now), now) + self._apart
        wait = full_again - now - 60
        if wait > 1e-6:
            return wait
        self._full_again[caller] = full_again
        return 0


class RateLimit(Middleware):
    """Refuses the tool calls and the reads of documents that are too many."""

    def __init__(self, rate: Rate) -> None:
        self._rate = rate

    async def on_call_tool(
        self,
        context: MiddlewareContext[CallToolRequestParams],
        call_next: CallNext[CallToolRequestParams, ToolResult],
    ) -> ToolResult:
        """Run the tool if its caller may."""
        if refusal := self._refusal():
            raise ToolError(refusal)
        return await call_next(context)

    async def on_read_resource(
        self,
        context: MiddlewareContext[ReadResourceRequestParams],
        call_next: CallNext[ReadResourceRequestParams, ResourceResult],
    ) -> ResourceResult:
        """Read the document if its caller may."""
        if refusal := self._refusal():
            raise ResourceError(refusal)
        return await call_next(context)

    def _refusal(self) -> str:
        """Count a call of whoever calls; answers why it may not be made, if so."""
        wait = self._rate.wait(get_http_request().scope.get(CALLER, ""))
        if not wait:
            return ""
        return (
            f"Too many calls: this key has {self._rate.per_minute} a minute (KB_MCP_CALLS_PER_MINUTE)."
            f" Wait {wait:.1f} seconds, then call again."
        )
