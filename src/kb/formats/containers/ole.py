"""The container of Outlook messages and of Office 97-2003 documents (OLE, MS-CFB)."""

from __future__ import annotations

import io
import struct
from datetime import datetime
from typing import TYPE_CHECKING, Final

from kb.api.errors import Unreadable
from kb.formats.text.dates import first_date
from kb.formats.text.extracted import Properties
from kb.formats.text.titles import meaningful

if TYPE_CHECKING:
    from olefile import OleFileIO

_SUMMARY: Final = "\x05SummaryInformation"
_CODEPAGE, _TITLE, _CREATED, _SAVED = 1, 2, 12, 13
_UTF8: Final = 65001

_RECORD: Final = struct.Struct("<HH")
_BEGINNING, _WRITE_PROTECTED, _ENCRYPTED = 0x0809, 0x86, 0x2F
"""The records at the beginning of a workbook: [MS-XLS], 2.1.7.20.3."""

OLE_SIGNATURE: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
WORKBOOKS: Final = ("Workbook", "Book")
"""The streams that contain a workbook: Excel 97 and later, and Excel 5 and 95, which some programs still write."""


def open_ole(data: bytes) -> OleFileIO:
    """Open a container.

    Raises:
        Unreadable: it is damaged.
    """
    from olefile import OleFileIO

    try:
        return OleFileIO(io.BytesIO(data))
    except (OSError, ValueError, IndexError, RecursionError) as error:
        raise Unreadable(
            "the file is damaged or cut short: it begins like an Outlook message or an Office 97-2003 document"
            " but is incomplete"
        ) from error


def ole_properties(ole: OleFileIO) -> Properties:
    """Return the title and date of an Office 97-2003 document, if they can be read."""
    try:
        values = ole.getproperties(_SUMMARY, convert_time=True) if ole.exists(_SUMMARY) else {}
    except (OSError, ValueError, IndexError, struct.error):
        return Properties()
    moments = [moment for moment in map(values.get, (_CREATED, _SAVED)) if isinstance(moment, datetime)]
    dates = (f"{moment.isoformat()}Z" for moment in moments)
    return Properties(meaningful(_text(values.get(_TITLE), values.get(_CODEPAGE))), first_date(*dates))


def is_stream(ole: OleFileIO, name: str) -> bool:
    """Whether the container has a stream, not a folder, of that name."""
    from olefile import STGTY_STREAM

    return bool(ole.get_type(name) == STGTY_STREAM)


def is_encrypted_workbook(ole: OleFileIO) -> bool:
    name = next((name for name in WORKBOOKS if is_stream(ole, name)), None)
    if name is None or ole.get_size(name) > ole.fp.getbuffer().nbytes:  # a false size makes reading slow
        return False
    with ole.openstream(name) as stream:
        while len(head := stream.read(_RECORD.size)) == _RECORD.size:
            kind, size = _RECORD.unpack(head)
            if kind not in (_BEGINNING, _WRITE_PROTECTED):
                return bool(kind == _ENCRYPTED)
            stream.seek(size, io.SEEK_CUR)
    return False


def _text(value: object, codepage: object) -> str:
    if not isinstance(value, bytes):
        return value if isinstance(value, str) else ""
    number = codepage & 0xFFFF if isinstance(codepage, int) else 0  # the file stores it as a signed number
    encoding = "utf-8" if number == _UTF8 else f"cp{number}"
    try:
        return value.decode(encoding)
    except (LookupError, ValueError):
        return value.decode("cp1252", "replace")
