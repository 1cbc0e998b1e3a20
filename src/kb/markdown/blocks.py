"""The headings and paragraphs of a Markdown text (CommonMark)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

BREAKS: Final = ("softbreak", "hardbreak")
_MARKUP: Final = re.compile(r"[\\`*_\[<&\n]")


class Block(NamedTuple):
    """A block such as a heading or a paragraph: its range, its text, and its level if it is a document's heading."""

    start: int
    end: int
    text: str
    level: int | None


def blocks_of(text: str, begin: int = 0) -> Iterator[Block]:
    """Yield the blocks of a text from a position on. This omits code and HTML."""
    body = text[begin:]
    tokens = _parser("inline", "text_join").parse(body)  # inline markup is parsed only for the headings
    starts = list(accumulate((len(line) + 1 for line in body.split("\n")), initial=begin))
    for opening, inline in pairwise(tokens):
        if inline.type == "inline" and opening.map:
            is_heading = opening.type == "heading_open" and opening.level == 0
            first, after = (starts[line] for line in opening.map)
            yield Block(first, after, inline.content, int(opening.tag[1:]) if is_heading else None)


def headings_of(blocks: Iterable[Block]) -> Iterator[tuple[int, int, str]]:
    """Yield the place, the level and the words of each heading with words."""
    for block in blocks:
        if block.level:
            has_markup = _MARKUP.search(block.text)
            words = (text_of(_parser().parseInline(block.text)) if has_markup else block.text).split()
            if words:
                yield block.start, block.level, " ".join(words)


def text_of(tokens: Iterable[Token]) -> str:
    return "".join(
        text_of(token.children) if token.children else " " if token.type in BREAKS else token.content
        for token in tokens
        if token.type != "html_inline"
    )


@cache
def _parser(*without: str) -> MarkdownIt:
    """Return a parser, without some of its rules."""
    from markdown_it import MarkdownIt  # slow to import, and few texts need it

    parser = MarkdownIt("commonmark").disable(without)
    parser.parse("#")  # so that the rules are compiled before other threads use them
    return parser
