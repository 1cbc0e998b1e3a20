"""What happens around every tool call: arguments are put in order, errors become one line."""

from __future__ import annotations

import json
import logging
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from fastmcp.exceptions import ToolError, ValidationError
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from pydantic import ValidationError as InvalidArguments

from kb.contract.errors import KbError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from fastmcp.tools import ToolResult
    from mcp_types import CallToolRequestParams

LISTS = {"tags"}
"""The parameters that are lists."""

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


class PlainCalls(Middleware):
    """Takes what clients send instead of a left-out or a list argument; says errors in a line an agent can act on."""

    async def on_call_tool(
        self,
        context: MiddlewareContext[CallToolRequestParams],
        call_next: CallNext[CallToolRequestParams, ToolResult],
    ) -> ToolResult:
        """Run the tool."""
        arguments = in_order(context.message.arguments or {})
        message = context.message.model_copy(update={"arguments": arguments})
        try:
            return await call_next(context.copy(message=message))
        except (ValidationError, InvalidArguments) as error:
            raise ToolError(_one_line(error)) from error


def in_plain_words(tool: Callable[Arguments, Awaitable[Answer]]) -> Callable[Arguments, Awaitable[Answer]]:
    """The tool, with the engine's and our own refusals said to the agent; they are no faults of the gateway."""

    @wraps(tool)
    async def wrapped(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
        try:
            return await tool(*args, **kwargs)
        except KbError as error:
            raise ToolError(error.detail, log_level=logging.INFO) from error

    return wrapped


def in_order(arguments: dict[str, Any]) -> dict[str, Any]:
    """Arguments without nulls, which strict clients send for what they leave out, and with lists sent as JSON read."""
    return {name: _list(value) if name in LISTS else value for name, value in arguments.items() if value is not None}


def _list(value: object) -> object:
    if isinstance(value, str) and value.startswith("[") and value.endswith("]"):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def _one_line(error: Exception) -> str:
    cause = error if isinstance(error, InvalidArguments) else error.__cause__
    if not isinstance(cause, InvalidArguments):
        return str(error)
    first = cause.errors(include_input=False, include_url=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
