"""Show only the sentences of later search results that contain words of the query."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from kb.client.client import JSON
from kb_mcp.tools.compact_answers import passage_text

WHOLE_RESULTS: Final = 6
"""Number of first results that are whole among ten. docs/quality.md has the cost of this and of the length."""

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
    found = {piece: {text[start:end].casefold() for start, end in words if _holds(piece, start)} for piece in pieces}
    shown, size = list[Range](), 0
    for piece in sorted(pieces, key=lambda piece: -len(found[piece])):
        size += piece[1] - piece[0]
        if shown and (size > MAX_CHARACTERS or not found[piece]):
            break
        shown.append(piece)
    return _merged(sorted(shown), text)


def _holds(piece: Range, place: int) -> bool:
    return piece[0] <= place < piece[1]


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
