"""Normalize arguments to the meaning that clients intend."""

import re
from contextlib import suppress
from typing import Any, Final

from fastmcp.server.middleware import Middleware
from fastmcp.tools import ToolResult
from pydantic_core import from_json

from kb_mcp.middleware import NextTool, ToolCall

LIST_PARAMETERS: Final = {"tags", "tag_any", "tag_not", "tags_add", "tags_remove", "document_ids"}
ID_PARAMETERS: Final = {"document_id", "chunk_id", "job_id", "replaces"}
MAX_LIST: Final = 64 << 10
"""Maximum length of a text that is parsed as a list."""

NAMED_ID: Final = re.compile(
    r"(?:kb://documents/(\d{1,18})(?:[/?].*)?"
    r"|>*\[?(?:(?:document|note|chunk|job) )?(\d{1,18})(?:, chunk \d{1,18})?\]?"
    r"|>+(?:note )?(\d{1,18}) .*"
    r"|[#\[](\d{1,18})\]?)"
)
"""An id in the form of responses and resource URLs."""

NAMED_CHUNK: Final = re.compile(r"(?:\[?(?:document|note) |>+(?:note )?)\d{1,18},? chunk (\d{1,18})(?:\]| .*)?")
PLACES: Final = ("chunk_id", "from_chunk", "page", "heading", "query")
"""Parameters of kb_get that select a position."""

NULLS: Final = ("null", ["null"])
"""What some clients send for null."""

BLANKS: Final = ("", "null")
"""What some clients send for a number, a flag or a list that they leave out."""

EXACT: Final = ("kb_delete", "kb_undo")
"""Tools that would do more without an argument that was meant."""

NAMES: Final = frozenset({"title", "source", "source_path", "thread", "date", "heading"})
"""Optional texts that are not meant if they are null."""

FILTERS: Final = NAMES | {
    *("tags", "tag_any", "tag_not", "doc_type", "lang", "source_prefix", "after", "before", "updated_after", "cursor"),
}
CHOICES: Final = frozenset({"sort", "group_by", "status"})
JSON_STARTS: Final = ("[", "{")


class ArgumentNormalizer(Middleware):
    async def on_call_tool(self, context: ToolCall, call_next: NextTool) -> ToolResult:
        arguments = normalize(context.message.name, await given(context))
        message = context.message.model_copy(update={"arguments": arguments})
        return await call_next(context.copy(message=message))


async def given(context: ToolCall) -> dict[str, Any]:
    """Return the arguments without blanks that stand for an omitted number, flag or list."""
    name, arguments = context.message.name, context.message.arguments or {}
    blank = [each for each, value in arguments.items() if value in BLANKS]
    if not blank or name in EXACT or context.fastmcp_context is None:
        return arguments
    tool = await context.fastmcp_context.fastmcp.get_tool(name)
    schema = tool.parameters if tool else {}
    texts = {each for each, form in schema.get("properties", {}).items() if form.get("type") == "string"}
    needed = texts.union(schema.get("required", ()))
    return {each: value for each, value in arguments.items() if each in needed or value not in BLANKS}


def normalize(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Drop nulls, which strict clients send for omitted values, and parse lists and ids that were sent as texts.

    For kb_delete, an id must be an integer or a text of digits only.
    """
    optional = FILTERS if tool in ("kb_search", "kb_list") else NAMES
    normal = {
        name: value
        for name, value in arguments.items()
        if value is not None and not (name in optional and value in NULLS)
    }
    for name in LIST_PARAMETERS & normal.keys():
        normal[name] = _parse_list(normal[name])
    if tool == "kb_get" and isinstance(several := normal.get("document_id"), list) and len(several) > 1:
        normal["document_ids"] = normal.pop("document_id")
    if isinstance(ids := normal.get("document_ids"), list):
        normal["document_ids"] = [parse_id(value) for value in ids]
    if tool == "kb_get" and (chunk := _named_chunk(normal.get("document_id"))) and not any(map(normal.get, PLACES)):
        normal["chunk_id"] = chunk
    for name in ID_PARAMETERS & normal.keys():
        normal[name] = _exact_id(normal[name]) if tool == "kb_delete" else parse_id(_only(normal[name]))
    for name in CHOICES & normal.keys():
        normal[name] = normal[name].lower() if isinstance(normal[name], str) else normal[name]
    if tool == "kb_list" and normal.get("sort") in ("recent", "newest"):
        normal["sort"] = "changed"
    if normal.get("group_by") == "":
        del normal["group_by"]
    if type(normal.get("cursor")) is int:
        normal["cursor"] = str(normal["cursor"])
    return normal


def _only(value: object) -> object:
    """Return the only value of a list; anything else unchanged."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _named_chunk(value: object) -> str:
    """Return the chunk id in the heading of a search result."""
    match = NAMED_CHUNK.fullmatch(value.strip()) if isinstance(value, str) and len(value) < MAX_LIST else None
    return match[1] if match else ""


def _parse_list(value: object) -> object:
    """Return the list in a text: JSON, or words separated by commas. In a list, commas around words are removed."""
    if isinstance(value, list):
        return [_without_commas(item) for item in value]
    if not isinstance(value, str) or len(value) > MAX_LIST:
        return value
    if value.startswith(JSON_STARTS) or value.strip() in ("null", ""):
        try:
            parsed = from_json(value)
        except ValueError:
            return value
        return value if parsed is None else _parse_list(parsed) if isinstance(parsed, list) else parsed
    if value.startswith('"'):
        with suppress(ValueError):
            return from_json(f"[{value}]")
    return [word.strip() for word in value.split(",") if word.strip()]


def _without_commas(word: object) -> object:
    """Return a word without surrounding commas; a word of only commas unchanged, to be refused later."""
    return (word.strip(", ") or word) if isinstance(word, str) else word


def parse_id(value: object) -> object:
    """Return the digits of an id in the form of responses and URLs; anything else unchanged."""
    match = NAMED_ID.fullmatch(value.strip()) if isinstance(value, str) and len(value) < MAX_LIST else None
    return next(filter(None, match.groups())) if match else value


def _exact_id(value: object) -> object:
    """Return an exact id, or any other value in a list, which is refused: a rounded number must delete nothing."""
    is_exact = not isinstance(value, str | float) or (isinstance(value, str) and value.isascii() and value.isdecimal())
    return value if is_exact else [value]
