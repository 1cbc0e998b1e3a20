"""Search, and similar documents."""

from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query

from kb.api.document_day import own_day
from kb.api.errors import Invalid
from kb.api.limit_errors import check_tags, result_limit
from kb.api.limits import DEFAULT_TOP, MAX_ID
from kb.api.search_models import SearchReply, SearchRequest
from kb.documents.lookup import existing_document
from kb.formats.installed_types import DOC_TYPES
from kb.routes.dependencies import READ, Id, ServicesDep, turn
from kb.routes.documents import tags_in_use, to_filter
from kb.routes.error_replies import problems
from kb.routes.thread_route import ThreadRoute
from kb.search.operators import as_typed, excluded_words, narrowed
from kb.search.passages import FoundPassage, in_succession
from kb.search.query import Query as SearchQuery

router = APIRouter(route_class=ThreadRoute, tags=["search"])
TURN: Any = turn(lambda services: services.queue)


@router.post("/search", summary="Search", responses=problems(400, 413), dependencies=[READ, TURN])
def find(request: SearchRequest, services: ServicesDep) -> SearchReply:
    """Find the passages that answer a query, by words and meaning unless `fts_only` or `vec_only` is set."""
    if request.fts_only and request.vec_only:
        raise Invalid("fts_only, vec_only: set at most one of them.")
    top = result_limit(request.top, services.settings.max_top)
    check_tags(tags=request.tags, tag_any=request.tag_any, tag_not=request.tag_not)
    asked = narrowed(request.query, DOC_TYPES, partial(tags_in_use, services.store))
    query = SearchQuery.parse(
        asked.text,
        asked.within(replace(to_filter(services.store, request.tags, request), document_id=request.document_id)),
        full_text=not request.vec_only,
        vectors=not request.fts_only,
        exact=request.exact,
        has_operators=bool(asked.operators),
    )
    answer = services.search.search(
        query,
        top,
        grouped=request.group_by is not None,
        max_tokens=request.max_tokens,
        explain=request.explain,
    )
    if request.sort == "recent":
        newest_first = sorted(answer.results, key=dated, reverse=True)
        successors = {passage.document_id: passage.successors for passage in newest_first}
        documents = [passage.document_id for passage in newest_first]
        answer = replace(answer, results=in_succession(newest_first, documents, successors))
    if other := [unknown.word for unknown in answer.unknown if unknown.nearest]:
        answer = replace(answer, as_typed=as_typed(request.query, other))
    answer.operators.extend([*asked.operators, *excluded_words(request.query, query.where.lacking)])
    return SearchReply.model_validate(answer)


@router.get(
    "/documents/{document_id}/similar",
    summary="Find similar documents",
    responses=problems(400, 404),
    dependencies=[READ, TURN],
)
def find_similar(
    document_id: Id,
    services: ServicesDep,
    top: Annotated[int, Query(ge=1, le=MAX_ID, description="The maximum number of documents.")] = DEFAULT_TOP,
) -> SearchReply:
    """Return the documents nearest in meaning. A `vec_score` above 0.95 means nearly the same text."""
    with services.store.view() as tx:
        existing_document(tx, document_id)
        answer = services.search.similar(tx, document_id, result_limit(top, services.settings.max_top))
    return SearchReply.model_validate(answer)


def dated(passage: FoundPassage) -> tuple[str, str]:
    """Return the day and the date of a document: its own date, or failing that, its last change or creation."""
    return passage.day, (passage.date if own_day(passage.date) else None) or passage.changed
