"""The collections surface: the default tools with collections, and the tool that moves a document between them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any, Final

from fastmcp import FastMCP
from fastmcp.resources import ResourceResult
from fastmcp.server.completions import CompletionReference
from fastmcp.server.middleware import Middleware
from fastmcp.server.providers import FastMCPProvider
from fastmcp.server.transforms import GetToolNext, Transform
from fastmcp.tools import Tool, ToolResult
from fastmcp.utilities.versions import VersionSpec
from mcp_types import CompletionArgument, CompletionContext
from pydantic import Field, PrivateAttr
from pydantic_core import to_json

from kb.api.errors import Invalid, KbError, SettingError
from kb.client.client import EngineClient
from kb.settings import listed
from kb_mcp.collections.membership import (
    PREFIX,
    Membership,
    field_to_tags,
    is_collection,
    tags_to_field,
)
from kb_mcp.error_wording import tool_error
from kb_mcp.middleware import NextResource, ResourceRead
from kb_mcp.middleware.arguments import normalize
from kb_mcp.server import DESTRUCTIVE_IDEMPOTENT, create_server, register_tool
from kb_mcp.tools import compact_answers, rendering
from kb_mcp.tools.documents import DocumentId
from kb_mcp.tools.prompts import Completer, create_completer
from kb_mcp.tools.resources import JSON_TYPE
from kb_mcp.tools.token_budget import tool_result, with_notice

SEARCH: Final = "kb_search"
SET_COLLECTION: Final = "kb_set_collection"
ADDING: Final = ("kb_addnote", "kb_upload_start")
SUBMITTING: Final = ("kb_addnote", "kb_upload_start", "kb_upload_finish")
"""The tools that may answer with a job."""

CHANGING: Final = ("tags_add", "tags_remove")
"""The parameters that change tags."""

CONVENTION: Final = (
    " Each document is in one collection ({names}), stored as the tag collection:<name> and shown as `collection`."
)
ON_SEARCH: Final = " To search only one collection, pass collection."
ON_ADDING: Final = " Without collection, the document goes to {default}."


class CollectionTool(Tool):
    """A tool of the default surface, with collections."""

    _inner: Tool = PrivateAttr()
    _membership: Membership = PrivateAttr()

    @classmethod
    def wrap(cls, inner: Tool, membership: Membership) -> CollectionTool:
        tool = cls(
            name=inner.name,
            title=inner.title,
            description=(inner.description or "") + description_suffix(inner.name, membership.names),
            parameters=parameters_with_collection(inner.name, inner.parameters, membership.names),
            annotations=inner.annotations,
        )
        tool._inner, tool._membership = inner, membership
        return tool

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        """Run the inner tool. `collection` is checked here: FastMCP checks only the parameters of the inner tool."""
        try:
            given = self._with_tag(normalize(self.name, arguments))
            result = await self._inner.run(given)
            data = result.structured_content or {}
            if self.name in SUBMITTING and "job_id" in data:
                data |= await self._membership.settle(data["job_id"])
            if self.name == SEARCH and not data.get("results"):
                data |= await self._empty(given.get("tags", []))
        except KbError as error:
            raise tool_error(error, arguments) from error
        converted = tags_to_field(data)
        text = rendering.render(self.name, field_to_tags(converted))
        return tool_result(converted, text)

    async def _empty(self, tags: list[str]) -> dict[str, str]:
        """Return a field for the answer if the collection is empty."""
        if tags and is_collection(tags[0]) and await self._membership.is_empty(tags[0]):
            return {"rest": f"The collection {tags[0].removeprefix(PREFIX)} is empty."}
        return {}

    def _with_tag(self, arguments: dict[str, Any]) -> dict[str, Any]:
        refuse_collections(arguments)
        tags = arguments.get("tags", [])
        if self.name not in (*ADDING, SEARCH) or not isinstance(tags, list):
            return arguments
        name = arguments.pop("collection", "")
        if self.name in ADDING:
            if any(is_collection(tag) for tag in tags):
                raise Invalid(f"tags: to set the collection, use the collection parameter, not a tag {PREFIX}<name>.")
            name = self._membership.default if name == "" else name
        return arguments if name == "" else arguments | {"tags": [self._membership.tag(name), *tags]}


def refuse_collections(arguments: dict[str, Any]) -> None:
    """Refuse to change the collection through tags, because a document has only one (requirement C-3).

    Raises:
        Invalid: a tag to add or to remove is a collection.
    """
    for name in CHANGING:
        tags = arguments.get(name)
        if any(map(is_collection, tags if isinstance(tags, list) else [])):
            raise Invalid(f"{name}: change the collection with {SET_COLLECTION}, not with a tag {PREFIX}<name>.")


class CollectionTransform(Transform):
    """Wraps every tool of a provider."""

    def __init__(self, membership: Membership) -> None:
        super().__init__()
        self._membership = membership

    async def list_tools(self, tools: Sequence[Tool]) -> Sequence[Tool]:
        return [CollectionTool.wrap(tool, self._membership) for tool in tools]

    async def get_tool(self, name: str, call_next: GetToolNext, *, version: VersionSpec | None = None) -> Tool | None:
        tool = await call_next(name, version=version)
        return CollectionTool.wrap(tool, self._membership) if tool else None


def set_collection_tool(membership: Membership) -> Callable[..., Awaitable[ToolResult]]:
    """Return the tool that only this surface has. Agents read its docstring as its description."""

    async def kb_set_collection(
        document_id: DocumentId,
        collection: Annotated[str, Field(description="Default: out of all collections.")] = "",
    ) -> ToolResult:
        """Move a document to another collection, or out of all collections.

        Use it if a document is in the wrong collection. For a new document, pass collection to kb_addnote or
        kb_upload_start instead. Nothing else changes. Returns the document, without its text.
        """
        tag = membership.tag(collection) if collection else None
        return tool_result(with_notice(compact_answers.document(await membership.assign(document_id, tag))))

    return kb_set_collection


def parameters_with_collection(tool: str, parameters: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    if tool not in (*ADDING, SEARCH):
        return parameters
    default = {"default": names[0]} if tool in ADDING else {}
    collection = {"type": "string", "enum": list(names), **default}
    return parameters | {"properties": parameters["properties"] | {"collection": collection}}


def description_suffix(tool: str, names: Sequence[str]) -> str:
    """Return the addition of this surface to the description of a tool (requirement C-6)."""
    uses = {SEARCH: ON_SEARCH, SET_COLLECTION: ""} | dict.fromkeys(ADDING, ON_ADDING.format(default=names[0]))
    return CONVENTION.format(names=", ".join(names)) + uses[tool] if tool in uses else ""


class CollectionResources(Middleware):
    """Shows the collection in documents that are read as resources."""

    async def on_read_resource(self, context: ResourceRead, call_next: NextResource) -> ResourceResult:
        result = await call_next(context)
        for content in result.contents:
            if content.mime_type == JSON_TYPE:
                content.content = to_json(tags_to_field(json.loads(content.content))).decode()
        return result


def create_collections_server(
    core: FastMCP,
    engine: EngineClient,
    names: Sequence[str],
    middleware: Sequence[Middleware],
    text_answers: Middleware,
) -> FastMCP:
    """Return the server of this surface.

    Args:
        core: the default surface.
        middleware: the middleware of the default surface, which calls here also pass.
        text_answers: decides about the form of the answers of this surface.
    """
    membership = Membership(engine, names)
    own = create_server(middleware)
    register_tool(own, set_collection_tool(membership), "Move to a collection", "write", DESTRUCTIVE_IDEMPOTENT)
    server = create_server([text_answers, CollectionResources()])
    for provider in (FastMCPProvider(core), FastMCPProvider(own)):
        server.add_provider(provider.wrap_transform(CollectionTransform(membership)))
    server.add_completion_handler(_without_collections(create_completer(engine)))
    return server


def collection_names(setting: str) -> list[str]:
    """Return the names of the collections.

    Raises:
        SettingError: the setting contains no name.
    """
    names = listed(setting)
    if not names:
        raise SettingError("KB_MCP_COLLECTION_NAMES: contains no name")
    return names


def _without_collections(complete: Completer) -> Completer:
    async def wrapped(
        reference: CompletionReference, argument: CompletionArgument, context: CompletionContext | None
    ) -> list[str]:
        values = await complete(reference, argument, context)
        return [value for value in values if PREFIX not in value]

    return wrapped
