"""Markdown (CommonMark): the source itself, cut at its headings."""

from __future__ import annotations

import re
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, NamedTuple

from markdown_it import MarkdownIt

from kb.ingest.extract import Extracted
from kb.ingest.formats.building import Heading, sections_under
from kb.ingest.formats.characters import decode, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from markdown_it.token import Token

# Between --- (YAML) or +++ (TOML), before anything else.
_FRONT_MATTER = re.compile(r"(?s)\A(---|\+\+\+)[ \t]*\n(?P<matter>.*?\n)(?:\1|\.\.\.)[ \t]*(?:\n|\Z)")
_TITLE = re.compile(r"""(?mi)^title[ \t]*[:=][ \t]*(?P<quote>["']?)(?P<title>.*?)(?P=quote)[ \t]*$""")


class _Front(NamedTuple):
    length: int
    title: str | None


def read(data: bytes) -> Extracted:
    """Read a Markdown file; headings inside code, quotes and lists are part of their section."""
    text = decode(data)
    front = _front(text)
    headings = list(headings_in(text, front.length))
    first = next((heading.title for heading in headings if heading.level == 1), None)
    return Extracted("markdown", front.title or first, text, sections_under(text, headings))


def _front(text: str) -> _Front:
    block = _FRONT_MATTER.match(text)
    title = _TITLE.search(block["matter"]) if block else None
    return _Front(block.end() if block else 0, (one_line(title["title"]) or None) if title else None)


def headings_in(text: str, begin: int = 0) -> Iterator[Heading]:
    """The headings of a Markdown text from `begin` on."""
    parser = MarkdownIt("commonmark")
    body = text[begin:]
    # Only the blocks matter here: inline markup is parsed for the headings alone.
    with parser.reset_rules():
        parser.disable("inline")
        tokens = parser.parse(body)
    starts = list(accumulate((len(line) + 1 for line in body.split("\n")), initial=begin))
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open" and opening.level == 0 and opening.map:
            title = one_line(_plain(parser.parseInline(inline.content)))
            if title:
                yield Heading(starts[opening.map[0]], int(opening.tag[1:]), title)


def _plain(tokens: list[Token]) -> str:
    return "".join(
        _plain(token.children) if token.children else " " if token.type == "softbreak" else token.content
        for token in tokens
        if token.type != "html_inline"
    )
