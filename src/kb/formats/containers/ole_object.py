"""The documents in OLE objects, in which Office keeps embedded PDF files and files of other programs."""

from __future__ import annotations

import struct
from pathlib import PureWindowsPath
from typing import TYPE_CHECKING, Final

from kb.api.errors import Unreadable
from kb.formats.containers.ole import is_stream, open_ole

if TYPE_CHECKING:
    from olefile import OleFileIO

_DOCUMENTS: Final = ("CONTENTS", "Package", "EmbeddedOdf")
"""The streams that contain a whole document: of Acrobat, Office, and LibreOffice."""

_PACKED: Final = "\x01Ole10Native"
"""The stream of a file that is none of the programs' own: MS-OLEDS, 2.3.6; the packager puts its names before it."""

_MARKS: Final = {b"%PDF-": ".pdf", b"word/": ".docx", b"xl/": ".xlsx", b"ppt/": ".pptx", b"PK": ".odt"}
_NAMES: Final = 6
_SIZE: Final = struct.Struct("<I")


def document_in(data: bytes) -> tuple[str, bytes] | None:
    """Return the name, which may be only a suffix, and the content of the document in an object; None without one.

    Raises:
        Unreadable: the object is damaged.
    """
    with open_ole(data) as ole:
        for name in _DOCUMENTS:
            if is_stream(ole, name) and (content := _read(ole, name)).startswith((b"%PDF-", b"PK\x03\x04")):
                return _suffix(content), content
        return _unpacked(_read(ole, _PACKED)) if is_stream(ole, _PACKED) else None


def _suffix(content: bytes) -> str:
    return next(suffix for mark, suffix in _MARKS.items() if mark in content)


def _read(ole: OleFileIO, name: str) -> bytes:
    if ole.get_size(name) > ole.fp.getbuffer().nbytes:
        raise Unreadable("the embedded object is damaged: its size is wrong")
    try:
        with ole.openstream(name) as stream:
            return bytes(stream.read())
    except OSError as error:
        raise Unreadable("the embedded object is damaged") from error


def _unpacked(native: bytes) -> tuple[str, bytes] | None:
    """Return the file behind its name, its path, and the path of its copy."""
    try:
        end = native.index(b"\0", _NAMES)
        name = native[_NAMES:end].decode("cp1252", "replace")
        copy = native.index(b"\0", end + 1) + 1 + _SIZE.size
        start = copy + _SIZE.size + _SIZE.unpack_from(native, copy)[0]
        content = native[start + _SIZE.size :][: _SIZE.unpack_from(native, start)[0]]
    except (ValueError, struct.error):
        return None
    return PureWindowsPath(name).name, content
