"""PowerPoint presentations (.pptx, .pptm, .ppsx): a page per slide, with tables, charts, diagrams, notes, comments.

Text on every slide, such as a footer or the words of the template, follows once at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import Final, NamedTuple

from lxml import etree

from kb.formats.containers.ooxml import Package
from kb.formats.containers.zip import attribute, local_name, whole_number
from kb.formats.readers.drawing import inline, paragraphs, write_drawn
from kb.formats.text.builder import TextBuilder, paged
from kb.formats.text.encoding import one_line
from kb.formats.text.extracted import Attachment, Extracted
from kb.formats.text.headers_footers import write_margins
from kb.formats.text.reading_order import Box, in_reading_order
from kb.formats.text.tables import write_table
from kb.formats.text.titles import meaningful

_TITLES: Final = {"title", "ctrTitle"}
_FURNITURE: Final = {"dt", "ftr", "hdr", "sldNum", "sldImg"}
_SLIDE: Final = 1
_Places = dict[tuple[str, str], Box]
"""The boxes of placeholders, by their roles with and without their numbers."""
_PLACE: Final = (("off", "x"), ("off", "y"), ("ext", "cx"), ("ext", "cy"))


class _Template(NamedTuple):
    """A layout or a master: its placeholders, its words, and whether it shows the master that it is based on."""

    places: _Places
    words: Sequence[str]
    shows_master: bool


def read(data: bytes) -> Extracted:
    """Read a presentation, including hidden slides.

    Raises:
        Unreadable: the package is damaged, encrypted or too large.
    """
    package = Package(data)
    main = package.main_part()
    templates = _Templates(package)
    slides = [_Slide(package, name, templates) for name in _slide_names(package, main)]
    texts = [slide.render() for slide in slides]
    margins = TextBuilder()
    write_margins(margins, chain.from_iterable(slide.margins for slide in slides))
    if texts:
        texts[-1].omit("parts", len(package.damaged))
    title, date = package.properties()
    document = paged(title or (texts[0].opening_title() if texts else None), texts, date, last=margins)
    return replace(document, attachments=tuple(file for slide in slides for file in slide.files))


def _slide_names(package: Package, main: str) -> Iterator[str]:
    targets = {relation.id: relation.target for relation in package.relations(main)}
    root = package.xml(main)
    for slide in root.iterfind("{*}sldIdLst/{*}sldId") if root is not None else ():
        # In addition to r:id, there is a number that is also called id.
        name = next((targets[value] for value in slide.attrib.values() if value in targets), None)
        if name:
            yield name


class _Templates:
    def __init__(self, package: Package) -> None:
        self._package = package
        self._masters: dict[str, str] = {}
        self._parts: dict[str, _Template] = {}

    def places(self, layout: str) -> _Places:
        return self._part(self._master(layout)).places | self._part(layout).places

    def words(self, layout: str) -> Iterator[str]:
        yield from self._part(layout).words
        if self._part(layout).shows_master:
            yield from self._part(self._master(layout)).words

    def _master(self, layout: str) -> str:
        if layout not in self._masters:
            self._masters[layout] = next(self._package.related(layout, "slideMaster"), "") if layout else ""
        return self._masters[layout]

    def _part(self, name: str) -> _Template:
        if name not in self._parts:
            self._parts[name] = _template(self._package.side_xml(name) if name else None)
        return self._parts[name]


class _Slide:
    def __init__(self, package: Package, name: str, templates: _Templates) -> None:
        self._templates = templates
        self._package = package
        self._targets = {relation.id: relation for relation in package.relations(name)}
        self._name = name
        self._text = TextBuilder()
        self.files: Sequence[Attachment] = ()
        self.margins: Sequence[str] = ()

    def render(self) -> TextBuilder:
        """Return the slide's text: its title first, regardless of its position among the shapes."""
        # Only the text is kept, because the trees of many slides would fill the memory.
        root = self._package.side_xml(self._name)
        self.margins = list(self._margins(root))
        shapes = list(_drawn(root))
        titles = [shape for shape in shapes if _placeholder(shape) in _TITLES]
        others = [shape for shape in shapes if _placeholder(shape) not in _TITLES | _FURNITURE]
        for shape in (*titles, *self._in_order(others)):
            self._shape(shape)
        self._notes()
        self._comments()
        self.files, left_out = self._package.embedded(self._name)
        self._text.omit_all(left_out)
        return self._text

    def _margins(self, root: etree._Element | None) -> Iterator[str]:
        """Yield the slide's footer, a date written by hand, and the words from its layout and its master."""
        for shape in _drawn(root):
            role, is_computed = _placeholder(shape), shape.find(".//{*}fld") is not None
            if role == "ftr" or (role == "dt" and not is_computed):
                yield from paragraphs(shape)
        if _shows_template(root):
            yield from self._templates.words(self._layout)

    @cached_property
    def _layout(self) -> str:
        return next(self._package.related(self._name, "slideLayout"), "")

    def _in_order(self, shapes: Sequence[etree._Element]) -> Iterator[etree._Element]:
        """Yield the shapes of a slide in reading order; shapes of a group stay together."""
        for shape in in_reading_order(shapes, self._place) if len(shapes) > 1 else shapes:
            if local_name(shape) == "grpSp":
                yield from self._in_order(list(_shapes(shape)))
            else:
                yield shape

    def _place(self, shape: etree._Element) -> Box | None:
        """Return the position of a shape, or failing that, of its placeholder in the layout."""
        if box := _box(shape):
            return box
        places = self._templates.places(self._layout)
        return places.get(_role(shape)) or places.get((_placeholder(shape), ""))

    def _shape(self, shape: etree._Element) -> None:
        role = _placeholder(shape)
        if role in _TITLES:
            if title := one_line(" ".join(paragraphs(shape))):
                self._text.heading(_SLIDE, title)
        elif role not in _FURNITURE:
            self._text.blank()
            for line in _lines(shape):
                self._text.line(line)
            described = attribute(shape.find("{*}nvPicPr/{*}cNvPr"), "descr")
            if description := meaningful(described):
                self._text.line(description)
            for blip in shape.iterfind("{*}blipFill/{*}blip"):
                relation = self._targets.get(attribute(blip, "embed") or "")
                self._text.picture(self._package.picture(relation.target) if relation else None)
            self._frame(shape)
            self._text.blank()

    def _frame(self, frame: etree._Element) -> None:
        """Write the content of a graphic frame: a table, or a chart or diagram in a separate part."""
        for table in frame.iterfind("{*}graphic/{*}graphicData/{*}tbl"):
            rows = ([" ".join(paragraphs(cell)) for cell in row.iterfind("{*}tc")] for row in table.iterfind("{*}tr"))
            write_table(self._text, rows, level=_SLIDE + 1)
        for data in frame.iterfind("{*}graphic/{*}graphicData/*"):
            for relation in filter(None, map(self._targets.get, data.attrib.values())):
                write_drawn(relation, self._package, self._text, level=_SLIDE + 1)

    def _notes(self) -> None:
        for root in self._package.related_xml(self._name, "notesSlide"):
            bodies = [shape for shape in root.iter("{*}sp") if _placeholder(shape) not in _FURNITURE]
            self._text.speaker_notes(one_line(line) for body in bodies for line in paragraphs(body))

    def _comments(self) -> None:
        for root in self._package.related_xml(self._name, "comments"):
            for comment in root:
                words = [element.text or "" for element in comment.iter("{*}text")] or list(paragraphs(comment))
                if text := one_line(" ".join(words)):
                    self._text.line(f"Comment: {text}")


def _template(root: etree._Element | None) -> _Template:
    """Return a layout or a master; the text of its placeholders is only a hint."""
    places, words = _Places(), list[str]()
    for shape in _drawn(root):
        role = _placeholder(shape)
        if role == "none":
            words += paragraphs(shape)
        elif box := _box(shape):
            places.setdefault(_role(shape), box)
            places.setdefault((role, ""), box)
    return _Template(places, words, _shows_template(root))


def _shows_template(root: etree._Element | None) -> bool:
    """Return whether a slide or a layout shows the template that it is based on."""
    return root is not None and root.get("showMasterSp") not in {"0", "false"}


def _drawn(root: etree._Element | None) -> Iterator[etree._Element]:
    tree = root.find("{*}cSld/{*}spTree") if root is not None else None
    return _shapes(tree) if tree is not None else iter(())


def _shapes(tree: etree._Element) -> Iterator[etree._Element]:
    for child in tree:
        name = local_name(child)
        if name in {"AlternateContent", "Choice"}:
            yield from _shapes(child)
        elif name in {"sp", "pic", "graphicFrame", "cxnSp", "grpSp"}:
            yield child


def _box(shape: etree._Element) -> Box | None:
    """Return a shape's own position; all shapes of a group use the same coordinates."""
    place = next(chain(shape.iterfind("*/{*}xfrm"), shape.iterfind("{*}xfrm")), None)
    if place is None:
        return None
    numbers = [attribute(place.find(f"{{*}}{part}"), name) or "" for part, name in _PLACE]
    try:
        return Box(*map(float, numbers))
    except ValueError:
        return None


def _role(shape: etree._Element) -> tuple[str, str]:
    """Return the role of a shape in its layout, and its number among the shapes with that role."""
    placeholder = next(shape.iterfind("*/{*}nvPr/{*}ph"), None)
    return _placeholder(shape), attribute(placeholder, "idx") or ""


def _placeholder(shape: etree._Element) -> str:
    """Return the role of a shape in its layout, such as `title`; `none` if it has no role."""
    placeholder = next(shape.iterfind("*/{*}nvPr/{*}ph"), None)
    return "none" if placeholder is None else attribute(placeholder, "type") or "obj"


def _lines(shape: etree._Element) -> Iterator[str]:
    for paragraph in shape.iterfind("{*}txBody/{*}p"):
        if text := inline(paragraph).strip():
            level = min(whole_number(paragraph.find("{*}pPr"), "lvl"), 8)
            yield f"{'  ' * (level - 1)}- {text}" if level else text
