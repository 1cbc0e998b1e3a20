"""Documents and their tags."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from kb.contract.errors import NotFound
from kb.contract.models import (
    DEFAULT_PAGE,
    Chunk,
    Deleted,
    Document,
    DocumentList,
    DocumentWithChunks,
    Sort,
    Tag,
    TagChange,
    TagCount,
    TagList,
)
from kb.routes.engine import Cursor, EngineDep, Id, Limit
from kb.store import base
from kb.store.base import Filter

router = APIRouter()


@router.get("/documents", tags=["documents"])
def list_documents(
    engine: EngineDep,
    source_path: Annotated[str | None, Query(max_length=4096)] = None,
    tag: Annotated[list[Tag], Query(description="All of them must match.", max_length=100)] = [],  # noqa: B006 - FastAPI copies it
    doc_type: Annotated[str | None, Query(max_length=100)] = None,
    sort: Annotated[Sort, Query(description="`recent`: the last changed or added first.")] = "id",
    limit: Limit = DEFAULT_PAGE,
    cursor: Cursor = None,
) -> DocumentList:
    """List documents, without their text."""
    where = Filter(tuple(tag), doc_type, source_path)
    with engine.store.read() as tx:
        page = tx.documents.page(where, sort=sort, limit=limit + 1, cursor=cursor)
        more = len(page) > limit
        next_cursor = tx.documents.cursor_after(page[limit - 1], sort) if more else None
    return DocumentList(
        documents=[Document.model_validate(document) for document in page[:limit]], next_cursor=next_cursor
    )


@router.get("/documents/{document_id}", tags=["documents"])
def get_document(document_id: Id, engine: EngineDep) -> DocumentWithChunks:
    """Get a document with its chunks."""
    with engine.store.read() as tx:
        return with_chunks(tx, document_id)


@router.delete("/documents/{document_id}", tags=["documents"])
def delete_document(document_id: Id, engine: EngineDep) -> Deleted:
    """Delete a document for good."""
    with engine.store.write() as tx:
        document = existing(tx, document_id)
        tx.documents.delete(document_id)
    return Deleted(document_id=document_id, title=document.title)


@router.patch("/documents/{document_id}/tags", tags=["tags"])
def change_tags(document_id: Id, change: TagChange, engine: EngineDep) -> Document:
    """Add tags to a document and remove others, in one step."""
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
