"""Presentations, spreadsheets, books, OpenDocument, rich text, tables, notebooks: visible text and its position."""

import json
import re
import struct
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.api.errors import Unreadable
from kb.formats.containers.ole import ole_properties, open_ole
from kb.formats.detect import detect
from kb.formats.extract import extract
from kb.formats.text.builder import TextBuilder
from kb.formats.text.extracted import Properties
from kb.formats.text.tables import write_table
from tests.support.office import (
    DRAWING,
    book,
    document_content,
    document_styles,
    opendocument,
    package,
    presentation,
    shape,
    slide,
    word,
    words,
    workbook,
)
from tests.support.ole import ole, record
from tests.support.reading import read
from tests.support.samples import zipped

pytestmark = pytest.mark.requirement("E-10")


def sections(extracted):
    return [(part.page, part.heading, extracted.text[part.start : part.end]) for part in extracted.sections]


# Office Open XML


def test_slides_are_pages_in_the_order_of_the_show_with_their_titles_first():
    first = shape("under it\nmore") + shape("The title", role="type='ctrTitle'") + shape("7", role="type='sldNum'")
    extracted = read(presentation([*map(slide, (first, "", f"<p:grpSp>{shape('grouped')}</p:grpSp>"))]))
    assert extracted.title == "The title"
    assert sections(extracted) == [
        (1, ("The title",), "The title\n\nunder it\nmore\n\n"),
        (3, (), "grouped\n\n"),
    ]


def test_tables_charts_notes_and_comments_of_a_slide_are_read():
    cells = "<a:tc><a:txBody><a:p><a:r><a:t>{}</a:t></a:r></a:p></a:txBody></a:tc>"
    rows = "".join(f"<a:tr>{cells.format(a)}{cells.format(b)}</a:tr>" for a, b in [("Name", "Age"), ("Ann", "30")])
    table = (
        f"<p:graphicFrame><a:graphic><a:graphicData><a:tbl>{rows}</a:tbl></a:graphicData></a:graphic></p:graphicFrame>"
    )
    chart = "<p:graphicFrame><a:graphic><a:graphicData><c:chart r:id='c'/></a:graphicData></a:graphic></p:graphicFrame>"
    series = (
        "<c:ser><c:tx><c:v/><c:pt idx='0'><c:v>Sales</c:v></c:pt></c:tx><c:cat><c:pt idx='0'><c:v>May</c:v></c:pt></c:cat>"
        "<c:val><c:pt idx='0'><c:v>7</c:v></c:pt></c:val></c:ser>"
    )
    said = shape("say this", role="type='body'") + shape("1", role="type='sldNum'")
    extracted = read(
        presentation(
            [slide(table + chart)],
            {
                "ppt/charts/chart1.xml": f"<c:chartSpace xmlns:c='c'><c:chart><c:plotArea><c:bar>{series}</c:bar></c:plotArea></c:chart></c:chartSpace>",
                "ppt/notes.xml": f"<p:notes xmlns:p='p' xmlns:a='{DRAWING}'>{said}</p:notes>",
                "ppt/comments.xml": "<p:cmLst xmlns:p='p'><p:cm><p:text>is it so?</p:text></p:cm></p:cmLst>",
            },
            {
                "c": ("chart", "ppt/charts/chart1.xml"),
                "n": ("notesSlide", "ppt/notes.xml"),
                "m": ("comments", "ppt/comments.xml"),
            },
        )
    )
    assert extracted.text == "Name | Age\nAnn | 30\n\n | Sales\nMay | 7\n\nNotes:\nsay this\n\nComment: is it so?\n\n"
    assert sections(extracted)[0][1] == ("Name | Age",)


def test_a_slide_is_read_whose_embedded_objects_are_of_a_kind_of_their_own():
    objects = (
        "<p:graphicFrame><a:graphic><a:graphicData><p:oleObj r:id='o'/></a:graphicData></a:graphic></p:graphicFrame>"
    )
    parts = {"ppt/embeddings/oleObject1.bin": ole({"CONTENTS": b"x"})}
    relations = {"o": ("oleObject", "ppt/embeddings/oleObject1.bin")}
    data = presentation([slide(shape("a table beside") + objects)], parts, relations)
    assert read(data).text == "a table beside\n\n"


def cell(reference, value):
    return words(reference, value) if isinstance(value, str) else f"<c r='{reference}'><v>{value}</v></c>"


DATES = "<cellXfs count='2'><xf numFmtId='0'/><xf numFmtId='14'/><xf numFmtId='22'/></cellXfs>"


def test_a_sheet_is_a_section_with_its_columns_named_and_its_values_as_people_write_them():
    rows = f"<row r='1'>{words('A1', 'Name')}{words('B1', 'Born')}{words('C1', 'Sum')}</row>"
    rows += f"<row r='2'>{words('A2', 'Ann')}<c r='B2' s='1'><v>36526</v></c><c r='C2'><f>1+1</f><v>2</v></c></row>"
    rows += "<row r='4'><c r='B4' s='2'><v>36526.5</v></c><c r='C4' t='b'><v>1</v></c><c r='D4'><v>0.1</v></c></row>"
    extracted = read(workbook({"People": rows, "Empty": "", "More": "<row><c r='C3'><v>5</v></c></row>"}, styles=DATES))
    assert sections(extracted) == [
        (None, ("People",), "People\n\n"),
        (None, ("People", "Name | Born | Sum"), "Name | Born | Sum\nAnn | 2000-01-01 | 2\n | 2000-01-01 12:00:00 | TRUE | 0.1\n\n"),
        (None, ("More",), "More\n\n5\n"),
    ]  # fmt: skip


def test_tables_of_one_sheet_each_have_the_names_of_their_columns():
    names = f"<row r='3'>{words('B3', 'Name')}{words('C3', 'Sum')}</row><row r='4'>{words('B4', 'Ann')}<c r='C4'><v>1</v></c></row>"
    more = f"<row r='9'>{words('E9', 'City')}{words('F9', 'Year')}</row><row r='10'>{words('E10', 'Rome')}<c r='F10'><v>2</v></c></row>"
    extracted = read(
        workbook({"S": f"<row r='1'>{words('B1', 'Sales')}</row>{names}<row r='7'>{words('E7', 'Cities')}</row>{more}"})
    )
    assert [part[1:] for part in sections(extracted)] == [
        (("S",), "S\n\n"),
        (("S", "Sales"), "Sales\n\n"),
        (("S", "Sales", "Name | Sum"), "Name | Sum\nAnn | 1\n\n"),
        (("S", "Cities"), "Cities\n\n"),
        (("S", "Cities", "City | Year"), "City | Year\nRome | 2\n"),
    ]


def test_a_word_in_a_cell_that_spans_rows_stands_in_each_of_them():
    cells = [
        ("Region", "2023", "", "2024"),
        ("", "Q1", "Q2", "Q1"),
        ("North", 1, 2, 3),
        ("", 4, 5, 6),
        ("South", 7, 8, 9),
    ]
    rows = "".join(
        f"<row r='{r}'>{''.join(cell(f'{c}{r}', value) for c, value in zip('BCDE', row, strict=True))}</row>"
        for r, row in enumerate(cells, 3)
    )
    merged = "".join(f"<mergeCell ref='{cells}'/>" for cells in ("B3:B4", "C3:D3", "B5:B6"))
    extracted = read(workbook({"S": f"{rows}</sheetData><mergeCells>{merged}</mergeCells><sheetData>"}))
    assert sections(extracted)[1] == (
        None,
        ("S", "Region | 2023 Q1 | 2023 Q2 | 2024 Q1"),
        "Region | 2023 |  | 2024\nRegion | Q1 | Q2 | Q1\nNorth | 1 | 2 | 3\nNorth | 4 | 5 | 6\nSouth | 7 | 8 | 9\n",
    )


# Dates and titles


def core(**properties):
    written = "".join(f"<{name}>{value}</{name}>" for name, value in properties.items())
    return {"docProps/core.xml": f"<core>{written}</core>"}


def office(properties, title="Words"):
    """A presentation of one slide."""
    shown = slide(shape(title, role="type='title'"))
    parts = {"p.xml": "<p xmlns:r='r'><sldIdLst><sldId r:id='s'/></sldIdLst></p>", "s.xml": shown, **properties}
    relations = {"p.xml": {"s": ("slide", "s.xml")}}
    return package(
        "p.xml",
        {"ppt/x": "", **parts},
        relations | {"": {"r": ("officeDocument", "p.xml"), "c": ("core-properties", "docProps/core.xml")}},
    )


@pytest.mark.parametrize(
    ("created", "modified", "date"),
    [
        ("2024-05-01T12:30:00Z", "2025-01-01T00:00:00Z", "2024-05-01T12:30:00Z"),
        ("2024-05-01T12:30:00.1234567+02:00", "", "2024-05-01T12:30:00+02:00"),
        ("", "2025-01-01T08:00:00Z", "2025-01-01T08:00:00Z"),
        ("2024-05-01", "", "2024-05-01"),
        ("1601-01-01T00:00:00Z", "2025-01-01T08:00:00Z", "2025-01-01T08:00:00Z"),
        ("2013-12-23T23:15:00Z", "2013-12-23T23:15:00Z", None),
        ("1970-01-01T00:00:00Z", "1969-12-31T23:00:00Z", None),
        ("0000-00-00", "0001-01-01T00:00:00Z", None),
        ("2999-01-01T00:00:00Z", "2024-13-45", None),
        ("yesterday", "12345", None),
    ],
)
def test_an_office_document_is_of_the_date_at_which_it_was_created(created, modified, date):
    assert read(office(core(created=created, modified=modified))).date == date


@pytest.mark.parametrize(
    ("codepage", "title", "days", "wanted"),
    [
        (1251, "План".encode("cp1251"), 154_000, ("План", "2022-08-22T00:00:00Z")),
        (65001, "Plän".encode(), 1, ("Plän", None)),
        (0, b"Book1", 10_000_000, (None, None)),
    ],
)
def test_an_old_office_document_has_the_title_and_the_date_of_its_properties(codepage, title, days, wanted):
    created = struct.pack("<IQ", 64, days * 24 * 3600 * 10**7)
    values = {
        1: struct.pack("<IHxx", 2, codepage),
        2: struct.pack("<II", 30, len(title) + 1) + title.ljust(16, b"\0"),
        12: created,
    }
    place, index = 8 + 8 * len(values), b""
    for number, value in values.items():
        index += struct.pack("<II", number, place)
        place += len(value)
    section = struct.pack("<II", place, len(values)) + index + b"".join(values.values())
    stream = struct.pack("<HHI16xI16xI", 0xFFFE, 0, 2, 1, 48) + section
    with open_ole(ole({"\x05SummaryInformation": stream})) as opened:
        assert tuple(ole_properties(opened)) == wanted


@given(st.binary(max_size=200))
def test_properties_of_an_old_office_document_that_are_damaged_are_none(stream):
    with open_ole(ole({"\x05SummaryInformation": stream})) as opened:
        assert ole_properties(opened) == Properties()


@pytest.mark.parametrize(
    ("title", "found"), [("PowerPoint Presentation", "Words"), ("The plan", "The plan"), ("plan_v2.pptx", "Words")]
)
def test_a_presentation_is_called_by_its_first_slide_unless_its_title_says_something(title, found):
    assert read(office(core(title=title))).title == found


# Books


XHTML = "<?xml version='1.0' encoding='utf-8'?><html xmlns='http://www.w3.org/1999/xhtml'><head><title/><script src='x'/></head><body>{}</body></html>"


def test_a_book_is_read_in_its_order_under_its_chapters():
    chapters = {
        "b": XHTML.format("<p>second</p>"),
        "a": XHTML.format("<h1>One</h1><h2>Part</h2><p>first é<a id='x'/>!</p>"),
    }
    ncx = "<ncx xmlns='n'><navPoint><navLabel><text>Two</text></navLabel><content src='text/b.xhtml#top'/></navPoint></ncx>"
    manifest = "<item id='toc' href='toc.ncx' media-type='application/x-dtbncx+xml'/>"
    extracted = read(book(chapters, manifest=manifest, **{"OPS/toc.ncx": ncx}))
    assert extracted.title == "The book"
    assert [part[1:] for part in sections(extracted)] == [
        (("One",), "One\n\n"),
        (("One", "Part"), "Part\n\nfirst é!\n\n"),
        (("Two",), "Two\n\nsecond\n"),
    ]


@pytest.mark.parametrize(
    ("dates", "date"),
    [
        ("<dc:date>1818</dc:date>", "1818"),
        ("<dc:date event='modification'>2020-01-01</dc:date><dc:date event='publication'>2010-05</dc:date>", "2010-05"),
        ("<dc:date>0101-01-01T00:00:00+00:00</dc:date>", None),
        ("<dc:date event='modification'>2020-01-01</dc:date>", None),
    ],
)
def test_a_book_is_of_the_date_at_which_it_was_published(dates, date):
    assert read(book({"a": XHTML.format("words")}, dates=dates)).date == date


def test_a_book_without_a_title_that_says_something_has_none():
    assert read(book({"a": XHTML.format("words")}, title="Unknown")).title is None


def test_the_table_of_contents_of_a_book_is_no_chapter():
    nav = "<item id='nav' href='nav.xhtml' media-type='application/xhtml+xml' properties='nav'/>"
    data = book(
        {"a": XHTML.format("words")}, manifest=nav, spine="<itemref idref='nav'/>", **{"OPS/nav.xhtml": "<a>x</a>"}
    )
    assert read(data).text == "words\n"


def test_a_book_that_only_its_shop_can_open_says_so():
    locked = "<encryption xmlns:e='e'><e:CipherReference URI='OPS/text/a.xhtml'/></encryption>"
    with pytest.raises(Unreadable, match="encrypted"):
        read(book({"a": b"\x93\x01"}, **{"META-INF/encryption.xml": locked}))


# Excel 97-2003


def biff5(word):
    """The stream of a workbook of Excel 5, with a word in the first cell."""
    first, end = record(0x0809, struct.pack("<HHHH", 0x0500, 5, 0, 0)), record(0x0A)
    name = b"Prices"
    start = len(first) + 4 + 7 + len(name) + len(end)
    sheet = record(0x85, struct.pack("<IBBB", start, 0, 0, len(name)) + name)
    label = record(0x0204, struct.pack("<HHHH", 0, 0, 0, len(word)) + word)
    return first + sheet + end + record(0x0809, struct.pack("<HHHH", 0x0500, 0x10, 0, 0)) + label + end


@pytest.mark.parametrize("stream", ["Book", "BOOK"])
def test_a_workbook_as_excel_5_wrote_it_and_some_programs_still_do_is_read(stream):
    assert read(ole({stream: biff5(b"apples")})).text == "Prices\n\napples\n"


@pytest.mark.parametrize("before", [b"", record(0x86)])
def test_an_old_workbook_with_a_password_says_that_it_needs_one(before):
    locked = record(0x0809, struct.pack("<HHHH", 0x0600, 5, 0, 0)) + before + record(0x2F, bytes(6)) + bytes(64)
    with pytest.raises(Unreadable, match="encrypted and needs a password"):
        read(ole({"Workbook": locked}))


# OpenDocument


def test_a_document_that_says_what_it_is_behind_other_entries_is_read():
    content = document_content("text", "<text:p>here</text:p>")
    late = {"content.xml": content, "mimetype": "application/vnd.oasis.opendocument.text"}
    assert read(zipped(late)).text == "here\n"


@pytest.mark.parametrize(
    ("meta", "title", "date"),
    [
        (
            "<title>The plan</title><creation-date>2024-05-01T12:30:00.123456789</creation-date>",
            "The plan",
            "2024-05-01T12:30:00",
        ),
        ("<title>Untitled</title><date>2025-01-01T00:00:00</date>", "One", "2025-01-01T00:00:00"),
        ("<creation-date>1899-12-31T00:00:00</creation-date>", "One", None),
    ],
)
def test_an_opendocument_has_the_title_and_the_date_of_its_properties(meta, title, date):
    parts = {"meta.xml": f"<document-meta><meta>{meta}</meta></document-meta>"}
    extracted = read(opendocument("text", "<text:h>One</text:h>", **parts))
    assert (extracted.title, extracted.date) == (title, date)


def test_the_first_heading_is_no_title_when_a_page_of_text_stands_above_it():
    body = f"<text:p>{'word ' * 100}</text:p><text:h text:outline-level='1'>A later chapter</text:h>"
    assert read(opendocument("text", body)).title is None


def test_an_opendocument_text_is_read_with_headings_lists_tables_and_notes():
    body = """<text:tracked-changes><text:p>deleted</text:p></text:tracked-changes><text:p text:style-name="P1">Title</text:p>
      <text:h text:outline-level="1">One</text:h><text:p>some<text:s text:c="2"/>text<text:note><text:note-citation>1</text:note-citation>
      <text:note-body><text:p>the note</text:p></text:note-body></text:note>, more</text:p>
      <text:list><text:list-item><text:p>a</text:p><text:list><text:list-item><text:p>b</text:p></text:list-item></text:list></text:list-item></text:list>
      <table:table><table:table-row><table:table-cell><text:p>x</text:p></table:table-cell><table:table-cell><text:p>1</text:p></table:table-cell></table:table-row></table:table>"""
    styles = "<office:automatic-styles><style:style style:name='P1' style:parent-style-name='Title'/></office:automatic-styles>"
    extracted = read(opendocument("text", body, styles))
    assert extracted.title == "Title"
    assert [part[1:] for part in sections(extracted)] == [
        (("Title",), "Title\n\n"),
        (("Title", "One"), "One\n\nsome  text, more\n\n- a\n  - b\n\nx | 1\n\n"),
        (("Title", "Footnotes"), "Footnotes\n\n- the note\n"),
    ]


def test_headers_and_footers_of_an_opendocument_text_are_read_once():
    pages = """<style:master-page><style:header><text:p>Acme Ltd</text:p></style:header><style:header-left><text:p>Acme Ltd</text:p></style:header-left>
      <style:footer><text:p>Page <text:page-number>1</text:page-number></text:p></style:footer>
      <style:footer-first style:display="false"><text:p>not shown</text:p></style:footer-first></style:master-page>"""
    data = opendocument("text", "<text:p>words</text:p>", **{"styles.xml": document_styles(pages)})
    assert read(data).text == "words\n\nHeaders and footers\n\n- Acme Ltd\n"


def test_what_follows_a_table_does_not_stand_under_its_columns():
    cells = "".join(f"<table:table-cell><text:p>{name}</text:p></table:table-cell>" for name in ("Name", "City"))
    table = f"<table:table><table:table-row>{cells}</table:table-row></table:table>"
    body = f"<text:h text:outline-level='1'>One</text:h>{table}<text:p>after</text:p>{table}<text:h>Two</text:h>"
    assert [part[1:] for part in sections(read(opendocument("text", body)))] == [
        (("One",), "One\n\n"),
        (("One", "Name | City"), "Name | City\n\n"),
        (("One",), "after\n\n"),
        (("One", "Name | City"), "Name | City\n\n"),
        (("Two",), "Two\n"),
    ]


def test_the_pages_of_an_opendocument_presentation_are_pages():
    frame = "<draw:frame presentation:class='{}'><draw:text-box><text:p>{}</text:p></draw:text-box></draw:frame>"
    page = f"<draw:page>{frame.format('outline', 'words')}{frame.format('title', 'One')}</draw:page>"
    assert sections(read(opendocument("presentation", page * 2))) == [
        (1, ("One",), "One\n\nwords\n\n"),
        (2, ("One",), "One\n\nwords\n\n"),
    ]


# Rich text, tables, notebooks


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (rb"{\rtf1\ansi\ansicpg1252{\fonttbl{\f0 Arial;}}{\info{\title T}}one \b two\b0\par caf\'e9 \u8211? ok\par}", "one two\ncafé – ok\n"),
        (rb"{\rtf1\ansi\ansicpg1251 \'cf\'f0\'e8\'e2\'e5\'f2}", "Привет\n"),
        (b"{\\rtf1\\ansi\\ansicpg1251 " + "Привет".encode("cp1251") + b"}", "Привет\n"),
        (rb"{\rtf1\ansi \u-10179?\u-8704?}", "😀\n"),
        (rb"{\rtf1\ansi{\fonttbl{\f0\fcharset0 A;}{\f1\fnil\fcharset204 B;}}\f1 \'cf\'f0\f0 \'e9}", "Прé\n"),
        (rb'{\rtf1 a {\field{\*\fldinst{HYPERLINK "http://x.org"}}{\fldrslt{\ul link}}} b', 'a link("http://x.org") b\n'),
        (rb'{\rtf1 {\field{\*\fldinst {HYPERLINK "http://x.org" }}{\fldrslt {\ul link}}}}', 'link("http://x.org")\n'),
        (rb'{\rtf1 the word HYPERLINK "a"}', 'the word HYPERLINK "a"\n'),
        (rb"{\rtf1\ansi a\cell b\cell\row c\cell d\cell\row}", "a | b\nc | d\n"),
    ],
)  # fmt: skip
def test_rich_text_is_read_as_words(source, text):
    assert read(source, "a.rtf").text == text


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("Name,Age\nAnn,30\n", "Name | Age\nAnn | 30\n"),
        ("Name;Age\nAnn;30,5\n\n;\n", "Name | Age\nAnn | 30,5\n"),
        ("Name\tNote\nAnn\ta, b, c\n", "Name | Note\nAnn | a, b, c\n"),
        ('Name,Note\nAnn,"two\nlines, ""quoted"""\n', 'Name | Note\nAnn | two lines, "quoted"\n'),
        ("sep=|\na|b\n", "a | b\n"),
        ("one\ntwo\n", "one\ntwo\n"),
        ("a,b,c\n1,,3\n", "a | b | c\n1 |  | 3\n"),
        (f"a,{'x' * 200_000}\n", f"a | {'x' * 200_000}\n"),
    ],
)
def test_a_table_is_read_whatever_separates_its_values(source, text):
    assert read(source, "a.csv").text == text


def test_the_names_of_the_columns_stand_above_every_row():
    assert sections(read("Name,Age\nAnn,30\n", "a.csv"))[0][1] == ("Name | Age",)
    assert sections(read("1,2\n3,4\n", "a.csv"))[0][1] == ()


def headings(extracted):
    return [part.heading for part in extracted.sections]


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("Sales of 2024\nRegion,Sum\nNorth,5\n", [("Sales of 2024", "Region | Sum")]),
        ("Sales of 2024\nall in EUR\n\nRegion,Sum\nNorth,5\n", [("Sales of 2024", "Region | Sum")]),
        ("Sales,,\nAuthor,Ann,\nPrinted,2024-05-01,\nRegion,Country,Sum\nNorth,Norway,5\nSouth,Italy,7\n", [("Sales", "Region | Country | Sum")]),
        ("Author,Ann\nRegion,Country,Sum\nNorth,Norway,5\nSouth,Italy,7\n", [(), ("Region | Country | Sum",)]),
        (",,\n,,\n,Region,Sum\n,North,5\n", [("Region | Sum",)]),
        ("Region,2022,2023,2024\nNorth,1,2,3\n", [("Region | 2022 | 2023 | 2024",)]),
        (",Q1,Q2\nNorth,1,2\n", [("| Q1 | Q2",)]),
        ("Region,2023,,2024,\n,Q1,Q2,Q1,Q2\nNorth,1,2,3,4\n", [("Region | 2023 Q1 | 2023 Q2 | 2024 Q1 | 2024 Q2",)]),
        ("Person,,Work,\nName,Age,Firm,Sum\nAnn,30,Acme,4\n", [("Person Name | Person Age | Work Firm | Work Sum",)]),
        ("A,B\nx,1\n\nCosts\n\nC,D,E\ny,z,2\n", [("A | B",), ("Costs",), ("Costs", "C | D | E")]),
        ("A,B\nx,1\n\ny,z\n\ntotal\n", [("A | B",)]),
        ("# made by x\n# on Monday, at noon, in Bonn\nA,B,C\nx,y,1\n", [(), ("A | B | C",)]),
        ("#chrom,start,end\n1,5,6\n", [("#chrom | start | end",)]),
        ("Ann,30\nBea,31\n", [()]),
        ("Victoria,1837,1901\nEdward,1901,1910\n", [()]),
        ("only\nsome\nlines\n", [()]),
    ],
)  # fmt: skip
def test_the_columns_are_named_by_the_row_that_names_them_wherever_it_stands(source, wanted):
    assert [
        heading for heading in headings(read(source, "a.csv")) if heading not in {("Sales",), ("Sales of 2024",)}
    ] == wanted


def test_what_stands_above_the_names_of_the_columns_stays_in_the_text():
    source = "Sales of 2024\nall in EUR\n\nRegion,Sum\nNorth,5\n"
    assert read(source, "a.csv").text == "Sales of 2024\n\nall in EUR\nRegion | Sum\nNorth | 5\n"
    assert read("# made by x\nA,B\nx,1\n", "a.csv").text == "# made by x\n\nA | B\nx | 1\n"


def test_each_part_of_a_row_too_long_for_a_passage_names_its_row_and_its_columns():
    names = [f"value of {number}" for number in range(400)]
    rows = [
        [land, *(f"{index * number:05}" for number in range(400))] for index, land in enumerate(["Kenya", "Chad"], 1)
    ]
    source = "\n".join(",".join(row) for row in [["Country", *names], *rows])
    extracted = read(source, "a.csv")
    lines = extracted.text.splitlines()[1:]
    assert all(line.startswith(("Country: ", "Kenya | ", "Chad | ")) and len(line) <= 400 for line in lines)
    assert next(line for line in lines if "value of 399: 00798" in line).startswith("Chad | ")
    assert headings(extracted) == [("Country | value of 0 | value of 1 | … (401 columns)",)]


def test_a_table_of_a_thousand_columns_does_not_grow_much_by_their_names():
    names = ",".join(f"a long name of a column {number}" for number in range(1000))
    source = f"{names}\n" + (",".join("1" * 1000) + "\n") * 100
    assert len(read(source, "a.csv").text) < 4 * len(source)


@given(
    st.lists(
        st.lists(st.sampled_from(["", "Name", "Sum", "2023", "2024", "7", "x" * 90, "word " * 130]), max_size=7),
        max_size=12,
    ),
    st.integers(0, 3),
)
def test_no_value_of_a_table_is_lost_wherever_its_names_stand(rows, margin):
    text = TextBuilder()
    write_table(text, [[""] * margin + row for row in rows], level=1)
    extracted = text.build()
    assert "".join(extracted.text[part.start : part.end] for part in extracted.sections) == extracted.text
    values = Counter(word for row in rows for cell in row for word in cell.split())
    assert values <= Counter(re.findall(r"[^\s:]+", extracted.text))


def test_a_row_with_a_long_value_is_called_by_its_first_cells():
    source = f"No,Name,Text\n1,Ann,{'word ' * 200}\n2,Bea,short\n"
    assert [line[:24] for line in read(source, "a.csv").text.splitlines()[1:]] == [
        "No: 1 | Name: Ann",
        "1 | Ann | Text: word wor",
        "2 | Bea | short",
    ]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ('{"a":[1,"\\u00e9"]}', '{\n  "a": [\n    1,\n    "é"\n  ]\n}'),
        ('{\n "a":  1}', '{\n "a":  1}'),
        ("[" * 100_000, "[" * 100_000),
        ('{"a": "\\ud800"}', '{\n  "a": "\ufffd"\n}'),
    ],
)
def test_json_is_laid_out_where_it_cannot_be_read_as_it_is(source, text):
    assert read(source, "a.json").text == text


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (r'{"a": "first\nsecond"}', '{\n  "a": "first\nsecond"\n}'),
        (
            '{\n"a": "first\\nsecond\\tthird\\r\\nfourth\\rfifth\\fsixth"\n}',
            '{\n"a": "first\nsecond\tthird\nfourth\nfifth sixth"\n}',
        ),
        (
            '{"a": "one\\ntwo"}\n{"a": "caf\\u00e9\\n\\ud83d\\ude00 \\u6771"}\n',
            '{"a": "one\ntwo"}\n{"a": "café\n😀 東"}\n',
        ),
        (
            '{\n"path": "C:\\\\run\\\\new\\\\table\\\\r\\n",\n"b": "say \\"no\\" a\\/b"\n}',
            '{\n"path": "C:\\\\run\\\\new\\\\table\\\\r\n",\n"b": "say \\"no\\" a\\/b"\n}',
        ),
        ('{\n"a": "first\\nsecond", // a\n}\n', '{\n"a": "first\nsecond", // a\n}\n'),
        ('{\n"a": "\\ud83d \\u0000 \\u12"\n}', '{\n"a": "\ufffd \ufffd \\u12"\n}'),
    ],
)
def test_words_beside_an_escape_in_json_are_words(source, text):
    assert read(source, "a.json").text == text


def test_a_notebook_is_read_cell_by_cell_with_what_the_code_wrote():
    cells = [
        {"cell_type": "markdown", "source": ["# One\n", "text ![x](data:image/png;base64," + "A" * 99 + ")"]},
        {
            "cell_type": "code",
            "source": "# no heading\nf()",
            "outputs": [
                {"output_type": "stream", "text": ["\x1b[31mred\x1b[0m\n"]},
                {"output_type": "execute_result", "data": {"text/html": "<b>", "text/plain": ["4", "2"]}},
                {"output_type": "display_data", "data": {"image/png": "AAAA"}},
                {"output_type": "error", "ename": "ValueError", "evalue": "no"},
                {"output_type": ["stream"], "text": "of no type"},
            ],
        },
        {"cell_type": "markdown", "source": "## Two"},
    ]
    extracted = read(json.dumps({"nbformat": 4, "cells": cells, "metadata": {}}), "a.ipynb")
    assert extracted.title == "One"
    assert [part[1:] for part in sections(extracted)] == [
        (
            ("One",),
            "# One\ntext ![x][picture: image/png, 74 B]\n\n# no heading\nf()\n\nred\n\n42\n\n[picture: image/png, 3 B]\n\nValueError: no\n\nof no type\n\n",
        ),
        (("One", "Two"), "## Two\n\n"),
    ]


def test_what_is_in_a_container_says_what_it_is():
    files = {
        "docx": zipped({"[Content_Types].xml": "", "word/document.xml": ""}),
        "pptx": presentation([slide("")]),
        "xlsx": workbook({}),
        "epub": book({}),
        "odt": opendocument("text", ""),
        "ods": opendocument("spreadsheet", ""),
        "odp": opendocument("presentation", ""),
        "msg": ole({"__properties_version1.0": bytes(32), "__substg1.0_0037001F": b"", "Workbook": b""}),
        "xls": ole({"Workbook": b"x"}),
    }
    assert {detect(data, "upload"): name for name, data in files.items()} == {name: name for name in files}


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"text/plain": "<IPython.core.display.HTML object>", "text/html": "<p>The <b>catch</b></p>"}, "The catch"),
        ({"text/html": ["<table><tr><th>boat</th></tr>", "<tr><td>Ada</td></tr></table>"]}, "boat\nAda"),
        ({"text/plain": "4 < 5", "text/html": "<b>other</b>"}, "4 < 5"),
        ({"image/png": "AAAA" * 6}, "[picture: image/png, 18 B]"),
        (
            {"text/plain": "<Figure size 640x480>", "image/svg+xml": "<svg></svg>"},
            "<Figure size 640x480>\n[picture: image/svg+xml, 11 B]",
        ),
    ],
)
def test_an_output_of_a_notebook_is_shown_as_what_it_is(data, text):
    cells = [{"cell_type": "code", "source": "f()", "outputs": [{"output_type": "display_data", "data": data}]}]
    assert read(json.dumps({"nbformat": 4, "cells": cells}), "a.ipynb").text == f"f()\n\n{text}\n\n"


def test_an_output_of_an_old_notebook_is_shown_likewise():
    outputs = [{"output_type": "display_data", "png": "AAAA" * 6, "text": "a plot"}]
    cells = [{"cell_type": "code", "input": "f()", "outputs": outputs}]
    data = json.dumps({"nbformat": 3, "worksheets": [{"cells": cells}]})
    assert read(data, "a.ipynb").text == "f()\n\na plot\n[picture: image/png, 18 B]\n\n"


def test_a_document_of_nothing_but_files_says_their_names():
    parts, relations = {"word/embeddings/plan.xlsx": b"PK"}, {"p": ("package", "word/embeddings/plan.xlsx")}
    _, extracted = extract(word("", parts, relations), "a.docx")
    assert extracted.text == "Attachments: plan.xlsx\n"
    assert [file.filename for file in extracted.attachments] == ["plan.xlsx"]


def test_notes_and_margins_of_rich_text_are_read():
    source = (
        r"{\rtf1\ansi{\header On every page\par} The text{\footnote  A note here} goes on{\*\annotation  Is it?}\par}"
    )
    text = read(source, "a.rtf").text
    assert [words in text for words in ("On every page", "The text", "A note here", "goes on", "Is it?")] == [True] * 5
