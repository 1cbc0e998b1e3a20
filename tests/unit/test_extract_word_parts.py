"""Whatever a person sees in Word is in the text, in its place."""

import pytest

from kb.formats.extract import extract
from tests.support.office import DRAWING, WORD, package, paragraph, word
from tests.support.reading import reader

E10 = pytest.mark.requirement("E-10")
read = reader("a.docx")
HTML = "<html><body><h1>Minutes</h1><p>The well is dug.</p></body></html>"
MHT = (
    "MIME-Version: 1.0\r\nContent-Type: multipart/related; boundary=b\r\n\r\n--b\r\nContent-Type: text/html; charset=utf-8\r\n"
    "Content-Transfer-Encoding: quoted-printable\r\n\r\n<p>The g=C3=A4te is shut.</p>\r\n--b--\r\n"
)
CHUNK = "<w:altChunk r:id='c'/>"


def with_chunk(content, name="word/chunk.dat", body=CHUNK):
    return word(paragraph("before") + body + paragraph("after"), {name: content}, {"c": ("aFChunk", name)})


@E10
@pytest.mark.parametrize(
    ("content", "shown"),
    [
        (HTML, "Minutes\n\nThe well is dug."),
        (MHT, "The gäte is shut."),
        (word(paragraph("The inner text.")), "The inner text."),
        (r"{\rtf1\ansi The rich text.}", "The rich text."),
        ("The plain text.", "The plain text."),
    ],
)
def test_a_file_that_word_shows_as_part_of_a_document_is_read_in_its_place(content, shown):
    assert read(with_chunk(content)).text == f"before\n\n{shown}\n\nafter\n"


def test_headings_of_such_a_file_are_places_too():
    assert [section.heading for section in read(with_chunk(HTML)).sections] == [(), ("Minutes",)]


def test_a_part_that_names_itself_or_is_missing_is_counted_and_costs_nothing_else():
    own = word(paragraph("text") + CHUNK, relations={"c": ("aFChunk", "word/document.xml")})
    assert (read(own).text, read(own).omitted) == ("text\n", {"parts": 1})
    missing = word(paragraph("text") + CHUNK, relations={"c": ("aFChunk", "word/nothing.html")})
    assert (read(missing).text, read(missing).omitted) == ("text\n", {"parts": 1})
    picture = with_chunk(b"\x89PNG\r\n\x1a\n" + bytes(40))
    assert (read(picture).text, read(picture).omitted) == ("before\n\nafter\n", {"parts": 1})


def test_files_in_files_in_files_end():
    data = word(paragraph("deepest"))
    for _ in range(9):
        data = with_chunk(data, body=CHUNK * 2)
    extracted = read(data)
    assert "deepest" not in extracted.text
    assert extracted.text.count("before") == 1 + 2 + 4 + 8 + 16
    assert extracted.omitted == {"parts": 32}


def test_a_cell_with_such_a_file_is_read():
    cell = f"<w:tbl><w:tr><w:tc>{paragraph('left')}</w:tc><w:tc>{CHUNK}</w:tc></w:tr></w:tbl>"
    assert "The well is dug." in read(with_chunk(HTML, body=cell)).text


def test_a_chart_a_diagram_and_words_bent_to_a_shape_are_read_where_they_stand():
    frame = "<w:p><w:r><w:drawing><a:graphic><a:graphicData><c:x xmlns:c='c' r:id='{}'/></a:graphicData></a:graphic></w:drawing></w:r></w:p>"
    bent = "<w:p><w:r><w:pict><v:shape><v:textpath string='DRAFT COPY'/></v:shape></w:pict></w:r></w:p>"
    series = "<c:ser><c:tx><c:v>Catch</c:v></c:tx><c:cat><c:pt idx='0'><c:v>May</c:v></c:pt></c:cat><c:val><c:pt idx='0'><c:v>7</c:v></c:pt></c:val></c:ser>"
    rich = "<c:title><c:tx><c:rich><a:p xmlns:a='a'><a:r><a:t>{}</a:t></a:r></a:p></c:rich></c:tx></c:title>"
    chart = f"<c:chartSpace xmlns:c='c'><c:chart>{rich.format('Fish')}<c:plotArea><c:bar>{series}</c:bar><c:valAx>{rich.format('Tons')}</c:valAx></c:plotArea></c:chart></c:chartSpace>"
    diagram = "<d xmlns:a='a'><a:p><a:r><a:t>cast off</a:t></a:r></a:p></d>"
    data = word(
        paragraph("first") + frame.format("k") + frame.format("d") + bent,
        {"word/charts/chart1.xml": chart, "word/diagrams/data1.xml": diagram},
        {"k": ("chart", "word/charts/chart1.xml"), "d": ("diagramData", "word/diagrams/data1.xml")},
    )
    text = read(data).text
    assert [line for line in text.split("\n") if line] == [
        *("first", "Fish", " | Catch", "May | 7", "Tons", "cast off", "DRAFT COPY"),
    ]


def test_fields_of_forms_and_signs_of_sign_fonts_are_shown():
    choice = "<w:r><w:fldChar w:fldCharType='begin'><w:ffData><w:ddList><w:result w:val='1'/><w:listEntry w:val='red'/><w:listEntry w:val='blue'/></w:ddList></w:ffData></w:fldChar></w:r>"
    box = "<w:r><w:fldChar w:fldCharType='begin'><w:ffData><w:checkBox><w:default w:val='1'/></w:checkBox></w:ffData></w:fldChar></w:r>"
    signs = "<w:r><w:sym w:font='Symbol' w:char='F06D'/><w:t>m </w:t><w:sym w:font='Wingdings' w:char='F0FC'/><w:sym w:font='Webdings' w:char='F0FC'/></w:r>"
    assert read(word(f"<w:p>{choice}{box}{signs}</w:p>")).text == "blue☒μm ✓\n"


def test_a_deleted_row_of_a_table_is_not_read():
    row = "<w:tr>{}<w:tc>{}</w:tc><w:tc>{}</w:tc></w:tr>"
    rows = row.format("", paragraph("a"), paragraph("b"))
    rows += row.format("<w:trPr><w:del w:id='1'/></w:trPr>", paragraph("c"), paragraph("d"))
    assert read(word(f"<w:tbl>{rows}</w:tbl>")).text == "a | b\n"


def test_documents_in_a_document_are_attached_and_other_objects_counted():
    inner = word(paragraph("inner"))
    parts = {"word/embeddings/list.docx": inner, "word/embeddings/oleObject1.bin": b"x"}
    relations = {"p": ("package", "word/embeddings/list.docx"), "o": ("oleObject", "word/embeddings/oleObject1.bin")}
    extracted = read(word(paragraph("outer"), parts, relations))
    assert [(file.filename, file.data) for file in extracted.attachments] == [("list.docx", inner)]
    assert extracted.omitted == {"objects": 1}


def test_a_document_without_numbering_or_styles_is_read():
    data = package("word/document.xml", {"word/document.xml": "<w><b><p><r><t>bare</t></r></p></b></w>"}, {})
    assert read(data).text == "bare\n"


def test_objects_in_rich_text_are_counted_and_their_bytes_are_no_text():
    data = rb"{\rtf1\ansi before {\object\objemb{\*\objclass Excel.Sheet.8}{\*\objdata 0105000002000000deadbeef}{\result shown}} after}"
    extracted = extract(data, "a.rtf")[1]
    assert (extracted.text, extracted.omitted) == ("before shown after\n", {"objects": 1})


def test_a_text_box_in_rich_text_is_read_without_its_properties():
    box = rb"{\shp{\*\shpinst\shpleft0{\sp{\sn shapeType}{\sv 202}}{\shptxt in the box\par}}{\shprslt in the box}}"
    assert extract(rb"{\rtf1\ansi before " + box + rb" after}", "a.rtf")[1].text.split() == (
        ["before", "in", "the", "box", "after"]
    )


NOTES = f"<w:footnotes xmlns:w='{WORD}'><w:footnote w:id='1'><w:p><w:r><w:t>An inner note.</w:t></w:r></w:p></w:footnote></w:footnotes>"
HEADER = f"<w:hdr xmlns:w='{WORD}'><w:p><w:r><w:t>Inner letterhead</w:t></w:r></w:p></w:hdr>"


def test_notes_and_margins_of_a_document_shown_in_another_come_at_the_end():
    parts = {"word/footnotes.xml": NOTES, "word/header1.xml": HEADER}
    relations = {"f": ("footnotes", "word/footnotes.xml"), "h": ("header", "word/header1.xml")}
    extracted = read(with_chunk(word(paragraph("inner"), parts, relations)))
    assert [
        (section.heading, extracted.text[section.start : section.end].strip()) for section in extracted.sections
    ] == [
        ((), "before\n\ninner\n\nafter"),
        (("Footnotes",), "Footnotes\n\n- An inner note."),
        (("Headers and footers",), "Headers and footers\n\n- Inner letterhead"),
    ]


def test_a_document_in_a_saved_page_that_word_shows_is_an_attachment():
    pdf = "--b\r\nContent-Type: application/pdf; name=plan.pdf\r\nContent-Transfer-Encoding: base64\r\n\r\nJVBERi0xLjQ=\r\n--b--"
    assert [file.filename for file in read(with_chunk(MHT.replace("--b--", pdf))).attachments] == ["plan.pdf"]


CHART = (
    "<c:chartSpace xmlns:c='http://schemas.openxmlformats.org/drawingml/2006/chart' "
    f"xmlns:a='{DRAWING}'><c:chart><c:title><c:tx><c:rich><a:p><a:r><a:t>Catch</a:t></a:r></a:p></c:rich></c:tx>"
    "</c:title></c:chart></c:chartSpace>"
)
DRAWN = "<w:p><w:r><w:drawing><a:graphic><a:graphicData><chart r:id='c'/></a:graphicData></a:graphic></w:drawing></w:r></w:p>"
BENT = "<w:p><w:r><w:pict><v:shape><v:textpath string='Regatta'/></v:shape></w:pict></w:r></w:p>"


def boxed(content):
    return f"<w:p><w:r><w:pict><v:shape><v:textbox><w:txbxContent>{content}</w:txbxContent></v:textbox></v:shape></w:pict></w:r></w:p>"


def row(*cells):
    return f"<w:tbl><w:tr>{''.join(f'<w:tc>{cell}</w:tc>' for cell in cells)}</w:tr></w:tbl>"


@pytest.mark.parametrize(
    "around",
    [
        boxed,
        lambda content: boxed(boxed(boxed(content))),
        row,
        lambda content: row(content, paragraph("beside")),
        lambda content: row(row(content), paragraph("beside")),
        lambda content: row(boxed(content), paragraph("beside")),
    ],
)
def test_a_chart_and_bent_words_are_written_once_wherever_they_stand(around):
    data = word(
        around(DRAWN + BENT + paragraph("words")), {"word/chart.xml": CHART}, {"c": ("chart", "word/chart.xml")}
    )
    text = read(data).text
    assert [text.count(each) for each in ("Catch", "Regatta", "words")] == [1, 1, 1]


def test_a_description_of_a_picture_is_read_where_it_stands():
    picture = "<w:r><w:drawing><inline><docPr name='Picture 1' descr='A weir in spring'/></inline></w:drawing></w:r>"
    assert read(word(f"<w:p>{picture}</w:p>" + paragraph("after"))).text == "A weir in spring\n\nafter\n"


@pytest.mark.parametrize("place", ["drop", "margin"])
def test_a_large_first_letter_is_part_of_its_word(place):
    initial = f"<w:p><w:pPr><w:framePr w:dropCap='{place}' w:lines='3'/></w:pPr><w:r><w:t>O</w:t></w:r></w:p>"
    data = word(initial + paragraph("nce upon a tide") + paragraph("the end"))
    assert extract(data, "a.docx")[1].text == "Once upon a tide\n\nthe end\n"


@pytest.mark.parametrize("after", ["", "<w:tbl><w:tr><w:tc><w:p/></w:tc></w:tr></w:tbl>"])
def test_a_large_letter_that_no_paragraph_follows_stays(after):
    initial = "<w:p><w:pPr><w:framePr w:dropCap='drop'/></w:pPr><w:r><w:t>Omega</w:t></w:r></w:p>"
    assert "Omega" in extract(word(paragraph("Alpha") + initial + after), "a.docx")[1].text
