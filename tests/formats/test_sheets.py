"""Parts of sheets other than cell values: formulas without a result, notes, text boxes, units, margins."""

import struct

import pytest

from kb.formats.containers.ooxml import Package
from kb.formats.extract import extract
from kb.formats.readers.sheet_extras import cell_name, cell_place, margin_lines, moved
from kb.formats.readers.sheet_xlsx import xlsx_extras
from kb.formats.text.number_formats import unit_of_format, unit_of_text
from tests.support.office import (
    DRAWING,
    SHEETS,
    document_content,
    document_styles,
    opendocument,
    package,
    words,
    workbook,
)
from tests.support.ole import label, old_workbook, record
from tests.support.reading import reader

E10 = pytest.mark.requirement("E-10")
read = reader("a.xlsx")


HEAD = f"<row r='1'>{words('A1', 'item')}{words('B1', 'total')}{words('C1', 'who')}</row>"


@E10
def test_a_formula_that_no_program_computed_is_shown_and_counted():
    row = f"<row r='2'>{words('A2', 'oars')}<c r='B2'><f>12*3</f><v></v></c><c r='C2'><f>&quot;A&quot;&amp;B2</f></c></row>"
    extracted = read(workbook(HEAD + row))
    assert extracted.text == 'S\n\nitem | total | who\noars | =12*3 | ="A"&B2\n'
    assert extracted.sections[-1].heading == ("S", "item | total | who")
    assert extracted.omitted == {"formulas": 2}


@pytest.mark.parametrize(
    "cell",
    [
        "<c r='B2'><f>12*3</f><v>36</v></c>",
        "<c r='B2' t='str'><f>IF(1,&quot;&quot;,2)</f><v></v></c>",
        "<c r='B2'><v>36</v></c>",
    ],
)
def test_a_computed_cell_is_its_value(cell):
    extracted = read(workbook(f"{HEAD}<row r='2'>{words('A2', 'oars')}{cell}</row>"))
    assert extracted.text in ("S\n\nitem | total | who\noars | 36\n", "S\n\nitem | total | who\noars\n")
    assert extracted.omitted == {}


def test_a_sheet_of_nothing_but_formulas_is_read_in_its_places():
    rows = "<row r='2'><c r='C2'><f>A1</f></c></row><row r='5'><c r='B5'><f>C2+1</f></c></row>"
    assert read(workbook(rows)).text == "S\n\n=A1\n=C2+1\n"


def test_a_formula_left_of_and_below_all_values_keeps_the_columns_in_line():
    rows = f"<row r='1'><c r='A1'><f>1</f></c>{words('B1', 'x')}</row><row r='2'>{words('B2', 'y')}</row><row r='3'><c r='B3'><f>2</f></c></row>"
    assert read(workbook(rows)).text == "S\n\n=1 | x\n | y\n | =2\n"


def test_zeros_of_a_program_that_computes_nothing_are_no_values():
    row = (
        f"<row r='2'>{words('A2', 'oars')}<c r='B2'><f>SUM(D1:D9)</f><v>0</v></c><c r='C2'><f>1+1</f><v>2</v></c></row>"
    )
    stale = read(workbook(HEAD + row, calculation="<calcPr fullCalcOnLoad='1'/>"))
    assert (stale.text.split("\n")[3], stale.omitted) == ("oars | =SUM(D1:D9) | 2", {"formulas": 1})
    assert read(workbook(HEAD + row)).text.split("\n")[3] == "oars | 0 | 2"


def test_a_shared_formula_is_moved_to_each_of_its_cells():
    rows = "<row r='1'><c r='A1'><v>1</v></c><c r='B1'><f t='shared' ref='B1:B2' si='0'>A1*$C$1</f></c></row>"
    rows += "<row r='2'><c r='A2'><v>2</v></c><c r='B2'><f t='shared' si='0'/></c></row>"
    assert read(workbook(rows)).text == "S\n\n1 | =A1*$C$1\n2 | =A2*$C$1\n"


@pytest.mark.parametrize(
    ("formula", "there"),
    [
        ("A1+$A1+A$1+$A$1", "C3+$A3+C$1+$A$1"),
        ('SUM(A1:B2)&"A1"', 'SUM(C3:D4)&"A1"'),
        ("LOG10(A1)+'A1 old'!B2+Rate_A1", "LOG10(C3)+'A1 old'!D4+Rate_A1"),
        ("", ""),
    ],
)
def test_a_formula_moves_with_its_cell_but_for_what_is_fixed(formula, there):
    assert moved(formula, 2, 2) == there


def test_cells_have_the_names_that_people_give_them():
    assert [cell_name(row, column) for row, column in ((0, 0), (8, 25), (1, 26), (0, 16383))] == [
        "A1",
        "Z9",
        "AA2",
        "XFD1",
    ]
    assert [cell_place(name) for name in ("A1", "$XFD$1", "A0", "1A", "")] == [(0, 0), (0, 16383), None, None, None]


NOTES = f"<comments xmlns='{SHEETS}'><commentList>{{}}</commentList></comments>"
NOTE = "<comment ref='{}'><text><r><t>{}</t></r></text></comment>"


@E10
def test_notes_follow_the_row_of_their_cell():
    row = f"<row r='2'>{words('A2', 'oars')}<c r='B2'><v>36</v></c></row><row r='3'>{words('A3', 'ropes')}</row>"
    notes = "".join(
        NOTE.format(place, text) for place, text in (("B1", "with tax"), ("B2", "from\nAda"), ("D9", "far"))
    )
    data = workbook(
        HEAD + row, parts={"xl/comments1.xml": NOTES.format(notes)}, relations={"c": ("comments", "xl/comments1.xml")}
    )
    assert read(data).text == (
        "S\n\nitem | total | who\nNote on B1: with tax\noars | 36\nNote on B2: from Ada\nropes\nNote on D9: far\n"
    )


def test_what_people_wrote_to_each_other_about_a_cell_is_read_once():
    legacy = NOTES.format(NOTE.format("A1", "[Threaded comment] Your version of Excel…"))
    people = "<personList><person displayName='Ada' id='p1'/><person displayName='Bo' id='p2'/></personList>"
    threads = "<ThreadedComments><threadedComment ref='A1' personId='p1' id='1'><text>Why?</text></threadedComment><threadedComment ref='A1' personId='p2' id='2' parentId='1'><text>So.</text></threadedComment></ThreadedComments>"
    data = workbook(
        f"<row r='1'>{words('A1', 'x')}</row>",
        parts={"xl/comments1.xml": legacy, "xl/threads.xml": threads, "xl/people.xml": people},
        relations={"c": ("comments", "xl/comments1.xml"), "t": ("threadedComment", "xl/threads.xml")},
    )
    assert read(data).text == "S\n\nx\nNote on A1: Why? · So.\n"


def test_text_boxes_and_titles_of_charts_follow_the_sheet():
    text = "<a:p><a:r><a:t>{}</a:t></a:r></a:p>"
    box = f"<d:wsDr xmlns:d='d' xmlns:a='{DRAWING}'><d:sp><d:txBody>{text.format('beside the table')}</d:txBody></d:sp></d:wsDr>"
    chart = f"<c:chartSpace xmlns:c='c' xmlns:a='{DRAWING}'><c:chart><c:title><c:tx><c:rich>{text.format('Catch')}</c:rich></c:tx></c:title></c:chart></c:chartSpace>"
    data = workbook(
        f"<row r='1'>{words('A1', 'x')}</row>",
        parts={
            "xl/drawings/d.xml": box,
            "xl/charts/c.xml": chart,
            "xl/drawings/_rels/d.xml.rels": "<R><Relationship Id='k' Type='x/chart' Target='/xl/charts/c.xml'/></R>",
        },
        relations={"d": ("drawing", "xl/drawings/d.xml")},
    )
    assert read(data).text == "S\n\nx\n\nbeside the table\nCatch\n"


def test_a_sheet_whose_drawing_is_damaged_is_read_without_it():
    data = workbook(
        f"<row r='1'>{words('A1', 'x')}</row>",
        parts={"xl/drawings/d.xml": "<d"},
        relations={"d": ("drawing", "xl/drawings/d.xml")},
    )
    assert read(data).text == "S\n\nx\n"


def spreadsheet(rows, beside="", **parts):
    """A spreadsheet of one sheet `S`."""
    return opendocument("spreadsheet", f"<table:table table:name='S'>{beside}{rows}</table:table>", **parts)


@E10
def test_a_sheet_of_opendocument_has_its_formulas_notes_boxes_and_charts():
    text = "<table:table-cell office:value-type='string'>{}<text:p>{}</text:p></table:table-cell>"
    note = "<office:annotation><dc:creator>Ada</dc:creator><text:p>from the shed</text:p></office:annotation>"
    formula = "<table:table-cell table:formula='of:=SUM([.A1:.B2])+[$T.C$1]'/>"
    rows = f"<table:table-row table:number-rows-repeated='2'><table:table-cell/></table:table-row><table:table-row>{text.format(note, 'oars')}{formula}</table:table-row>"
    shapes = "<table:shapes><draw:frame><draw:text-box><text:p>beside it</text:p></draw:text-box></draw:frame><draw:frame><draw:object xlink:href='./Object 1'/></draw:frame><draw:frame><draw:object xlink:href='./Gone'/></draw:frame></table:shapes>"
    title = "<chart:chart><chart:title><text:p>Catch</text:p></chart:title></chart:chart>"
    chart = document_content("chart", title)
    extracted = read(spreadsheet(rows, shapes, **{"Object 1/content.xml": chart}), "a.ods")
    assert extracted.text == "S\n\noars | =SUM(A1:B2)+$T.C$1\nNote on A3: from the shed\n\nbeside it\nCatch\n"
    assert extracted.omitted == {"formulas": 1, "objects": 1}


def shown(number, kind, text):
    """The records of a note or a text box."""
    head = record(0x5D, struct.pack("<HHHHH", 0x15, 18, kind, number, 0) + bytes(12))
    wide = b"\1" + text.encode("utf-16-le")
    return head + record(0x1B6, struct.pack("<HH6xHHI", 0, 0, len(text), 16, 0)) + record(0x3C, wide)


NOTED = (
    *(label(0, "oars"), shown(1, 0x19, "from Ada – cheap"), shown(2, 6, "beside it")),
    record(0x1C, struct.pack("<HHHHHB", 1, 1, 0, 1, 1, 0) + b"A\0"),
)


@E10
def test_a_sheet_of_excel_97_has_its_notes_and_text_boxes():
    assert read(old_workbook(*NOTED), "a.xls").text == "S\n\noars\nNote on B2: from Ada – cheap\n\nbeside it\n"


# Comma-separated values


@E10
def test_a_table_with_a_very_long_value_keeps_the_names_of_its_columns():
    extracted = read(f"keeper,remark\nAda,{'horn ' * 40_000}\nBo,short\n".encode(), "a.csv")
    assert extracted.sections[0].heading == ("keeper | remark",)
    assert extracted.text.endswith("\nBo | short\n")


def test_a_mark_for_inches_swallows_no_rows():
    rows = 'size,item\n"24" tyre,bike\n27,"frame\n'
    extracted = read(b'id,size,item\n1,26,tyre\n2,"24 inch,bike\n3,27,frame\n4,28,fork\n', "a.csv")
    assert extracted.text.split("\n")[:4] == [
        "id | size | item",
        "1 | 26 | tyre",
        '2 | "24 inch | bike',
        "3 | 27 | frame",
    ]
    assert "frame" in read(rows.encode(), "a.csv").text


def test_a_value_of_several_lines_is_one_value():
    assert read(b'a,b\n1,"two\nlines"\n3,"four\nfive"\n', "a.csv").text == "a | b\n1 | two lines\n3 | four five\n"


def test_an_error_stands_where_the_value_would():
    rows = "<row r='1'><c r='A1'><v>1</v></c><c r='B1' t='e'><f>1/0</f><v>#DIV/0!</v></c></row>"
    extracted = read(workbook(rows))
    assert (extracted.text, extracted.omitted) == ("S\n\n1 | #DIV/0!\n", {})


def test_text_whose_bytes_a_parser_takes_for_characters_is_text():
    from kb.formats.readers.spreadsheet import _shown

    assert _shown("T\0i\0t\0") == "Tit"
    assert _shown("a\0日") == "a日"


def test_an_error_of_libreoffice_and_a_formula_without_a_value_are_shown():
    rows = (
        "<table:table-row><table:table-cell office:value-type='string' office:string-value='' "
        "calcext:value-type='error' table:formula='of:=1/0'><text:p>#DIV/0!</text:p></table:table-cell>"
        "<table:table-cell table:formula='of:=2&gt;1' office:value-type='float'/>"
        "<table:table-cell office:value-type='string'><text:p>oars</text:p></table:table-cell></table:table-row>"
    )
    extracted = read(spreadsheet(rows), "a.ods")
    assert extracted.text == "S\n\n#DIV/0! | =2>1 | oars\n"
    assert extracted.omitted == {"formulas": 1}


def test_words_in_any_shape_of_an_opendocument_sheet_are_read_once():
    inner = "<draw:frame><draw:text-box><text:p>inner</text:p></draw:text-box></draw:frame>"
    shapes = (
        "<table:shapes><draw:rect><text:p>rectangle</text:p></draw:rect><draw:ellipse><text:p>ellipse</text:p></draw:ellipse>"
        f"<draw:frame><draw:text-box><text:p>outer{inner}</text:p></draw:text-box></draw:frame>"
        "<draw:frame><draw:object-ole xlink:href='a'/></draw:frame></table:shapes>"
    )
    extracted = read(
        spreadsheet(
            "<table:table-row><table:table-cell office:value-type='string'><text:p>oars</text:p></table:table-cell></table:table-row>",
            shapes,
        ),
        "a.ods",
    )
    assert extracted.text == "S\n\noars\n\nrectangle\nellipse\nouter\ninner\n"
    assert extracted.omitted == {"objects": 1}


def test_formulas_are_cut_and_only_counted_when_they_take_too_much():
    master = f"<c r='A1'><f t='shared' ref='A1:A300' si='0'>{'B1+' * 9000}B1</f></c>"
    others = "".join(f"<row r='{number}'><c r='A{number}'><f t='shared' si='0'/></c></row>" for number in range(2, 301))
    extracted = read(workbook(f"<row r='1'>{master}</row>{others}"))
    assert extracted.omitted == {"formulas": 300}
    assert len(extracted.text) < 2 << 20


def wide(text):
    return struct.pack("<I", len(text)) + text.encode("utf-16-le")


def test_boxes_and_files_of_the_binary_format_are_read():
    sheet = bytes(8) + wide("r1") + wide("Stock")
    bundle = bytes((0x9C, 0x01, len(sheet))) + sheet
    box = f"<x:wsDr xmlns:x='x' xmlns:a='{DRAWING}'><x:txBody><a:p><a:r><a:t>in the box</a:t></a:r></a:p></x:txBody></x:wsDr>"
    parts = {
        "xl/workbook.bin": bundle,
        "xl/worksheets/sheet1.bin": b"",
        "xl/drawing1.xml": box,
        "xl/embeddings/plan.docx": b"PK",
        "xl/embeddings/o.bin": b"",
    }
    relations = {
        "xl/workbook.bin": {"r1": ("worksheet", "xl/worksheets/sheet1.bin")},
        "xl/worksheets/sheet1.bin": {
            "d": ("drawing", "xl/drawing1.xml"),
            "p": ("package", "xl/embeddings/plan.docx"),
            "o": ("oleObject", "xl/embeddings/o.bin"),
        },
    }
    [(name, extras)] = xlsx_extras(Package(package("xl/workbook.bin", parts, relations)))
    assert (name, extras.boxes, [file.filename for file in extras.files]) == ("Stock", ["in the box"], ["plan.docx"])
    assert dict(extras.omitted()) == {"objects": 1}


def formula(column, result, options=0):
    return record(0x06, struct.pack("<HHH", 0, column, 0) + result + struct.pack("<HIH", options, 0, 3) + b"\x1e\5\0")


EMPTY, ZERO, FIVE = b"\3\0\0\0\0\0\xff\xff", bytes(8), struct.pack("<d", 5)


@pytest.mark.parametrize(
    ("formulas", "count"),
    [
        ([formula(0, EMPTY), formula(1, EMPTY)], 2),
        ([formula(0, ZERO, 2)], 1),
        ([formula(0, ZERO)], 0),
        ([formula(0, EMPTY), formula(1, FIVE)], 0),
    ],
)
def test_formulas_of_excel_97_that_no_program_computed_are_counted(formulas, count):
    chart = record(0x0809, struct.pack("<HH", 0x0600, 0x20)) + record(0x100D, b"\0\0\5\0Catch") + record(0x0A)
    data = old_workbook(label(2, "oars"), *formulas, chart, beside={"MBD00A1": {"CONTENTS": b"x"}})
    extracted = read(data, "a.xls")
    assert "Catch" in extracted.text
    assert extracted.omitted == ({"formulas": count} if count else {}) | {"objects": 1}


def test_formulas_in_cells_that_name_no_place_are_where_they_stand():
    row = "<row><c t='inlineStr'><is><t>{}</t></is></c><c/><c><f>{}*2</f></c></row>"
    data = workbook(
        row.format("oars", "A1") + "<row r='4'><c r='B4'><f>A1</f></c><c><f>A2</f></c></row>" + row.format("nets", "A5")
    )
    assert read(data).text == "S\n\noars |  | =A1*2\n | =A1 | =A2\nnets |  | =A5*2\n"


ENDING = "\n\nHeaders and footers\n\n- Harbour Board\n- R&D draft\n"


@pytest.mark.parametrize(
    ("written", "lines"),
    [
        (
            '&L&"Arial,Bold"&12Harbour Board&C&K000000R&&D draft&RPage &P of &N',
            ["", "Harbour Board", "R&D draft", "Page  of "],
        ),
        ("&C&K01+034Plan&D&T&F&A&G", ["", "Plan"]),
        ("Plan &", ["Plan &"]),
        ("", []),
    ],
)
def test_a_header_of_excel_has_its_words_without_the_codes(written, lines):
    assert margin_lines(written) == lines


@E10
def test_headers_and_footers_of_an_excel_sheet_follow_it():
    header = "<headerFooter><oddHeader>&amp;LHarbour Board&amp;RPage &amp;P</oddHeader><oddFooter>&amp;CR&amp;&amp;D draft</oddFooter></headerFooter>"
    data = workbook(f"<row r='1'>{words('A1', 'x')}</row>", header)
    assert extract(data, "a.xlsx")[1].text == f"S\n\nx{ENDING}"


@E10
def test_headers_and_footers_of_an_opendocument_sheet_follow_it():
    text = "<style:{0}><text:p>{1}</text:p></style:{0}>"
    number = "Page <text:page-number>1</text:page-number> / <text:page-count>99</text:page-count>"
    parts = (
        text.format("header", "Harbour Board")
        + text.format("footer", "R&amp;D draft")
        + text.format("footer-left", number)
    )
    styles = document_styles(f"<style:master-page>{parts}</style:master-page>")
    cell = "<table:table-cell office:value-type='string'><text:p>x</text:p></table:table-cell>"
    data = spreadsheet(f"<table:table-row>{cell}</table:table-row>", **{"styles.xml": styles})
    assert extract(data, "a.ods")[1].text == f"S\n\nx{ENDING}"


@E10
def test_headers_and_footers_of_an_old_excel_sheet_follow_it():
    def margin(kind, text):
        return record(kind, struct.pack("<HB", len(text), 1) + text.encode("utf-16-le"))

    margins = margin(0x14, "&LHarbour Board&R&P") + margin(0x15, "&CR&&D draft")
    text = extract(old_workbook(*NOTED, margins), "a.xls")[1].text
    assert text.endswith(ENDING)


@pytest.mark.parametrize(
    ("code", "value", "shown"),
    [
        ("0.00%", 0.0525, "5.25%"),
        ("0%", 0.07, "7%"),
        ('"$"#,##0.00_);[Red]\\("$"#,##0.00\\)', -1188.44, "-$1188.44"),
        ("#,##0.00\\ [$€-407]", 12.5, "12.5 €"),
        ('_-* #,##0.00\\ "kr."_-;-* #,##0.00\\ "kr."_-', 3, "3 kr."),
        ('0" kg"', 12, "12 kg"),
        ('"Boat "0', 7, "Boat 7"),
        ('"B-"0', 7, "B-7"),
        ('General" m²"', 0.1, "0.1 m²"),
        ("[Blue]0.0\\ \\l", 2, "2 l"),
        ('0" kg"', 1e15, "1000000000000000 kg"),
        ('0.000000" kg"', 0.00001, "0.00001 kg"),
    ],
)
def test_a_number_has_what_its_format_shows_around_it(code, value, shown):
    assert unit_of_format(code).around(value) == shown


@pytest.mark.parametrize(
    "code",
    [
        "General",
        "",
        "0.00",
        "#,##0",
        "yyyy\\-mm\\-dd",
        "[h]:mm",
        "# ?/?",
        "0.00E+00",
        "@",
        "(0)",
        "000\\-00\\-0000",
        '"closed"',
        "[>100]0%",
        '"a',
        '0.0,,"M"',
        '#,##0,"k"',
        '#,##0,.0"k"',
    ],
)
def test_a_format_that_shows_only_the_number_or_no_plain_one_changes_nothing(code):
    assert unit_of_format(code) is None


@E10
def test_numbers_of_an_excel_sheet_have_their_units():
    formats = "<numFmts><numFmt numFmtId='164' formatCode='0.0&quot; kg&quot;'/></numFmts>"
    styles = f"{formats}<cellXfs><xf numFmtId='0'/><xf numFmtId='9'/><xf numFmtId='164'/></cellXfs>"
    cells = "<c r='A1' s='1'><v>0.15</v></c><c r='B1' s='2'><f>6*2</f><v>12</v></c><c r='C1'><v>0.15</v></c>"
    text = "<c r='A2' s='1' t='inlineStr'><is><t>word</t></is></c><c r='B2' s='1'/>"
    data = workbook(f"<row r='1'>{cells}</row><row r='2'>{text}</row>", styles=styles)
    assert extract(data, "a.xlsx")[1].text == "S\n\n15% | 12 kg | 0.15\nword\n"


@E10
def test_numbers_of_an_opendocument_sheet_have_their_units():
    cell = "<table:table-cell office:value-type='{}' office:value='{}' {}><text:p>{}</text:p></table:table-cell>"
    cells = cell.format("percentage", "0.126", "table:number-columns-repeated='2'", "13%")
    cells += cell.format("currency", "-2711.25", "office:currency='EUR'", "-2.711,25 €")
    cells += cell.format("float", "12", "", "12 kg") + cell.format("float", "1234.5", "", "1,234.50")
    cells += cell.format("float", "12345", "", "1.23E+04") + cell.format("float", "3.5", "", "3 ft 6 in")
    text = extract(spreadsheet(f"<table:table-row>{cells}</table:table-row>"), "a.ods")[1].text
    assert text == "S\n\n12.6% | 12.6% | -2711.25 € | 12 kg | 1234.5 | 12345 | 3 ft 6 in\n"


@pytest.mark.parametrize(
    ("shown", "value", "told"),
    [
        ("13%", 0.126, "12.6%"),
        ("1,000 kg", 999.6, "999.6 kg"),
        ("12,34,567 kg", 1234567, "1234567 kg"),
        ("1\xa0234,6 kg", 1234.56, "1234.56 kg"),
        ("0,5 kg", 0.45, "0.45 kg"),
        ("\N{MINUS SIGN}5 °C", -5, "-5 °C"),
        ("1.5M", 1500000, None),
        ("12k", 12345, None),
        ("1.234 T€", 1234000, None),
        ("0 kg", 0.0004, "0.0004 kg"),
        (f"{'9' * 5000}.{'9' * 5000} kg", 9, None),
    ],
)
def test_a_text_that_shows_another_number_tells_no_unit(shown, value, told):
    unit = unit_of_text(shown, value, is_share=shown.endswith("%"))
    assert (unit and unit.around(value)) == told


@E10
def test_thousands_and_millions_are_told_as_they_are_shown_or_in_full():
    cell = "<table:table-cell office:value-type='float' office:value='1500000'><text:p>1.5M</text:p></table:table-cell>"
    assert extract(spreadsheet(f"<table:table-row>{cell}</table:table-row>"), "a.ods")[1].text == "S\n\n1.5M\n"
