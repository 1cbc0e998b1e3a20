"""POST /search."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import APIRouter

from kb.contract.errors import Invalid
from kb.contract.models import SearchReply, SearchRequest, SearchResult
from kb.routes.engine import EngineDep
from kb.search import Result, search
from kb.store.base import Filter

router = APIRouter(tags=["search"])


@router.post("/search")
def find(request: SearchRequest, engine: EngineDep) -> SearchReply:
    """Find the passages that answer a query: hybrid, unless a mode flag says otherwise."""
    if request.fts_only and request.vec_only:
        raise Invalid("fts_only, vec_only: set at most one of them.")
    where = Filter(tuple(request.tags), request.doc_type)
    vector = None if request.fts_only else engine.embedder.embed([request.query])[0]
    words = "" if request.vec_only else request.query
    with engine.store.read() as tx:
        found = search(tx.index, words, vector, where, request.top)
    return SearchReply(results=[_result(result) for result in found])


def _result(found: Result) -> SearchResult:
    scores = {"score": found.score, "fts_score": found.fts_score, "vec_score": found.vec_score}
    return SearchResult.model_validate(asdict(found.hit) | scores)
