"""Markdown (CommonMark): the source itself without its front matter, cut at its headings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from markdown_it import MarkdownIt

from kb.api.inline_tags import clean_tags, inline_tags
from kb.api.markdown_signs import without_links
from kb.formats.readers.front_matter import front_matter
from kb.formats.text.builder import Heading, sections_under
from kb.formats.text.encoding import decode, one_line
from kb.formats.text.extracted import Extracted

if TYPE_CHECKING:
    from markdown_it.token import Token


_EXPORT_FIELDS: Final = re.compile(r"\n\n(?P<fields>id: [0-9a-f]{32}\n(?:[a-z_]{1,40}:[^\n]*\n)*type_: 1)\s*\Z")
_LONGEST_FIELDS: Final = 20_000


class _Block(NamedTuple):
    """A block such as a heading or a paragraph: its start, its text, and its level if it is a document's heading."""

    start: int
    text: str
    level: int | None


def read(data: bytes) -> Extracted:
    """Read a Markdown file; headings inside code, quotes and lists are part of their section.

    Front matter is not text, unless the file contains nothing else. It is replaced by empty lines, so that the line
    numbers below it stay the same as in the file.
    """
    source, exported = _without_export_fields(decode(data))
    front = front_matter(source)
    text = source
    is_apart = front.is_understood and bool(source[front.length :].strip())
    if is_apart:
        text = "\n" * source.count("\n", 0, front.length) + source[front.length :]
    blocks = list(_blocks(text, 0 if is_apart else front.length))
    headings = list(_headings(blocks))
    first = next((heading.title for heading in headings if heading.level == 1), None)
    inline = [tag for block in blocks for tag in inline_tags(block.text)] if front.inline_tags else []
    return Extracted(
        front.title or (first and without_links(first)) or first or exported.get("title") or None,
        text,
        sections_under(text, headings),
        tags=clean_tags([*front.tags, *inline]),
        date=front.date or exported.get("user_created_time") or exported.get("created_time"),
        aliases=front.aliases,
        omitted={"front_matter": 1} if front.is_lost else {},
    )


def _without_export_fields(source: str) -> tuple[str, dict[str, str]]:
    """Return a note without the fields that Joplin exports below it, and these fields."""
    match = _EXPORT_FIELDS.search(source[-_LONGEST_FIELDS:])
    if not match:
        return source, {}
    text = source[: len(source) - len(match[0])] + "\n"
    fields = dict(line.partition(": ")[::2] for line in match["fields"].splitlines())
    return text, fields | {"title": text.partition("\n")[0].strip()}


def headings_in(text: str) -> Iterator[Heading]:
    return _headings(_blocks(text))


def _blocks(text: str, begin: int = 0) -> Iterator[_Block]:
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
            yield _Block(starts[opening.map[0]], inline.content, int(opening.tag[1:]) if is_heading else None)


def _headings(blocks: Iterable[_Block]) -> Iterator[Heading]:
    parser = MarkdownIt("commonmark")
    for block in blocks:
        if block.level and (title := one_line(_rendered(parser.parseInline(block.text)))):
            yield Heading(block.start, block.level, title)


def _rendered(tokens: list[Token]) -> str:
    return "".join(
        _rendered(token.children) if token.children else " " if token.type == "softbreak" else token.content
        for token in tokens
        if token.type != "html_inline"
    )
