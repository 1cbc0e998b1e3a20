"""The contents of sheets in OpenDocument spreadsheets (.ods), other than the values of their cells."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from lxml import etree

from kb.formats.containers.zip import Archive, attribute, local_name, whole_number
from kb.formats.readers.odf import SHAPES, chart_titles, find_chart, margins, text_lines, topmost
from kb.formats.readers.sheet_extras import FormulaBudget, SheetExtras
from kb.formats.text.number_formats import says_more, unit_of_text

_BESIDE: Final = re.compile(
    rb"<office:annotation\b|<draw:|:value-type\s*=\s*[\"'](?:error|percentage|currency)|"
    rb":value-type\s*=\s*[\"']float[\"'][^<]*+<text:p\b[^<>]*>[^<]*?[^<\d\s.,+-]|"
    rb"<table:table-cell(?=[^<]*\stable:formula=)(?![^<]*\soffice:(?:\w+-)?value=)[^<]*+(?!<text:p)"
)
_VALUES: Final = {"value", "string-value", "date-value", "time-value", "boolean-value"}
_FIELDS: Final = ("page-number", "page-count", "date", "time", "sheet-name", "file-name", "title")
_NUMBERS: Final = {"float", "percentage", "currency"}
_POWER: Final = re.compile(r"[+-]?[\d.,]+E[+-]?\d+")
_MOST_UNITS: Final = 1 << 14
_BLOCK: Final = 1 << 20
_OVERLAP: Final = 2000
_MOST_REPEATS: Final = 1 << 20
_PREFIX: Final = re.compile(r"^\w+:=")
_REFERENCE: Final = re.compile(r"\[\.?([^\]]*)\]")


def ods_extras(archive: Archive) -> Iterator[tuple[str, SheetExtras]]:
    """Yield the names of a spreadsheet's tables, each with its contents other than values.

    Raises:
        Unreadable: the file is damaged.
    """
    if not _has_any(archive):
        return
    room = FormulaBudget.of(archive)
    for table in archive.elements("content.xml", "table"):
        if local_name(table.getparent()) != "spreadsheet":
            continue
        extras = SheetExtras(room=room)
        for row, column, cell in _cells(table):
            if _lacks_value(cell):
                extras.add_formula(row, column, _formula(attribute(cell, "formula") or ""))
            elif _is_error(cell):
                extras.add_error(row, column, " ".join(text_lines(cell)))
            elif shown := _shown(cell):
                for repeated in range(min(_repeats(cell, "number-columns-repeated"), _MOST_UNITS)):
                    extras.add_number(row, column + repeated, shown)
            for note in cell.iterfind("{*}annotation"):
                extras.add_note(row, column, " ".join(text_lines(note)))
        for box in topmost(table, SHAPES):
            extras.boxes += text_lines(box)
        for drawn in table.iter("{*}object"):
            chart = find_chart(archive, drawn)
            extras.left_out["objects"] += chart is None
            extras.boxes += chart_titles(chart) if chart is not None else []
        extras.left_out["objects"] += sum(1 for _ in table.iter("{*}object-ole", "{*}plugin", "{*}applet"))
        yield attribute(table, "name") or "", extras


def ods_margins(archive: Archive) -> Iterator[str]:
    """Yield the lines of the tables' printed headers and footers, without page numbers and the like.

    Raises:
        Unreadable: the file is damaged.
    """
    for part in margins(archive.xml("styles.xml")):
        for field in part.iter(*(f"{{*}}{name}" for name in _FIELDS)):
            field.text = None
        yield from text_lines(part)


def _has_any(archive: Archive) -> bool:
    """Return whether there may be any such contents, by a quick search in the bytes."""
    before = b""
    for block in archive.blocks("content.xml", _BLOCK):
        if _BESIDE.search(before + block):
            return True
        before = block[-_OVERLAP:]
    return False


def _cells(table: etree._Element) -> Iterator[tuple[int, int, etree._Element]]:
    """Yield the cells with their rows and columns; for repeated cells, only the first."""
    row = 0
    for element in table.iter("{*}table-row"):
        column = 0
        for cell in element:
            if local_name(cell) in {"table-cell", "covered-table-cell"}:
                yield row, column, cell
                column += _repeats(cell, "number-columns-repeated")
        row += _repeats(element, "number-rows-repeated")


def _repeats(element: etree._Element, name: str) -> int:
    return min(whole_number(element, name) or 1, _MOST_REPEATS)


def _lacks_value(cell: etree._Element) -> bool:
    if attribute(cell, "formula") is None or cell.find("{*}p") is not None:
        return False
    return not any(_local(name) in _VALUES for name, _ in cell.items())


def _is_error(cell: etree._Element) -> bool:
    """Return whether a formula failed, which LibreOffice marks in addition to an empty value."""
    return any(value == "error" and _local(name) == "value-type" for name, value in cell.items())


def _shown(cell: etree._Element) -> str:
    """Return the text of a cell that shows more than its number; empty for a plain number or a date."""
    kind, value = _office(cell, "value-type"), _office(cell, "value")
    shown = " ".join(text_lines(cell)) if kind in _NUMBERS else ""
    if not says_more(shown) or _POWER.fullmatch(shown):
        return ""
    try:
        number = float(value)
    except ValueError:
        return shown
    unit = unit_of_text(shown, number, is_share=kind == "percentage")
    return unit.around(number) if unit else shown


def _office(cell: etree._Element, name: str) -> str:
    """Return an attribute of a cell's value; LibreOffice writes its type twice."""
    return next((value for key, value in cell.items() if _local(key) == name), "")


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def _formula(formula: str) -> str:
    """Return a formula as people see it: `of:=SUM([.A1:.A2])` becomes SUM(A1:A2)."""
    return _REFERENCE.sub(lambda match: match[1].replace(":.", ":").lstrip("."), _PREFIX.sub("", formula).lstrip("="))
