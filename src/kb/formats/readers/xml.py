"""XML without a reader of its own: feeds entry by entry, prose without its tags, anything else as source text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from lxml import etree

from kb.formats.extracted import Extracted
from kb.formats.readers.html import flat_text, write_fragment
from kb.formats.text.builder import TextBuilder
from kb.formats.text.encoding import decode, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

_FEEDS: Final = {"rss", "feed", "RDF"}
_BODIES: Final = {"description", "summary", "content", "encoded"}
_FEED_TITLE: Final = 1
_ENTRY_TITLE: Final = 2
_XHTML: Final = "http://www.w3.org/1999/xhtml"
_DECLARED: Final = re.compile(rb"""\A\s*<\?xml[^>]{0,256}?encoding\s*=\s*["']([\w.:-]+)""")
_MARKUP: Final = re.compile(r"</?[A-Za-z][^<>]*>|&(?:#\d+|#x[0-9A-Fa-f]+|\w+);")


def read(data: bytes) -> Extracted:
    """Read an XML file. One that is not well-formed is read as the text it is."""
    declared = _DECLARED.search(data[:1024])
    text = decode(data, declared[1].decode("ascii") if declared else None)
    root = _parsed(text)
    if root is not None and etree.QName(root).localname in _FEEDS:
        return _feed(root)
    prose = _prose(root) if root is not None else ""
    # Where tags and attributes are most of a file, they carry the meaning: configuration, data, drawings.
    return Extracted.of_text(prose if 2 * len(prose) > len(text) else text)


def _parsed(text: str) -> etree._Element | None:
    parser = etree.XMLParser(
        encoding="utf-8",
        resolve_entities=False,
        no_network=True,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        return etree.fromstring(text.lstrip().encode(), parser)
    except etree.XMLSyntaxError:
        return None


def _prose(root: etree._Element) -> str:
    lines = (one_line(line) for line in "".join(_prose_pieces(root)).split("\n"))
    return "\n".join(line for line in lines if line)


def _prose_pieces(root: etree._Element) -> Iterator[str]:
    for event, element in etree.iterwalk(root, events=("start", "end")):
        # Where nothing stands between two tags, only a line break keeps what is in them apart.
        yield (element.text or "") if event == "start" else (element.tail or "\n")


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
