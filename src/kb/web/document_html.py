"""Render a document's text as HTML. All of it is untrusted, so everything not generated here is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, groupby, starmap, takewhile
from typing import Any, Final

from markupsafe import Markup, escape

from kb.api.emphasis import emphasis_signs

Row = dict[str, Any]

MARKDOWN: Final = ("note", "markdown")
MAIL: Final = ("eml", "msg", "tnef")
CODE: Final = ("code", "json", "xml")
BOXES: Final = {"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "}
SEPARATOR: Final = " | "
SNIPPET: Final = 300
"""Maximum length of a snippet in characters."""

_TURNING: Final = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters that change the direction of the text after them."""

_UNSPACED: Final = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u31ff\u3400-\u9fff"
    r"\uac00-\ud7a3\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)
"""Letters and marks of scripts without spaces, and of Korean, as in `kb.lexical.segmentation`."""

_SIGNS: Final = re.compile(r"(?:\| ?)?(?::?-{3,}:? ?\| ?)+|\| (?=\|)|`{3}\w*|(?:(?<= )|^)(?:#{1,6} |[-*] \[[ xX]\] )")
"""Markdown syntax for tables, code blocks, headings and tasks."""

_FIELD: Final = re.compile(r"([A-Z][A-Za-z-]*): (.*)")
"""A line in the header of a mail."""


def plain(text: str, most: int = 1000) -> str:
    """Return a name as one line, without characters that change the text direction."""
    line = " ".join(_TURNING.sub("\N{REPLACEMENT CHARACTER}", text[: 2 * most]).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def matched(text: str, ranges: Iterable[Sequence[int]]) -> set[str]:
    """Return the words at some ranges of a text."""
    return {text[start:end].casefold() for start, end in ranges}


def mark(text: str, words: set[str]) -> Markup:
    """Return an escaped text with words in `<mark>`: whole words only, but any match in scripts without spaces."""
    if not words:
        return escape(text)
    pattern = "|".join(map(_whole, sorted(words, key=len, reverse=True)))
    parts = re.split(f"({pattern})", text, flags=re.IGNORECASE)
    return Markup("").join(
        Markup("<mark>{}</mark>").format(part) if index % 2 else escape(part) for index, part in enumerate(parts)
    )


def _whole(word: str) -> str:
    """Return the pattern of a word; a letter of a script without spaces may have letters next to it."""
    before = "" if _UNSPACED.match(word[0]) else r"(?<!\w)"
    after = "" if _UNSPACED.match(word[-1]) else r"(?!\w)"
    return f"{before}{re.escape(word)}{after}"


def snippet(doc_type: str, text: str, ranges: Sequence[Sequence[int]]) -> Markup:
    """Return the part of a passage with the most ranges, which are marked, without most of the Markdown syntax."""
    text = re.sub(r"\s", " ", text)
    shown = partial(_without, text, _signs_in(text) if doc_type in MARKDOWN else frozenset())
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
        if first >= at and last <= end:
            pieces += [shown(at, first), Markup("<mark>{}</mark>").format(text[first:last])]
            at = last
    pieces += [shown(at, end).rstrip(), Markup(" …") if end < len(text) else Markup("")]
    return Markup("").join(pieces)


def _signs_in(text: str) -> frozenset[int]:
    """Return the positions of Markdown syntax."""
    spans = [*(sign.span() for sign in _SIGNS.finditer(text)), *emphasis_signs(text)]
    return frozenset(chain.from_iterable(starmap(range, spans)))


def _without(text: str, left_out: frozenset[int], begin: int, end: int) -> Markup:
    """Return a range of a text, escaped, without the characters at some positions."""
    return escape("".join(text[at] for at in range(begin, end) if at not in left_out))


def body(doc_type: str, chunks: Sequence[Row], hit: int | None, words: set[str]) -> Markup:
    """Return chunks as HTML; the chunk with the index `hit` is highlighted, and `words` are marked in it."""
    if doc_type in MARKDOWN:
        return _markdown_with_hit(chunks, hit, words)
    parts: list[Markup] = []
    heading: list[str] = []
    for chunk in chunks:
        is_hit = chunk["index"] == hit
        inner = _chunk(doc_type, chunk, words if is_hit else set(), heading)
        heading = chunk["place"]["heading"]
        parts.append(_section(chunk["index"], inner, is_hit))
    return Markup("").join(parts)


def _section(index: int, inner: Markup, is_hit: bool) -> Markup:
    hit = Markup(' class="chunk hit" tabindex="-1" autofocus') if is_hit else Markup(' class="chunk"')
    return Markup('<section id="c{}"{}>{}</section>').format(index, hit, inner)


def _chunk(doc_type: str, chunk: Row, words: set[str], before: list[str]) -> Markup:
    lines = chunk["text"].splitlines()
    if doc_type in CODE:
        return _code(lines, chunk["place"]["line_start"], words)
    head = list(takewhile(_FIELD.fullmatch, lines)) if doc_type in MAIL and chunk["index"] == 0 else []
    headings = set(chunk["place"]["heading"]) - set(before)
    return _mail_head(head, words) + Markup("").join(_blocks(lines[len(head) :], headings, words))


def _mail_head(lines: Sequence[str], words: set[str]) -> Markup:
    fields = (line.split(": ", 1) for line in lines)
    rows = (Markup("<dt>{}</dt><dd>{}</dd>").format(name, mark(value, words)) for name, value in fields)
    return Markup('<dl class="facts head">{}</dl>').format(Markup("").join(rows)) if lines else Markup("")


def _code(lines: Sequence[str], first: int, words: set[str]) -> Markup:
    rows = (
        Markup('<tr><td class="ln" data-n="{}"></td><td>{}</td></tr>').format(number, mark(line, words))
        for number, line in enumerate(lines, first)
    )
    return Markup('<table class="code" role="presentation"><tbody>{}</tbody></table>').format(Markup("").join(rows))


def _blocks(lines: Sequence[str], headings: set[str], words: set[str]) -> Iterator[Markup]:
    """Yield headings, tables and paragraphs."""
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


def markdown(text: str) -> Markup:
    """Return Markdown as HTML; embedded HTML, pictures and links to scripts stay plain text."""
    return Markup(_parser().render(text))  # noqa: S704 - the parser escapes the text


def _markdown_with_hit(chunks: Sequence[Row], hit: int | None, words: set[str]) -> Markup:
    """Return Markdown with the blocks of a chunk highlighted; it is rendered as a whole, because lists span chunks."""
    if not chunks:
        return Markup("")
    text = "".join(chunk["text"] for chunk in chunks)
    first = chunks[0]["place"]["line_start"]
    place = next((chunk["place"] for chunk in chunks if chunk["index"] == hit), None)
    parser = _parser()
    tokens = parser.parse(text)
    blocks: list[tuple[bool, list[Any]]] = []
    for token in tokens:
        if token.level == 0 and token.nesting >= 0:
            lines = token.map or [0, 0]
            is_hit = (
                place is not None and lines[0] + first <= place["line_end"] and lines[1] + first > place["line_start"]
            )
            blocks.append((is_hit, []))
        blocks[-1][1].append(token)
    parts, is_first = [], True
    for is_hit, group in groupby(blocks, key=lambda block: block[0]):
        run = [token for _, block in group for token in block]
        rendered = parser.renderer.render(run, parser.options, {"words": words if is_hit else set()})
        html = Markup(rendered)  # noqa: S704 - the parser escapes the text
        if is_hit and hit is not None:
            html = _section(hit, html, is_first) if is_first else Markup('<div class="hit">{}</div>').format(html)
            is_first = False
        parts.append(html)
    return Markup("").join(parts)


def _parser() -> Any:  # noqa: ANN401 - the library is loaded on first use
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(["table", "strikethrough"])
    parser.disable("image")
    parser.add_render_rule(
        "text", lambda self, tokens, index, options, env: str(mark(_boxed(tokens, index), env.get("words", set())))
    )
    parser.add_render_rule("heading_open", lambda self, tokens, index, options, env: f"<h{_level(tokens[index])}>")
    parser.add_render_rule("heading_close", lambda self, tokens, index, options, env: f"</h{_level(tokens[index])}>\n")
    parser.add_render_rule("link_open", _link)
    parser.add_render_rule("table_open", lambda *_: '<div class="wide" tabindex="0"><table>')
    parser.add_render_rule("table_close", lambda *_: "</table></div>")
    parser.validateLink = _is_harmless  # type: ignore[method-assign] # the library's way to configure it
    return parser


def _boxed(tokens: Any, index: int) -> str:  # noqa: ANN401 - the library's own
    """Return a piece of text, with the box of a task at its start."""
    text: str = tokens[index].content
    return BOXES.get(text[:4], text[:4]) + text[4:] if index == 0 else text


def _level(token: Any) -> int:  # noqa: ANN401 - of a library loaded later
    """Return the level of a heading, one below the page's own."""
    return min(6, int(token.tag[1]) + 1)


def _link(self: Any, tokens: Any, index: int, options: Any, env: Any) -> str:  # noqa: ANN401 - the library's own
    tokens[index].attrSet("rel", "noopener noreferrer nofollow")
    return str(self.renderToken(tokens, index, options, env))


def _is_harmless(url: str) -> bool:
    return re.match(r"(https?|mailto):", url.strip(), re.IGNORECASE) is not None or url.startswith("#")
