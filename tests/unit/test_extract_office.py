"""Presentations, spreadsheets, books, OpenDocument, rich text, tables, notebooks: what a person reads, and where."""

import io
import json
import zipfile

import pytest

from kb.api.errors import Unreadable
from kb.formats.detect import detect
from kb.formats.extract import extract
from tests.support.ole import ole

pytestmark = pytest.mark.requirement("E-10")


@pytest.fixture
def read():
    def read(data, name="file"):
        _, extracted = extract(data.encode() if isinstance(data, str) else data, name)
        assert "".join(extracted.text[part.start : part.end] for part in extracted.sections) == extracted.text
        return extracted

    return read


def zipped(entries):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in entries.items():
            file.writestr(name, content)
    return archive.getvalue()


def sections(extracted):
    return [(part.page, part.heading, extracted.text[part.start : part.end]) for part in extracted.sections]


# Office Open XML

OOXML = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"


def package(main, parts, relations):
    """An Office file; `relations`: part -> {id: (kind, target)}."""
    entries = {"[Content_Types].xml": "<Types/>"}
    for part, related in ({"": {"r": ("officeDocument", main)}} | relations).items():
        folder, _, name = part.rpartition("/")
        rows = (f"<Relationship Id='{i}' Type='{OOXML}/{kind}' Target='/{to}'/>" for i, (kind, to) in related.items())
        entries[f"{folder}/_rels/{name}.rels".lstrip("/")] = f"<Relationships>{''.join(rows)}</Relationships>"
    return zipped(entries | parts)


def presentation(*slides, extra_parts=(), extra_relations=()):
    names = [f"ppt/slides/slide{number}.xml" for number in range(len(slides), 0, -1)]
    order = "".join(f"<p:sldId id='{256 + n}' r:id='s{n}'/>" for n in range(len(slides)))
    parts = {
        name: f"<p:sld xmlns:p='p' xmlns:a='{DRAWING}' xmlns:r='r' xmlns:c='c'><p:cSld><p:spTree>{slide}</p:spTree></p:cSld></p:sld>"
        for name, slide in zip(names, slides, strict=True)
    }
    main = f"<p:presentation xmlns:p='p' xmlns:r='r'><p:sldIdLst>{order}</p:sldIdLst></p:presentation>"
    relations = {"ppt/presentation.xml": {f"s{n}": ("slide", name) for n, name in enumerate(names)}}
    return package(
        "ppt/presentation.xml",
        {"ppt/presentation.xml": main} | parts | dict(extra_parts),
        relations | {names[0]: dict(extra_relations)},
    )


def shape(*paragraphs, role=None):
    placeholder = f"<p:nvPr><p:ph type='{role}'/></p:nvPr>" if role else "<p:nvPr/>"
    text = "".join(f"<a:p><a:r><a:t>{paragraph}</a:t></a:r></a:p>" for paragraph in paragraphs)
    return f"<p:sp><p:nvSpPr><p:cNvPr/>{placeholder}</p:nvSpPr><p:txBody>{text}</p:txBody></p:sp>"


def test_slides_are_pages_in_the_order_of_the_show_with_their_titles_first(read):
    first = shape("under it", "more") + shape("The title", role="ctrTitle") + shape("7", role="sldNum")
    extracted = read(presentation(first, "", f"<p:grpSp>{shape('grouped')}</p:grpSp>"))
    assert extracted.title == "The title"
    assert sections(extracted) == [
        (1, ("The title",), "The title\n\nunder it\nmore\n\n"),
        (3, (), "grouped\n\n"),
    ]


def test_tables_charts_notes_and_comments_of_a_slide_are_read(read):
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
    extracted = read(
        presentation(
            table + chart,
            extra_parts={
                "ppt/charts/chart1.xml": f"<c:chartSpace xmlns:c='c'><c:chart><c:plotArea><c:bar>{series}</c:bar></c:plotArea></c:chart></c:chartSpace>",
                "ppt/notes.xml": f"<p:notes xmlns:p='p' xmlns:a='{DRAWING}'>{shape('say this', role='body')}{shape('1', role='sldNum')}</p:notes>",
                "ppt/comments.xml": "<p:cmLst xmlns:p='p'><p:cm><p:text>is it so?</p:text></p:cm></p:cmLst>",
            }.items(),
            extra_relations={
                "c": ("chart", "ppt/charts/chart1.xml"),
                "n": ("notesSlide", "ppt/notes.xml"),
                "m": ("comments", "ppt/comments.xml"),
            }.items(),
        )
    )
    assert extracted.text == "Name | Age\nAnn | 30\n\n | Sales\nMay | 7\n\nNotes:\nsay this\n\nComment: is it so?\n\n"
    assert sections(extracted)[0][1] == ("Name | Age",)


def workbook(sheets, styles=""):
    parts = {
        f"xl/worksheets/sheet{n}.xml": f"<worksheet xmlns='http://schemas.openxmlformats.org/spreadsheetml/2006/main'><sheetData>{rows}</sheetData></worksheet>"
        for n, rows in enumerate(sheets.values())
    }
    listed = "".join(f"<sheet name='{name}' sheetId='{n + 1}' r:id='s{n}'/>" for n, name in enumerate(sheets))
    main = f"<workbook xmlns='http://schemas.openxmlformats.org/spreadsheetml/2006/main' xmlns:r='{OOXML}'><sheets>{listed}</sheets></workbook>"
    relations = {f"s{n}": ("worksheet", name) for n, name in enumerate(parts)} | {"t": ("styles", "xl/styles.xml")}
    sheet_styles = (
        f"<styleSheet xmlns='http://schemas.openxmlformats.org/spreadsheetml/2006/main'>{styles}</styleSheet>"
    )
    return package(
        "xl/workbook.xml",
        {"xl/workbook.xml": main, "xl/styles.xml": sheet_styles} | parts,
        {"xl/workbook.xml": relations},
    )


def words(reference, text):
    return f"<c r='{reference}' t='inlineStr'><is><t>{text}</t></is></c>"


DATES = "<cellXfs count='2'><xf numFmtId='0'/><xf numFmtId='14'/><xf numFmtId='22'/></cellXfs>"


def test_a_sheet_is_a_section_with_its_columns_named_and_its_values_as_people_write_them(read):
    rows = f"<row r='1'>{words('A1', 'Name')}{words('B1', 'Born')}{words('C1', 'Sum')}</row>"
    rows += f"<row r='2'>{words('A2', 'Ann')}<c r='B2' s='1'><v>36526</v></c><c r='C2'><f>1+1</f><v>2</v></c></row>"
    rows += "<row r='4'><c r='B4' s='2'><v>36526.5</v></c><c r='C4' t='b'><v>1</v></c><c r='D4'><v>0.1</v></c></row>"
    extracted = read(workbook({"People": rows, "Empty": "", "More": "<row><c r='C3'><v>5</v></c></row>"}, DATES))
    assert sections(extracted) == [
        (None, ("People",), "People\n\n"),
        (None, ("People", "Name | Born | Sum"), "Name | Born | Sum\nAnn | 2000-01-01 | 2\n | 2000-01-01 12:00:00 | TRUE | 0.1\n\n"),
        (None, ("More",), "More\n\n5\n"),
    ]  # fmt: skip


# Books


def book(chapters, *, manifest="", spine="", title="The book", **parts):
    items = "".join(f"<item id='{n}' href='text/{n}.xhtml' media-type='application/xhtml+xml'/>" for n in chapters)
    order = "".join(f"<itemref idref='{n}'/>" for n in sorted(chapters))
    opf = (
        f"<package xmlns='o' xmlns:dc='d'><metadata><dc:title>{title}</dc:title></metadata>"
        f"<manifest>{items}{manifest}</manifest><spine>{order}{spine}</spine></package>"
    )
    container = "<container xmlns='c'><rootfiles><rootfile full-path='OPS/book.opf'/></rootfiles></container>"
    pages = {f"OPS/text/{n}.xhtml": text for n, text in chapters.items()}
    entries = {"mimetype": "application/epub+zip", "META-INF/container.xml": container, "OPS/book.opf": opf}
    return zipped(entries | pages | parts)


XHTML = "<?xml version='1.0' encoding='utf-8'?><html xmlns='http://www.w3.org/1999/xhtml'><head><title/><script src='x'/></head><body>{}</body></html>"


def test_a_book_is_read_in_its_order_under_its_chapters(read):
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


def test_the_table_of_contents_of_a_book_is_no_chapter(read):
    nav = "<item id='nav' href='nav.xhtml' media-type='application/xhtml+xml' properties='nav'/>"
    data = book(
        {"a": XHTML.format("words")}, manifest=nav, spine="<itemref idref='nav'/>", **{"OPS/nav.xhtml": "<a>x</a>"}
    )
    assert read(data).text == "words\n"


def test_a_book_that_only_its_shop_can_open_says_so(read):
    locked = "<encryption xmlns:e='e'><e:CipherReference URI='OPS/text/a.xhtml'/></encryption>"
    with pytest.raises(Unreadable, match="encrypted"):
        read(book({"a": b"\x93\x01"}, **{"META-INF/encryption.xml": locked}))


# OpenDocument

ODF = "xmlns:office='o' xmlns:text='t' xmlns:table='b' xmlns:draw='d' xmlns:style='s' xmlns:presentation='p'"


def opendocument(kind, body, styles=""):
    content = f"<office:document-content {ODF}>{styles}<office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>"
    return zipped({"mimetype": f"application/vnd.oasis.opendocument.{kind}", "content.xml": content})


def test_an_opendocument_text_is_read_with_headings_lists_tables_and_notes(read):
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


def test_the_pages_of_an_opendocument_presentation_are_pages(read):
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
        (rb"{\rtf1\ansi a\cell b\cell\row c\cell d\cell\row}", "a | b\nc | d\n"),
    ],
)  # fmt: skip
def test_rich_text_is_read_as_words(read, source, text):
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
        (f"a,{'x' * 200_000}\n", f"a,{'x' * 200_000}\n"),
    ],
)
def test_a_table_is_read_whatever_separates_its_values(read, source, text):
    assert read(source, "a.csv").text == text


def test_the_names_of_the_columns_stand_above_every_row(read):
    assert sections(read("Name,Age\nAnn,30\n", "a.csv"))[0][1] == ("Name | Age",)
    assert sections(read("1,2\n3,4\n", "a.csv"))[0][1] == ()


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ('{"a":[1,"\\u00e9"]}', '{\n  "a": [\n    1,\n    "é"\n  ]\n}'),
        ('{\n "a":  1}', '{\n "a":  1}'),
        ("[" * 100_000, "[" * 100_000),
        ('{"a": "\\ud800"}', '{\n  "a": "\ufffd"\n}'),
    ],
)
def test_json_is_laid_out_where_it_cannot_be_read_as_it_is(read, source, text):
    assert read(source, "a.json").text == text


def test_a_notebook_is_read_cell_by_cell_with_what_the_code_wrote(read):
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
            ],
        },
        {"cell_type": "markdown", "source": "## Two"},
    ]
    extracted = read(json.dumps({"nbformat": 4, "cells": cells, "metadata": {}}), "a.ipynb")
    assert extracted.title == "One"
    assert [part[1:] for part in sections(extracted)] == [
        (("One",), "# One\ntext ![x]()\n\n# no heading\nf()\n\nred\n\n42\n\nValueError: no\n\n"),
        (("One", "Two"), "## Two\n\n"),
    ]


def test_what_is_in_a_container_says_what_it_is():
    files = {
        "docx": zipped({"[Content_Types].xml": "", "word/document.xml": ""}),
        "pptx": presentation(""),
        "xlsx": workbook({}),
        "epub": book({}),
        "odt": opendocument("text", ""),
        "ods": opendocument("spreadsheet", ""),
        "odp": opendocument("presentation", ""),
        "msg": ole({"__properties_version1.0": bytes(32), "__substg1.0_0037001F": b"", "Workbook": b""}),
        "xls": ole({"Workbook": b"x"}),
    }
    assert {detect(data, "upload"): name for name, data in files.items()} == {name: name for name in files}
