"""Choose the search results of a short answer: the best ones within few tokens, and others nearly as good."""

from __future__ import annotations

from typing import Final

from kb.api.limits import DEFAULT_TOP
from kb.client.client import JSON
from kb_mcp.tools.compact_answers import passage_text
from kb_mcp.tools.excerpts import excerpt
from kb_mcp.tools.rendering import shown_text
from kb_mcp.tools.token_estimate import estimate_tokens
from kb_mcp.tools.weaker_results import LEAST_MATCH, LEAST_SCORE, near_best

TOKENS: Final = 95
"""Tokens of the results that fit in every short answer. docs/quality.md has the cost of these limits."""

MOST_TOKENS: Final = 425
"""Tokens of the results if several are nearly as good as the best one."""

TOKENS_OF_FEW: Final = 150
"""Tokens of the results if the search found fewer than ten."""

NEAR_SCORE: Final = 0.85
"""The least score of a result nearly as good as the best one, as a share of its score."""

NEAR_MATCH: Final = 0.97
"""The least match of a result nearly as good as the best one, as a share of the best match."""

TOKENS_OF_A_LINE: Final = 12
"""Tokens of the line above a passage."""


def briefly(reply: JSON, *, is_ranked: bool) -> JSON:
    """Return the reply with the results of a short answer in their order, and the number of others as `further`.

    The first result is always there. A note that replaces a result also stays. Unless `is_ranked`, by words and
    meaning together, the first results count as the best, and scores do not show which others are nearly as good.
    """
    results = reply["results"]
    if not results:
        return reply
    is_good = near_best(results, LEAST_SCORE, LEAST_MATCH)
    is_near = near_best(results, NEAR_SCORE, NEAR_MATCH)
    is_full = len(results) >= DEFAULT_TOP
    least = TOKENS if is_full else TOKENS_OF_FEW
    kept, spent = list[JSON](), 0.0
    for result in sorted(results, key=lambda result: -result["score"]) if is_ranked else results:
        cost = _tokens(result, is_whole=not kept)
        room = MOST_TOKENS if is_ranked and is_near(result) else least
        if not kept or (spent + cost <= room and (is_good(result) or not is_full)):
            kept.append(result)
            spent += cost
    ids = {result["chunk_id"] for result in kept}
    replacements = {result["replaced_by"] for result in kept}
    shown = [
        result | {"more": []}
        for result in results
        if result["chunk_id"] in ids or result["document_id"] in replacements
    ]
    count = sum(1 + len(result["more"]) for result in results)
    return reply | {"results": shown, "further": count - len(shown)}


def _tokens(result: JSON, *, is_whole: bool) -> float:
    ranges = [] if is_whole else excerpt(result)
    passage = {"text": passage_text(result)} | ({"shown": ranges} if ranges else {})
    return TOKENS_OF_A_LINE + estimate_tokens(shown_text(passage))
