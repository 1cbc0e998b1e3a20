"""XML without its own reader: feeds entry by entry, prose without its tags, anything else as source text.

Prose is cut at its titles, as marked in DocBook, JATS and TEI.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from lxml import etree

from kb.formats.containers.zip import xml_parser
from kb.formats.readers.html import flat_text, write_fragment
from kb.formats.readers.subtitles import Cue, read_cues, shown_time
from kb.formats.readers.tracks import ROOTS, read_tracks
from kb.formats.text.builder import LONGEST_HEADING, Heading, TextBuilder, lone_title, sections_under
from kb.formats.text.encoding import clean, decode, one_line
from kb.formats.text.extracted import Extracted

_FEEDS: Final = {"rss", "feed", "RDF"}
_TIMED: Final = "tt"
"""The root of subtitles (TTML)."""

_BODIES: Final = {"description", "summary", "content", "encoded"}
_TITLES: Final = {"title", "article-title", "head"}
_FEED_TITLE: Final = 1
_ENTRY_TITLE: Final = 2
_XHTML: Final = "http://www.w3.org/1999/xhtml"
_DECLARED: Final = re.compile(rb"""\A\s*<\?xml[^>]{0,256}?encoding\s*=\s*["']([\w.:-]+)""")
_MARKUP: Final = re.compile(r"</?[A-Za-z][^<>]*>|&(?:#\d+|#x[0-9A-Fa-f]+|\w+);")


def read(data: bytes) -> Extracted:
    """Read an XML file. One that is not well-formed is read as plain text."""
    declared = _DECLARED.search(data[:1024])
    text = decode(data, declared[1].decode("ascii") if declared else None)
    root = _parsed(text)
    if root is not None and etree.QName(root).localname in _FEEDS:
        return _feed(root)
    if root is not None and etree.QName(root).localname in ROOTS:
        return read_tracks(root)
    if root is not None and etree.QName(root).localname == _TIMED:
        return read_cues(_cues(root))
    prose = _prose(root) if root is not None else None
    # If tags and attributes are most of a file, they carry the meaning: configuration, data, drawings.
    return prose if prose and 2 * len(prose.text) > len(text) else Extracted.of_text(text)


def _cues(root: etree._Element) -> Iterator[Cue]:
    for paragraph in root.iter("{*}p"):
        for line in paragraph.iter("{*}br"):
            line.tail = f"\n{line.tail or ''}"
        lines = filter(None, map(one_line, "".join(paragraph.itertext()).split("\n")))
        yield Cue(shown_time(paragraph.get("begin", "")), "", list(lines))


def _parsed(text: str) -> etree._Element | None:
    try:
        return etree.fromstring(text.lstrip().encode(), xml_parser(encoding="utf-8"))
    except etree.XMLSyntaxError:
        return None


def _prose(root: etree._Element) -> Extracted:
    lines, headings, start = list[str](), list[Heading](), 0
    for level, words in _prose_lines(root):
        if level is not None:
            headings.append(Heading(start, level, words))
        lines.append(words)
        start += len(words) + 1
    text = clean("\n".join(lines))
    return Extracted(lone_title(headings), text, sections_under(text, headings))


def _prose_lines(root: etree._Element) -> Iterator[tuple[int | None, str]]:
    inline, depth = list[str](), 0
    walker = etree.iterwalk(root, events=("start", "end"))
    for event, element in walker:
        depth += 1 if event == "start" else -1
        if event == "end":
            # Between adjacent tags, only a line break keeps their texts apart.
            inline.append(element.tail or "\n")
        elif title := _title(element):
            yield from _split_lines(inline)
            inline.clear()
            yield depth, title
            walker.skip_subtree()
        else:
            inline.append(element.text or "")
    yield from _split_lines(inline)


def _pieces(element: etree._Element) -> Iterator[str]:
    """Yield the texts in an element; between adjacent tags, as of the paragraphs of a title, is a blank."""
    yield element.text or ""
    for child in element:
        yield from _pieces(child)
        yield child.tail or " "


def _split_lines(pieces: Sequence[str]) -> Iterator[tuple[None, str]]:
    lines = (one_line(line) for line in "".join(pieces).split("\n"))
    return ((None, line) for line in lines if line)


def _title(element: etree._Element) -> str | None:
    """Return the title of the part that begins with an element; None if the element is not a title."""
    above, before = element.getparent(), element.getprevious()
    is_first = above is not None and (before is None or before.tag == "label")
    if not is_first or not isinstance(element.tag, str) or etree.QName(element).localname not in _TITLES:
        return None
    title = one_line("".join(_pieces(element)))
    return title if len(title) <= LONGEST_HEADING else None


def _feed(root: etree._Element) -> Extracted:
    text = TextBuilder()
    walker = etree.iterwalk(root, events=("start",))
    for _, element in walker:
        if etree.QName(element).namespace == _XHTML:
            write_fragment(etree.tostring(element, encoding="unicode", with_tail=False), text, below=_ENTRY_TITLE)
            walker.skip_subtree()
        else:
            _write(element, text)
    first = next((heading.title for heading in text.headings if heading.level == _FEED_TITLE), None)
    return text.build(first)


def _write(element: etree._Element, text: TextBuilder) -> None:
    value, name = (element.text or "").strip(), etree.QName(element).localname
    if value and (level := _heading_level(element)):
        text.heading(level, flat_text(value))
    elif _MARKUP.search(value):
        write_fragment(value, text, below=_ENTRY_TITLE)
    elif value and name in _BODIES:
        text.paragraph(value)
    elif value:
        text.line(f"{name}: {one_line(value)}")


def _heading_level(element: etree._Element) -> int | None:
    tag, parent = etree.QName(element), element.getparent()
    above = etree.QName(parent) if parent is not None else None
    if above is None or tag.localname != "title" or tag.namespace != above.namespace:
        return None
    return {"channel": _FEED_TITLE, "feed": _FEED_TITLE, "item": _ENTRY_TITLE, "entry": _ENTRY_TITLE}.get(
        above.localname
    )
