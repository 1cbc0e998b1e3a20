"""The records of the binary format of Excel (.xlsb, [MS-XLSB]): names of sheets, errors in cells, notes."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from kb.formats.readers.sheet_extras import cell_name

_ROW, _CELL_ERROR, _FORMULA_ERROR, _SHEET, _COMMENT, _COMMENT_TEXT = 0, 3, 11, 156, 635, 637
_ROWS, _COLUMNS = 1 << 20, 1 << 14
_BEFORE_VALUE: Final = 8  # the cell's column and style
# The beginning of an error's record: most sheets have no errors, and searching the bytes is fast.
_MAY_BE_ERROR: Final = re.compile(rb"(?s)(?:\x03\x09|\x0b[\x0a-\xff]\x00?).{8}[\x00\x07\x0f\x17\x1d\x24\x2a\x2b]")


def sheet_names(workbook: bytes) -> Iterator[tuple[str, str]]:
    """Yield the names of the sheets, each after the id of its relation."""
    for kind, content in _records(workbook):
        if kind == _SHEET:
            relation, end = _text(content, 8)
            yield relation, _text(content, end)[0]


def errors(sheet: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield the rows and columns of the cells that show an error, each with the error's number."""
    if not _MAY_BE_ERROR.search(sheet):
        return
    row = 0
    for kind, content in _records(sheet):
        if kind == _ROW and len(content) >= 4:
            (row,) = struct.unpack_from("<I", content)
        elif kind in {_CELL_ERROR, _FORMULA_ERROR} and len(content) > _BEFORE_VALUE:
            column = int.from_bytes(content[:2], "little") % _COLUMNS
            yield row % _ROWS, column, content[_BEFORE_VALUE]


def comments(part: bytes) -> Iterator[tuple[str, str]]:
    """Yield the comments on cells, each after the name of its cell."""
    name = ""
    for kind, content in _records(part):
        if kind == _COMMENT and len(content) >= 20:
            row, _, column = struct.unpack_from("<III", content, 4)
            name = cell_name(row % _ROWS, column % _COLUMNS)
        elif kind == _COMMENT_TEXT:
            yield name, _text(content, 1)[0]


def _text(content: bytes, start: int) -> tuple[str, int]:
    """Return a text that follows its length, and its end."""
    size = int.from_bytes(content[start : start + 4], "little")
    end = start + 4 + 2 * size
    return content[start + 4 : end].decode("utf-16-le", "replace"), end


def _records(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the kinds of the records of a part, each with its content ([MS-XLSB], 2.1.4)."""
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
