"""Spreadsheets (.xlsx, .xlsm, .xlsb, .xls, .ods): a section per sheet, a line per row, formulas by their last values.

Notes follow the row of their cell, text boxes their sheet, headers and footers all sheets. A formula without a computed
value is shown as text.
"""

from __future__ import annotations

import datetime as dt
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import groupby
from typing import Final

from python_calamine import CalamineError, CalamineSheet, CalamineWorkbook, PasswordError, SheetTypeEnum

from kb.api.errors import Unreadable
from kb.formats.containers.flat_opendocument import packaged
from kb.formats.containers.ole import OLE_SIGNATURE, is_encrypted_workbook, ole_properties, open_ole
from kb.formats.containers.ooxml import Package
from kb.formats.readers.odf import properties as opendocument_properties
from kb.formats.readers.sheet_extras import SheetExtras
from kb.formats.readers.sheet_ods import ods_extras, ods_margins
from kb.formats.readers.sheet_xls import xls_extras
from kb.formats.readers.sheet_xlsx import xlsx_extras
from kb.formats.text.builder import TextBuilder
from kb.formats.text.extracted import Extracted, Properties
from kb.formats.text.headers_footers import write_margins
from kb.formats.text.tables import Row, write_table

Value = int | float | str | bool | dt.time | dt.date | dt.datetime | dt.timedelta

_SHEET: Final = 1
_COLUMNS: Final = 2
_LONGEST_LABEL: Final = 80
_NOTHING: Final = SheetExtras()
_ENCRYPTED: Final = "the spreadsheet is encrypted and needs a password"


def read(data: bytes) -> Extracted:
    """Read a spreadsheet, including hidden sheets.

    Raises:
        Unreadable: the file is damaged or encrypted.
    """
    data, text = packaged(data), TextBuilder()
    if _is_encrypted(data):
        raise Unreadable(_ENCRYPTED)
    (title, date), extras, damaged = _beside(data)
    try:
        for name, rows, boxes in _sheets(data, extras):
            text.heading(_SHEET, name)
            write_table(text, rows, level=_COLUMNS)
            for line in boxes:
                text.line(line)
    except PasswordError as error:
        raise Unreadable(_ENCRYPTED) from error
    except CalamineError as error:
        raise Unreadable(f"the spreadsheet is damaged: {error}") from error
    write_margins(text, [line for extra in extras.values() for line in extra.margins])
    for extra in extras.values():
        for kind, count in extra.omitted():
            text.omit(kind, count)
    text.omit("parts", damaged)
    files = tuple(file for extra in extras.values() for file in extra.files)
    return replace(text.build(title, date), attachments=files)


def _is_encrypted(data: bytes) -> bool:
    """Whether it is an Excel 97-2003 workbook with a password, which calamine treats as invalid or empty."""
    if not data.startswith(OLE_SIGNATURE):
        return False
    with open_ole(data) as ole:
        return is_encrypted_workbook(ole)


def _beside(data: bytes) -> tuple[Properties, dict[str, SheetExtras], int]:
    """Return the file's title and date, its sheets' contents other than values, and the number of damaged parts."""
    if data.startswith(OLE_SIGNATURE):
        with open_ole(data) as ole:
            return ole_properties(ole), dict(xls_extras(ole)), 0
    package = Package(data)
    is_excel = "[Content_Types].xml" in package.names
    extras = dict[str, SheetExtras]()
    with suppress(Unreadable):  # errors of the workbook itself, which the library reports later
        for name, extra in xlsx_extras(package) if is_excel else ods_extras(package):
            extras[name] = extra
        if not is_excel:
            extras[""] = SheetExtras(margins=[*ods_margins(package)])
    properties = package.properties() if is_excel else opendocument_properties(package)
    return properties, extras, len(package.damaged)


def _sheets(data: bytes, extras: Mapping[str, SheetExtras]) -> Iterator[tuple[str, Iterator[Row], Sequence[str]]]:
    workbook = CalamineWorkbook.from_filelike(io.BytesIO(data))
    for sheet in workbook.sheets_metadata:
        extra = extras.get(sheet.name, _NOTHING)
        rows = workbook.get_sheet_by_name(sheet.name) if sheet.typ is SheetTypeEnum.WorkSheet else None
        if rows is not None and rows.height:
            yield sheet.name, _filled(rows, extra), extra.boxes
        elif extra.boxes or extra.rows():
            yield sheet.name, _rows_beside(extra, -1, 0), extra.boxes


def _filled(sheet: CalamineSheet, extra: SheetExtras) -> Iterator[Row]:
    """Yield the rows with a value, with a gap as one empty row: one stray value far below makes a million of them."""
    merged = _Merged(sheet)
    beside = set(extra.rows())
    _, left = sheet.start or (0, 0)
    first = min([left, *(column for cells in extra.cells.values() for column in cells)])
    index, rows = -1, enumerate(sheet.iter_rows())
    for is_empty, block in groupby(rows, key=lambda row: row[1].count("") == len(row[1]) and row[0] not in beside):
        if is_empty:
            yield Row()
            continue
        for index, row in block:
            values = merged.filled(index, [_shown(value) for value in row])
            yield _with_beside([""] * (left - first) + values, extra, index, first) if beside else Row(values)
    yield from _rows_beside(extra, index, first)


def _rows_beside(extra: SheetExtras, after: int, first: int) -> Iterator[Row]:
    """Yield the rows below all values that have other contents."""
    for index in (row for row in extra.rows() if row > after):
        if index > after + 1:
            yield Row()
        yield _with_beside([], extra, index, first)
        after = index


def _with_beside(values: list[str], extra: SheetExtras, index: int, first: int) -> Row:
    for column, shown in sorted(extra.cells.get(index, {}).items()):
        place = column - first
        values += [""] * (place + 1 - len(values))
        values[place] = shown  # if nothing was computed, a 0 is not a value either
    return Row(values, extra.notes.get(index, ()))


class _Merged:
    """The words of cells merged over several rows: each of the rows gets them."""

    def __init__(self, sheet: CalamineSheet) -> None:
        _, left = sheet.start or (0, 0)  # rows begin with the sheet's first, columns with the first filled one
        ranges = sheet.merged_cell_ranges or []
        self._ends = {(first, at - left): last for (first, at), (last, _) in ranges if last > first}
        self._open: dict[int, tuple[int, str]] = {}

    def filled(self, index: int, row: list[str]) -> list[str]:
        """Return a row with the words of merged cells from above; pass the rows in order."""
        if not self._ends:
            return row
        for column, (end, word) in list(self._open.items()):
            if index > end:
                del self._open[column]
            else:
                row[column] = row[column] or word
        for column, word in enumerate(row):
            end = self._ends.get((index, column), index)
            if end > index and 0 < len(word) <= _LONGEST_LABEL:
                self._open[column] = end, word
        return row


def _shown(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float):
        return f"{value:.15g}"
    if isinstance(value, dt.datetime):
        moment = (value + dt.timedelta(microseconds=500_000)).replace(microsecond=0)
        return moment.isoformat(" ").removesuffix(" 00:00:00")
    if isinstance(value, dt.timedelta):
        minutes, seconds = divmod(round(value.total_seconds()), 60)
        return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
    if isinstance(value, str) and "\0" in value:  # UTF-16 that was decoded as single characters
        try:
            return value.encode("latin-1").decode("utf-16-le")
        except UnicodeError:
            return value.replace("\0", "")
    return value.isoformat("seconds") if isinstance(value, dt.time) else str(value)
