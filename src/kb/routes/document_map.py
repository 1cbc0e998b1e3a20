"""GET /map: a map of the documents."""

from collections.abc import Mapping
from typing import Any, Final

from fastapi import APIRouter, Request

from kb.api.document_models import TagCount
from kb.api.overview_models import DocumentMap, MappedDocument
from kb.routes.dependencies import READ, ServicesDep, get_caller, turn
from kb.routes.thread_route import ThreadRoute
from kb.search.document_map import MAX_SHOWN
from kb.store import rows
from kb.store.rows import Filter

router = APIRouter(route_class=ThreadRoute, tags=["documents"])
TURN: Any = turn(lambda services: services.map_queue)

MAX_TAGS: Final = 20
MAX_TITLE: Final = 100


@router.get("/map", summary="Get a map of the documents", dependencies=[READ, TURN])
def get_map(services: ServicesDep, request: Request) -> DocumentMap:
    """Return the positions of the 10,000 most recently changed documents. Similar documents are near each other."""
    limit = get_caller(request, services).seen
    positions, is_current = services.map.positions(limit)
    with services.store.view() as tx:
        page = tx.documents.page(Filter(), sort="recent", limit=MAX_SHOWN, cursor=None)
        total = tx.documents.count(Filter())
        tags = sorted(tx.documents.tags(), key=lambda pair: -pair[1])[:MAX_TAGS]
    numbers = {tag: number for number, (tag, _) in enumerate(tags)}
    places = positions.places if positions else {}
    if positions and not all(document.id in places for document in page):
        is_current = False
        services.map.renew(limit)
    return DocumentMap(
        documents=[mapped(document, place, numbers) for document in page if (place := places.get(document.id))],
        total=total,
        tags=[TagCount(tag=tag, documents=documents) for tag, documents in tags],
        is_current=is_current,
    )


def mapped(document: rows.Document, place: tuple[float, float], numbers: Mapping[str, int]) -> MappedDocument:
    """Return the response for a document on the map."""
    return MappedDocument.model_construct(
        id=document.id,
        title=document.title[:MAX_TITLE],
        doc_type=document.doc_type,
        tags=[numbers[tag] for tag in document.tags if tag in numbers],
        x=place[0],
        y=place[1],
    )
