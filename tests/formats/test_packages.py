"""Books and office files are read whichever program has packed them."""

from __future__ import annotations

import io
import struct
import zipfile

import pytest

from kb.formats.containers.ole import OLE_SIGNATURE
from kb.formats.extract import extract
from tests.support.office import book, paragraph, word
from tests.support.ole import ole
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


def test_a_note_in_the_middle_of_a_word_of_rich_text_follows_the_paragraph():
    notes = rb"{\footnote\pard One {\b note}.}", rb"{\*\annotation\pard Another.}"
    _, extracted = extract(rb"{\rtf1\ansi Whim%bbrel and cur%blew\par next\par}" % notes, "a.rtf")
    assert extracted.text == "Whimbrel and curlew\nOne note.\nAnother.\nnext\n"
    _, extracted = extract(rb"{\rtf1\ansi the la%bst" % notes[0], "a.rtf")
    assert extracted.text == "the last\nOne note.\n"


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (rb"kept {\rtlch \deleted\delrsid2 gone }{\revised new} words", "kept new words"),
        (rb"kept \deleted gone \deleted0 words", "kept gone words"),
        (rb"kept \{ words {\deleted gone\plain not this}", "kept { words gonenot this"),
        (rb"{\deletedlater kept} words", "kept words"),
    ],
)
def test_rich_text_is_read_as_if_its_changes_were_accepted_where_they_are_certain(written, shown):
    _, extracted = extract(rb"{\rtf1\ansi " + written + rb"\par}", "a.rtf")
    assert extracted.text == f"{shown}\n"


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


def packed(name, content):
    """A file as the packager of Windows keeps it: its name, its path, the path of a copy, and its bytes."""
    path = b"C:\\Users\\ann\\" + name + b"\0"
    names = b"\x02\0" + name + b"\0" + path + b"\0\0\x03\0" + struct.pack("<I", len(path)) + path
    native = names + struct.pack("<I", len(content)) + content + b"\0\0"
    return ole({"\x01Ole10Native": struct.pack("<I", len(native)) + native})


WORDS = word(paragraph("Curlew"))


@pytest.mark.parametrize(
    ("wrapped", "name", "content"),
    [
        (ole({"CONTENTS": b"%PDF-1.7 words"}), "object1.pdf", b"%PDF-1.7 words"),
        (ole({"Package": WORDS}), "object1.docx", WORDS),
        (ole({"EmbeddedOdf": zipped({"mimetype": "o"})}), "object1.odt", zipped({"mimetype": "o"})),
        (packed(b"tide table.csv", b"noon,3.1\n"), "tide table.csv", b"noon,3.1\n"),
    ],
    ids=["pdf", "office", "opendocument", "packager"],
)
def test_a_document_in_an_embedded_object_is_a_document(wrapped, name, content):
    data = word(
        paragraph("Waders"),
        {"word/embeddings/object1.bin": wrapped},
        {"o": ("oleObject", "word/embeddings/object1.bin")},
    )
    _, extracted = extract(data, "a.docx")
    assert [(file.filename, file.data) for file in extracted.attachments] == [(name, content)]
    assert not extracted.omitted


@pytest.mark.parametrize(
    ("wrapped", "kind"),
    [
        (packed(b"setup.exe", b"MZ"), "objects"),
        (packed(b"tide.csv", b"noon")[:-600], "parts"),
        (ole({"CONTENTS": b"of a program"}), "objects"),
        (ole({"\x01Ole10Native": b"\x10\0\0\0\x02\0no end"}), "objects"),
        (ole({"\x01Ole10Native": b"\x10\0\0\0\x02\0a.csv\0a.csv\0\0\0\x03\0\xff\xff\xff\xff"}), "objects"),
        (OLE_SIGNATURE + b"cut short", "parts"),
    ],
    ids=["program", "cut", "other", "endless", "far", "damaged"],
)
def test_an_object_without_a_document_is_counted(wrapped, kind):
    data = word(paragraph("Waders"), {"word/o.bin": wrapped}, {"o": ("oleObject", "word/o.bin")})
    _, extracted = extract(data, "a.docx")
    assert (extracted.attachments, extracted.omitted) == ((), {kind: 1})
