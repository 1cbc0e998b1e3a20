"""The collections surface (requirements C-1 to C-6): the default tools for agents that think in collections.

A collection is a tag `collection:<name>`, of which a document has one. This surface wraps the default one, turns the
parameter `collection` into the tag on the way in, and the tag into a field `collection` on the way out.
"""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING, Annotated, Any

from fastmcp.exceptions import ToolError
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.server.providers import FastMCPProvider
from fastmcp.server.transforms import GetToolNext, Transform
from fastmcp.tools import Tool, ToolResult
from pydantic import Field, PrivateAttr
from pydantic_core import to_json

from kb.api.errors import Invalid, KbError, SettingError
from kb.api.models import ENDED, Document
from kb.settings import listed
from kb_mcp.middleware.arguments import in_order, said
from kb_mcp.server import REPLACES, add_tool, new_server
from kb_mcp.tools import schemas
from kb_mcp.tools.answers import answer
from kb_mcp.tools.documents import DocumentId
from kb_mcp.tools.prompts import completer
from kb_mcp.tools.resources import JSON_TYPE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fastmcp import FastMCP
    from fastmcp.resources import ResourceResult
    from fastmcp.server.completions import CompletionReference
    from fastmcp.utilities.versions import VersionSpec
    from mcp_types import CompletionArgument, CompletionContext, ReadResourceRequestParams

    from kb.client.client import JSON, EngineClient
    from kb_mcp.tools.prompts import Complete

logger = logging.getLogger(__name__)

PREFIX = "collection:"

CONVENTION = (
    " A document is in one collection ({names}). It is kept as the tag collection:<name> and shown as `collection`."
)
ON_SEARCH = " Give collection to search only there."
ON_ADDING = " It goes to the collection {default} unless you give another."
SEARCH, SET = "kb_search", "kb_set_collection"
ADDING = ("kb_addnote", "kb_upload_start")
ENDING = ("kb_addnote", "kb_upload_finish")
"""The tools that answer with a job."""

SETTLED_SECONDS = 5
"""How long an answer waits for its job, so that what was added is in one collection when the agent hears of it."""

GIVE_UP_SECONDS = 3600
MOST_WAITS = 16
"""How many jobs are waited for after their answer: each of them holds a connection to the engine."""


class Collections:
    """The collections that there are, in one engine; the first is where new documents go."""

    def __init__(self, engine: EngineClient, names: Sequence[str]) -> None:
        self.names = names
        self._engine = engine
        self._settling: set[asyncio.Task[None]] = set()
        self._waits = asyncio.Semaphore(MOST_WAITS)

    def tag(self, name: object) -> str:
        """The tag of a collection.

        Raises:
            Invalid: there is no collection of that name.
        """
        if name not in self.names:
            raise Invalid(f"collection: there is no {str(name)[:100]!r}; there are {', '.join(self.names)}.")
        return f"{PREFIX}{name}"

    async def put(self, document_id: int, tag: str | None) -> JSON:
        """Put a document into one collection, or into none; answers the document.

        Whoever writes last sees in the answer what others wrote meanwhile, and takes it away: one tag remains.
        """
        document = await self._engine.document(document_id)
        wanted = {tag} if tag else set()
        known = {f"{PREFIX}{name}" for name in self.names}
        while (there := tags_of(document)) != wanted:
            document = await self._engine.change_tags(document_id, add=[*wanted], remove=[*(there | known) - wanted])
        return {name: value for name, value in document.items() if name != "chunks"}

    async def settle(self, job_id: int) -> None:
        """When the job is done, leave its document in the collection that it was added to.

        The same content may have been there before, in another collection: the engine merges the tags of both.
        """
        task = asyncio.create_task(self._settled(job_id))
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)
        await asyncio.wait([task], timeout=SETTLED_SECONDS)

    async def _settled(self, job_id: int) -> None:
        try:
            async with asyncio.timeout(GIVE_UP_SECONDS):
                job = await self._engine.job(job_id, wait=SETTLED_SECONDS)
                if job["status"] not in ENDED:
                    async with self._waits:
                        job = await self._engine.wait_for_job(job_id)
                if job["document_id"]:
                    await self.put(job["document_id"], *tags_of(job))
        except (KbError, TimeoutError) as error:
            logger.warning("job %s: its document may be in two collections: %s", job_id, error)


class CollectionTool(Tool):
    """A tool of another surface, with collections."""

    _inner: Tool = PrivateAttr()
    _collections: Collections = PrivateAttr()

    @classmethod
    def wrap(cls, inner: Tool, collections: Collections) -> CollectionTool:
        """The tool as this surface shows it."""
        tool = cls(
            name=inner.name,
            title=inner.title,
            description=(inner.description or "") + described(inner.name, collections.names),
            parameters=with_collection(inner.name, inner.parameters, collections.names),
            output_schema=presented_schema(inner.output_schema),
            annotations=inner.annotations,
        )
        tool._inner, tool._collections = inner, collections
        return tool

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        """Run the other tool; what the wrapper adds is checked here, for nobody else does."""
        try:
            result = await self._inner.run(self._with_tag(in_order(arguments)))
            data: JSON = result.structured_content or {}
            if self.name in ENDING:
                await self._collections.settle(data["job_id"])
        except KbError as error:
            raise ToolError(said(error, arguments), log_level=logging.INFO) from error
        return answer(presented(data))

    def _with_tag(self, arguments: dict[str, Any]) -> dict[str, Any]:
        tags = arguments.get("tags", [])
        if self.name not in (*ADDING, SEARCH) or not isinstance(tags, list):
            return arguments
        default = self._collections.names[0] if self.name in ADDING else ""
        given = arguments.pop("collection", "")
        name = default if given == "" else given
        if self.name in ADDING and any(is_collection(tag) for tag in tags):
            raise Invalid(f"tags: set the collection by the parameter collection, not by a tag {PREFIX}<name>.")
        return arguments if name == "" else arguments | {"tags": [self._collections.tag(name), *tags]}


class CollectionsTransform(Transform):
    """Puts collections around every tool."""

    def __init__(self, collections: Collections) -> None:
        super().__init__()
        self._collections = collections

    async def list_tools(self, tools: Sequence[Tool]) -> Sequence[Tool]:
        """Every tool, wrapped."""
        return [CollectionTool.wrap(tool, self._collections) for tool in tools]

    async def get_tool(self, name: str, call_next: GetToolNext, *, version: VersionSpec | None = None) -> Tool | None:
        """One tool, wrapped."""
        tool = await call_next(name, version=version)
        return CollectionTool.wrap(tool, self._collections) if tool else None


class PresentedDocuments(Middleware):
    """Shows the collection in documents that are read as resources."""

    async def on_read_resource(
        self,
        context: MiddlewareContext[ReadResourceRequestParams],
        call_next: CallNext[ReadResourceRequestParams, ResourceResult],
    ) -> ResourceResult:
        """Read the resource."""
        result = await call_next(context)
        for content in result.contents:
            if content.mime_type == JSON_TYPE:
                content.content = to_json(presented(json.loads(content.content))).decode()
        return result


class CollectionTools:
    """What this surface has beside the default one."""

    def __init__(self, collections: Collections) -> None:
        self._collections = collections

    async def kb_set_collection(
        self,
        document_id: DocumentId,
        collection: Annotated[str, Field(description="Empty or null: none.")] = "",
    ) -> ToolResult:
        """Move a document to another collection, or out of all.

        Use it when a document is in the wrong one; for a new document, give its collection when you add it. Nothing
        else of the document changes. Returns the document, without its text.
        """
        tag = self._collections.tag(collection) if collection else None
        return answer(await self._collections.put(document_id, tag))


def collections_server(
    core: FastMCP, engine: EngineClient, names: Sequence[str], middleware: Sequence[Middleware]
) -> FastMCP:
    """The server of this surface.

    Args:
        core: the default surface.
        engine: the same engine.
        names: the collections.
        middleware: what calls pass through on the default surface, too.
    """
    collections = Collections(engine, names)
    own = new_server(middleware)
    move = CollectionTools(collections).kb_set_collection
    add_tool(own, move, "Move to a collection", REPLACES, schemas.plain(Document))
    server = new_server([PresentedDocuments()])
    for provider in (FastMCPProvider(core), FastMCPProvider(own)):
        server.add_provider(provider.wrap_transform(CollectionsTransform(collections)))
    server.add_completion_handler(_without_collections(completer(engine)))
    return server


def names_of(setting: str) -> list[str]:
    """The collections' names.

    Raises:
        SettingError: there are none.
    """
    names = listed(setting)
    if not names:
        raise SettingError("KB_MCP_COLLECTION_NAMES: names no collection")
    return names


def is_collection(tag: object) -> bool:
    """Whether a tag says which collection a document is in."""
    return isinstance(tag, str) and tag.strip().startswith(PREFIX)


def tags_of(holder: JSON) -> set[str]:
    """The collections' tags among those of a document or a job."""
    return set(filter(is_collection, holder["tags"]))


def presented(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """The same with `collection` beside `tags`, wherever there are tags, and without it among them."""
    if isinstance(value, list):
        return [presented(each) for each in value]
    if not isinstance(value, dict):
        return value
    shown = {name: presented(each) for name, each in value.items()}
    if isinstance(value.get("tags"), list):
        first = min(tags_of(value), default=None)
        shown["tags"] = [tag for tag in value["tags"] if not is_collection(tag)]
        shown["collection"] = first.removeprefix(PREFIX) if first else None
    return shown


def presented_schema(schema: Any) -> Any:  # noqa: ANN401 - any JSON schema
    """The schema of what `presented` makes of an answer."""
    if not isinstance(schema, dict):
        return schema
    shown = {name: presented_schema(each) for name, each in schema.items()}
    if "tags" in shown.get("properties", {}):
        shown["properties"]["collection"] = {"type": ["string", "null"]}
    return shown


def with_collection(tool: str, parameters: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """The tool's parameters, and `collection` where it has one."""
    if tool not in (*ADDING, SEARCH):
        return parameters
    default = {"default": names[0]} if tool in ADDING else {}
    collection = {"type": "string", "enum": list(names), **default}
    return parameters | {"properties": parameters["properties"] | {"collection": collection}}


def described(tool: str, names: Sequence[str]) -> str:
    """What this surface adds to a tool's description (requirement C-6)."""
    uses = {SEARCH: ON_SEARCH, SET: ""} | dict.fromkeys(ADDING, ON_ADDING.format(default=names[0]))
    return CONVENTION.format(names=", ".join(names)) + uses[tool] if tool in uses else ""


def _without_collections(complete: Complete) -> Complete:
    async def wrapped(
        reference: CompletionReference, argument: CompletionArgument, context: CompletionContext | None
    ) -> list[str]:
        values = await complete(reference, argument, context)
        return [value for value in values if PREFIX not in value]

    return wrapped
