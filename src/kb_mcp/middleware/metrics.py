"""What the gateway lets be seen of its work: each call's time, span and line in the log."""

from __future__ import annotations

import logging
from time import perf_counter
from typing import TYPE_CHECKING, Final

from fastmcp.exceptions import NotFoundError
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from opentelemetry.trace import SpanKind
from prometheus_client import CollectorRegistry, Histogram

from kb.telemetry.tracing import span_of

if TYPE_CHECKING:
    from fastmcp.tools import ToolResult
    from mcp_types import CallToolRequestParams
    from opentelemetry.trace import Tracer

logger = logging.getLogger(__name__)

SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
OTHER: Final = "(other)"
"""What tools are called that there are not."""


class WatchedCalls(Middleware):
    """Around every tool call. Neither arguments nor answers are looked at."""

    def __init__(self, registry: CollectorRegistry, tracer: Tracer) -> None:
        self._tracer = tracer
        self._seconds = Histogram(
            "kb_mcp_call_seconds", "Time of a tool call.", ["tool", "outcome"], registry=registry, buckets=SECONDS
        )

    async def on_call_tool(
        self,
        context: MiddlewareContext[CallToolRequestParams],
        call_next: CallNext[CallToolRequestParams, ToolResult],
    ) -> ToolResult:
        """Run the tool."""
        tool, outcome, begun = context.message.name, "error", perf_counter()
        with span_of(self._tracer, "tools/call", SpanKind.SERVER, attributes={"mcp.method.name": "tools/call"}) as span:
            try:
                result = await call_next(context)
                outcome = "ok"
                return result
            except NotFoundError:
                tool = OTHER
                raise
            finally:
                seconds = perf_counter() - begun
                span.update_name(f"tools/call {tool}")
                span.set_attribute("gen_ai.tool.name", tool)
                self._seconds.labels(tool, outcome).observe(seconds)
                logger.info("call", extra={"tool": tool, "outcome": outcome, "ms": round(seconds * 1000, 2)})
