"""What sheets of Excel workbooks (.xlsx, .xlsm, .xlsb) have beside the values of their cells."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from kb.api.errors import Unreadable
from kb.formats.containers.zip import attribute, local_name
from kb.formats.readers.drawing import chart_titles, paragraphs
from kb.formats.readers.sheet_extras import LONGEST_FORMULA, FormulaRoom, SheetExtras, cell_place, moved
from kb.formats.text.encoding import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from lxml import etree

    from kb.formats.containers.ooxml import Package

_NO_VALUE: Final = re.compile(
    rb"(?:</(?:\w+:)?f\s*+>|<(?:\w+:)?f\b[^<>]*/>)\s*+"
    rb"(?:<(?:\w+:)?v\s*+/>\s*+|<(?:\w+:)?v\s*+>\s*+</(?:\w+:)?v\s*+>\s*+)?+</(?:\w+:)?c\s*+>"
)
_ERROR: Final = re.compile(rb"""\st\s*=\s*["']e["']""")
_ZERO: Final = re.compile(rb"(?:</(?:\w+:)?f\s*>|<(?:\w+:)?f\b[^<>]*/>)\s*+<(?:\w+:)?v\s*+>0</")
_BLOCK: Final = 1 << 20
_OVERLAP: Final = 200
_THREADED: Final = "[Threaded comment]"
_BEGIN_COMMENT: Final = 635
_SHEET: Final = 156
_SHEETS: Final = {"worksheet", "chartsheet", "dialogsheet", "xlMacrosheet"}


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
    people, room = dict(_people(package, main)), FormulaRoom()
    for sheet in root.iterfind("{*}sheets/{*}sheet"):
        part = next((parts[value] for value in sheet.attrib.values() if value in parts), None)
        if part is not None:
            extras = SheetExtras(room=room)
            _add_cells(package, part, extras, is_stale=is_stale)
            _add_notes(package, part, people, extras)
            _add_drawn(package, part, extras)
            yield sheet.get("name", ""), extras


def _add_cells(package: Package, part: str, extras: SheetExtras, *, is_stale: bool) -> None:
    try:
        if _has_valueless(package, part, is_stale=is_stale):
            _add_valueless(package, part, extras, is_stale=is_stale)
    except Unreadable:
        package.damaged.add(part)


def _add_notes(package: Package, part: str, people: dict[str, str], extras: SheetExtras) -> None:
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


def _add_drawn(package: Package, part: str, extras: SheetExtras) -> None:
    """Add the words of what is drawn on a sheet, and the files in it."""
    for drawing in package.related(part, "drawing"):
        _add_drawing(package, drawing, extras)
    files, left_out = package.embedded(part)
    extras.files += files
    extras.left_out.update(left_out)


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
    for place, cell in _placed(package.elements(part, "c")):
        formula = cell.find("{*}f")
        if cell.get("t") == "e":
            extras.add_error(*place, cell.findtext("{*}v") or "")
        if formula is None:
            continue
        text, group = formula.text or "", formula.get("si", "") if formula.get("t") == "shared" else ""
        if group and text:
            shared[group] = text[:LONGEST_FORMULA], place
        if not _has_no_value(cell, is_stale=is_stale):
            continue
        if group in shared and not text and extras.room.left > 0:
            text, (row, column) = shared[group]
            text = moved(text, place[0] - row, place[1] - column)
        extras.add_formula(*place, text)


def _placed(cells: Iterable[etree._Element]) -> Iterator[tuple[tuple[int, int], etree._Element]]:
    """Yield the cells with their places; one that names none is right of the one before it."""
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
    """Return what people wrote to each other about cells, by the names of the cells."""
    threads: dict[str, list[str]] = {}
    for root in package.related_xml(part, "threadedComment"):
        for comment in root:
            name, text = people.get(comment.get("personId", "")), one_line(comment.findtext("{*}text") or "")
            if text:
                threads.setdefault(comment.get("ref", ""), []).append(f"{name}: {text}" if name else text)
    return threads


def _add_drawing(package: Package, drawing: str, extras: SheetExtras) -> None:
    root = package.side_xml(drawing)
    for body in root.iter("{*}txBody") if root is not None else ():
        extras.boxes += filter(None, map(one_line, paragraphs(body)))
    for chart in package.related_xml(drawing, "chart"):
        extras.boxes += chart_titles(chart)
    for diagram in package.related_xml(drawing, "diagramData"):
        extras.boxes += filter(None, map(one_line, paragraphs(diagram)))


def _binary_extras(package: Package, main: str) -> Iterator[tuple[str, SheetExtras]]:
    """Yield the sheets of the binary format, whose notes are counted."""
    names = dict(_sheet_names(package.read(main) or b""))
    for relation in package.relations(main):
        if relation.kind not in _SHEETS:
            continue
        extras = SheetExtras()
        _add_drawn(package, relation.target, extras)
        for part in package.related(relation.target, "comments"):
            try:
                extras.comments += sum(kind == _BEGIN_COMMENT for kind, _ in _records(package.read(part) or b""))
            except Unreadable:
                package.damaged.add(part)
        yield names.get(relation.id, relation.target), extras


def _sheet_names(workbook: bytes) -> Iterator[tuple[str, str]]:
    """Yield the names of the sheets by those of their relations: both come behind numbers, after their lengths."""
    for kind, content in _records(workbook):
        if kind == _SHEET:
            end = 12 + 2 * int.from_bytes(content[8:12], "little")
            yield content[12:end].decode("utf-16-le", "replace"), content[end + 4 :].decode("utf-16-le", "replace")


def _records(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the kinds of the records of a binary part, each with its content: [MS-XLSB], 2.1.4."""
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
            yield kind, data[place : place + size]
            place += size
