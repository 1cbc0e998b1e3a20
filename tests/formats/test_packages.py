"""Books and office files are read whichever program has packed them."""

from __future__ import annotations

import io
import zipfile

import pytest

from kb.formats.extract import extract
from tests.support.office import book, paragraph, word
from tests.support.samples import zipped

PAGE = "<html><body><p>{}</p></body></html>"


@pytest.mark.parametrize(
    ("name", "media_type"),
    [
        ("a.xhtml", "media-type='application/octet-stream'"),
        ("a.html", "media-type=''"),
        ("a", ""),
        ("a.htm", "media-type='text/plain'"),
        ("a.svg", "media-type='image/svg+xml'"),
    ],
)
def test_a_chapter_is_what_stands_in_the_order_of_a_book_whatever_type_it_is_said_to_have(name, media_type):
    item = f"<item id='x' href='{name}' {media_type}/><item id='p' href='p.jpg' media-type='image/jpeg'/>"
    order = "<itemref idref='x'/><itemref idref='p'/>"
    content = (
        "<svg xmlns='http://www.w3.org/2000/svg'><text>Curlew</text></svg>" if "svg" in name else PAGE.format("Curlew")
    )
    data = book({}, manifest=item, spine=order, **{f"OPS/{name}": content, "OPS/p.jpg": "picture"})
    _, extracted = extract(data, "a.epub")
    assert (extracted.text, extracted.omitted) == ("Curlew\n", {})


def renamed(data, change):
    """The same archive with other names of its parts."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return zipped({change(name): archive.read(name) for name in archive.namelist()})


@pytest.mark.parametrize(
    "change",
    [
        lambda name: name.replace("/", "\\"),
        lambda name: name.replace("text/a.xhtml", "Text/A.XHTML").replace("word/footnotes", "word/FootNotes"),
    ],
    ids=["backslashes", "capitals"],
)
def test_parts_are_found_by_names_as_they_are_written_on_windows(change):
    _, chapter = extract(renamed(book({"a": PAGE.format("Curlew")}), change), "a.epub")
    assert chapter.text == "Curlew\n"
    note = "<w:footnotes xmlns:w='{}'><w:footnote w:id='2'>{}</w:footnote></w:footnotes>"
    parts = {"word/footnotes.xml": note.format("w", paragraph("A wader."))}
    document = word(paragraph("Curlew"), parts, {"n": ("footnotes", "word/footnotes.xml")})
    _, extracted = extract(renamed(document, change), "a.docx")
    assert extracted.text == "Curlew\n\nFootnotes\n\n- A wader.\n"
    assert not extracted.omitted


FLAT = (
    "<?xml version='1.0' encoding='UTF-8'?><office:document xmlns:office='o' xmlns:text='t' xmlns:table='b' xmlns:draw='d'"
    " xmlns:style='s' xmlns:dc='dc' office:mimetype='application/vnd.oasis.opendocument.{}'>"
    "<office:meta><dc:title>Birds of the shore</dc:title></office:meta>"
    "<office:automatic-styles>" + "<style:style style:name='P'/>" * 99 + "</office:automatic-styles>"
    "<office:body>{}</office:body></office:document>"
)
TABLE = (
    "<table:table table:name='Waders'><table:table-row><table:table-cell office:value-type='string'><text:p>Curlew</text:p>"
    "</table:table-cell></table:table-row></table:table>"
)


@pytest.mark.parametrize(
    ("kind", "body", "text"),
    [
        (
            "text",
            "<office:text><text:p>Cur<text:span>lew</text:span></text:p><draw:frame><draw:image><office:binary-data>AAAA"
            "</office:binary-data></draw:image></draw:frame></office:text>",
            "Curlew\n",
        ),
        ("presentation", "<office:presentation><draw:page><draw:frame><draw:text-box><text:p>Curlew</text:p></draw:text-box>"
         "</draw:frame></draw:page></office:presentation>", "Curlew\n\n"),
        ("spreadsheet", f"<office:spreadsheet>{TABLE}</office:spreadsheet>", "Waders\n\nCurlew\n"),
    ],
)  # fmt: skip
def test_opendocument_in_one_xml_file_is_read_as_in_an_archive(kind, body, text):
    doc_type, extracted = extract(FLAT.format(kind, body).encode(), "a.fodt")
    assert (doc_type, extracted.title, extracted.text) == (f"od{kind[0]}", "Birds of the shore", text)


def test_a_drawing_in_one_xml_file_is_read_as_other_xml():
    doc_type, extracted = extract(FLAT.format("graphics", "<text:p>Curlew</text:p>").encode(), "a.fodg")
    assert doc_type == "xml"
    assert "Curlew" in extracted.text
