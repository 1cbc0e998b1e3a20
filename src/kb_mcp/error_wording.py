"""Word the errors of the engine and the gateway in one line that helps an agent."""

import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from typing import Final, ParamSpec, TypeVar

from fastmcp.exceptions import ToolError

from kb.api.errors import KbError, NoEngine, NotFound, Unauthorized
from kb_mcp.tools.rendering import QUOTES_NOTICE, fence_for, fenced_notice, quoted, visible

NOT_FOUND_HINTS: Final = {
    "version": "kb_history(document_id=…) lists the versions.",
    "document_id": "Find its id with kb_search or kb_list.",
    "document_ids": "Find their ids with kb_search or kb_list.",
    "replaces": "Find its id with kb_search or kb_list.",
    "job_id": "kb_jobs without job_id lists the latest jobs.",
}
"""Hints by the argument that was not found."""

NEAREST_LINES: Final = "nearest_lines"
HEADINGS: Final = "headings"
"""The fields of an error with text from documents."""

IN_BIN: Final = re.compile(
    r"(?<=Document )(\d{1,20}) has been in the bin since (\S{10})T(\S{5})[^; ]{0,20}; it can be restored\."
)
BROUGHT_BACK: Final = r"\1 has been in the bin since \2 \3 UTC; kb_undo(document_id=\1) restores it."

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def translate_errors(
    tool: Callable[Arguments, Awaitable[Result]],
    translate: Callable[[KbError, Mapping[str, object]], Exception] | None = None,
) -> Callable[Arguments, Awaitable[Result]]:
    """Make a tool raise `ToolError` for errors of the engine or the gateway, which are logged only as information.

    Args:
        tool: a tool, or a function that reads a resource.
        translate: creates a different error.
    """

    @wraps(tool)
    async def wrapped(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        try:
            return await tool(*args, **kwargs)
        except KbError as error:
            raise (translate or tool_error)(error, kwargs) from error

    return wrapped


def tool_error(error: KbError, arguments: Mapping[str, object]) -> ToolError:
    return ToolError(error_text(error, arguments), log_level=logging.INFO)


def error_text(error: KbError, arguments: Mapping[str, object]) -> str:
    """Return the field, the problem and the remedy in one line.

    Args:
        error: an error of the engine or the gateway.
        arguments: the arguments of the call, to name the wrong one.
    """
    if error.status == Unauthorized.status:
        return "The engine refuses the gateway's key. Ask the user to set the gateway's KB_API_KEY to the engine's."
    if isinstance(error, NoEngine):
        return f"{one_line(error.detail)} Ask the user to set the gateway's KB_ENGINE_URL to the engine's URL."
    if type(error) is KbError:
        return one_line(f"{error.detail} Try once more. If it fails again, ask the user to look at the engine's log.")
    if isinstance(error, NotFound):
        if IN_BIN.search(error.detail):
            field = "document_id: " if arguments.get("document_id") else ""
            return field + IN_BIN.sub(BROUGHT_BACK, error.detail)
        for field, hint in NOT_FOUND_HINTS.items():
            if arguments.get(field) and (field != "version" or " version " in error.detail):
                return f"{field}: {one_line(error.detail).removeprefix(f'{field}: ')} {hint}"
    return one_line(error.detail) + _excerpts(error)


def _excerpts(error: KbError) -> str:
    """Return texts from documents to choose from: lines verbatim, to be copied, and headings in quotation marks."""
    if lines := _texts(error, NEAREST_LINES):
        begin, end = fence_for(lines)
        return "\n".join([f" {fenced_notice(begin, end)} Similar lines:", begin, *map(visible, lines), end])
    if headings := [quoted(text) for text in _texts(error, HEADINGS)]:
        those = "headings" if f" {len(headings)} headings" in error.detail else f"first {len(headings)}"
        return f" {QUOTES_NOTICE} The {those} are: {', '.join(headings)}."
    return ""


def _texts(error: KbError, field: str) -> list[str]:
    texts = error.extra.get(field)
    return [str(text) for text in texts] if isinstance(texts, list) else []


def one_line(text: str) -> str:
    return " ".join(text.split())
