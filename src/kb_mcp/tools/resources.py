"""Documents as resources, for clients that let people attach them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from fastmcp.exceptions import FastMCPError, ResourceError, ValidationError
from fastmcp.resources import ResourceContent, ResourceResult, TextResource
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from pydantic_core import to_json

from kb.api.errors import Invalid, KbError, NotFound
from kb_mcp.middleware.arguments import said
from kb_mcp.tools.answers import NOTICE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fastmcp import FastMCP
    from fastmcp.resources import Resource
    from mcp_types import ListResourcesRequest

    from kb.client.client import JSON, EngineClient
    from kb_mcp.tools.answers import Budget

JSON_TYPE = "application/json"
LISTED = 50
"""How many documents are offered: those that were added or changed last."""


MOST_DIGITS = 18
"""All numbers of so many are within 64 bits."""


def add_resources(server: FastMCP, engine: EngineClient, budget: Budget) -> None:
    """A document with its chunks, and its text alone."""
    documents = Documents(engine, budget)
    server.add_middleware(RecentDocuments(engine))
    server.resource(
        "kb://documents/{id}{?from_chunk}",
        name="document",
        title="Document",
        description="A document with its text in chunks; next_chunk says where to read on.",
        mime_type=JSON_TYPE,
    )(documents.document)
    server.resource(
        "kb://documents/{id}/text{?start}",
        name="text",
        title="Text of a document",
        description="A document's text. Of a long one a part, and where to read on.",
        mime_type="text/plain",
    )(documents.text)


class Documents:
    """What is read under `kb://documents/`. Errors are those that clients are told."""

    def __init__(self, engine: EngineClient, budget: Budget) -> None:
        self._engine = engine
        self._budget = budget

    async def document(self, id: str, from_chunk: str = "0") -> ResourceResult:  # noqa: A002 - as it stands in the URI
        """A document with as many chunks as fit."""
        document_id, start = _number(id, "id"), _number(from_chunk, "from_chunk")
        try:
            part = self._budget.part(await self._engine.document(document_id), start)
        except KbError as error:
            raise _told(error) from error
        return ResourceResult([ResourceContent(to_json(part).decode(), mime_type=JSON_TYPE)])

    async def text(self, id: str, start: str = "0") -> ResourceResult:  # noqa: A002 - likewise
        """As much of a document's text as fits; what stands after it says where it is from and how to read on."""
        document_id, first = _number(id, "id"), _number(start, "start")
        try:
            end = first + self._budget.most_characters
            part = await self._engine.text(document_id, unit="characters", start=first, end=end)
        except KbError as error:
            raise _told(error) from error
        text = self._budget.cut(part["text"])
        notice = f"{NOTICE} {_rest(part, part['start'] + len(text))}".strip()
        return ResourceResult([ResourceContent(text), ResourceContent(notice)])


class RecentDocuments(Middleware):
    """Offers the documents that were added or changed last."""

    def __init__(self, engine: EngineClient) -> None:
        self._engine = engine

    async def on_list_resources(
        self,
        context: MiddlewareContext[ListResourcesRequest],
        call_next: CallNext[ListResourcesRequest, Sequence[Resource]],
    ) -> Sequence[Resource]:
        """List them; none while the engine is away, which keeps clients connected."""
        try:
            recent = await self._engine.documents(sort="recent", limit=LISTED)
        except KbError:
            return await call_next(context)
        return [*await call_next(context), *map(_listed, recent["documents"])]


def _listed(document: JSON) -> TextResource:
    return TextResource(
        uri=f"kb://documents/{document['id']}/text",
        name=f"document {document['id']}",
        title=document["title"],
        description=document["source_path"],
        text="",
    )


def _rest(part: JSON, end: int) -> str:
    if end >= part["total"]:
        return ""
    return f"This was character {part['start']} to {end} of {part['total']}: read on with ?start={end}."


def _number(text: str, name: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS):
        raise ValidationError(f"{name}: must be a number of at most {MOST_DIGITS} digits.", log_level=logging.INFO)
    return int(text)


def _told(error: KbError) -> FastMCPError:
    kind = ValidationError if isinstance(error, Invalid | NotFound) else ResourceError
    return kind(said(error, {}), log_level=logging.INFO)
