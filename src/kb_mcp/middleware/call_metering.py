"""Record the time, span and log line of each tool call, and limit the calls of each key."""

import logging
from time import perf_counter
from typing import Final

from fastmcp.exceptions import NotFoundError, ResourceError, ToolError
from fastmcp.resources import ResourceResult
from fastmcp.server.dependencies import get_http_request
from fastmcp.server.middleware import Middleware
from fastmcp.tools import ToolResult
from opentelemetry.trace import SpanKind, Tracer
from prometheus_client import CollectorRegistry, Histogram

from kb.asgi.bearer import CALLER
from kb.asgi.rate_limit import GCRA
from kb.telemetry.tracing import start_span
from kb_mcp.middleware import NextResource, NextTool, ResourceRead, ToolCall

logger = logging.getLogger(__name__)

BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
UNKNOWN_TOOL: Final = "(other)"
"""Replaces every unknown tool name, because clients can invent any number of them."""


class CallMetrics(Middleware):
    """Records every tool call, but neither its arguments nor its result."""

    def __init__(self, registry: CollectorRegistry, tracer: Tracer) -> None:
        self._tracer = tracer
        self._seconds = Histogram(
            "kb_mcp_call_seconds", "Time for a tool call.", ["tool", "outcome"], registry=registry, buckets=BUCKETS
        )

    async def on_call_tool(self, context: ToolCall, call_next: NextTool) -> ToolResult:
        tool, outcome, begun = context.message.name, "error", perf_counter()
        with start_span(
            self._tracer, "tools/call", SpanKind.SERVER, attributes={"mcp.method.name": "tools/call"}
        ) as span:
            try:
                result = await call_next(context)
                outcome = "ok"
                return result
            except ToolError as error:
                if isinstance(error.__cause__, NotFoundError):
                    tool = UNKNOWN_TOOL
                raise
            finally:
                seconds = perf_counter() - begun
                span.update_name(f"tools/call {tool}")
                span.set_attribute("gen_ai.tool.name", tool)
                self._seconds.labels(tool, outcome).observe(seconds)
                logger.info("call", extra={"tool": tool, "outcome": outcome, "ms": round(seconds * 1000, 2)})


class RateLimit(Middleware):
    """Refuses tool calls and reads of documents above the limit."""

    def __init__(self, limiter: GCRA) -> None:
        self._limiter = limiter

    async def on_call_tool(self, context: ToolCall, call_next: NextTool) -> ToolResult:
        if refusal := self._refusal():
            raise ToolError(refusal)
        return await call_next(context)

    async def on_read_resource(self, context: ResourceRead, call_next: NextResource) -> ResourceResult:
        if refusal := self._refusal():
            raise ResourceError(refusal)
        return await call_next(context)

    def _refusal(self) -> str:
        """Count a call of this request's key. Return the reason if it is refused, or an empty text."""
        wait = self._limiter.acquire(getattr(get_http_request().scope.get(CALLER), "name", ""))
        if not wait:
            return ""
        return (
            f"Too many calls: this key has {self._limiter.per_minute} per minute (KB_MCP_CALLS_PER_MINUTE)."
            f" Wait {wait:.1f} seconds, then call again."
        )
