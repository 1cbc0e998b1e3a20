"""OpenDocument texts and presentations (.odt, .odp), then the headers, footers and words of master slides once.

Text deleted under revision is left out.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Set
from typing import Final

from lxml import etree

from kb.api.errors import Unreadable
from kb.formats.containers.flat_opendocument import packaged
from kb.formats.containers.zip import Archive, attribute, local_name, whole_number
from kb.formats.readers.numbering import BULLET, ListCount, OdfNumbering
from kb.formats.text.builder import TextBuilder, paged
from kb.formats.text.dates import first_date
from kb.formats.text.encoding import one_line
from kb.formats.text.extracted import Extracted, Properties
from kb.formats.text.headers_footers import write_margins
from kb.formats.text.reading_order import Box, around, in_reading_order
from kb.formats.text.readings import marked, with_readings_after
from kb.formats.text.tables import write_table
from kb.formats.text.titles import meaningful

_UNSEEN: Final = {
    *("tracked-changes", "forms", "sequence-decls", "variable-decls", "user-field-decls", "note-citation"),
    *("settings", "table-header-columns", "table-column", "date-time-decl", "footer-decl", "header-decl"),
}
_CHARACTERS: Final = {"tab": "\t", "line-break": "\n"}
SHAPES: Final = {
    *("text-box", "custom-shape", "rect", "ellipse", "circle", "line", "polygon", "polyline", "path", "connector"),
    *("caption", "regular-polygon", "measure"),
}
_BESIDE: Final = {"note", "annotation", "frame", "g", *SHAPES, *_UNSEEN}
_OBJECTS: Final = {"image", "desc", "object", "object-ole", "plugin", "applet"}
_HANGING: Final = {"note-body", "annotation", *_OBJECTS, *SHAPES}
_SPACES: Final = re.compile(r"[ \t\r\n]+")
_LENGTH: Final = re.compile(r"(-?\d{1,9}(?:\.\d{1,9})?)(cm|mm|in|pt|pc|px)?")
_UNITS: Final = {"cm": 28.35, "mm": 2.835, "in": 72.0, "pc": 12.0, "px": 0.75}
_TRANSLATED: Final = re.compile(r"translate\s*\(\s*([^\s,()]{1,30})[\s,]+([^\s,()]{1,30})\s*\)")
_DECLARED: Final = ("header", "footer", "date-time")
"""The fields of slides from their master that have their own text."""
_TITLE: Final = 0
_TABLE: Final = 30  # deeper than any clause
_DEEPEST: Final = 8
_SLIDE: Final = 1


def read(data: bytes) -> Extracted:
    archive = Archive(packaged(data))
    if b"manifest:encryption-data" in (archive.read("META-INF/manifest.xml") or b""):
        raise Unreadable("the document is encrypted and needs a password")
    content = archive.xml("content.xml")
    body = next(iter(content.iterfind("{*}body/*")), None) if content is not None else None
    if content is None or body is None:
        raise Unreadable("the document is damaged: its content is missing")
    title, date = properties(archive)
    styles = archive.xml("styles.xml")
    if local_name(body) == "presentation":
        slides = [_slide(page, archive) for page in body.iterfind("{*}page")]
        last = TextBuilder()
        write_margins(last, _slide_margins(content, styles) if styles is not None else ())
        return paged(title or (slides[0].opening_title() if slides else None), slides, date, last=last)
    numbering = OdfNumbering([content, styles] if styles is not None else [content])
    writer = _Writer(_title_styles(content), archive, numbering)
    writer.blocks(body)
    title = title or writer.text.opening_title()
    writer.notes()
    write_margins(writer.text, (line for part in margins(styles) for line in _paragraphs(part)))
    return writer.text.build(title, date)


def properties(archive: Archive) -> Properties:
    """Return the document's title and its date: the creation or, failing that, the last change."""
    try:
        meta = archive.xml("meta.xml")
    except Unreadable:  # the text does not need it
        meta = None
    if meta is None:
        return Properties()
    dates = (meta.findtext(f"{{*}}meta/{{*}}{name}") for name in ("creation-date", "date"))
    return Properties(meaningful(meta.findtext("{*}meta/{*}title")), first_date(*dates))


def _title_styles(content: etree._Element) -> set[str]:
    styles = content.iterfind("{*}automatic-styles/{*}style")
    derived = {attribute(style, "name") for style in styles if attribute(style, "parent-style-name") == "Title"}
    return {"Title", *filter(None, derived)}


def margins(styles: etree._Element | None) -> Iterator[etree._Element]:
    for part in styles.iterfind("{*}master-styles/{*}master-page/*") if styles is not None else ():
        if local_name(part).startswith(("header", "footer")) and attribute(part, "display") != "false":
            yield part


def _slide_margins(content: etree._Element, styles: etree._Element) -> Iterator[str]:
    """Yield the text of the master slides that is visible on slides."""
    masters = {attribute(master, "name"): master for master in styles.iterfind("{*}master-styles/{*}master-page")}
    automatic = content.iterfind("{*}automatic-styles/{*}style")
    looks = {attribute(style, "name"): style.find("{*}drawing-page-properties") for style in automatic}
    presentation = next(content.iterfind("{*}body/{*}presentation"))
    for number in (field for master in masters.values() for field in master.iter("{*}page-number", "{*}page-count")):
        number.text = None
    declared = {
        (role, attribute(declaration, "name")): declaration.text or ""
        for role in _DECLARED
        for declaration in presentation.iterfind(f"{{*}}{role}-decl")
    }
    for page in presentation.iterfind("{*}page"):
        look = looks.get(attribute(page, "style-name"))
        if attribute(look, "background-objects-visible") != "false":
            for shape in masters.get(attribute(page, "master-page-name"), ()):
                if _is_shown(shape, look):
                    yield from text_lines(shape)
                    fields = (role for role in _DECLARED if shape.find(f".//{{*}}{role}") is not None)
                    yield from (declared.get((role, attribute(page, f"use-{role}-name")), "") for role in fields)


def _is_shown(shape: etree._Element, look: etree._Element | None) -> bool:
    """Return whether a slide shows a shape of its master; the text of placeholders is only a hint."""
    role = attribute(shape, "class")
    if local_name(shape) in {"notes", "forms"} or attribute(shape, "placeholder") == "true":
        return False
    return role is None or (role in _DECLARED and attribute(look, f"display-{role}") != "false")


def text_lines(container: etree._Element) -> list[str]:
    """Return the non-empty paragraphs in an element, each on one line."""
    return [*filter(None, map(one_line, _paragraphs(container)))]


def find_chart(archive: Archive, drawn: etree._Element) -> etree._Element | None:
    root = _object(archive, drawn)
    return root.find("{*}body/{*}chart/{*}chart") if root is not None else None


def chart_titles(chart: etree._Element) -> list[str]:
    """Return the titles above and below a chart, and at its axes."""
    places = ("{*}title", "{*}subtitle", "{*}footer", "{*}plot-area/{*}axis/{*}title")
    return [line for place in places for title in chart.iterfind(place) for line in text_lines(title)]


def _object(archive: Archive, drawn: etree._Element) -> etree._Element | None:
    """Return the root of an object's content; None if that is not XML in the file."""
    try:
        return archive.xml(_object_name(drawn))
    except Unreadable:
        return None


def _object_name(drawn: etree._Element) -> str:
    return posixpath.normpath(f"{attribute(drawn, 'href') or ''}/content.xml")


def topmost(container: Iterable[etree._Element], names: Set[str]) -> Iterator[etree._Element]:
    """Yield the elements with these names in a container, without descending into them."""
    for child in container:
        if local_name(child) in names:
            yield child
        else:
            yield from topmost(child, names)


def _slide(page: etree._Element, archive: Archive) -> TextBuilder:
    """Return a slide: its title, the other frames, the notes."""
    writer = _Writer(set(), archive, OdfNumbering([]))
    frames = in_reading_order([child for child in page if local_name(child) != "notes"], _box)
    for frame in sorted(frames, key=lambda frame: attribute(frame, "class") != "title"):
        if attribute(frame, "class") == "title":
            title = one_line(" ".join(_inline(paragraph) for paragraph in frame.iter("{*}p")))
            writer.text.heading(_SLIDE, title)
        else:
            writer.blocks(frame)
            writer.text.blank()
    for notes in page.iterfind("{*}notes"):
        writer.text.speaker_notes(_inline(paragraph).strip() for paragraph in notes.iter("{*}p"))
    writer.notes()
    return writer.text


def _box(shape: etree._Element) -> Box | None:
    """Return the position of a slide's shape; for a group, the area of its shapes."""
    if local_name(shape) == "g":
        return around(filter(None, map(_box, shape)))
    x, y, width, height = (_points(attribute(shape, name)) for name in ("x", "y", "width", "height"))
    if x is None and (moved := _TRANSLATED.search(attribute(shape, "transform") or "")):
        x, y = _points(moved[1]), _points(moved[2])
    if x is None and (ends := [_points(attribute(shape, name)) for name in ("x1", "y1")])[0] is not None:
        x, y = ends
    return Box(x, y, width or 0.0, height or 0.0) if x is not None and y is not None else None


def _points(length: str | None) -> float | None:
    match = _LENGTH.fullmatch(length or "")
    return float(match[1]) * _UNITS.get(match[2], 1.0) if match else None


class _Writer:
    def __init__(self, title_styles: set[str], archive: Archive, numbering: OdfNumbering) -> None:
        self.text = TextBuilder()
        self._numbering = numbering
        self._archive = archive
        self._title_styles = title_styles
        self._notes: list[tuple[str, str]] = []
        self._shown = {"content.xml"}

    def blocks(self, container: Iterable[etree._Element], depth: int = 0) -> None:
        """Write the content of `container`, `depth` lists deep."""
        for child in container:
            name = local_name(child)
            if name == "h":
                self._heading(child)
            elif name == "p":
                self._paragraph(child, depth)
            elif name == "list":
                self._list(child, depth + 1, self._numbering.begin(child))
            elif name == "table":
                self._table(child)
            elif name not in _UNSEEN:
                if name in _OBJECTS:
                    self._drawn(child)
                inner = in_reading_order(list(child), _box) if name == "g" else child
                self.blocks(inner, depth)  # including text on a picture

    def notes(self) -> None:
        """Write the footnotes and comments under their own headings."""
        for kind in ("Footnotes", "Comments"):
            self.text.listed(kind, (note for of_kind, note in self._notes if of_kind == kind))

    def _heading(self, heading: etree._Element, number: str | None = None) -> None:
        """Write a heading, with its list number if it is a list item."""
        depth = whole_number(heading, "outline-level", 1)
        number = self._numbering.heading(heading, depth) if number is None else number
        if title := _inline(heading).strip():
            self.text.heading(depth, title if number == BULLET else f"{number} {title}".lstrip())
        self._beside(heading)

    def _paragraph(self, paragraph: etree._Element, depth: int) -> None:
        text = _inline(paragraph).strip()
        if text and attribute(paragraph, "style-name") in self._title_styles:
            self.text.heading(_TITLE, text)
        elif text and depth:
            self.text.line(text)
        elif text:
            self.text.paragraph(text)
        self._beside(paragraph)

    def _beside(self, paragraph: etree._Element) -> None:
        """Write the notes, comments, text frames and pictures anchored in a paragraph."""
        for element in topmost(paragraph, _HANGING):
            name = local_name(element)
            if name in _OBJECTS:
                self._drawn(element)
            elif name in SHAPES:
                self.blocks(element)
            else:
                kind = "Footnotes" if name == "note-body" else "Comments"
                self._notes.append((kind, one_line(" ".join(_paragraphs(element)))))
                self._objects_in(element)

    def _objects_in(self, container: etree._Element) -> None:
        """Write the pictures and objects in an element whose text is written already."""
        for element in topmost(container, _OBJECTS):
            self._drawn(element)

    def _drawn(self, element: etree._Element) -> None:
        name = local_name(element)
        if name == "image":
            self.text.picture(self._archive.picture(attribute(element, "href") or ""))
        elif name == "object":
            self._embedded(element)
        elif name != "desc":
            self.text.omit("objects")
        elif description := meaningful(element.text):
            self.text.line(description)

    def _embedded(self, drawn: etree._Element) -> None:
        """Write an object, once: a chart as its source table, an equation, or another document as its text."""
        name = _object_name(drawn)
        if name in self._shown:
            return
        self._shown.add(name)
        root = _object(self._archive, drawn)
        body = root.find("{*}body") if root is not None else None
        chart = root.find("{*}body/{*}chart/{*}chart") if root is not None else None
        if chart is not None:
            for title in chart_titles(chart):
                self.text.line(title)
            for table in chart.iterfind("{*}table"):
                self._table(table)
        elif root is not None and local_name(root) == "math":
            written = root.findtext(".//{*}annotation")
            self.text.line(one_line(written or "".join(root.itertext())))
        elif body is not None:
            self.blocks(body)
        else:
            self.text.omit("objects")

    def _list(self, items: etree._Element, depth: int, counting: ListCount, style: str = "") -> None:
        style = attribute(items, "style-name") or style or counting.style
        for item in items:
            mark = self._numbering.mark(counting, style, depth, item) if _holds_words(item) else ""
            for child in item:
                name = local_name(child)
                if name == "list":
                    self._list(child, depth + 1, counting, style)
                elif name == "h":
                    self._heading(child, mark)
                    mark = ""
                elif name == "p":
                    self._item(child, depth, mark, is_clause=self._numbering.is_clause(style, depth))
                    mark = ""
                else:
                    self.blocks(child, depth)
        if depth == 1:
            self.text.blank()

    def _item(self, paragraph: etree._Element, depth: int, mark: str, *, is_clause: bool) -> None:
        """Write a paragraph of a list; only an item's first paragraph has a mark."""
        if text := one_line(_inline(paragraph)):
            if is_clause and mark not in {"", BULLET}:
                self.text.clause(min(depth - 1, _DEEPEST), mark, text)
            else:
                self.text.line(f"{'  ' * min(depth - 1, _DEEPEST)}{f'{mark} {text}'.lstrip()}")
        self._beside(paragraph)

    def _table(self, table: etree._Element) -> None:
        self.text.blank()
        rows = [row for row in table.iter("{*}table-row") if next(row.iterancestors("{*}table")) is table]
        cells = [[cell for cell in row if local_name(cell) == "table-cell"] for row in rows]
        if any(next(cell.iter("{*}table"), None) is not None for row in cells for cell in row):
            for cell in (cell for row in cells for cell in row):
                self.blocks(cell)
        else:
            write_table(self.text, [[" ".join(_paragraphs(cell)) for cell in row] for row in cells], level=_TABLE)
            for cell in (cell for row in cells for cell in row):
                self._objects_in(cell)


def _holds_words(item: etree._Element) -> bool:
    """Return whether an item has its own text, not only a nested list."""
    return any(local_name(child) in {"p", "h"} for child in item)


def _paragraphs(container: etree._Element) -> Iterator[str]:
    for paragraph in container.iter("{*}p", "{*}h"):
        yield _inline(paragraph)


def _inline(element: etree._Element) -> str:
    return with_readings_after("".join(_pieces(element)))


def _pieces(element: etree._Element) -> Iterator[str]:
    """Yield the text of a paragraph, without the elements anchored in it."""
    yield _spaced(element.text)
    for child in element:
        name = local_name(child)
        if name == "s":
            yield " " * min(whole_number(child, "c", 1), 80)
        elif name in _CHARACTERS:
            yield _CHARACTERS[name]
        elif name == "ruby":
            yield marked(*("".join(map(_inline, child.iterfind(f"{{*}}ruby-{part}"))) for part in ("base", "text")))
        elif name not in _BESIDE:
            yield from _pieces(child)
        yield _spaced(child.tail)


def _spaced(text: str | None) -> str:
    """Collapse white space to one space, because further spaces are elements."""
    return _SPACES.sub(" ", text or "")
