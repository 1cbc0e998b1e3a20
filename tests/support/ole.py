"""Small OLE files, as Outlook writes its messages: nested dicts of names and bytes."""

import struct
from itertools import pairwise

SECTOR, SMALL = 512, 64
END, FREE, FAT_SECTOR, NONE = 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFD, 0xFFFFFFFF


def ole(tree):
    """A file with one FAT sector; all its streams are below the 4096 bytes that go into the stream of small ones."""
    entries, small = [], Sectors(SMALL)
    add("Root Entry", tree, entries, small)
    large = Sectors(SECTOR)
    large.chain.append(FAT_SECTOR)
    entries[0][4:] = [large.append(small.data), len(small.data)]
    small_fat = large.append(struct.pack(f"<{len(small.chain)}I", *small.chain).ljust(SECTOR, b"\xff"))
    directory = large.append(b"".join(entry(*fields) for fields in entries))
    fat = large.chain + [FREE] * (SECTOR // 4 - len(large.chain))
    assert len(fat) == SECTOR // 4, "too large for one FAT sector"
    header = struct.pack("<8s16xHHHHH6x", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", 62, 3, 0xFFFE, 9, 6)
    header += struct.pack("<9I", 0, 1, directory, 0, 4096, small_fat, 1, END, 0)
    return header + struct.pack("<109I", 0, *[FREE] * 108) + struct.pack("<128I", *fat) + large.data


class Sectors:
    """Streams cut into sectors of one size, and which sector follows which."""

    def __init__(self, size):
        self.size, self.data, self.chain = size, b"", []

    def append(self, content):
        start = len(self.chain)
        count = -(-len(content) // self.size)
        self.data += content.ljust(count * self.size, b"\0")
        self.chain += [*range(start + 1, start + count), END][: max(count, 0)]
        return start if count else END


def add(name, content, entries, small):
    """Append an entry and what is below it; answers its number. Siblings hang on each other to the right."""
    number = len(entries)
    entries.append(None)
    if isinstance(content, bytes):
        entries[number] = [name, 2, NONE, NONE, small.append(content), len(content)]
        return number
    children = [add(child, below, entries, small) for child, below in sorted(content.items())]
    for left, right in pairwise(children):
        entries[left][2] = right
    entries[number] = [name, 1 if number else 5, NONE, children[0] if children else NONE, 0, 0]
    return number


def entry(name, kind, right, child, start, size):
    wide = name.encode("utf-16-le") + b"\0\0"
    return struct.pack("<64sHBBIII36xIQ", wide, len(wide), kind, 1, NONE, right, child, start, size)


def record(kind, content=b""):
    """A record of a workbook of Excel 97-2003."""
    return struct.pack("<HH", kind, len(content)) + content


def label(column, text):
    """A cell of the first row that holds a text."""
    return record(0x0204, struct.pack("<HHHHB", 0, column, 0, len(text), 0) + text.encode("ascii"))


def old_workbook(*records, beside=None):
    """A workbook of Excel 97 with these records in its sheet `S`, and what is `beside` it in its file."""
    begins = [record(0x0809, struct.pack("<HHHHII", 0x0600, kind, 0, 0, 0, 0)) for kind in (5, 0x10)]
    end = record(0x0A)
    start = len(begins[0]) + 4 + 8 + 1 + len(end)
    sheet = record(0x85, struct.pack("<IBBBB", start, 0, 0, 1, 0) + b"S")
    return ole({"Workbook": b"".join((begins[0], sheet, end, begins[1], *records, end))} | (beside or {}))
