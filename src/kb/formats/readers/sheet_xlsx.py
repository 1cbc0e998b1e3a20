"""What sheets of Excel workbooks (.xlsx, .xlsm, .xlsb) have beside the values of their cells."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from kb.api.errors import Unreadable
from kb.formats.containers.zip import attribute, local_name
from kb.formats.readers.drawing import chart_titles, paragraphs
from kb.formats.readers.sheet_extras import SheetExtras, cell_place, moved
from kb.formats.text.encoding import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lxml import etree

    from kb.formats.containers.ooxml import Package

_NO_VALUE: Final = re.compile(
    rb"(?:</(?:\w+:)?f\s*>|<(?:\w+:)?f\b[^<>]*/>)\s*(?:<(?:\w+:)?v\s*/>|<(?:\w+:)?v\s*>\s*</(?:\w+:)?v\s*>)?\s*</(?:\w+:)?c\s*>"
)
_ERROR: Final = re.compile(rb"""\st\s*=\s*["']e["']""")
_ZERO: Final = re.compile(rb"(?:</(?:\w+:)?f\s*>|<(?:\w+:)?f\b[^<>]*/>)\s*<(?:\w+:)?v\s*>0</")
_BLOCK: Final = 1 << 20
_OVERLAP: Final = 200
_MOST_FORMULAS: Final = 100_000
_THREADED: Final = "[Threaded comment]"
_BEGIN_COMMENT: Final = 635


def xlsx_extras(package: Package) -> Iterator[tuple[str, SheetExtras]]:
    """Yield the names of a workbook's sheets, each with what it has beside its values.

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
    people = dict(_people(package, main))
    for sheet in root.iterfind("{*}sheets/{*}sheet"):
        part = next((parts[value] for value in sheet.attrib.values() if value in parts), None)
        if part is not None:
            yield sheet.get("name", ""), _extras(package, part, people, is_stale=is_stale)


def _extras(package: Package, part: str, people: dict[str, str], *, is_stale: bool) -> SheetExtras:
    extras = SheetExtras()
    if _has_valueless(package, part, is_stale=is_stale):
        _add_valueless(package, part, extras, is_stale=is_stale)
    threads = _threads(package, part, people)
    for root in package.related_xml(part, "comments"):
        for comment in root.iterfind("{*}commentList/{*}comment"):
            text = "".join(found.text or "" for found in comment.iterfind("{*}text//{*}t") if not _is_reading(found))
            name, _, written = comment.get("ref", ""), *text.partition("Comment:")[1:]
            if not text.startswith(_THREADED):
                threads.setdefault(name, []).append(text)
            elif name not in threads:
                threads[name] = [written]
    for name, notes in threads.items():
        if place := cell_place(name):
            extras.add_note(*place, " · ".join(notes))
    for drawing in package.related(part, "drawing"):
        with suppress(Unreadable):
            _add_drawing(package, drawing, extras)
    files, extras.objects = package.embedded(part)
    extras.files += files
    return extras


def _is_reading(text: etree._Element) -> bool:
    """Return whether a text only says how the one below it is read aloud."""
    above = text.getparent()
    return above is not None and local_name(above) == "rPh"


def _has_valueless(package: Package, part: str, *, is_stale: bool) -> bool:
    """Return whether a cell of a sheet may have no value: a look at its bytes, which costs little."""
    before = b""
    for block in package.blocks(part, _BLOCK):
        text = before + block
        if _NO_VALUE.search(text) or _ERROR.search(text) or (is_stale and _ZERO.search(text)):
            return True
        before = text[-_OVERLAP:]
    return False


def _add_valueless(package: Package, part: str, extras: SheetExtras, *, is_stale: bool) -> None:
    shared: dict[str, tuple[str, tuple[int, int]]] = {}
    left = _MOST_FORMULAS
    for cell in package.elements(part, "c"):
        formula, place = cell.find("{*}f"), cell_place(cell.get("r", ""))
        if cell.get("t") == "e" and place:
            extras.add_error(*place, cell.findtext("{*}v") or "")
        if formula is None or place is None or not left:
            continue
        text, group = formula.text or "", formula.get("si", "") if formula.get("t") == "shared" else ""
        if group and text:
            shared[group] = text, place
        elif group in shared:
            text, (row, column) = shared[group]
            text = moved(text, place[0] - row, place[1] - column)
        if _has_no_value(cell, is_stale=is_stale):
            extras.add_formula(*place, text)
            left -= 1


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
    """Return what people wrote to each other about cells, by the names of the cells."""
    threads: dict[str, list[str]] = {}
    for root in package.related_xml(part, "threadedComment"):
        for comment in root:
            name, text = people.get(comment.get("personId", "")), one_line(comment.findtext("{*}text") or "")
            if text:
                threads.setdefault(comment.get("ref", ""), []).append(f"{name}: {text}" if name else text)
    return threads


def _add_drawing(package: Package, drawing: str, extras: SheetExtras) -> None:
    root = package.xml(drawing)
    if root is None:
        return
    for body in root.iter("{*}txBody"):
        extras.boxes += filter(None, map(one_line, paragraphs(body)))
    for chart in package.related_xml(drawing, "chart"):
        extras.boxes += chart_titles(chart)
    for diagram in package.related_xml(drawing, "diagramData"):
        extras.boxes += filter(None, map(one_line, paragraphs(diagram)))


def _binary_extras(package: Package, main: str) -> Iterator[tuple[str, SheetExtras]]:
    """Yield one sheet without a name, with the number of notes in all: those of the binary format are not read."""
    extras = SheetExtras()
    for sheet in package.related(main, "worksheet"):
        for part in package.related(sheet, "comments"):
            extras.comments += sum(kind == _BEGIN_COMMENT for kind in _records(package.read(part) or b""))
    yield "", extras


def _records(data: bytes) -> Iterator[int]:
    """Yield the kinds of the records of a binary part: [MS-XLSB], 2.1.4."""
    place = 0
    with suppress(IndexError):
        while place < len(data):
            kind, place = data[place], place + 1
            if kind & 0x80:
                kind, place = (kind & 0x7F) | (data[place] << 7), place + 1
            size, shift = 0, 0
            while shift < 28:
                byte, place = data[place], place + 1
                size |= (byte & 0x7F) << shift
                shift += 7
                if not byte & 0x80:
                    break
            yield kind
            place += size
