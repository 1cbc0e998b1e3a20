"""Shorten search results: only sentences with words of the query, without far weaker results, or only the best ones.

docs/quality.md has the cost of the limits.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from kb.api.limits import DEFAULT_TOP
from kb.client.client import JSON
from kb_mcp.tools.compact_answers import passage_text
from kb_mcp.tools.rendering import shown_text
from kb_mcp.tools.token_estimate import estimate_tokens

WHOLE_RESULTS: Final = 6
"""Number of first results that are whole among ten."""

MAX_CHARACTERS: Final = 180
"""Maximum length of an excerpt, unless one sentence is longer."""

MIN_CHARACTERS: Final = 2 * MAX_CHARACTERS
"""Shorter passages stay whole."""

MAX_LINE: Final = 240
"""Longer lines are split into sentences."""

LINE: Final = re.compile(r"\S[^\n]*")
SENTENCE: Final = re.compile(r"\S.*?(?:[.!?…]+[\"')\]]*(?=\s|$)|[\u3002\uff01\uff1f]+|$)")

Range = tuple[int, int]
"""A part of a text: first character, and the character after the last."""

LEAST_SCORE: Final = 0.45
"""The least score of a result, as a share of the best one."""

BEST_SCORE: Final = 3.5
"""The highest score that counts as the best: a passage with the words of the query as typed has several more."""

LEAST_MATCH: Final = 0.78
"""The least match of a result with a low score, as a share of the best match."""

TOKENS: Final = 95
"""Tokens of the results that fit in every short answer."""

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


def excerpts(results: list[JSON], whole: int) -> list[list[Range]]:
    """Return the parts to show of the text of each of the engine's results; an empty list for the whole text.

    Args:
        results: the engine's results.
        whole: the number of first results to show whole.
    """
    return [[] for _ in results[:whole]] + [excerpt(result) for result in results[whole:]]


def excerpt(result: JSON) -> list[Range]:
    """Return the parts of a result's text with the most words of the query; an empty list for the whole text."""
    text = passage_text(result)
    offset = len(result["text"]) - len(text)
    words = [(start - offset, end - offset) for start, end in result["highlights"] if start >= offset]
    if len(text) < MIN_CHARACTERS or not words:
        return []
    pieces = list(_pieces(text))
    found = {
        piece: {text[start:end].casefold() for start, end in words if piece[0] <= start < piece[1]} for piece in pieces
    }
    shown, size = list[Range](), 0
    for piece in sorted(pieces, key=lambda piece: -len(found[piece])):
        size += piece[1] - piece[0]
        if shown and (size > MAX_CHARACTERS or not found[piece]):
            break
        shown.append(piece)
    return _merged(sorted(shown), text)


def _pieces(text: str) -> Iterator[Range]:
    """Yield the lines of a text, and the sentences of long lines."""
    for line in LINE.finditer(text):
        if len(line[0]) <= MAX_LINE:
            yield line.span()
        else:
            yield from (sentence.span() for sentence in SENTENCE.finditer(text, *line.span()))


def _merged(pieces: list[Range], text: str) -> list[Range]:
    """Return the pieces; pieces with only white space between them become one."""
    gaps = [(end, start) for (_, end), (start, _) in pairwise(pieces) if text[end:start].strip()]
    starts, ends = [pieces[0][0], *(start for _, start in gaps)], [*(end for end, _ in gaps), pieces[-1][1]]
    return list(zip(starts, ends, strict=True))


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
    """Return the number of weaker and further passages and the sign for missing sentences, with the remedies."""
    if not weaker and not further:
        return "Sentences left out at …; all=true shows them." if has_excerpts else ""
    if further:
        count = "1 more result" if further == 1 else f"{further} more results"
        others = f"; {weaker} weaker: all=true" if weaker else ""
        return f"{count}{', and sentences at …' if has_excerpts else ''}: top=10{others}."
    count = "1 weaker result" if weaker == 1 else f"{weaker} weaker results"
    return f"{count} left out{', and sentences at …' if has_excerpts else ''}; all=true shows them."


def other_languages_text(reply: JSON) -> list[str]:
    """Return a sentence that names other languages to search in, if no document answers well."""
    names = reply["other_languages"]
    there = "that language" if len(names) == 1 else "those languages"
    return [f"Other documents are in {', '.join(names)}: also search in {there}."] if names else []


def briefly(reply: JSON, fuller: JSON, *, is_ranked: bool) -> JSON:
    """Return the reply with the results of a short answer in their order.

    `further` is the number of other passages that the `fuller` answer has, `weaker` the number of the rest.

    The first result is always there, and alone if the subject of the query is probably not in kb. A note that replaces
    a result also stays. Unless `is_ranked`, by words and meaning together, the first results count as the best, and
    scores do not show which others are nearly as good.
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
        if not kept or (not reply.get("weak") and spent + cost <= room and (is_good(result) or not is_full)):
            kept.append(result)
            spent += cost
    ids = {result["chunk_id"] for result in kept}
    replacements = {result["replaced_by"] for result in kept}
    shown = [
        result | {"more": []}
        for result in results
        if result["chunk_id"] in ids or result["document_id"] in replacements
    ]
    known = {passage["chunk_id"] for passage in _passages(shown)}
    further = {passage["chunk_id"] for passage in _passages(fuller["results"])} - known
    weaker = len(list(_passages(results))) - len(known | further)
    return reply | {"results": shown, "further": len(further), "weaker": weaker}


def _tokens(result: JSON, *, is_whole: bool) -> float:
    ranges = [] if is_whole else excerpt(result)
    passage = {"text": passage_text(result)} | ({"shown": ranges} if ranges else {})
    return TOKENS_OF_A_LINE + estimate_tokens(shown_text(passage))
