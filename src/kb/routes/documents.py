"""Documents and their tags."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from fastapi.responses import FileResponse
from pydantic import ConfigDict, Field

from kb.contract.errors import NotFound
from kb.contract.models import (
    DEFAULT_PAGE,
    Chunk,
    Deleted,
    DocType,
    Document,
    DocumentList,
    DocumentText,
    DocumentWithChunks,
    Instant,
    Request,
    Sort,
    SourcePath,
    Tag,
    TagChange,
    TagCount,
    TagList,
)
from kb.excerpt import part_of
from kb.routes.engine import MAX_ID, EngineDep, Id
from kb.routes.limits import check_tags, page_size
from kb.routes.problems import links_to_document, problems
from kb.store import base
from kb.store.base import Filter

router = APIRouter()


class TextQuery(Request):
    """Which part: both ends included for lines and pages, the last one excluded for characters."""

    model_config = ConfigDict(extra="forbid", strict=False)

    unit: Literal["lines", "characters", "pages"] = "lines"
    start: Annotated[int | None, Field(alias="from", ge=0, le=MAX_ID)] = None
    end: Annotated[int | None, Field(alias="to", ge=0, le=MAX_ID)] = None


class ListQuery(Request):
    """What to list."""

    model_config = ConfigDict(extra="forbid", strict=False)

    source_path: SourcePath | None = None
    tag: Annotated[list[Tag], Field(description="All of them must match.", default_factory=list)]
    tag_any: Annotated[list[Tag], Field(description="At least one of them must match.", default_factory=list)]
    tag_not: Annotated[list[Tag], Field(description="None of them may match.", default_factory=list)]
    doc_type: DocType | None = None
    created_after: Annotated[Instant | None, Field(description="Created then or later.")] = None
    created_before: Annotated[Instant | None, Field(description="Created earlier.")] = None
    sort: Annotated[Sort, Field(description="`recent`: the last changed or added first.")] = "id"
    limit: Annotated[int, Field(ge=1, le=MAX_ID, description="The most rows of a page.")] = DEFAULT_PAGE
    cursor: Annotated[str | None, Field(max_length=500, description="`next_cursor` of the page before.")] = None

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
        )


@router.get("/documents", tags=["documents"])
def list_documents(engine: EngineDep, query: Annotated[ListQuery, Query()]) -> DocumentList:
    """List documents, without their text."""
    limit = page_size(query.limit, engine.settings)
    check_tags([*query.tag, *query.tag_any, *query.tag_not], engine.settings)
    with engine.store.read() as tx:
        page = tx.documents.page(query.where(), sort=query.sort, limit=limit + 1, cursor=query.cursor)
        more = len(page) > limit
        next_cursor = tx.documents.cursor_after(page[limit - 1], query.sort) if more else None
    documents = [Document.model_validate(document) for document in page[:limit]]
    return DocumentList(documents=documents, next_cursor=next_cursor)


@router.get("/documents/{document_id}", tags=["documents"], responses={200: links_to_document("/id"), **problems(404)})
def get_document(document_id: Id, engine: EngineDep) -> DocumentWithChunks:
    """Get a document with its chunks."""
    with engine.store.read() as tx:
        return with_chunks(tx, document_id)


@router.get("/documents/{document_id}/text", tags=["documents"], responses=problems(404, 409))
def get_text(document_id: Id, engine: EngineDep, query: Annotated[TextQuery, Query()]) -> DocumentText:
    """Get a part of a document's text: some lines, characters or pages."""
    with engine.store.read() as tx:
        document = existing(tx, document_id)
        chunks = tx.documents.chunks(document_id)
    part = part_of(chunks, query.unit, query.start, query.end)
    return DocumentText(document_id=document_id, title=document.title, unit=query.unit, **asdict(part))


@router.get(
    "/documents/{document_id}/file",
    tags=["documents"],
    response_class=FileResponse,
    responses={
        200: {"content": {"application/octet-stream": {}}, "description": "The file as it was uploaded."},
        **problems(404),
    },
)
def get_file(document_id: Id, engine: EngineDep) -> FileResponse:
    """Get the file that a document came from, if it came from one and files are kept."""
    with engine.store.read() as tx:
        document = existing(tx, document_id)
    path = engine.kept.path(document.content_hash)
    if not path.is_file():
        raise NotFound(f"No file is kept for document {document_id}: it is a note, or KB_KEEP_FILES was off.")
    name = (document.source_path or document.title).rpartition("/")[2]
    return FileResponse(
        path, media_type="application/octet-stream", filename=name, content_disposition_type="attachment"
    )


@router.delete("/documents/{document_id}", tags=["documents"], responses=problems(404))
def delete_document(document_id: Id, engine: EngineDep) -> Deleted:
    """Delete a document for good, and the file that was kept of it."""
    with engine.store.write() as tx:
        document = existing(tx, document_id)
        tx.documents.delete(document_id)
        engine.kept.forget(tx, document.content_hash)
    return Deleted(document_id=document_id, title=document.title)


@router.patch("/documents/{document_id}/tags", tags=["tags"], responses=problems(400, 404, 413))
def change_tags(document_id: Id, change: TagChange, engine: EngineDep) -> Document:
    """Add tags to a document and remove others, in one step."""
    check_tags([*change.add, *change.remove], engine.settings)
    with engine.store.write() as tx:
        existing(tx, document_id)
        tx.documents.change_tags(document_id, add=change.add, remove=change.remove)
        return Document.model_validate(existing(tx, document_id))


@router.get("/tags", tags=["tags"])
def list_tags(engine: EngineDep) -> TagList:
    """List every tag in use."""
    with engine.store.read() as tx:
        return TagList(tags=[TagCount(tag=tag, documents=count) for tag, count in tx.documents.tags()])


def existing(tx: base.Transaction, document_id: int) -> base.Document:
    """The document.

    Raises:
        NotFound: there is none.
    """
    document = tx.documents.get(document_id)
    if document is None:
        raise NotFound(f"There is no document {document_id}.")
    return document


def with_chunks(tx: base.Transaction, document_id: int) -> DocumentWithChunks:
    """The document with its chunks."""
    document = Document.model_validate(existing(tx, document_id))
    chunks = [Chunk.model_validate(chunk) for chunk in tx.documents.chunks(document_id)]
    return DocumentWithChunks(**dict(document), chunks=chunks)
