"""What happens around every tool call: arguments are put in order, errors become one line."""

from __future__ import annotations

import logging
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from fastmcp.exceptions import PromptError, ToolError, ValidationError
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from pydantic import ValidationError as InvalidArguments
from pydantic_core import from_json

from kb.api.errors import KbError, NoEngine, NotFound, Unauthorized

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from fastmcp.prompts import PromptResult
    from fastmcp.tools import ToolResult
    from mcp_types import CallToolRequestParams, GetPromptRequestParams

LISTS = {"tags"}
"""The parameters that are lists."""

MAX_NAME = 100
"""How much of the name of a parameter that there is not is repeated."""

WAYS_ON = {
    "document_id": "Find its id with kb_search.",
    "job_id": "kb_jobs without job_id lists the latest.",
}
"""What to do when there is nothing of that number."""

UNKNOWN = "unexpected_keyword_argument"
SAID = {"list_type": 'must be a list, such as ["work", "home"]'}
"""What is said in other words than pydantic's, by its type of error."""

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
            raise ToolError(await _invalid(error, context)) from error

    async def on_get_prompt(
        self,
        context: MiddlewareContext[GetPromptRequestParams],
        call_next: CallNext[GetPromptRequestParams, PromptResult],
    ) -> PromptResult:
        """Write the prompt."""
        try:
            return await call_next(context)
        except PromptError as error:
            # FastMCP's own name for an argument that is missing.
            if isinstance(error.__cause__, ValueError):
                raise ValidationError(one_line(str(error.__cause__)), log_level=logging.INFO) from error
            raise


def in_plain_words(tool: Callable[Arguments, Awaitable[Answer]]) -> Callable[Arguments, Awaitable[Answer]]:
    """The tool, with the engine's and our own refusals said to the agent; they are no faults of the gateway."""

    @wraps(tool)
    async def wrapped(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
        try:
            return await tool(*args, **kwargs)
        except KbError as error:
            raise ToolError(said(error, kwargs), log_level=logging.INFO) from error

    return wrapped


def said(error: KbError, arguments: Mapping[str, object]) -> str:
    """The error in one line: the field, what is the case, what to do.

    Args:
        error: the engine's, or our own.
        arguments: those of the call, to name the one that names nothing.
    """
    if error.status == Unauthorized.status:
        return "The engine does not know the gateway's key: tell the user to set KB_API_KEY for the gateway, too."
    if isinstance(error, NoEngine):
        return f"{one_line(error.detail)} Tell the user to set KB_ENGINE_URL for the gateway to where the engine is."
    if type(error) is KbError:
        return one_line(f"{error.detail} Try once more; if that fails, too, tell the user: the engine's log says why.")
    if isinstance(error, NotFound):
        for field, way_on in WAYS_ON.items():
            if arguments.get(field):
                return f"{field}: {one_line(error.detail)} {way_on}"
    return one_line(error.detail)


def in_order(arguments: dict[str, Any]) -> dict[str, Any]:
    """Arguments without nulls, which strict clients send for what they leave out, and with lists sent as JSON read."""
    return {name: _list(value) if name in LISTS else value for name, value in arguments.items() if value is not None}


def one_line(text: str) -> str:
    """The text with its lines put together."""
    return " ".join(text.split())


def _list(value: object) -> object:
    if isinstance(value, str) and value.startswith("[") and value.endswith("]"):
        try:
            return from_json(value)
        except ValueError:
            return value
    return value


async def _invalid(error: Exception, context: MiddlewareContext[CallToolRequestParams]) -> str:
    cause = error if isinstance(error, InvalidArguments) else error.__cause__
    if not isinstance(cause, InvalidArguments):
        return one_line(str(error))
    first = cause.errors(include_input=False, include_url=False)[0]
    field = ".".join(str(part)[:MAX_NAME] for part in first["loc"])
    if first["type"] == UNKNOWN:
        return f"{field}: there is no such parameter. {await _taken(context)}"
    return one_line(f"{field}: {SAID.get(first['type']) or first['msg'].removeprefix('Value error, ')}")


async def _taken(context: MiddlewareContext[CallToolRequestParams]) -> str:
    """What the tool takes instead."""
    name = context.message.name
    tool = await context.fastmcp_context.fastmcp.get_tool(name) if context.fastmcp_context else None
    return f"{name} takes {', '.join(tool.parameters['properties']) or 'none'}." if tool else ""
