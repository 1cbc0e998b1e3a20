"""The content of signed files (CMS, RFC 5652): S/MIME mail that is signed but not encrypted, and plan.pdf.p7m."""

from __future__ import annotations

from typing import Final

_SIGNED: Final = bytes.fromhex("06092a864886f70d010702")
_DATA: Final = bytes.fromhex("06092a864886f70d010701")
_CONTENT, _OCTETS, _PIECES, _END = 0xA0, 0x04, 0x24, 0x00
_HEAD: Final = 64
"""The number of bytes at the beginning of a file that show that it is signed."""


def signed_content(data: bytes) -> bytes:
    """Return the signed content; empty if the file is not a signature, or its content is in another file."""
    if data[:1] != b"\x30" or _SIGNED not in data[:_HEAD]:
        return b""
    begins = data.find(_DATA, data.index(_SIGNED)) + len(_DATA)
    if begins < len(_DATA) or data[begins : begins + 1] != bytes([_CONTENT]):
        return b""
    return _octets(data, _value(data, begins)[0])


def _octets(data: bytes, at: int) -> bytes:
    """Return the bytes of the string at a position; it may consist of pieces, each with its length."""
    tag = data[at : at + 1]
    start, end = _value(data, at)
    if tag == bytes([_OCTETS]):
        return data[start:end]
    pieces = list[bytes]()
    while tag == bytes([_PIECES]) and start < end and data[start : start + 1] == bytes([_OCTETS]):
        begins, start = _value(data, start)
        pieces.append(data[begins:start])
    return b"".join(pieces)


def _value(data: bytes, at: int) -> tuple[int, int]:
    """Return the start and end of an element's value; if it has no length, it extends to the end of the data."""
    size = data[at + 1] if at + 1 < len(data) else 0
    if size < 0x80:
        return at + 2, at + 2 + size
    count = size - 0x80
    start = at + 2 + count
    return start, start + int.from_bytes(data[at + 2 : start], "big") if count else len(data)
