"""reStructuredText (.rst): the source itself, cut at its headings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final

from kb.formats.text.builder import LONGEST_HEADING, Heading, lone_title, sections_under
from kb.formats.text.encoding import decode, one_line
from kb.formats.text.extracted import Extracted

_ADORNMENT: Final = re.compile(r"([!-/:-@\[-`{-~])\1*[ \t]*")
_SHORTEST: Final = 4
"""The minimum length of the line of punctuation below a longer heading."""
_MARKUP: Final = re.compile(r":[\w:.+-]{1,50}:(?=`)|(?<!\w)(?:``|\*\*|[`*])(?=\S)|(?<=\S)(?:``|\*\*|[`*])_{0,2}(?!\w)")


def read(data: bytes) -> Extracted:
    """Read a reStructuredText file. A heading is a line above a line of punctuation, or between two of them."""
    text = decode(data)
    headings = list(_headings(text.split("\n")))
    return Extracted(lone_title(headings), text, sections_under(text, headings))


def _headings(lines: Sequence[str]) -> Iterator[Heading]:
    starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
    levels: dict[tuple[str, bool], int] = {}
    end = 0
    for number in range(len(lines) - 1):
        over = number - 1 if number > end and lines[number - 1].strip() else None
        if number < end or not _is_heading(lines, number, over):
            continue
        style = (lines[number + 1][0], over is not None)
        level = levels.setdefault(style, len(levels) + 1)
        yield Heading(starts[number if over is None else over], level, one_line(_MARKUP.sub("", lines[number])))
        end = number + 2


def _is_heading(lines: Sequence[str], number: int, over: int | None) -> bool:
    title, under = lines[number].rstrip(), lines[number + 1].rstrip()
    if not title.strip() or len(title) > LONGEST_HEADING or _ADORNMENT.fullmatch(title):
        return False
    is_underlined = bool(_ADORNMENT.fullmatch(under)) and len(under) >= min(len(title), _SHORTEST)
    if over is None:
        return is_underlined and not title[0].isspace()
    is_alone = over == 0 or not lines[over - 1].strip()
    return is_underlined and is_alone and lines[over].rstrip() == under and len(under) >= len(title.strip())
