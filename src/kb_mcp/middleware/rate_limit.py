"""A limit on the calls of each key."""

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


class GCRA:
    """Limits calls by the generic cell rate algorithm: a minute's calls may come at once, or spread over it.

    Args:
        per_minute: calls of each caller.
        clock: monotonic seconds.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.per_minute = per_minute
        self._interval = 60 / per_minute
        self._clock = clock
        self._arrivals: dict[str, float] = {}
        """Each caller's theoretical arrival time: when all of its calls are free again."""

    def acquire(self, caller: str) -> float:
        """Count a call. Return 0 if it is allowed, or else the seconds until one is."""
        now = self._clock()
        arrival = max(self._arrivals.get(caller, now), now) + self._interval
        wait = arrival - now - 60
        if wait > 1e-6:
            return wait
        self._arrivals[caller] = arrival
        return 0


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
        wait = self._limiter.acquire(get_http_request().scope.get(CALLER, ""))
        if not wait:
            return ""
        return (
            f"Too many calls: this key has {self._limiter.per_minute} a minute (KB_MCP_CALLS_PER_MINUTE)."
            f" Wait {wait:.1f} seconds, then call again."
        )
