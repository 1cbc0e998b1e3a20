"""Which results an answer shows if nobody says how many, and which sentences of them.

docs/quality.md has the cost of the limits.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final

from kb.api.document_day import has_ended
from kb.api.limits import DEFAULT_TOP
from kb.client.client import JSON
from kb_mcp.tools.compact_answers import passage_text
from kb_mcp.tools.rendering import shown_text
from kb_mcp.tools.token_estimate import estimate_tokens

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

BEST_SCORE: Final = 3.5
"""The highest score that counts as the best: a passage with the words of the query as typed has several more."""

EQUAL: Final = 0.75, 0.9
"""A result is as good as the best one with this share of its score, or this share of its match."""

SIMILAR: Final = 0.45, 0.3
"""Another result is far weaker unless it has both of these shares."""

TOKENS: Final = 95
"""Tokens for the results."""

TOKENS_WITH_EQUALS: Final = 425
"""Tokens for the results if several are as good as the best one."""

TOKENS_IF_ABSENT: Final = 50
"""Tokens for the results if the subject of the query is probably not in kb."""

TOKENS_OF_A_LINE: Final = 12
"""Tokens of the line above a passage."""


def excerpt(result: JSON) -> list[Range]:
    """Return the parts of a result's text with the most words of the query; an empty list for the whole text."""
    text = passage_text(result)
    offset = len(result["text"]) - len(text)
    words = [(start - offset, end - offset) for start, end in result["highlights"] if start >= offset]
    if len(text) < MIN_CHARACTERS or not words:
        return []
    pieces = list(_pieces(text, result["title"]))
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


def _pieces(text: str, title: str) -> Iterator[Range]:
    """Yield the lines of a text, and the sentences of long lines. A heading and the line after it are one piece."""
    begun = None
    for line in LINE.finditer(text):
        if begun is None and (line[0].startswith("#") or line[0].strip("*_ :") == title):
            begun = line.start()
        elif len(line[0]) <= MAX_LINE:
            yield line.start() if begun is None else begun, line.end()
            begun = None
        else:
            for sentence in SENTENCE.finditer(text, *line.span()):
                yield sentence.start() if begun is None else begun, sentence.end()
                begun = None
    if begun is not None:
        yield begun, len(text.rstrip())


def _merged(pieces: list[Range], text: str) -> list[Range]:
    """Return the pieces; pieces with only white space between them become one."""
    gaps = [(end, start) for (_, end), (start, _) in pairwise(pieces) if text[end:start].strip()]
    starts, ends = [pieces[0][0], *(start for _, start in gaps)], [*(end for end, _ in gaps), pieces[-1][1]]
    return list(zip(starts, ends, strict=True))


def best(reply: JSON, top: int, *, is_ranked: bool) -> JSON:
    """Return the reply with the results to show: `top` of them, or failing that, the best that fit into few tokens.

    `further` counts the passages left out that are not far weaker. `longer` is a larger number of results, if even the
    last one found is as good as the best. Unless `is_ranked`, by words and meaning together, scores do not show which
    results are better, so that the first ones count as the best.
    """
    results = reply["results"]
    if not results:
        return reply
    is_equal = _reaching(results, *EQUAL, enough=any) if is_ranked else lambda _: False
    has_both = _reaching(results, *SIMILAR, enough=all)

    def is_similar(passage: JSON) -> bool:
        return not is_ranked or is_equal(passage) or has_both(passage)

    asked = top or DEFAULT_TOP
    if is_equal(results[-1]) and len(results) == asked:
        reply |= {"longer": 2 * asked}
    if top:
        return reply
    room, more = (TOKENS_IF_ABSENT, TOKENS_IF_ABSENT) if reply.get("weak") else (TOKENS, TOKENS_WITH_EQUALS)
    kept, spent = dict[int, list[Range]](), 0.0
    for result in sorted(results, key=_by_score) if is_ranked else results:
        ranges = excerpt(result) if kept else []
        cost = _tokens(result, ranges)
        fits = spent + cost <= (more if is_equal(result) else room)
        if not kept or (fits and is_similar(result)):
            kept[result["chunk_id"]] = ranges
            spent += cost
    shown = _in_order(results, kept)
    known = {result["chunk_id"] for result in shown}
    left = [passage for passage in _passages(results) if passage["chunk_id"] not in known]
    return reply | {"results": shown, "further": sum(map(is_similar, left))}


def _by_score(result: JSON) -> tuple[bool, float]:
    """Return the place of a result: what was replaced or has ended comes after what holds."""
    today = datetime.now(UTC).date().isoformat()
    return bool(result["replaced_by"]) or has_ended(result.get("valid_until"), today), -result["score"]


def _in_order(results: list[JSON], kept: dict[int, list[Range]]) -> list[JSON]:
    """Return the results by chunk, with the parts of their texts to show, and the notes that replace them."""
    replacements = {result["replaced_by"] for result in results if result["chunk_id"] in kept}
    return [
        result | {"more": [], "shown": kept.get(result["chunk_id"], [])}
        for result in results
        if result["chunk_id"] in kept or result["document_id"] in replacements
    ]


def _reaching(
    passages: Sequence[JSON], score: float, match: float, enough: Callable[[Iterable[bool]], bool]
) -> Callable[[JSON], bool]:
    """Return whether any or all of two figures of a passage reach a share of the best one: its score and its match.

    A score compares a passage with the other candidates. Among few documents it can be low for a good passage, so that
    the match also counts: both scores by themselves, each as a share of the best one.
    """
    words, meaning = (max(passage[leg] or 0.0 for passage in passages) for leg in ("fts_score", "vec_score"))

    def match_of(passage: JSON) -> float:
        return _share(passage["fts_score"], words) + _share(passage["vec_score"], meaning)

    least_score = score * min(BEST_SCORE, max(passage["score"] for passage in passages))
    least_match = match * max(map(match_of, passages))
    return lambda passage: enough((passage["score"] >= least_score, match_of(passage) >= least_match))


def _passages(results: list[JSON]) -> Iterator[JSON]:
    for result in results:
        yield result
        yield from result["more"]


def _share(score: float | None, best: float) -> float:
    return (score or 0.0) / best if best > 0 else 0.0


def _tokens(result: JSON, ranges: list[Range]) -> float:
    passage = {"text": passage_text(result)} | ({"shown": ranges} if ranges else {})
    return TOKENS_OF_A_LINE + estimate_tokens(shown_text(passage))


def left_out_text(further: int, longer: int, *, has_excerpts: bool) -> str:
    """Return what an answer leaves out, and the call that shows it; empty if it leaves out only far weaker results."""
    if further or has_excerpts:
        count = [f"{further} more of similar score"] if further else []
        said = [*count, *(["the sentences left out at …"] if has_excerpts else [])]
        return f"For {' and '.join(said)}: top={longer or DEFAULT_TOP}."
    return f"There may be more that are as good: top={longer}." if longer else ""


def other_languages_text(reply: JSON) -> list[str]:
    """Return a sentence that names other languages to search in, if no document answers well."""
    return [f"Also search in {', '.join(names)}."] if (names := reply["other_languages"]) else []
