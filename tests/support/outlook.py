"""Messages as Outlook keeps them: a winmail.dat (TNEF) put together piece by piece, and the folders of a .msg."""

from __future__ import annotations

import struct

WIDE, BINARY, LONG, OBJECT = 0x001F, 0x0102, 0x0003, 0x000D
EMBEDDED = bytes.fromhex("0703020000000000c000000000000046")


def tnef(*attributes):
    return b"\x78\x9f\x3e\x22\x07\x00" + b"".join(attributes)


def attribute(level, name, data, kind=6):
    return struct.pack("<BHHI", level, name, kind, len(data)) + data + struct.pack("<H", sum(data) & 0xFFFF)


def properties(found):
    """A list of properties: values by their number, texts as UTF-16; an embedded message is given as `Embedded`."""
    packed = struct.pack("<I", len(found))
    for number, value in found.items():
        if isinstance(value, int):
            packed += struct.pack("<HHI", LONG, number, value)
            continue
        kind = WIDE if isinstance(value, str) else OBJECT if isinstance(value, Embedded) else BINARY
        data = f"{value}\0".encode("utf-16-le") if isinstance(value, str) else bytes(value)
        packed += struct.pack("<HHII", kind, number, 1, len(data)) + data + bytes(-len(data) % 4)
    return packed


class Embedded(bytes):
    """A message inside another."""

    def __new__(cls, message):
        return super().__new__(cls, EMBEDDED + message)


def message(found, *files):
    return tnef(attribute(1, 0x9003, properties(found)), *(piece for file in files for piece in file))


def file(name, data):
    """A file with its name as older programs write it."""
    return (
        attribute(2, 0x9002, bytes(14)),
        attribute(2, 0x8010, f"{name}\0".encode("cp1252")),
        attribute(2, 0x800F, data),
    )


def file_with(found):
    """A file by its properties."""
    return attribute(2, 0x9002, bytes(14)), attribute(2, 0x9005, properties(found))


def rich_text(words):
    """Words as compressed rich text, not packed."""
    source = rb"{\rtf1\ansi " + words.encode("ascii") + b"}"
    return struct.pack("<II4sI", len(source) + 12, len(source), b"MELA", 0) + source


def stored(values, numbers=None, header=8, files=()):
    """A folder of an Outlook message (.msg): texts, bytes, and folders by their numbers; whole numbers; and files."""
    fixed = b"".join(struct.pack("<HHIQ", 3, number, 0, value) for number, value in (numbers or {}).items())
    folder = {"__properties_version1.0": bytes(header) + fixed}
    for number, value in values.items():
        kind = WIDE if isinstance(value, str) else BINARY if isinstance(value, bytes) else OBJECT
        folder[f"__substg1.0_{number:04X}{kind:04X}"] = value.encode("utf-16-le") if kind == WIDE else value
    return folder | {f"__attach_version1.0_#{number:08}": file for number, file in enumerate(files)}
