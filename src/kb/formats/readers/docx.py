"""Word documents (.docx, .docm, .dotx): the body in order, then notes and comments, then headers and footers once.

The body is read as Word shows it after all revisions are accepted, with the numbers that Word computes and with the
files that are shown as part of it (`altChunk`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from lxml import etree

from kb.api.errors import Unreadable
from kb.formats.containers.ooxml import Package
from kb.formats.containers.zip import attribute, local_name, whole_number
from kb.formats.detect import detect
from kb.formats.readers import rtf
from kb.formats.readers.drawing import write_drawn
from kb.formats.readers.eml import bodies as mail_bodies
from kb.formats.readers.html import decode_html, expanded, write_fragment
from kb.formats.readers.mail import write_body
from kb.formats.readers.mht import files_of_page
from kb.formats.readers.numbering import BULLET, Item, WordNumbering
from kb.formats.readers.omml import linear
from kb.formats.text.builder import TextBuilder
from kb.formats.text.encoding import decode, one_line
from kb.formats.text.extracted import Attachment, Extracted, Properties
from kb.formats.text.headers_footers import write_margins
from kb.formats.text.readings import marked, with_readings_after
from kb.formats.text.symbol_fonts import symbol
from kb.formats.text.titles import meaningful

# Elements that only wrap others. AlternateContent holds two versions; kb reads Choice.
_WRAPPERS: Final = {"sdt", "sdtContent", "customXml", "smartTag", "ins", "moveTo", "AlternateContent", "Choice"}
_INLINE: Final = {"r", "hyperlink", "fldSimple", "dir", "bdo", "oMathPara"}
_CHARACTERS: Final = {"tab": "\t", "ptab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
_HEADING_NAME: Final = re.compile(r"(?i)heading ?([1-9])")
_TITLE: Final = 0
_BODY_TEXT: Final = 10
_CHART: Final = 30  # deeper than any clause
_DEEPEST: Final = 8
_NOTES: Final = {"footnotes": "Footnotes", "endnotes": "Endnotes", "comments": "Comments"}

_HANGING: Final = {"txbxContent", "docPr", "blip", "imagedata", "textpath", "graphicData"}
_NO_CHUNK: Final = "a part of the document is missing, or of a kind that Word does not show"
_MOST_CHUNKS: Final = 1000
_DEEPEST_CHUNK: Final = 4
_HEADERS: Final = re.compile(rb"(?i)\s*(?:mime-version|content-[a-z-]+|from|subject|date|x-[a-z-]+):")


def read(data: bytes) -> Extracted:
    text = TextBuilder()
    beside = _Beside()
    title, date = _write_body(data, text, beside)
    title = title or text.opening_title()
    for heading, notes in beside.notes.items():
        text.listed(heading, notes)
    write_margins(text, beside.margins)
    return replace(text.build(title, date), attachments=tuple(beside.files))


def _write_body(data: bytes, text: TextBuilder, beside: _Beside) -> Properties:
    """Write a document's body, collect its notes, margins and files, and return its properties."""
    package = Package(data)
    main = package.main_part()
    styles = _Styles(_first_part(package, main, "styles"))
    numbering = WordNumbering(_first_part(package, main, "numbering"), styles.numbers)
    writer = _Writer(styles, numbering, package, main, text, beside)
    root = package.xml(main)
    for body in root if root is not None else ():
        writer.blocks(body)
    writer.end_paragraph()
    for kind, heading in _NOTES.items():
        notes = [
            _note(element) for element in _elements(_first_part(package, main, kind)) if not attribute(element, "type")
        ]
        if any(notes):
            beside.notes.setdefault(heading, []).extend(filter(None, notes))
    for kind in ("header", "footer"):
        for part in package.related_xml(main, kind):
            beside.margins += _paragraphs(part)
    files, left_out = package.embedded(main)
    beside.files += files
    text.omit_all(left_out)
    properties = package.properties()
    text.omit("parts", len(package.damaged))
    return properties


@dataclass(slots=True)
class _Beside:
    """The notes, margins and files of a document, and the limits on the embedded documents that are read."""

    chunks_left: int = _MOST_CHUNKS
    depth: int = 0
    notes: dict[str, list[str]] = field(default_factory=dict)
    margins: list[str] = field(default_factory=list)
    files: list[Attachment] = field(default_factory=list)


def _elements(part: etree._Element | None) -> Iterator[etree._Element]:
    return iter(part if part is not None else ())


def _first_part(package: Package, main: str, kind: str) -> etree._Element | None:
    return next(package.related_xml(main, kind), None)


def _children(element: etree._Element) -> Iterator[tuple[str, etree._Element]]:
    """Yield the children of `element` with their names, without wrapper elements."""
    for child in element:
        name = local_name(child)
        if name in _WRAPPERS:
            yield from _children(child)
        else:
            yield name, child


class _Style(NamedTuple):
    level: int | None
    number: str | None = None  # of the list; "0" turns numbering off
    depth: str | None = None  # in the list
    based_on: str | None = None


class _Styles:
    """The paragraph styles, which define headings and lists in every language of Word."""

    def __init__(self, root: etree._Element | None) -> None:
        styles = root.iterfind("{*}style") if root is not None else ()
        self._styles = {attribute(style, "styleId"): _style(style) for style in styles}
        self.numbers = {name: style.number for name, style in self._styles.items() if name and style.number}

    def level(self, paragraph: etree._Element) -> int | None:
        """Return the heading level of a paragraph, 0 for the document's title, or None."""
        own = _outline_level(paragraph)
        levels = [own, *(style.level for _, style in self._chain(paragraph))]
        level = next((level for level in levels if level is not None), _BODY_TEXT)
        return level if level < _BODY_TEXT else None

    def item(self, paragraph: etree._Element, numbering: WordNumbering) -> Item | None:
        """Return the paragraph's list and level in it; None if it is not a list item."""
        number, depth = _list_reference(paragraph)
        for name, style in () if number and depth else self._chain(paragraph):
            if number is None and style.number:
                number, depth = style.number, depth or style.depth or str(numbering.level_of_style(style.number, name))
            depth = depth or style.depth
        if not number or number == "0":
            return None
        return Item(number, min(int(depth), _DEEPEST) if depth and depth.isdecimal() else 0)

    def _chain(self, paragraph: etree._Element) -> Iterator[tuple[str, _Style]]:
        name = attribute(paragraph.find("{*}pPr/{*}pStyle"), "val")
        seen: set[str] = set()
        while name and name not in seen:
            seen.add(name)
            style = self._styles.get(name) or _Style(_named_level(name))
            yield name, style
            name = style.based_on


def _style(style: etree._Element) -> _Style:
    named = _named_level(attribute(style.find("{*}name"), "val") or "")
    number, depth = _list_reference(style)
    based_on = attribute(style.find("{*}basedOn"), "val")
    return _Style(named if named is not None else _outline_level(style), number, depth, based_on)


def _list_reference(owner: etree._Element) -> tuple[str | None, str | None]:
    numbers = owner.find("{*}pPr/{*}numPr")
    if numbers is None:
        return None, None
    return attribute(numbers.find("{*}numId"), "val"), attribute(numbers.find("{*}ilvl"), "val")


def _named_level(name: str) -> int | None:
    if name.lower() == "title":
        return _TITLE
    match = _HEADING_NAME.fullmatch(name)
    return int(match[1]) if match else None


def _outline_level(owner: etree._Element) -> int | None:
    """Return a paragraph's or style's own level: 1 to 9 for headings, 10 for body text, None if it has none."""
    level = whole_number(owner.find("{*}pPr/{*}outlineLvl"), "val", -1)
    return level + 1 if level >= 0 else None


class _Writer:
    def __init__(
        self, styles: _Styles, numbering: WordNumbering, package: Package, part: str, text: TextBuilder, beside: _Beside
    ) -> None:
        self._text = text
        self._styles = styles
        self._numbering = numbering
        self._package = package
        self._part = part
        self._relations = {relation.id: relation for relation in package.relations(part)}
        self._beside = beside
        self._carried = ""  # from drop caps and paragraphs with a deleted end: the next paragraph continues this text

    def blocks(self, container: etree._Element) -> None:
        """Write the paragraphs and tables of `container`, and the files embedded between them."""
        for name, child in _children(container):
            if name == "p":
                self._paragraph(child)
            elif name == "tbl":
                self.end_paragraph()
                self._table(child)
            elif name == "altChunk":
                self.end_paragraph()
                self._chunk(child)

    def end_paragraph(self) -> None:
        carried, self._carried = self._carried.strip(), ""
        if carried:
            self._text.paragraph(carried)

    def _paragraph(self, paragraph: etree._Element) -> None:
        text = self._carried + _inline(paragraph)
        is_initial = attribute(paragraph.find("{*}pPr/{*}framePr"), "dropCap") in {"drop", "margin"}
        is_joined = is_initial or paragraph.find("{*}pPr/{*}rPr/{*}del") is not None
        self._carried = text if is_joined else ""
        if not is_joined:
            self._write(paragraph, text.strip())
        for name, hanging in _hanging(paragraph):
            if name == "txbxContent":
                self.blocks(hanging)
            else:
                self._drawing(name, hanging)

    def _write(self, paragraph: etree._Element, text: str) -> None:
        level, item = self._styles.level(paragraph), self._styles.item(paragraph, self._numbering)
        mark = self._numbering.mark(item) if item else ""
        if not text:
            return
        if level is not None:
            self._text.heading(level, text if mark == BULLET else f"{mark} {text}".lstrip())
        elif item and mark and self._numbering.is_clause(item):
            self._text.clause(item.level, mark, text)
        elif item:
            self._text.line(f"{'  ' * item.level}{f'{mark} {text}'.lstrip()}")
        else:
            self._text.paragraph(text)

    def _drawing(self, name: str, drawn: etree._Element) -> None:
        """Write drawings and their descriptions: shaped text, charts, diagrams, pictures."""
        if name == "textpath":
            self._text.paragraph(attribute(drawn, "string") or "")
        elif name == "docPr":
            if description := meaningful(attribute(drawn, "descr")):
                self._text.line(description)
        elif name == "graphicData":
            for child in drawn:
                for relation in filter(None, map(self._relations.get, child.attrib.values())):
                    write_drawn(relation, self._package, self._text, level=_CHART)
        else:
            target = self._relations.get(attribute(drawn, "embed") or attribute(drawn, "id") or "")
            self._text.picture(self._package.picture(target.target if target else ""))

    def _drawings(self, cell: etree._Element) -> None:
        """Write the drawings in a cell whose text is written already, including those in its text boxes."""
        for name, hanging in _hanging(cell):
            if name == "txbxContent":
                self._drawings(hanging)
            else:
                self._drawing(name, hanging)

    def _table(self, table: etree._Element) -> None:
        self._text.blank()
        is_layout = any(  # a cell contains a part of the document instead of a value
            name in {"tbl", "altChunk"} or (name == "p" and self._styles.level(child) is not None)
            for cell in table.iter("{*}tc")
            for name, child in _children(cell)
        )
        rows = (child for name, child in _children(table) if name == "tr")
        shown: list[etree._Element] = []
        for row in (row for row in rows if row.find("{*}trPr/{*}del") is None):
            cells = [child for name, child in _children(row) if name == "tc"]
            if is_layout or len(cells) == 1:
                for cell in cells:
                    self.blocks(cell)
                continue
            if any(values := [one_line(" ".join(self._numbered(cell))) for cell in cells]):
                self._text.line(" | ".join(values))
            shown += cells
        for cell in shown:
            self._drawings(cell)
        self._text.blank()

    def _numbered(self, cell: etree._Element) -> Iterator[str]:
        """Yield the paragraphs of a cell with their numbers, which may be their only text."""
        for name, child in _children(cell):
            if name != "p":
                continue
            item = self._styles.item(child, self._numbering)
            mark = self._numbering.mark(item) if item else ""
            yield f"{'' if mark == BULLET else mark} {_inline(child)}"
            for box in _text_boxes(child):
                yield from _paragraphs(box)

    def _chunk(self, chunk: etree._Element) -> None:
        relation = self._relations.get(attribute(chunk, "id") or "")
        self._text.blank()
        try:
            if relation is None or relation.target == self._part or not self._beside.chunks_left:
                raise Unreadable(_NO_CHUNK)
            self._beside.chunks_left -= 1
            self._write_chunk(self._package.read(relation.target) or b"", relation.target)
        except Unreadable:
            self._text.omit("parts")
        self._text.blank()

    def _write_chunk(self, data: bytes, name: str) -> None:
        if _HEADERS.match(data):
            for body in mail_bodies(data):
                write_body(body, self._text)
            self._beside.files += files_of_page(data)
            return
        doc_type = detect(data, name)
        if doc_type == "html":
            write_fragment(expanded(decode_html(data)), self._text, below=0)
        elif doc_type == "docx" and self._beside.depth < _DEEPEST_CHUNK:
            self._beside.depth += 1
            try:
                _write_body(data, self._text, self._beside)
            finally:
                self._beside.depth -= 1
        elif doc_type in {"rtf", "text"}:
            plain = rtf.read(data).text if doc_type == "rtf" else decode(data)
            for line in plain.strip("\n").split("\n"):
                self._text.line(line)
        else:
            raise Unreadable(_NO_CHUNK)


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
    return with_readings_after("".join(_pieces(element)))


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
        elif name == "ruby":
            yield marked(*("".join(map(_inline, child.iterfind(f"{{*}}{part}"))) for part in ("rubyBase", "rt")))
        elif name == "sym":
            yield symbol(attribute(child, "font") or "", attribute(child, "char") or "")
        elif name == "fldChar":
            yield _chosen(child)


def _chosen(field: etree._Element) -> str:
    """Return the value of a form field that is not in its text: a list's chosen entry, or a box, ticked or not."""
    if (entries := field.find("{*}ffData/{*}ddList")) is not None:
        chosen = attribute(entries.find("{*}result"), "val") or attribute(entries.find("{*}default"), "val") or "0"
        names = [attribute(entry, "val") or "" for entry in entries.iterfind("{*}listEntry")]
        return names[int(chosen)] if chosen.isdecimal() and int(chosen) < len(names) else ""
    if (box := field.find("{*}ffData/{*}checkBox")) is not None:
        state = box.find("{*}checked")
        state = box.find("{*}default") if state is None else state
        return "☒" if state is not None and attribute(state, "val") not in {"0", "false"} else "☐"
    return ""


def _hanging(element: etree._Element) -> Iterator[tuple[str, etree._Element]]:
    """Yield the drawings of an element and its text boxes, without descending into the text boxes."""
    for name, child in _children(element):
        if name in _HANGING:
            yield name, child
        if name not in {"txbxContent", "Fallback"}:
            yield from _hanging(child)


def _text_boxes(element: etree._Element) -> Iterator[etree._Element]:
    return (hanging for name, hanging in _hanging(element) if name == "txbxContent")
