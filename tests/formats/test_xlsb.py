"""Excel workbooks in the binary format: errors in cells and notes are in other records than values."""

import struct

import pytest

from tests.support.office import RELATIONS, package
from tests.support.reading import reader

E10 = pytest.mark.requirement("E-10")
read = reader("a.xlsb")
THREAD = "<T xmlns='t'><threadedComment ref='B1' personId='1'><text>and the keel?</text></threadedComment></T>"


def record(kind, content=b""):
    number = bytes((kind,)) if kind < 128 else bytes((kind & 0x7F | 0x80, kind >> 7))
    size = len(content)
    return number + (bytes((size,)) if size < 128 else bytes((size & 0x7F | 0x80, size >> 7))) + content


def wide(text):
    return struct.pack("<I", len(text)) + text.encode("utf-16-le")


def row(number, *cells):
    return record(0, struct.pack("<I", number) + bytes(13)) + b"".join(cells)


def text_cell(column, text):
    return record(6, struct.pack("<II", column, 0) + wide(text))


def error_cell(column, code):
    return record(3, struct.pack("<IIB", column, 0, code))


def failed_formula(column, code):
    return record(
        11, struct.pack("<IIB", column, 0, code) + struct.pack("<HI", 0, 2) + b"\x1c" + bytes((code,)) + bytes(4)
    )


def sheet(*rows):
    size = record(148, struct.pack("<IIII", 0, 9, 0, 9))
    return record(129) + size + record(145) + b"".join(rows) + record(146) + record(130)


def noted(row, column, text):
    place = struct.pack("<IIIII", 0, row, row, column, column)
    return record(635, place + bytes(16)) + record(637, b"\0" + wide(text)) + record(636)


# The parser knows a sheet of the binary format by this path, written like this.
SHEETS = f"<R xmlns='x'><Relationship Id='r1' Type='{RELATIONS}/worksheet' Target='worksheets/sheet1.bin'/></R>"


def workbook(rows, notes=b"", parts=None, relations=None):
    bundle = record(156, struct.pack("<II", 0, 1) + wide("r1") + wide("Stock"))
    main = record(131) + record(143) + bundle + record(144) + record(132)
    files = {"xl/workbook.bin": main, "xl/worksheets/sheet1.bin": rows, "xl/comments1.bin": notes}
    files |= {"xl/_rels/workbook.bin.rels": SHEETS}
    own = {"c": ("comments", "xl/comments1.bin")}
    return package("xl/workbook.bin", files | (parts or {}), {"xl/worksheets/sheet1.bin": own | (relations or {})})


@E10
def test_notes_follow_the_row_of_their_cell():
    rows = sheet(
        row(0, text_cell(0, "item"), text_cell(1, "cost")), row(2, text_cell(0, "oars"), text_cell(1, "a lot"))
    )
    extracted = read(workbook(rows, noted(2, 1, "from Ada:\ncheaper at Uwe's") + noted(4, 0, "nothing here yet")))
    assert extracted.text.split("\n")[-4:-1] == [
        "oars | a lot",
        "Note on B3: from Ada: cheaper at Uwe's",
        "Note on A5: nothing here yet",
    ]
    assert not extracted.omitted


@E10
@pytest.mark.parametrize("cell", [error_cell, failed_formula])
def test_an_error_stands_where_the_value_would(cell):
    rows = sheet(row(0, text_cell(0, "share"), cell(1, 0x07), text_cell(2, "of all")), row(1, cell(0, 0x2A)))
    assert read(workbook(rows)).text == "Stock\n\nshare | #DIV/0! | of all\n#N/A\n"


def test_what_people_wrote_to_each_other_about_a_cell_is_read_once():
    notes = noted(0, 1, "[Threaded comment]\n\nYour version of Excel…\n\nComment:\n    and the keel?")
    data = workbook(
        sheet(row(0, text_cell(0, "hull"))),
        notes,
        {"xl/thread.xml": THREAD},
        {"t": ("threadedComment", "xl/thread.xml")},
    )
    assert read(data).text == "Stock\n\nhull\nNote on B1: and the keel?\n"


@pytest.mark.parametrize("damage", [b"\xfb", b"\xfb\x04\x05", b"\xfd\x04\x05\0\xff\xff\xff\x7f", bytes(300)])
def test_damaged_notes_cost_only_themselves(damage):
    assert read(workbook(sheet(row(0, text_cell(0, "hull"))), damage)).text.startswith("Stock\n\nhull\n")


def test_an_error_in_a_place_that_no_sheet_has_takes_no_room():
    rows = sheet(row(0xFFFFFFFF, error_cell(0xFFFFFFFF, 0x07)), row(1, text_cell(0, "hull")))
    assert len(read(workbook(rows)).text) < 100_000
