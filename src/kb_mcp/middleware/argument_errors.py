"""Errors in arguments, in one line that names the argument."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from fastmcp.exceptions import PromptError, ToolError, ValidationError
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from pydantic import ValidationError as PydanticError

from kb_mcp.errors import one_line

if TYPE_CHECKING:
    from fastmcp.prompts import PromptResult
    from fastmcp.tools import ToolResult
    from mcp_types import CallToolRequestParams, GetPromptRequestParams

MAX_NAME: Final = 100
"""How much of an unknown parameter's name is repeated."""

UNKNOWN_PARAMETER: Final = "unexpected_keyword_argument"
MESSAGES: Final = {"list_type": 'must be a list, such as ["work", "home"]'}
"""By pydantic's type of error, instead of its own message."""


class FriendlyArgumentErrors(Middleware):
    async def on_call_tool(
        self,
        context: MiddlewareContext[CallToolRequestParams],
        call_next: CallNext[CallToolRequestParams, ToolResult],
    ) -> ToolResult:
        try:
            return await call_next(context)
        except (ValidationError, PydanticError) as error:
            raise ToolError(await _error_text(error, context)) from error

    async def on_get_prompt(
        self,
        context: MiddlewareContext[GetPromptRequestParams],
        call_next: CallNext[GetPromptRequestParams, PromptResult],
    ) -> PromptResult:
        try:
            return await call_next(context)
        except PromptError as error:
            # A missing argument, which FastMCP names in the cause alone.
            if isinstance(error.__cause__, ValueError):
                raise ValidationError(one_line(str(error.__cause__)), log_level=logging.INFO) from error
            raise


async def _error_text(error: Exception, context: MiddlewareContext[CallToolRequestParams]) -> str:
    cause = error if isinstance(error, PydanticError) else error.__cause__
    if not isinstance(cause, PydanticError):
        return one_line(str(error))
    first = cause.errors(include_input=False, include_url=False)[0]
    field = ".".join(str(part)[:MAX_NAME] for part in first["loc"])
    if first["type"] == UNKNOWN_PARAMETER:
        return f"{field}: there is no such parameter. {await _parameters_text(context)}"
    return one_line(f"{field}: {MESSAGES.get(first['type']) or first['msg'].removeprefix('Value error, ')}")


async def _parameters_text(context: MiddlewareContext[CallToolRequestParams]) -> str:
    name = context.message.name
    tool = await context.fastmcp_context.fastmcp.get_tool(name) if context.fastmcp_context else None
    return f"{name} takes {', '.join(tool.parameters['properties']) or 'none'}." if tool else ""
