"""Render a document's text as HTML. All of it is untrusted, so everything not generated here is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby, takewhile
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from markupsafe import Markup, escape

from kb.markdown.front_matter import BLOCK, front_matter
from kb.markdown.signs import MARKDOWN, addresses, replacements
from kb_web.markdown_html import fields, parser, shown, without_matter
from kb_web.markdown_links import Surroundings
from kb_web.marking import mark

if TYPE_CHECKING:
    from markdown_it.token import Token

Row = dict[str, Any]

MAIL: Final = ("eml", "msg", "tnef")
CODE: Final = ("code", "json", "xml")
SEPARATOR: Final = " | "
SNIPPET: Final = 300
"""Maximum length of a snippet in characters."""

_TURNING: Final = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters that change the direction of the text after them."""

_FIELD: Final = re.compile(r"([A-Z][A-Za-z-]*): (.*)")
"""A line in the header of a mail."""


def plain(text: str, most: int = 1000) -> str:
    """Return a name as one line, without characters that change the text direction."""
    line = " ".join(_TURNING.sub("\N{REPLACEMENT CHARACTER}", text[: 2 * most]).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def snippet(doc_type: str, text: str, ranges: Sequence[Sequence[int]]) -> Markup:
    """Return the part of a passage with the most ranges, which are marked, without most of the Markdown syntax.

    It has no front matter, unless only that matches.
    """
    if doc_type in MARKDOWN and (block := BLOCK.match(text)) and front_matter(text).is_understood:
        behind = [(first - block.end(), last - block.end()) for first, last in ranges if first >= block.end()]
        if (behind or not ranges) and text[block.end() :].strip():
            text, ranges = text[block.end() :], behind
    signs, hidden = (replacements(text), addresses(text)) if doc_type in MARKDOWN else ({}, [])
    text = re.sub(r"\s", " ", text)
    shown = partial(_without, text, signs)
    start = max(
        (max(0, first[0] - 60) for first in ranges),
        key=lambda at: sum(at <= span[0] < at + SNIPPET - 60 for span in ranges),
        default=0,
    )
    if start:
        start = text.find(" ", start) + 1 or start
    end = min(len(text), start + SNIPPET)
    if end < len(text):
        end = max(text.rfind(" ", start, end), start + SNIPPET // 2)
    pieces, at = [Markup("… ") if start else Markup("")], start
    for first, last in sorted(map(tuple, ranges)):
        word = shown(first, last)  # empty in what the text hides: the target of a link, a comment
        if word and first >= at and last <= end and not any(first in address for address in hidden):
            pieces += [shown(at, first), Markup("<mark>{}</mark>").format(word)]
            at = last
    pieces += [shown(at, end).rstrip(), Markup(" …") if end < len(text) else Markup("")]
    return Markup("").join(pieces)


def _without(text: str, signs: Mapping[int, str], begin: int, end: int) -> Markup:
    """Return a range of a text, escaped, with other signs at some positions."""
    return escape("".join(signs.get(at, text[at]) for at in range(begin, end)))


class Body(NamedTuple):
    """A document as HTML: its text, and the front matter that the text begins with."""

    text: Markup
    matter: Markup = Markup("")
    is_matter_hit: bool = False
    """Whether the visible passage is the front matter."""


def body(
    doc_type: str,
    chunks: Sequence[Row],
    hit: int | None,
    words: set[str],
    about: Surroundings = Surroundings(),  # noqa: B008 - it cannot change
    *,
    is_framed: bool = True,
) -> Body:
    """Return chunks as HTML, with `words` marked in the chunk with the index `hit`.

    Args:
        is_framed: whether the chunk gets a frame and the focus; the only chunk of a short document needs none.
    """
    if doc_type in MARKDOWN:
        return _markdown_with_hit(
            chunks, hit, words, about, is_framed, has_boxes=doc_type == "note" and about.may_write
        )
    parts: list[Markup] = []
    heading: list[str] = []
    for chunk in chunks:
        is_hit = chunk["index"] == hit
        inner = _chunk(doc_type, chunk, words if is_hit else set(), heading)
        heading = chunk["place"]["heading"]
        parts.append(_section(chunk["index"], inner, is_hit and is_framed))
    return Body(Markup("").join(parts))


def _section(index: int, inner: Markup, is_hit: bool) -> Markup:
    hit = Markup(' class="chunk hit" tabindex="-1" autofocus') if is_hit else Markup(' class="chunk"')
    return Markup('<section id="c{}"{}>{}</section>').format(index, hit, inner)


def _chunk(doc_type: str, chunk: Row, words: set[str], before: list[str]) -> Markup:
    lines = chunk["text"].splitlines()
    if doc_type in CODE:
        first = chunk["place"]["line_start"]
        rows = (
            Markup('<tr><td class="ln" data-n="{}"></td><td>{}</td></tr>').format(number, mark(line, words))
            for number, line in enumerate(lines, first)
        )
        return Markup('<table class="code" role="presentation"><tbody>{}</tbody></table>').format(Markup("").join(rows))
    head = list(takewhile(_FIELD.fullmatch, lines)) if doc_type in MAIL and chunk["index"] == 0 else []
    headings = set(chunk["place"]["heading"]) - set(before)
    return _mail_head(head, words) + Markup("").join(_blocks(lines[len(head) :], headings, words))


def _mail_head(lines: Sequence[str], words: set[str]) -> Markup:
    fields = (line.split(": ", 1) for line in lines)
    rows = (Markup("<dt>{}</dt><dd>{}</dd>").format(name, mark(value, words)) for name, value in fields)
    return Markup('<dl class="facts head">{}</dl>').format(Markup("").join(rows)) if lines else Markup("")


def _blocks(lines: Sequence[str], headings: set[str], words: set[str]) -> Iterator[Markup]:
    for cells, group in groupby(lines, key=lambda line: line.count(SEPARATOR)):
        rows = list(group)
        if cells and len(rows) > 1:
            yield _table(rows, words, has_head=rows[0] in headings)
            continue
        for is_empty, block in groupby(rows, key=lambda line: not line.strip()):
            if not is_empty:
                yield from _paragraphs(block, headings, words)


def _paragraphs(lines: Iterable[str], headings: set[str], words: set[str]) -> Iterator[Markup]:
    for is_heading, group in groupby(lines, key=lambda line: line.strip() in headings):
        if is_heading:
            yield from (Markup("<h3>{}</h3>").format(mark(line, words)) for line in group)
        else:
            yield Markup("<p>{}</p>").format(mark("\n".join(group), words))


def _table(rows: Sequence[str], words: set[str], *, has_head: bool) -> Markup:
    def row(line: str, cell: Markup) -> Markup:
        cells = (cell.format(mark(text, words)) for text in line.split(SEPARATOR))
        return Markup("<tr>{}</tr>").format(Markup("").join(cells))

    head = Markup("<thead>{}</thead>").format(row(rows[0], Markup("<th>{}</th>"))) if has_head else Markup("")
    lines = Markup("").join(row(line, Markup("<td>{}</td>")) for line in rows[1 if has_head else 0 :])
    return Markup('<div class="wide" tabindex="0"><table>{}<tbody>{}</tbody></table></div>').format(head, lines)


def _markdown_with_hit(
    chunks: Sequence[Row], hit: int | None, words: set[str], about: Surroundings, is_framed: bool, *, has_boxes: bool
) -> Body:
    """Return Markdown with the blocks of a chunk highlighted; it is rendered as a whole, because lists span chunks."""
    if not chunks:
        return Body(Markup(""))
    text, matter = "".join(chunk["text"] for chunk in chunks), ""
    first = chunks[0]["place"]["line_start"] - text[: len(text) - len(text.lstrip())].count("\n")
    if chunks[0]["index"] == 0:
        matter, text = without_matter(text)
        matter = matter or without_matter(about.beginning)[0]
    else:
        about = replace(about, title="")
    place = next((chunk["place"] for chunk in chunks if chunk["index"] == hit), None)
    has_boxes = has_boxes and "\r" not in text.replace("\r\n", "\n")  # a lone one ends a line only for Markdown
    env: dict[str, Any] = {"about": about} | ({"line": first, "lines": text.split("\n")} if has_boxes else {})
    blocks = _blocks_of(parser().parse(text, env))
    hits = [is_at(place, first, block) for block in blocks] if place else [False] * len(blocks)
    is_matter_hit = bool(matter) and place is not None and place["line_start"] <= first and not any(hits)
    parts, is_first = [], True
    for is_hit, group in groupby(zip(hits, blocks, strict=True), key=itemgetter(0)):
        run = [token for _, block in group for token in block]
        html = shown(run, env | ({"words": words, "is_hit": True} if is_hit else {}))
        if is_hit and is_framed and hit is not None:
            html = _section(hit, html, is_first) if is_first else Markup('<div class="hit">{}</div>').format(html)
            is_first = False
        parts.append(html)
    head = fields(matter, about, words if is_matter_hit else frozenset())
    return Body(Markup("").join(parts), head, is_matter_hit)


def _blocks_of(tokens: Sequence[Token]) -> list[list[Token]]:
    """Return the tokens of each block of a document; the footnotes are the last block."""
    blocks: list[list[Token]] = []
    for token in tokens:
        is_footnote = bool(blocks) and blocks[-1][0].type == "footnote_block_open"
        if token.level == 0 and token.nesting >= 0 and not is_footnote:
            blocks.append([])
        blocks[-1].append(token)
    return blocks


def is_at(place: Row, first: int, block: Sequence[Token]) -> bool:
    """Return whether a block of a text, which begins at line `first`, has lines of a place."""
    lines = (token.map for token in block if token.map)
    return any(begin + first <= place["line_end"] and end + first > place["line_start"] for begin, end in lines)
