"""POST /search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
from fastapi import APIRouter
from numpy.typing import NDArray

from kb.api.errors import Invalid
from kb.api.models import SearchReply, SearchRequest, SearchResult
from kb.routes.limits import check_tags, top_of
from kb.routes.problems import problems
from kb.routes.services import Engine, EngineDep
from kb.routes.thread_route import ThreadRoute
from kb.search.service import Legs, Result, match_expression, search, telling_words
from kb.search.token_budget import Budget
from kb.store.protocol import Transaction
from kb.store.rows import Filter
from kb.telemetry.instruments import WatchedIndex

router = APIRouter(route_class=ThreadRoute, tags=["search"])


@router.post("/search", summary="Search", responses=problems(400, 413))
def find(request: SearchRequest, engine: EngineDep) -> SearchReply:
    """Find the passages that answer a query: hybrid, unless a mode flag says otherwise."""
    if request.fts_only and request.vec_only:
        raise Invalid("fts_only, vec_only: set at most one of them.")
    top = top_of(request.top, engine.settings)
    check_tags(engine.settings, request.tags, request.tag_any, request.tag_not)
    words = "" if request.vec_only else request.query
    embed = None if request.fts_only else partial(embedded, engine, request.query)
    legs = Legs(match_expression(words), embed, where(request))
    with engine.store.read() as tx:
        index = WatchedIndex(tx.index, engine.watch)
        found = search(index, legs, top, engine.pool, grouped=request.group_by is not None)
        results = fitting(engine, tx, found, telling_words(words), request.max_tokens)
        pending = tx.jobs.pending()
    return SearchReply(results=results, omitted=passages(found) - passages(results), pending=pending)


def passages(results: Sequence[Result | SearchResult]) -> int:
    """How many passages the results have, with those in `more`."""
    return sum(1 + len(result.more) for result in results)


def embedded(engine: Engine, query: str) -> NDArray[np.float32]:
    """The query's vector, shape (dimensions,)."""
    with engine.watch.search("embed"):
        vector: NDArray[np.float32] = engine.embedder.embed_queries([query])[0]
        return vector


def where(request: SearchRequest) -> Filter:
    """The request's filters."""
    return Filter(
        tuple(request.tags),
        tuple(request.tag_any),
        tuple(request.tag_not),
        request.doc_type,
        request.source_path,
        request.created_after,
        request.created_before,
        request.source_prefix,
    )


def fitting(
    engine: Engine, tx: Transaction, found: Sequence[Result], words: Sequence[str], max_tokens: int | None
) -> list[SearchResult]:
    """The results whose text fits the budget, with their highlights."""
    budget = Budget(max_tokens, lambda text: engine.embedder.count_tokens(text) - engine.embedder.spec.special_tokens)
    results = []
    for result in found:
        if not (first := passage(tx, result, words, budget)):
            break
        more = filter(None, map(partial(passage, tx, words=words, budget=budget), result.more))
        results.append(SearchResult.model_validate(first | {"more": list(more)}))
    return results


def passage(tx: Transaction, result: Result, words: Sequence[str], budget: Budget) -> dict[str, Any] | None:
    """A result's fields; None if there is no room for any of its text."""
    text = budget.spend(result.hit.text)
    if not text:
        return None
    return asdict(result.hit) | {
        "text": text,
        "truncated": text != result.hit.text,
        "highlights": tx.index.highlights(text, words),
        "score": result.score,
        "fts_score": result.fts_score,
        "vec_score": result.vec_score,
    }
