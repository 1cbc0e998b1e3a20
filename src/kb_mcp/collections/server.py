"""The server of the collections surface."""

from __future__ import annotations

import json
from collections.abc import Sequence

from fastmcp import FastMCP
from fastmcp.resources import ResourceResult
from fastmcp.server.completions import CompletionReference
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.server.providers import FastMCPProvider
from mcp_types import CompletionArgument, CompletionContext, ReadResourceRequestParams
from pydantic_core import to_json

from kb.api.errors import SettingError
from kb.client.client import EngineClient
from kb.settings import listed
from kb_mcp.collections.membership import PREFIX, Membership, tags_to_field
from kb_mcp.collections.tools import CollectionTransform, MembershipTools
from kb_mcp.server import DESTRUCTIVE, DOCUMENT, create_server, register_tool
from kb_mcp.tools.prompts import Completer, create_completer
from kb_mcp.tools.resources import JSON_TYPE


class CollectionResources(Middleware):
    """Shows the collection in documents that are read as resources."""

    async def on_read_resource(
        self,
        context: MiddlewareContext[ReadResourceRequestParams],
        call_next: CallNext[ReadResourceRequestParams, ResourceResult],
    ) -> ResourceResult:
        result = await call_next(context)
        for content in result.contents:
            if content.mime_type == JSON_TYPE:
                content.content = to_json(tags_to_field(json.loads(content.content))).decode()
        return result


def create_collections_server(
    core: FastMCP, engine: EngineClient, names: Sequence[str], middleware: Sequence[Middleware]
) -> FastMCP:
    """Return the server of this surface.

    Args:
        core: the default surface.
        engine: the same engine.
        names: the collections.
        middleware: what calls pass through on the default surface, too.
    """
    membership = Membership(engine, names)
    own = create_server(middleware)
    set_collection = MembershipTools(membership).kb_set_collection
    register_tool(own, set_collection, "Move to a collection", "write", DESTRUCTIVE, DOCUMENT)
    server = create_server([CollectionResources()])
    for provider in (FastMCPProvider(core), FastMCPProvider(own)):
        server.add_provider(provider.wrap_transform(CollectionTransform(membership)))
    server.add_completion_handler(_without_collections(create_completer(engine)))
    return server


def collection_names(setting: str) -> list[str]:
    """Return the collections' names.

    Raises:
        SettingError: there are none.
    """
    names = listed(setting)
    if not names:
        raise SettingError("KB_MCP_COLLECTION_NAMES: names no collection")
    return names


def _without_collections(complete: Completer) -> Completer:
    async def wrapped(
        reference: CompletionReference, argument: CompletionArgument, context: CompletionContext | None
    ) -> list[str]:
        values = await complete(reference, argument, context)
        return [value for value in values if PREFIX not in value]

    return wrapped
