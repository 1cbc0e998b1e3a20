"""Word documents (.docx, .docm, .dotx): the body in order, then notes and comments, then headers and footers once.

Insertions under revision are read, deletions are not.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from kb.formats.containers.ooxml import Package
from kb.formats.containers.zip import attribute, local_name
from kb.formats.readers.omml import linear
from kb.formats.text.builder import TextBuilder
from kb.formats.text.encoding import one_line
from kb.formats.text.margins import write_margins

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lxml import etree

    from kb.formats.extracted import Extracted

# Elements that only wrap others. Of AlternateContent's two versions of the same thing, Choice is the one.
_WRAPPERS: Final = {"sdt", "sdtContent", "customXml", "smartTag", "ins", "moveTo", "AlternateContent", "Choice"}
_INLINE: Final = {"r", "hyperlink", "fldSimple", "dir", "bdo", "ruby", "rubyBase", "oMathPara"}
_CHARACTERS: Final = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
_HEADING_NAME: Final = re.compile(r"(?i)heading ?([1-9])")
_TITLE: Final = 0
_BODY_TEXT: Final = 10
_NOTES: Final = {"footnotes": "Footnotes", "endnotes": "Endnotes", "comments": "Comments"}


def read(data: bytes) -> Extracted:
    """Read a Word document.

    Raises:
        Unreadable: the package is damaged, encrypted or too large.
    """
    package = Package(data)
    main = package.main_part()
    writer = _Writer(_Styles(_first_part(package, main, "styles")), package, main)
    root = package.xml(main)
    for body in root if root is not None else ():
        writer.blocks(body)
    title, date = package.properties()
    title = title or writer.text.opening_title()
    for kind, heading in _NOTES.items():
        writer.notes(heading, _first_part(package, main, kind))
    margins = (root for kind in ("header", "footer") for root in package.related_xml(main, kind))
    write_margins(writer.text, chain.from_iterable(map(_paragraphs, margins)))
    return writer.text.build(title, date)


def _first_part(package: Package, main: str, kind: str) -> etree._Element | None:
    return next((package.xml(name) for name in package.related(main, kind)), None)


def _children(element: etree._Element) -> Iterator[tuple[str, etree._Element]]:
    """Yield the named children of `element`, as if nothing only wrapped them."""
    for child in element:
        name = local_name(child)
        if name in _WRAPPERS:
            yield from _children(child)
        else:
            yield name, child


class _Style(NamedTuple):
    level: int | None
    is_list: bool = False
    based_on: str | None = None


class _Styles:
    """The paragraph styles, which say what is a heading and what a list, in every language of Word."""

    def __init__(self, root: etree._Element | None) -> None:
        styles = root.iterfind("{*}style") if root is not None else ()
        self._styles = {attribute(style, "styleId"): _style(style) for style in styles}

    def level(self, paragraph: etree._Element) -> int | None:
        """Return the heading level of a paragraph, 0 for the document's title, or None."""
        own = _outline_level(paragraph)
        levels = [own, *(style.level for style in self._chain(paragraph))]
        level = next((level for level in levels if level is not None), _BODY_TEXT)
        return level if level < _BODY_TEXT else None

    def is_list(self, paragraph: etree._Element) -> bool:
        """Return whether a paragraph is an item of a list."""
        number = attribute(paragraph.find("{*}pPr/{*}numPr/{*}numId"), "val")
        return number != "0" if number else any(style.is_list for style in self._chain(paragraph))

    def _chain(self, paragraph: etree._Element) -> Iterator[_Style]:
        name = attribute(paragraph.find("{*}pPr/{*}pStyle"), "val")
        seen: set[str] = set()
        while name and name not in seen:
            seen.add(name)
            style = self._styles.get(name) or _Style(_named_level(name))
            yield style
            name = style.based_on


def _style(style: etree._Element) -> _Style:
    named = _named_level(attribute(style.find("{*}name"), "val") or "")
    return _Style(
        named if named is not None else _outline_level(style),
        style.find("{*}pPr/{*}numPr") is not None,
        attribute(style.find("{*}basedOn"), "val"),
    )


def _named_level(name: str) -> int | None:
    if name.lower() == "title":
        return _TITLE
    found = _HEADING_NAME.fullmatch(name)
    return int(found[1]) if found else None


def _outline_level(owner: etree._Element) -> int | None:
    """Return what a paragraph or a style says itself: 0 to 8 for headings, 9 for body text."""
    value = attribute(owner.find("{*}pPr/{*}outlineLvl"), "val") or ""
    return int(value) + 1 if value.isdecimal() else None


class _Writer:
    def __init__(self, styles: _Styles, package: Package, part: str) -> None:
        self.text = TextBuilder()
        self._styles = styles
        self._package = package
        self._targets = {relation.id: relation.target for relation in package.relations(part)}

    def blocks(self, container: etree._Element) -> None:
        """Write the paragraphs and tables of `container`."""
        for name, child in _children(container):
            if name == "p":
                self._paragraph(child)
            elif name == "tbl":
                self._table(child)

    def notes(self, heading: str, part: etree._Element | None) -> None:
        """Write the footnotes, endnotes or comments under a heading of their own."""
        notes = [_note(note) for note in part if attribute(note, "type") is None] if part is not None else []
        if any(notes):
            self.text.heading(1, heading)
        for note in filter(None, notes):
            self.text.line(f"- {note}")

    def _paragraph(self, paragraph: etree._Element) -> None:
        text = _inline(paragraph).strip()
        level = self._styles.level(paragraph)
        if text and level is not None:
            self.text.heading(level, text)
        elif text and self._styles.is_list(paragraph):
            self.text.line(f"{_indent(paragraph)}- {text}")
        elif text:
            self.text.paragraph(text)
        for box in _text_boxes(paragraph):
            self.blocks(box)
        self._pictures(paragraph)

    def _pictures(self, element: etree._Element) -> None:
        for picture in element.iter("{*}blip", "{*}imagedata"):
            relation = attribute(picture, "embed") or attribute(picture, "id") or ""
            self.text.picture(self._package.picture(self._targets.get(relation, "")))

    def _table(self, table: etree._Element) -> None:
        self.text.blank()
        is_layout = any(self._is_layout(cell) for cell in table.iter("{*}tc"))
        for row in (child for name, child in _children(table) if name == "tr"):
            cells = [child for name, child in _children(row) if name == "tc"]
            if is_layout or len(cells) == 1:
                for cell in cells:
                    self.blocks(cell)
            elif any(values := [_cell(cell) for cell in cells]):
                self.text.line(" | ".join(values))
        self._pictures(table)
        self.text.blank()

    def _is_layout(self, cell: etree._Element) -> bool:
        """Return whether a cell holds a part of the document rather than a value."""
        return any(
            name == "tbl" or (name == "p" and self._styles.level(child) is not None) for name, child in _children(cell)
        )


def _indent(paragraph: etree._Element) -> str:
    depth = attribute(paragraph.find("{*}pPr/{*}numPr/{*}ilvl"), "val") or ""
    return "  " * min(int(depth), 8) if depth.isdecimal() else ""


def _cell(cell: etree._Element) -> str:
    return one_line(" ".join(_paragraphs(cell)))


def _note(note: etree._Element) -> str:
    author = attribute(note, "author")
    text = one_line(" ".join(_paragraphs(note)))
    return f"{author}: {text}" if author and text else text


def _paragraphs(container: etree._Element) -> Iterator[str]:
    for name, child in _children(container):
        if name == "p":
            yield _inline(child)
            for box in _text_boxes(child):
                yield from _paragraphs(box)
        elif name in {"tbl", "tr", "tc"}:
            yield from _paragraphs(child)


def _inline(element: etree._Element) -> str:
    return "".join(_pieces(element))


def _pieces(element: etree._Element) -> Iterator[str]:
    for name, child in _children(element):
        if name == "t":
            yield child.text or ""
        elif name == "oMath":
            yield one_line(linear(child))
        elif name in _CHARACTERS:
            yield _CHARACTERS[name]
        elif name in _INLINE:
            yield from _pieces(child)


def _text_boxes(element: etree._Element) -> Iterator[etree._Element]:
    for name, child in _children(element):
        if name == "txbxContent":
            yield child
        elif name != "Fallback":
            yield from _text_boxes(child)
