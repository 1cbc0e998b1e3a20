"""The compression of rich text in Outlook messages (MS-OXRTFCP).

Not compressed-rtf, which refuses a body over one wrong bit or a missing end; here what there is of it is read.
"""

from __future__ import annotations

import struct
from typing import Final

_START: Final = (
    rb"{\rtf1\ansi\mac\deff0\deftab720{\fonttbl;}{\f0\fnil \froman \fswiss \fmodern \fscript \fdecor "
    rb"MS Sans SerifSymbol"
    rb"ArialTimes New RomanCourier{\colortbl\red0\green0\blue0" + b"\r\n" + rb"\par \pard\plain\f0\fs20\b\i\u\tab\tx"
)
_WINDOW: Final = 4096
_HEADER: Final = struct.Struct("<II4sI")


def decompress(data: bytes) -> bytes:
    """Return the rich text in `data`; where that is cut short, as much as there is of it.

    Raises:
        ValueError: it is not compressed in this way.
    """
    if len(data) < _HEADER.size:
        raise ValueError("shorter than its header")
    _, size, kind, _ = _HEADER.unpack_from(data)
    if kind == b"MELA":  # kept as it is
        return data[_HEADER.size : _HEADER.size + size]
    if kind != b"LZFu":
        raise ValueError("an unknown compression")
    return _expanded(data[_HEADER.size :])


def _expanded(data: bytes) -> bytes:
    """Runs of eight tokens, each run behind a byte whose bits say which of them refer back into the window."""
    text, at = bytearray(_START), 0
    while at < len(data):
        flags, at = data[at], at + 1
        for bit in range(8):
            if not flags >> bit & 1:
                text += data[at : at + 1]
                at += 1
                continue
            offset, length = divmod(int.from_bytes(data[at : at + 2].ljust(2, b"\0"), "big"), 16)
            at += 2
            back = (len(text) - offset) % _WINDOW
            if not back or back > len(text):  # the mark of the end, or damage
                return bytes(text[len(_START) :])
            for _ in range(length + 2):
                text.append(text[-back])
    return bytes(text[len(_START) :])
