"""Spreadsheets (.xlsx, .xlsm, .xlsb, .xls, .ods): a section a sheet, a row a line, formulas by their last values."""

from __future__ import annotations

import datetime as dt
import io
from itertools import groupby
from typing import TYPE_CHECKING, Final

from python_calamine import CalamineError, CalamineSheet, CalamineWorkbook, PasswordError, SheetTypeEnum

from kb.api.errors import Unreadable
from kb.formats.containers.ole import OLE_SIGNATURE, is_encrypted_workbook, ole_properties, open_ole
from kb.formats.containers.ooxml import Package
from kb.formats.readers.odf import properties as opendocument_properties
from kb.formats.text.builder import TextBuilder
from kb.formats.text.tables import write_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kb.formats.containers.properties import Properties
    from kb.formats.extracted import Extracted

    Value = int | float | str | bool | dt.time | dt.date | dt.datetime | dt.timedelta

_SHEET: Final = 1
_COLUMNS: Final = 2
_LONGEST_LABEL: Final = 80
_ENCRYPTED: Final = "the spreadsheet is encrypted: it needs a password to be read"


def read(data: bytes) -> Extracted:
    """Read a spreadsheet, hidden sheets included.

    Raises:
        Unreadable: the file is damaged or encrypted.
    """
    text = TextBuilder()
    if _is_encrypted(data):
        raise Unreadable(_ENCRYPTED)
    try:
        for name, rows in _sheets(data):
            text.heading(_SHEET, name)
            write_table(text, rows, level=_COLUMNS)
    except PasswordError as error:
        raise Unreadable(_ENCRYPTED) from error
    except CalamineError as error:
        raise Unreadable(f"the spreadsheet is damaged: {error}") from error
    return text.build(*_properties(data))


def _is_encrypted(data: bytes) -> bool:
    """Whether it is an Excel 97-2003 workbook with a password, which calamine takes for no workbook or an empty one."""
    if not data.startswith(OLE_SIGNATURE):
        return False
    with open_ole(data) as ole:
        return is_encrypted_workbook(ole)


def _properties(data: bytes) -> Properties:
    if data.startswith(OLE_SIGNATURE):
        with open_ole(data) as ole:
            return ole_properties(ole)
    package = Package(data)
    return package.properties() if "[Content_Types].xml" in package.names else opendocument_properties(package)


def _sheets(data: bytes) -> Iterator[tuple[str, Iterator[list[str]]]]:
    workbook = CalamineWorkbook.from_filelike(io.BytesIO(data))
    for sheet in workbook.sheets_metadata:
        if sheet.typ is SheetTypeEnum.WorkSheet:
            rows = workbook.get_sheet_by_name(sheet.name)
            if rows.height:
                yield sheet.name, _filled(rows)


def _filled(sheet: CalamineSheet) -> Iterator[list[str]]:
    """The rows with a value in them, gaps as one empty row: one stray value far below makes a million of them."""
    merged = _Merged(sheet)
    rows = enumerate(sheet.iter_rows())
    for is_empty, block in groupby(rows, key=lambda row: row[1].count("") == len(row[1])):
        if is_empty:
            yield []
        else:
            yield from (merged.filled(index, [_shown(value) for value in row]) for index, row in block)


class _Merged:
    """The words that count for several rows because their cells are merged: each of the rows gets them."""

    def __init__(self, sheet: CalamineSheet) -> None:
        _, left = sheet.start or (0, 0)  # rows come from the first of the sheet on, columns from the first filled one
        ranges = sheet.merged_cell_ranges or []
        self._ends = {(first, at - left): last for (first, at), (last, _) in ranges if last > first}
        self._open: dict[int, tuple[int, str]] = {}

    def filled(self, index: int, row: list[str]) -> list[str]:
        """Return a row with the words that began in one above; the rows are given in order."""
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
    """Return a value as people write it."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float):
        return f"{value:.15g}"
    if isinstance(value, dt.datetime):
        moment = (value + dt.timedelta(microseconds=500_000)).replace(microsecond=0)
        return moment.isoformat(" ").removesuffix(" 00:00:00")
    if isinstance(value, dt.timedelta):
        return _duration(value)
    return value.isoformat("seconds") if isinstance(value, dt.time) else str(value)


def _duration(value: dt.timedelta) -> str:
    minutes, seconds = divmod(round(value.total_seconds()), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
