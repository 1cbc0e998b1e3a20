"""The contents of sheets in Excel workbooks (.xlsx, .xlsm, .xlsb), other than the values of their cells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from html import unescape
from typing import TYPE_CHECKING, Final

from lxml import etree

from kb.api.errors import Unreadable
from kb.formats.containers.zip import attribute, local_name
from kb.formats.readers import sheet_xlsb
from kb.formats.readers.drawing import chart_titles, paragraphs
from kb.formats.readers.sheet_extras import LONGEST_FORMULA, FormulaBudget, SheetExtras, cell_place, margin_lines, moved
from kb.formats.text.encoding import one_line
from kb.formats.text.number_formats import NumberUnit, unit_of_format

if TYPE_CHECKING:
    from kb.formats.containers.ooxml import Package

_NO_VALUE: Final = re.compile(
    rb"(?:</(?:\w+:)?f\s*+>|<(?:\w+:)?f\b[^<>]*/>)\s*+"
    rb"(?:<(?:\w+:)?v\s*+/>\s*+|<(?:\w+:)?v\s*+>\s*+</(?:\w+:)?v\s*+>\s*+)?+</(?:\w+:)?c\s*+>"
)
_ERROR: Final = re.compile(rb"""\st\s*=\s*["']e["']""")
_STYLE: Final = re.compile(rb"""\ss\s*=\s*["'](\d+)["']""")
_ZERO: Final = re.compile(rb"(?:</(?:\w+:)?f\s*>|<(?:\w+:)?f\b[^<>]*/>)\s*+<(?:\w+:)?v\s*+>0</")
_PERCENTS, _PERCENT = {"9", "10"}, "0%"  # formats with units, which Excel does not write into the file
_MARGIN: Final = re.compile(rb"<(?:\w+:)?(?:odd|even|first)(?:Header|Footer)\b[^<>]*>([^<>]+)</")
_BLOCK: Final = 1 << 20
_OVERLAP: Final = 200
_THREADED: Final = "[Threaded comment]"
_SHEETS: Final = {"worksheet", "chartsheet", "dialogsheet", "xlMacrosheet"}


class _Look:
    """A quick search in a sheet's bytes for cells that show more or less than their values.

    Args:
        units: the units of the styles that have one.
        is_stale: whether a formula's 0 is not a value.
    """

    def __init__(self, units: Mapping[str, NumberUnit], *, is_stale: bool) -> None:
        self.units, self.is_stale = units, is_stale
        self._styles = frozenset(map(str.encode, units))
        self._patterns = [_NO_VALUE, _ERROR, *([_ZERO] if is_stale else [])]

    def finds_any(self, blocks: Iterable[bytes]) -> bool:
        before = b""
        for block in blocks:
            text = before + block
            if any(pattern.search(text) for pattern in self._patterns) or self._finds_unit(text):
                return True
            before = text[-_OVERLAP:]
        return False

    def _finds_unit(self, text: bytes) -> bool:
        return bool(self._styles) and not self._styles.isdisjoint(match[1] for match in _STYLE.finditer(text))


def xlsx_extras(package: Package) -> Iterator[tuple[str, SheetExtras]]:
    """Yield the names of a workbook's sheets, each with its contents other than values.

    Raises:
        Unreadable: the package is damaged.
    """
    main = package.main_part()
    root = package.xml(main) if main.endswith(".xml") else None
    if root is None:
        yield from _binary_extras(package, main)
        return
    parts = {relation.id: relation.target for relation in package.relations(main)}
    # Programs that compute nothing write 0 for each formula, and ask Excel to compute all when it opens the file.
    is_stale = attribute(root.find("{*}calcPr"), "fullCalcOnLoad") in {"1", "true"}
    people, room = dict(_people(package, main)), FormulaBudget.of(package)
    look = _Look(dict(_units(package, main)), is_stale=is_stale)
    for sheet in root.iterfind("{*}sheets/{*}sheet"):
        part = next((parts[value] for value in sheet.attrib.values() if value in parts), None)
        if part is not None:
            extras = SheetExtras(room=room)
            _add_cells(package, part, extras, look)
            _add_margins(package, part, extras)
            _add_notes(package, part, people, extras)
            _add_drawn(package, part, extras)
            yield sheet.get("name", ""), extras


def _add_cells(package: Package, part: str, extras: SheetExtras, look: _Look) -> None:
    try:
        if look.finds_any(package.blocks(part, _BLOCK)):
            _add_shown(package, part, extras, look)
    except Unreadable:
        package.damaged.add(part)


def _add_margins(package: Package, part: str, extras: SheetExtras) -> None:
    """Add the headers and footers, which are near the end of a sheet."""
    end = b""
    with suppress(Unreadable):
        for block in package.blocks(part, _BLOCK):
            end = end[-_BLOCK:] + block
    for match in _MARGIN.finditer(end):
        extras.margins += margin_lines(unescape(match[1].decode("utf-8", "replace")))


def _units(package: Package, main: str) -> Iterator[tuple[str, NumberUnit]]:
    """Yield the numbers of the styles whose cells show a unit, each with the unit."""
    for root in package.related_xml(main, "styles"):
        codes = {
            number_format.get("numFmtId", ""): number_format.get("formatCode", "")
            for number_format in root.iterfind("{*}numFmts/{*}numFmt")
        }
        for number, style in enumerate(root.iterfind("{*}cellXfs/{*}xf")):
            name = style.get("numFmtId", "")
            if unit := unit_of_format(codes.get(name, _PERCENT if name in _PERCENTS else "")):
                yield str(number), unit


def _add_notes(package: Package, part: str, people: dict[str, str], extras: SheetExtras) -> None:
    threads = _threads(package, part, people)
    for name, text in _comments(package, part):
        if not text.startswith(_THREADED):
            threads.setdefault(name, []).append(text)
        elif name not in threads:
            threads[name] = [text.partition("Comment:")[2]]
    for name, notes in threads.items():
        if place := cell_place(name):
            extras.add_note(*place, " · ".join(notes))


def _comments(package: Package, part: str) -> Iterator[tuple[str, str]]:
    """Yield the comments on the cells of a sheet, each after the name of its cell."""
    for name in package.related(part, "comments"):
        if name.endswith(".bin"):
            try:
                yield from sheet_xlsb.comments(package.read(name) or b"")
            except Unreadable:
                package.damaged.add(name)
        elif (root := package.side_xml(name)) is not None:
            for comment in root.iterfind("{*}commentList/{*}comment"):
                texts = (run.text or "" for run in comment.iterfind("{*}text//{*}t") if not _is_reading(run))
                yield comment.get("ref", ""), "".join(texts)


def _add_drawn(package: Package, part: str, extras: SheetExtras) -> None:
    for drawing in package.related(part, "drawing"):
        root = package.side_xml(drawing)
        for body in root.iter("{*}txBody") if root is not None else ():
            extras.boxes += filter(None, map(one_line, paragraphs(body)))
        for chart in package.related_xml(drawing, "chart"):
            extras.boxes += chart_titles(chart)
        for diagram in package.related_xml(drawing, "diagramData"):
            extras.boxes += filter(None, map(one_line, paragraphs(diagram)))
    files, left_out = package.embedded(part)
    extras.files += files
    extras.left_out.update(left_out)


def _is_reading(text: etree._Element) -> bool:
    """Return whether a text is only the pronunciation of the text below it."""
    above = text.getparent()
    return above is not None and local_name(above) == "rPh"


def _add_shown(package: Package, part: str, extras: SheetExtras, look: _Look) -> None:
    shared: dict[str, tuple[str, tuple[int, int]]] = {}
    for place, cell in _placed(package.elements(part, "c")):
        formula, unit = cell.find("{*}f"), look.units.get(cell.get("s", ""))
        if cell.get("t") == "e":
            extras.add_error(*place, cell.findtext("{*}v") or "")
        elif unit and cell.get("t", "n") == "n":
            with suppress(ValueError):
                extras.add_number(*place, unit.around(float(cell.findtext("{*}v") or "")))
        if formula is None:
            continue
        text, group = formula.text or "", formula.get("si", "") if formula.get("t") == "shared" else ""
        if group and text:
            shared[group] = text[:LONGEST_FORMULA], place
        if not _has_no_value(cell, is_stale=look.is_stale):
            continue
        if group in shared and not text and extras.room.left > 0:
            text, (row, column) = shared[group]
            text = moved(text, place[0] - row, place[1] - column)
        extras.add_formula(*place, text)


def _placed(cells: Iterable[etree._Element]) -> Iterator[tuple[tuple[int, int], etree._Element]]:
    """Yield the cells with their positions; a cell without one is to the right of the previous cell."""
    row, place = None, (-1, -1)
    for cell in cells:
        if (above := cell.getparent()) is not row:
            row, place = above, (place[0] + 1, -1)
            if row is not None and row.get("r", "").isdecimal():
                place = int(row.get("r", "")) - 1, -1
        place = cell_place(cell.get("r", "")) or (place[0], place[1] + 1)
        yield place, cell


def _has_no_value(cell: etree._Element, *, is_stale: bool) -> bool:
    value = cell.find("{*}v")
    if cell.get("t") in {"str", "e"}:
        return value is None
    text = (value.text or "").strip() if value is not None else ""
    return not text or (is_stale and text == "0")


def _people(package: Package, main: str) -> Iterator[tuple[str, str]]:
    for root in package.related_xml(main, "person"):
        for person in root:
            yield person.get("id", ""), person.get("displayName", "")


def _threads(package: Package, part: str, people: dict[str, str]) -> dict[str, list[str]]:
    """Return the discussions about cells, by the names of the cells."""
    threads: dict[str, list[str]] = {}
    for root in package.related_xml(part, "threadedComment"):
        for comment in root:
            name, text = people.get(comment.get("personId", "")), one_line(comment.findtext("{*}text") or "")
            if text:
                threads.setdefault(comment.get("ref", ""), []).append(f"{name}: {text}" if name else text)
    return threads


def _binary_extras(package: Package, main: str) -> Iterator[tuple[str, SheetExtras]]:
    names = dict(sheet_xlsb.sheet_names(package.read(main) or b""))
    people = dict(_people(package, main))
    for relation in package.relations(main):
        if relation.kind in _SHEETS:
            extras = SheetExtras()
            try:
                for place in sheet_xlsb.errors(package.read(relation.target) or b""):
                    extras.add_error_code(*place)
            except Unreadable:
                package.damaged.add(relation.target)
            _add_notes(package, relation.target, people, extras)
            _add_drawn(package, relation.target, extras)
            yield names.get(relation.id, relation.target), extras
