"""Leave out search results that match far less well than the best one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from kb.client.client import JSON

LEAST_SCORE: Final = 0.45
"""The least score of a result, as a share of the best one. docs/quality.md has the cost of both limits."""

BEST_SCORE: Final = 3.5
"""The highest score that counts as the best: a passage with the words of the query as typed has several more."""

LEAST_MATCH: Final = 0.78
"""The least match of a result with a low score, as a share of the best match."""


def without_weaker(reply: JSON, top: int) -> JSON:
    """Return the reply without its weaker passages, and their number as `weaker`.

    A score compares a passage with the other candidates. Among few documents it can be low for a good passage, so that
    the match also counts: both scores by themselves, each as a share of the best one. If fewer than `top` results
    exist, all stay. A note that replaces a remaining note stays.
    """
    results, passages = reply["results"], list(_passages(reply["results"]))
    if len(results) < top:
        return reply
    is_strong = near_best(passages, LEAST_SCORE, LEAST_MATCH)
    replacements = {result["replaced_by"] for result in filter(is_strong, results)}
    kept = [
        result | {"more": list(filter(is_strong, result["more"]))}
        for result in results
        if is_strong(result) or result["document_id"] in replacements
    ]
    return reply | {"results": kept, "weaker": len(passages) - len(list(_passages(kept)))}


def near_best(passages: Sequence[JSON], score: float, match: float) -> Callable[[JSON], bool]:
    """Return whether a passage has at least this share of the best score, or at least this share of the best match."""
    words, meaning = (max(passage[leg] or 0.0 for passage in passages) for leg in ("fts_score", "vec_score"))

    def match_of(passage: JSON) -> float:
        return _share(passage["fts_score"], words) + _share(passage["vec_score"], meaning)

    least_score = score * min(BEST_SCORE, max(passage["score"] for passage in passages))
    least_match = match * max(map(match_of, passages))
    return lambda passage: bool(passage["score"] >= least_score or match_of(passage) >= least_match)


def _passages(results: list[JSON]) -> Iterator[JSON]:
    for result in results:
        yield result
        yield from result["more"]


def _share(score: float | None, best: float) -> float:
    return (score or 0.0) / best if best > 0 else 0.0


def left_out_text(weaker: int, further: int, *, has_excerpts: bool) -> str:
    """Return the number of weaker or further passages and the sign for missing sentences, with the remedy."""
    if not weaker and not further:
        return "Sentences left out at …; all=true shows them." if has_excerpts else ""
    if further:
        count = "1 more result" if further == 1 else f"{further} more results"
        return f"{count}{', and sentences at …' if has_excerpts else ''}: top=10."
    count = "1 weaker result" if weaker == 1 else f"{weaker} weaker results"
    return f"{count} left out{', and sentences at …' if has_excerpts else ''}; all=true shows them."


def other_languages_text(reply: JSON) -> list[str]:
    """Return a sentence that names other languages to search in, if no document answers well."""
    names = reply["other_languages"]
    there = "that language" if len(names) == 1 else "those languages"
    return [f"Other documents are in {', '.join(names)}: also search in {there}."] if names else []
