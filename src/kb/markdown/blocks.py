"""The headings and paragraphs of a Markdown text (CommonMark)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, NamedTuple

from markdown_it import MarkdownIt

if TYPE_CHECKING:
    from markdown_it.token import Token


class Block(NamedTuple):
    """A block such as a heading or a paragraph: its range, its text, and its level if it is a document's heading."""

    start: int
    end: int
    text: str
    level: int | None


def blocks_of(text: str, begin: int = 0) -> Iterator[Block]:
    """Yield the blocks of a text from a position on. This omits code and HTML."""
    parser = MarkdownIt("commonmark")
    body = text[begin:]
    # Only the blocks matter here: inline markup is parsed only for the headings.
    with parser.reset_rules():
        parser.disable("inline")
        tokens = parser.parse(body)
    starts = list(accumulate((len(line) + 1 for line in body.split("\n")), initial=begin))
    for opening, inline in pairwise(tokens):
        if inline.type == "inline" and opening.map:
            is_heading = opening.type == "heading_open" and opening.level == 0
            first, after = (starts[line] for line in opening.map)
            yield Block(first, after, inline.content, int(opening.tag[1:]) if is_heading else None)


def headings_of(blocks: Iterable[Block]) -> Iterator[tuple[int, int, str]]:
    """Yield the place, the level and the words of each heading with words."""
    parser = MarkdownIt("commonmark")
    for block in blocks:
        if block.level and (title := " ".join(_rendered(parser.parseInline(block.text)).split())):
            yield block.start, block.level, title


def _rendered(tokens: list[Token]) -> str:
    return "".join(
        _rendered(token.children) if token.children else " " if token.type == "softbreak" else token.content
        for token in tokens
        if token.type != "html_inline"
    )
