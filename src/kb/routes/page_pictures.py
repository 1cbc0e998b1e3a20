"""GET /documents/{id}/pages/{n}.png: a page as it looks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request, Response

from kb.api.models import DocumentPages
from kb.documents.lookup import existing_document
from kb.routes.dependencies import MAX_ID, READ, Id, ServicesDep
from kb.routes.problems import problems
from kb.routes.thread_route import ThreadRoute

router = APIRouter(route_class=ThreadRoute, tags=["documents"])


async def turn(services: ServicesDep, request: Request) -> AsyncIterator[None]:
    """Wait until the page may be drawn, in no thread: those are for requests that are at work.

    Raises:
        Busy: too many wait already.
    """
    async with services.picture_queue.turn(request.scope):
        yield


@router.get(
    "/documents/{document_id}/pages",
    summary="Get how many pages a document has",
    responses=problems(404, 409),
    dependencies=[READ, Depends(turn, scope="function")],
)
def get_pages(document_id: Id, services: ServicesDep) -> DocumentPages:
    """Of a PDF whose file is kept: all of its pages, those without text, too."""
    with services.store.view() as tx:
        document = existing_document(tx, document_id)
    return DocumentPages(document_id=document_id, pages=services.pages.count(document))


@router.get(
    "/documents/{document_id}/pages/{number}.png",
    summary="Get a page's picture",
    response_class=Response,
    responses={200: {"content": {"image/png": {}}, "description": "The page as PNG."}, **problems(404, 409)},
    dependencies=[READ, Depends(turn, scope="function")],
)
def get_page_picture(
    document_id: Id,
    number: Annotated[int, Path(ge=1, le=MAX_ID, description="Of the page, from 1.")],
    services: ServicesDep,
    chunk: Annotated[int | None, Query(ge=0, le=MAX_ID, description="The index of the chunk to be marked.")] = None,
) -> Response:
    """A page of a PDF as it looks, with a chunk marked if it stands on that page."""
    with services.store.view() as tx:
        document = existing_document(tx, document_id)
    return Response(services.pages.draw(document, number, chunk), media_type="image/png")
