"""The contents of sheets in Excel 97-2003 workbooks (.xls), other than values ([MS-XLS]).

Notes, text boxes, errors and the words of charts are read; formulas without a computed value and objects are counted.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from kb.formats.containers.ole import WORKBOOKS, is_stream
from kb.formats.readers.sheet_extras import SheetExtras, margin_lines
from kb.formats.text.encoding import one_line

if TYPE_CHECKING:
    from olefile import OleFileIO

_RECORD: Final = struct.Struct("<HH")
_BEGIN, _END, _CONTINUE, _NOTE, _OBJECT, _SHEET, _TEXT = 0x0809, 0x0A, 0x3C, 0x1C, 0x5D, 0x85, 0x1B6
_FORMULAS, _BOOLEAN_OR_ERROR = (0x06, 0x0206, 0x0406), 0x0205
_BIFF8: Final = 0x0600
_IS_NOTE, _IS_WIDE, _IS_ERROR, _IS_EMPTY = 0x19, 1, 2, 3
_CHART_TEXT, _CALCULATE_ON_LOAD, _NO_RESULT = 0x100D, 2, bytes(8)
_MARGINS: Final = (0x14, 0x15)
_OBJECT_STORAGE: Final = "MBD"
_NOTE_HEAD, _GOES_ON = 6, 0xFFFF


def xls_extras(ole: OleFileIO) -> Iterator[tuple[str, SheetExtras]]:
    """Yield the names of a workbook's sheets, each with its readable notes and text boxes."""
    name = next((name for name in WORKBOOKS if is_stream(ole, name)), None)
    if name is None or ole.get_size(name) > ole.fp.getbuffer().nbytes:
        return
    with ole.openstream(name) as stream:
        data = stream.read()
    with suppress(struct.error, IndexError):
        (version,) = struct.unpack_from("<H", data, _RECORD.size)
        for sheet, start in list(_sheets(data, version)):
            extras = _extras(data, start) if version == _BIFF8 else _extras_of_five(data, start)
            extras.formulas = _uncomputed(data, start)
            yield sheet, extras
    folders = {path[0] for path in ole.listdir(streams=False, storages=True)}  # each object of another program has one
    yield "", SheetExtras(left_out=Counter(objects=sum(folder.startswith(_OBJECT_STORAGE) for folder in folders)))


def _uncomputed(data: bytes, start: int) -> int:
    """Return the number of formulas without a result: 0 if any formula of the sheet was computed, otherwise all."""
    count = 0
    for kind, content in _records(data, start):
        if kind in _FORMULAS and len(content) >= 16:
            is_empty = content[12:14] == b"\xff\xff" and content[6] == _IS_EMPTY
            if not is_empty and (content[6:14] != _NO_RESULT or not content[14] & _CALCULATE_ON_LOAD):
                return 0
            count += 1
    return count


def _records(data: bytes, place: int) -> Iterator[tuple[int, bytes]]:
    """Yield the records from a position on, each with its content, up to the end of the substream that begins there."""
    depth = 0
    while place + _RECORD.size <= len(data):
        kind, size = _RECORD.unpack_from(data, place)
        place += _RECORD.size
        yield kind, data[place : place + size]
        depth += (kind == _BEGIN) - (kind == _END)
        if not depth:
            return
        place += size


def _sheets(data: bytes, version: int) -> Iterator[tuple[str, int]]:
    for kind, content in _records(data, 0):
        if kind == _SHEET:
            (start,) = struct.unpack_from("<I", content)
            length, text = content[6], content[7:]
            is_wide = version == _BIFF8 and text[0] & _IS_WIDE
            if version == _BIFF8:
                text = text[1:]
            yield _decoded(text[: length * (2 if is_wide else 1)], is_wide=bool(is_wide)), start


def _extras(data: bytes, start: int) -> SheetExtras:
    extras, texts, pinned = SheetExtras(), dict[int, str](), set[int]()
    notes, shape, characters_left = list[tuple[int, int, int]](), (0, 0), 0
    for kind, content in _records(data, start):
        if kind == _OBJECT and len(content) >= 8:
            shape = struct.unpack_from("<HH", content, 4)
        elif kind == _TEXT and len(content) >= 12:
            (characters_left,) = struct.unpack_from("<H", content, 10)
            texts[shape[1]] = ""
        elif kind == _CONTINUE and characters_left and content:
            is_wide = content[0] & _IS_WIDE
            piece = _decoded(content[1 : 1 + characters_left * (2 if is_wide else 1)], is_wide=bool(is_wide))
            texts[shape[1]] += piece
            characters_left -= len(piece)
        elif kind == _NOTE and len(content) >= 8:
            notes.append(struct.unpack_from("<HH2xH", content))
        elif kind in _MARGINS and len(content) > 3:
            extras.margins += margin_lines(_decoded(content[3:], is_wide=bool(content[2] & _IS_WIDE)))
        elif kind == _CHART_TEXT and len(content) > 4:
            extras.boxes += filter(None, [one_line(_decoded(content[4:], is_wide=bool(content[3] & _IS_WIDE)))])
        else:
            _add_error(kind, content, extras)
        if kind == _TEXT and shape[0] == _IS_NOTE:
            pinned.add(shape[1])
    for row, column, number in notes:
        extras.add_note(row, column, texts.get(number, ""))
        pinned.add(number)
    extras.boxes += filter(None, (one_line(text) for number, text in texts.items() if number not in pinned))
    return extras


def _extras_of_five(data: bytes, start: int) -> SheetExtras:
    """Return the extras of an Excel 5 or 95 sheet, whose notes take one or several records each."""
    extras, place, text, left = SheetExtras(), (0, 0), b"", 0
    for kind, content in _records(data, start):
        if kind == _NOTE and len(content) > _NOTE_HEAD:
            row, column, size = struct.unpack_from("<HHH", content)
            if row != _GOES_ON:
                place, text, left = (row, column), b"", size
            text += content[_NOTE_HEAD:][:left]
            left -= len(content) - _NOTE_HEAD
            if left <= 0:
                extras.add_note(*place, text.decode("cp1252", "replace"))
        else:
            _add_error(kind, content, extras)
    return extras


def _add_error(kind: int, content: bytes, extras: SheetExtras) -> None:
    code = None
    if kind in _FORMULAS and len(content) >= 14 and content[12:14] == b"\xff\xff" and content[6] == _IS_ERROR:
        code = content[8]
    elif kind == _BOOLEAN_OR_ERROR and len(content) >= 8 and content[7]:
        code = content[6]
    if code is not None:
        row, column = struct.unpack_from("<HH", content)
        extras.add_error_code(row, column, code)


def _decoded(text: bytes, *, is_wide: bool) -> str:
    return text.decode("utf-16-le", "replace") if is_wide else text.decode("latin-1")
