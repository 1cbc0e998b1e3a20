"""Report errors in arguments in one line that names the argument."""

import logging
import re
from collections.abc import Sequence
from difflib import get_close_matches
from inspect import signature
from typing import Final

from fastmcp.exceptions import NotFoundError, ToolError, ValidationError
from fastmcp.prompts import PromptResult
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.tools import FunctionTool, ToolResult
from mcp_types import GetPromptRequestParams
from pydantic import ValidationError as PydanticError
from pydantic_core import ErrorDetails

from kb.api.errors import KbError
from kb.client.client import JSON, EngineClient
from kb_mcp.error_wording import one_line
from kb_mcp.middleware import NextTool, ToolCall
from kb_mcp.middleware.arguments import parse_id
from kb_mcp.middleware.offered_surface import offered, reading_only
from kb_mcp.server import UNLISTED
from kb_mcp.tools.path_hints import MOST_NAMED, documents_called
from kb_mcp.tools.rendering import QUOTES_NOTICE, named

MAX_NAME: Final = 100
"""Maximum length of an unknown parameter's name in an error."""

UNKNOWN_PARAMETER: Final = "unexpected_keyword_argument"
MISSING: Final = "missing_argument"
MAX_FIELDS: Final = 5
MESSAGES: Final = {
    "list_type": 'must be a list, such as ["work", "home"]',
    "int_parsing": "must be a whole number, such as 131.",
    "int_from_float": "must be a whole number, such as 131.",
    "int_type": "must be a whole number, such as 131.",
    "bool_parsing": "must be true or false.",
    "bool_type": "must be true or false.",
    "string_type": "must be a string.",
    "string_too_short": "is empty. Enter at least one word.",
    "greater_than_equal": "must be at least {ge}.",
    "less_than_equal": "must be at most {le}.",
    "literal_error": "must be {expected}.",
}
"""Messages by pydantic's error type, used in place of its own, with its values."""

SYNONYMS: Final = (
    dict.fromkeys(("find", "query", "ask", "lookup", "recall", "retrieve", "grep", "search_notes"), "search")
    | dict.fromkeys(("read", "open", "fetch", "show", "view", "document"), "get")
    | dict.fromkeys(("browse", "ls", "index", "tags"), "list")
    | dict.fromkeys(("versions", "log", "diff"), "history")
)
"""Names that agents try for tools that read."""

DOCUMENT_PARAMETERS: Final = {"document_id", "replaces"}
"""Parameters that take the id of a document."""


class ArgumentErrors(Middleware):
    """Reports the errors in a call, with the correct form.

    Args:
        engine: finds documents by name.
    """

    def __init__(self, engine: EngineClient) -> None:
        self._engine = engine

    async def on_call_tool(self, context: ToolCall, call_next: NextTool) -> ToolResult:
        try:
            return await call_next(context)
        except (ValidationError, PydanticError) as error:
            text = await _error_text(error, context)
            name = text.partition(": ")[0]
            if name in DOCUMENT_PARAMETERS:
                text += await self._documents_called((context.message.arguments or {}).get(name))
            raise ToolError(text) from error
        except NotFoundError as error:
            raise ToolError(await _unknown_tool(context)) from error

    async def _documents_called(self, name: object) -> str:
        """Return a hint with the documents that a name given as an id may mean, or with the id in a URL."""
        if isinstance(name, list) and len(name) == 1:
            [name] = name
        if not isinstance(name, str) or not re.search(r"[^\W\d]", name) or len(name) > MAX_NAME * 2:
            return ""
        if (given := parse_id(name)) != name:
            return f" Pass only the number: {given}."
        try:
            documents = await documents_called(self._engine, name) or await self._titled(name)
        except KbError:
            return ""
        return (
            f" {QUOTES_NOTICE} Did you mean one of these: {named(documents)}?"
            if documents
            else " Find its id with kb_search."
        )

    async def _titled(self, name: str) -> list[JSON]:
        """Return the documents with a title, or failing that, documents that contain its words."""
        reply = await self._engine.search(query=name, fts_only=True, group_by="document", top=MOST_NAMED)
        results = [result | {"id": result["document_id"]} for result in reply["results"]]
        return [result for result in results if result["title"].casefold() == name.strip().casefold()] or results

    async def on_get_prompt(
        self,
        context: MiddlewareContext[GetPromptRequestParams],
        call_next: CallNext[GetPromptRequestParams, PromptResult],
    ) -> PromptResult:
        if refusal := await _missing_of_prompt(context):  # FastMCP would only log it, with a traceback
            raise ValidationError(refusal, log_level=logging.INFO)
        return await call_next(context)


async def _error_text(error: Exception, context: ToolCall) -> str:
    cause = error if isinstance(error, PydanticError) else error.__cause__
    if not isinstance(cause, PydanticError):
        return one_line(str(error))
    errors = cause.errors(include_input=False, include_url=False)
    unknown = [_field(problem) for problem in errors if problem["type"] == UNKNOWN_PARAMETER]
    missing = [_field(problem) for problem in errors if problem["type"] == MISSING]
    if unknown or missing:
        said = [f"{', '.join(unknown[:MAX_FIELDS])}: no such parameter." if unknown else ""]
        said += [await _elsewhere(context, name) for name in unknown[:MAX_FIELDS]]
        said += [f"{', '.join(missing)}: missing." if missing else "", await _parameters_text(context, missing)]
        return " ".join(filter(None, said))
    first = errors[0]
    own = MESSAGES.get(first["type"])
    message = own.format_map(first.get("ctx", {})) if own else first["msg"].removeprefix("Value error, ")
    return one_line(f"{_field(first)}: {message}")


def _field(error: ErrorDetails) -> str:
    return ".".join(str(part)[:MAX_NAME] for part in error["loc"])


async def _elsewhere(context: ToolCall, parameter: str) -> str:
    """Return the only tool that takes a parameter; empty if several or none do."""
    server = context.fastmcp_context.fastmcp if context.fastmcp_context else None
    tools = await server.list_tools(run_middleware=False) if server else []
    names = [tool.name for tool in tools if parameter in tool.parameters["properties"]]
    return f"{names[0]} takes {parameter}." if len(names) == 1 else ""


async def _parameters_text(context: ToolCall, missing: Sequence[str]) -> str:
    name = context.message.name
    tool = await context.fastmcp_context.fastmcp.get_tool(name) if context.fastmcp_context else None
    if tool is None:
        return ""
    required = tool.parameters.get("required", ())
    known = {*tool.parameters["properties"], *UNLISTED.get(name, ())}
    order = signature(tool.fn).parameters if isinstance(tool, FunctionTool) else tool.parameters["properties"]
    names = [
        f"{parameter} (required)" if parameter in required and missing else parameter
        for parameter in order
        if parameter in known
    ]
    return f"{name} takes {', '.join(names) or 'no parameters'}."


async def _missing_of_prompt(context: MiddlewareContext[GetPromptRequestParams]) -> str:
    """Return the missing and the accepted arguments of a prompt; empty if none are missing."""
    name, given = context.message.name, context.message.arguments or {}
    prompt = await context.fastmcp_context.fastmcp.get_prompt(name) if context.fastmcp_context else None
    arguments = prompt.arguments or () if prompt else ()
    missing = [argument.name for argument in arguments if argument.required and argument.name not in given]
    if not missing:
        return ""
    names = [f"{argument.name} (required)" if argument.required else argument.name for argument in arguments]
    return f"{', '.join(missing)}: missing. {name} takes {', '.join(names)}."


async def _unknown_tool(context: ToolCall) -> str:
    """Return the tools that exist. A guess names only a tool that reads: a wrong one must change nothing."""
    name = context.message.name
    server = context.fastmcp_context.fastmcp if context.fastmcp_context else None
    tools = offered(await server.list_tools(run_middleware=False)) if server else []
    reading = {tool.name.removeprefix("kb_"): tool.name for tool in reading_only(tools)}
    word = name[:MAX_NAME].lower().removeprefix("kb_")
    near = [SYNONYMS[word]] if word in SYNONYMS else get_close_matches(word, reading, 1, 0.6)
    meant = f" Did you mean {reading[near[0]]}?" if near and near[0] in reading else ""
    return f"Unknown tool: {name[:MAX_NAME]!r}.{meant} Tools: {', '.join(tool.name for tool in tools)}."
