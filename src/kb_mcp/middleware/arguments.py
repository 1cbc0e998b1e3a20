"""Arguments as clients mean them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from pydantic_core import from_json

if TYPE_CHECKING:
    from fastmcp.tools import ToolResult
    from mcp_types import CallToolRequestParams

LIST_PARAMETERS: Final = {"tags"}
MAX_LIST: Final = 64 << 10
"""The longest text that is read as a list."""


class NormalizeArguments(Middleware):
    async def on_call_tool(
        self,
        context: MiddlewareContext[CallToolRequestParams],
        call_next: CallNext[CallToolRequestParams, ToolResult],
    ) -> ToolResult:
        arguments = normalize(context.message.arguments or {})
        message = context.message.model_copy(update={"arguments": arguments})
        return await call_next(context.copy(message=message))


def normalize(arguments: dict[str, Any]) -> dict[str, Any]:
    """Drop nulls, which strict clients send for what they leave out, and parse lists that were sent as JSON."""
    return {
        name: _parse_list(value) if name in LIST_PARAMETERS else value
        for name, value in arguments.items()
        if value is not None
    }


def _parse_list(value: object) -> object:
    if isinstance(value, str) and len(value) <= MAX_LIST and value.startswith("[") and value.endswith("]"):
        try:
            return from_json(value)
        except ValueError:
            return value
    return value
