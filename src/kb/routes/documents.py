"""Documents and their tags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from os import fstat
from typing import Annotated, Literal
from urllib.parse import quote

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse
from pydantic import Field
from starlette.background import BackgroundTask

from kb.api.errors import NotFound, TooManyTags
from kb.api.models import (
    DEFAULT_PAGE,
    Chunk,
    Deleted,
    DocType,
    Document,
    DocumentList,
    DocumentsCursor,
    DocumentText,
    DocumentWithChunks,
    Instant,
    Sort,
    SourcePath,
    SourcePrefix,
    Tag,
    TagChange,
    TagCount,
    TagList,
)
from kb.documents.excerpt import part_of
from kb.ingest.draft import NOTE
from kb.routes.limits import check_tags, page_size
from kb.routes.problems import links_to_document, problems
from kb.routes.services import MAX_ID, EngineDep, Id, Limit, QueryModel
from kb.routes.thread_route import ThreadRoute
from kb.store import rows
from kb.store.protocol import Transaction
from kb.store.rows import Filter

router = APIRouter(route_class=ThreadRoute)

PART = 1 << 20
"""How many bytes of a file are held in memory at a time."""


class TextQuery(QueryModel):
    """Which part: both ends included for lines and pages, the last one excluded for characters."""

    unit: Literal["lines", "characters", "pages"] = "lines"
    start: Annotated[int | None, Field(alias="from", ge=0, le=MAX_ID)] = None
    end: Annotated[int | None, Field(alias="to", ge=0, le=MAX_ID)] = None


class ListQuery(QueryModel):
    """What to list."""

    source_path: SourcePath | None = None
    source_prefix: SourcePrefix | None = None
    tag: Annotated[list[Tag], Field(description="All of them must match.", default_factory=list)]
    tag_any: Annotated[list[Tag], Field(description="At least one of them must match.", default_factory=list)]
    tag_not: Annotated[list[Tag], Field(description="None of them may match.", default_factory=list)]
    doc_type: DocType | None = None
    created_after: Annotated[Instant | None, Field(description="Created then or later.")] = None
    created_before: Annotated[Instant | None, Field(description="Created earlier.")] = None
    sort: Annotated[Sort, Field(description="`recent`: the last changed or added first.")] = "id"
    limit: Limit = DEFAULT_PAGE
    cursor: DocumentsCursor | None = None

    def where(self) -> Filter:
        """The filters."""
        return Filter(
            tuple(self.tag),
            tuple(self.tag_any),
            tuple(self.tag_not),
            self.doc_type,
            self.source_path,
            self.created_after,
            self.created_before,
            self.source_prefix,
        )


@router.get("/documents", tags=["documents"], summary="List documents")
def list_documents(engine: EngineDep, query: Annotated[ListQuery, Query()]) -> DocumentList:
    """A page of documents, without their text."""
    limit = page_size(query.limit, engine.settings)
    check_tags(engine.settings, query.tag, query.tag_any, query.tag_not)
    with engine.store.read() as tx:
        page = tx.documents.page(query.where(), sort=query.sort, limit=limit + 1, cursor=query.cursor)
        more = len(page) > limit
        next_cursor = tx.documents.cursor_after(page[limit - 1].id) if more else None
    documents = [Document.model_validate(document) for document in page[:limit]]
    return DocumentList(documents=documents, next_cursor=next_cursor)


@router.get(
    "/documents/{document_id}",
    tags=["documents"],
    summary="Get a document",
    responses={200: links_to_document("/id"), **problems(404)},
)
def get_document(document_id: Id, engine: EngineDep) -> DocumentWithChunks:
    """A document with its text in chunks."""
    with engine.store.read() as tx:
        return with_chunks(existing(tx, document_id), tx.documents.chunks(document_id))


@router.get(
    "/documents/{document_id}/text",
    tags=["documents"],
    summary="Get a part of a document's text",
    responses=problems(404, 409),
)
def get_text(document_id: Id, engine: EngineDep, query: Annotated[TextQuery, Query()]) -> DocumentText:
    """Some lines, characters or pages of it."""
    with engine.store.read() as tx:
        document = existing(tx, document_id)
        chunks = tx.documents.chunks(document_id)
    part = part_of(chunks, query.unit, query.start, query.end)
    return DocumentText(document_id=document_id, title=document.title, unit=query.unit, **asdict(part))


@router.get(
    "/documents/{document_id}/file",
    tags=["documents"],
    summary="Get a document's file",
    response_class=StreamingResponse,
    responses={
        200: {"content": {"application/octet-stream": {}}, "description": "The file as it was uploaded."},
        **problems(404),
    },
)
def get_file(document_id: Id, engine: EngineDep) -> StreamingResponse:
    """The file that a document came from, if it came from one and files are kept."""
    with engine.store.read() as tx:
        document = existing(tx, document_id)
        path_name = (document.source_path or "").rpartition("/")[2]
        name = path_name or document.filename or document.title
    path = engine.kept.path(document.content_hash)
    try:
        if document.doc_type == NOTE:
            raise FileNotFoundError
        file = path.open("rb")
    except FileNotFoundError:
        raise NotFound(f"No file is kept for document {document_id}: it is a note, or KB_KEEP_FILES was off.") from None
    return StreamingResponse(
        iter(partial(file.read, PART), b""),
        media_type="application/octet-stream",
        headers={"Content-Length": str(fstat(file.fileno()).st_size), "Content-Disposition": as_attachment(name)},
        background=BackgroundTask(file.close),
    )


def as_attachment(filename: str) -> str:
    """The header that names a download (RFC 6266)."""
    return f"attachment; filename*=utf-8''{quote(filename, safe='')}"


@router.delete(
    "/documents/{document_id}", tags=["documents"], summary="Delete a document", responses=problems(404, 507)
)
def delete_document(document_id: Id, engine: EngineDep) -> Deleted:
    """Delete a document for good, with the file that was kept of it and the attachments that came in it."""
    with engine.store.write() as tx:
        document = existing(tx, document_id)
        tx.documents.delete(document_id)
    if document.doc_type != NOTE:
        engine.kept.sweep(engine.store)
    return Deleted(document_id=document_id, title=document.title)


@router.patch(
    "/documents/{document_id}/tags",
    tags=["tags"],
    summary="Change a document's tags",
    responses=problems(400, 404, 409, 413, 507),
)
def change_tags(document_id: Id, change: TagChange, engine: EngineDep) -> Document:
    """Add tags to a document and remove others, in one step."""
    check_tags(engine.settings, change.add, change.remove)
    with engine.store.write() as tx:
        existing(tx, document_id)
        tx.documents.change_tags(document_id, add=change.add, remove=change.remove)
        document = existing(tx, document_id)
        if len(document.tags) > engine.settings.max_tags:
            raise TooManyTags(f"tags: a document has at most {engine.settings.max_tags} (KB_MAX_TAGS).")
        return Document.model_validate(document)


@router.get("/tags", tags=["tags"], summary="List tags")
def list_tags(engine: EngineDep) -> TagList:
    """Every tag in use, and how many documents carry it."""
    with engine.store.read() as tx:
        return TagList(tags=[TagCount(tag=tag, documents=count) for tag, count in tx.documents.tags()])


def existing(tx: Transaction, document_id: int) -> rows.Document:
    """The document.

    Raises:
        NotFound: there is none.
    """
    document = tx.documents.get(document_id)
    if document is None:
        raise NotFound(f"There is no document {document_id}.")
    return document


def with_chunks(document: rows.Document, chunks: Sequence[rows.Chunk]) -> DocumentWithChunks:
    """The document with its chunks."""
    parts = [Chunk.model_validate(chunk) for chunk in chunks]
    return DocumentWithChunks(**dict(Document.model_validate(document)), chunks=parts)
