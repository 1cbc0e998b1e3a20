"""A document is read without its damaged parts, and its last line reports them."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import replace

import pytest

from kb.api.errors import Unreadable
from kb.api.omissions import KINDS, phrase, together
from kb.formats.extract import extract, limited
from kb.formats.text.builder import TextBuilder, paged
from kb.formats.text.extracted import MOST_FILES, Attachment, Extracted, Section, attached_room
from kb.ingest.draft import with_line
from kb.parser.protocol import Malformed, check, pack, unpack
from tests.support.office import DRAWING, book, paragraph, presentation, shape, slide, word, workbook

CHARTS = "http://schemas.openxmlformats.org/drawingml/2006/chart"


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("numbering", "word/numbering.xml"),
        ("styles", "word/styles.xml"),
        ("footnotes", "word/footnotes.xml"),
        ("comments", "word/comments.xml"),
        ("header", "word/header1.xml"),
    ],
)
def test_a_word_document_is_read_without_a_damaged_part(kind, name):
    data = word(paragraph("The text."), {name: "<w:damaged"}, {"x": (kind, name)})
    _, extracted = extract(data, "a.docx")
    assert (extracted.text, extracted.omitted) == ("The text.\n", {"parts": 1})


def chart_frame(name):
    return f"<w:p><w:r><w:drawing><a:graphic><a:graphicData><c:chart xmlns:c='{CHARTS}' r:id='{name}'/></a:graphicData></a:graphic></w:drawing></w:r></w:p>"


def test_a_damaged_chart_and_an_embedded_workbook_cost_nothing_else():
    data = word(
        chart_frame("c") + paragraph("after"),
        {"word/chart.xml": "<broken"},
        {"c": ("chart", "word/chart.xml")},
    )
    _, extracted = extract(data, "a.docx")
    assert (extracted.text, extracted.omitted) == ("after\n", {"parts": 1})


def test_an_embedded_document_that_is_larger_than_there_is_room_for_is_counted():
    large, small = b"%PDF-" + bytes(4 << 20), b"%PDF-small"
    parts = {"word/embeddings/large.pdf": large, "word/embeddings/small.pdf": small}
    relations = {name[16:]: ("package", name) for name in parts}
    _, extracted = extract(deflated(word(paragraph("The text."), parts, relations)), "a.docx")
    assert [file.filename for file in extracted.attachments] == ["small.pdf"]
    assert extracted.omitted == {"files": 1}


def deflated(data):
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as given, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as taken:
        for name in given.namelist():
            taken.writestr(name, given.read(name))
    return packed.getvalue()


def test_slides_are_read_without_a_damaged_layout_or_slide():
    slides = [slide(shape("first") + shape("second")), "<damaged"]
    _, extracted = extract(presentation(slides, layout="<damaged"), "a.pptx")
    assert ("first\n\nsecond" in extracted.text, extracted.omitted) == (True, {"parts": 2})


def test_a_sheet_with_damaged_notes_keeps_its_formulas_and_boxes():
    box = f"<xdr:wsDr xmlns:xdr='x' xmlns:a='{DRAWING}'><xdr:sp><xdr:txBody><a:p><a:r><a:t>In the box</a:t></a:r></a:p></xdr:txBody></xdr:sp></xdr:wsDr>"
    data = workbook(
        "<row r='1'><c r='A1'><f>B1*2</f></c></row>",
        parts={"xl/comments1.xml": "<damaged", "xl/drawing1.xml": box},
        relations={"c": ("comments", "xl/comments1.xml"), "d": ("drawing", "xl/drawing1.xml")},
    )
    _, extracted = extract(data, "a.xlsx")
    assert "=B1*2" in extracted.text
    assert "In the box" in extracted.text
    assert extracted.omitted == {"formulas": 1, "parts": 1}


def test_files_beyond_the_number_and_the_room_that_there_is_are_counted():
    files = tuple(Attachment(f"{number}.txt", b"x") for number in range(MOST_FILES + 5))
    many = limited(Extracted.of_text("text", None), 1)
    assert many.omitted == {}
    text = Extracted("a", "text", (), files)
    assert (len(limited(text, 1).attachments), limited(text, 1).omitted) == (MOST_FILES, {"files": 5})
    large = Extracted("a", "text", (), (Attachment("large", bytes(attached_room(1) + 1)), *files[:1]))
    assert (limited(large, 1).attachments, limited(large, 1).omitted) == (files[:1], {"files": 1})


def test_a_book_is_read_without_a_damaged_chapter_and_one_that_is_missing():
    page = "<html><body><p>{} words.</p></body></html>"
    missing = "<item id='c' href='c.xhtml' media-type='application/xhtml+xml'/>"
    chapters = {"a": page.format("First"), "b": page.format("Second")}
    data = book(chapters, manifest=missing, spine="<itemref idref='c'/>").replace(b"Second", b"SECOND", 1)
    _, extracted = extract(data, "a.epub")
    assert (extracted.text, extracted.omitted) == ("First words.\n", {"parts": 2})
    with pytest.raises(Unreadable, match="damaged"):
        extract(book({"a": page.format("First")}).replace(b"First", b"FIRST", 1), "a.epub")


def test_what_was_not_read_is_listed_with_its_numbers_as_people_say_it():
    assert phrase({"files": 1, "formulas": 14}) == "1 file inside, 14 cells without a computed value"
    assert phrase({"files": 1_200}) == "1,200 files inside"


def test_a_kind_that_a_newer_kb_exported_is_named_by_its_name():
    assert phrase({"smells": 2}) == "2 smells"


def test_counts_of_several_places_add_up_and_nothing_is_no_kind():
    assert together({"files": 1}, {"formulas": 0}, {"files": 2}) == {"files": 3}


def test_the_last_line_stands_in_the_last_section_whose_heading_and_page_stay():
    extracted = Extracted("t", "one\ntwo\n", (Section(0, 4), Section(4, 8, ("Two",), 2)), omitted={"files": 2})
    said = with_line(extracted)
    assert said.text == "one\ntwo\n\nNot read: 2 files inside\n"
    assert said.sections == (Section(0, 4), Section(4, len(said.text), ("Two",), 2))
    assert with_line(replace(extracted, omitted={})) == replace(extracted, omitted={})


def test_a_reader_counts_while_it_puts_a_text_together():
    text = TextBuilder()
    text.line("words")
    text.omit("charts")
    text.omit("charts", 2)
    assert text.build().omitted == {"charts": 3}
    assert paged(None, [text, text]).omitted == {"charts": 6}


def test_counts_come_out_of_the_parser_and_only_of_kinds_that_there_are():
    extracted = replace(Extracted.of_text("words"), omitted=dict.fromkeys(KINDS, 2))
    document = check(json.loads(json.dumps(pack("text", extracted))))
    assert unpack(document, (), 1000, 10, 100).omitted == dict.fromkeys(KINDS, 2)


@pytest.mark.parametrize("wrong", [{"smells": 1}, {"files": 0}, {"files": "2"}, ["files"]])
def test_a_parser_that_counts_what_there_is_not_is_not_believed(wrong):
    with pytest.raises(Malformed, match="omitted"):
        check(json.loads(json.dumps(pack("text", Extracted.of_text("words")) | {"omitted": wrong})))
