"""Word documents: everything a reader sees, in order, under its headings."""

import io
import struct
import zipfile

import docx
import pytest
from docx.enum.style import WD_STYLE_TYPE
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls

from kb.api.errors import Unreadable
from kb.formats.containers.zip import MAX_UNPACKED
from kb.formats.extract import extract
from tests.support import reading
from tests.support.office import DRAWING, WORD, package, paragraph, word
from tests.support.reading import sections

E10 = pytest.mark.requirement("E-10")
MATH = 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
BOXES = (
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" '
    'xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape" '
    'xmlns:v="urn:schemas-microsoft-com:vml"'
)


@pytest.fixture
def document():
    return docx.Document()


def read(document, name="file.docx"):
    return reading.read(document if isinstance(document, bytes) else saved(document), name)


def saved(document):
    file = io.BytesIO()
    document.save(file)
    return file.getvalue()


def rezipped(data, change):
    """The package with each part replaced by `change(name, content)`, or left out where that is None."""
    changed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(changed, "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            content = change(name, source.read(name))
            if content is not None:
                target.writestr(name, content)
    return changed.getvalue()


def add(document, xml, namespaces=""):
    """Append a block of WordprocessingML to the body."""
    opening, rest = xml.split(">", 1)
    document.element.body.insert_element_before(parse_xml(f"{opening} {nsdecls('w')} {namespaces}>{rest}"), "w:sectPr")


@E10
def test_a_document_is_cut_at_its_headings(document):
    document.add_paragraph("Before")
    document.add_heading("The title", 0)
    document.add_heading("One", 1)
    document.add_paragraph("Some text.\nAnother line.")
    document.add_heading("Deep", 3)
    document.add_heading("Two", 1)
    extracted = read(document)
    assert extracted.title == "The title"
    assert sections(extracted) == [
        ((), "Before\n\n"),
        (("The title",), "The title\n\n"),
        (("The title", "One"), "One\n\nSome text.\nAnother line.\n\n"),
        (("The title", "One", "Deep"), "Deep\n\n"),
        (("The title", "Two"), "Two\n"),
    ]


def test_the_title_among_the_properties_comes_first(document):
    document.add_heading("A heading", 1)
    assert read(document).title == "A heading"
    document.core_properties.title = "The property"
    assert read(document).title == "The property"
    document.core_properties.title = "Untitled"
    assert read(document).title == "A heading"


def test_the_first_heading_is_no_title_when_a_page_of_text_stands_above_it(document):
    document.add_paragraph("word " * 100)
    document.add_heading("A later chapter", 1)
    assert read(document).title is None


@pytest.mark.parametrize("heading", ["1 Introduction", "Contents", "Chapter 3: Ropes", "2.4. More"])
def test_the_heading_of_a_part_is_no_title(document, heading):
    document.add_heading(heading, 1)
    assert read(document).title is None


def test_headings_are_known_by_outline_level_and_by_inheritance_too(document):
    own = document.styles.add_style("Kapitel", WD_STYLE_TYPE.PARAGRAPH)
    own.base_style = document.styles["Heading 2"]
    document.add_paragraph("Inherited", style="Kapitel")
    add(document, '<w:p><w:pPr><w:outlineLvl w:val="2"/></w:pPr><w:r><w:t>Outlined</w:t></w:r></w:p>')
    unlike_its_style = '<w:pPr><w:pStyle w:val="Heading1"/><w:outlineLvl w:val="9"/></w:pPr>'
    add(document, f"<w:p>{unlike_its_style}<w:r><w:t>No heading</w:t></w:r></w:p>")
    assert [heading for heading, _ in sections(read(document))] == [("Inherited",), ("Inherited", "Outlined")]


def test_a_long_paragraph_is_no_heading_whatever_its_style(document):
    document.add_heading("word " * 100, 1)
    assert [heading for heading, _ in sections(read(document))] == [()]


@E10
def test_lists_and_tables_keep_their_shape(document):
    document.add_paragraph("first", style="List Bullet")
    document.add_paragraph("second", style="List Number")
    table = document.add_table(rows=3, cols=3)
    for row, values in zip(table.rows, ("abc", "def", "ghi"), strict=True):
        for cell, value in zip(row.cells, values, strict=True):
            cell.text = value
    table.cell(0, 0).merge(table.cell(0, 1))
    table.cell(1, 2).merge(table.cell(2, 2))
    document.add_paragraph("after")
    assert read(document).text == "- first\n1. second\n\na b | c\nd | e | f i\ng | h | \n\nafter\n"


def test_a_table_that_lays_out_the_page_keeps_its_blocks_apart(document):
    left, right = document.add_table(rows=1, cols=2).rows[0].cells
    left.text = "left"
    inner = right.add_table(rows=1, cols=2)
    inner.cell(0, 0).text, inner.cell(0, 1).text = "1", "2"
    boxed = document.add_table(rows=1, cols=1).cell(0, 0)
    boxed.text = "one"
    boxed.add_paragraph("two")
    assert read(document).text == "left\n\n1 | 2\n\none\n\ntwo\n"


def test_links_content_controls_and_revisions_are_read_as_they_look(document):
    add(
        document,
        """<w:p><w:r><w:t xml:space="preserve">See </w:t></w:r>
        <w:hyperlink w:anchor="x"><w:r><w:t>the link</w:t></w:r></w:hyperlink>
        <w:ins w:id="1"><w:r><w:t xml:space="preserve"> inserted</w:t></w:r></w:ins>
        <w:del w:id="2"><w:r><w:delText>deleted</w:delText></w:r></w:del>
        <w:r><w:noBreakHyphen/><w:t>end</w:t><w:tab/><w:t>tabbed</w:t></w:r></w:p>""",
    )
    add(document, "<w:sdt><w:sdtContent><w:p><w:r><w:t>controlled</w:t></w:r></w:p></w:sdtContent></w:sdt>")
    assert read(document).text == "See the link inserted-end\ttabbed\n\ncontrolled\n"


def test_text_boxes_are_read_once(document):
    box = "<w:txbxContent><w:p><w:r><w:t>boxed</w:t></w:r></w:p></w:txbxContent>"
    add(
        document,
        f"""<w:p><w:r><w:t>around</w:t></w:r><w:r><mc:AlternateContent>
        <mc:Choice Requires="wps"><w:drawing><wps:txbx>{box}</wps:txbx></w:drawing></mc:Choice>
        <mc:Fallback><w:pict><v:textbox>{box}</v:textbox></w:pict></mc:Fallback>
        </mc:AlternateContent></w:r></w:p>""",
        BOXES,
    )
    add(document, f"<w:p><w:r><w:pict><v:textbox>{box}</v:textbox></w:pict></w:r></w:p>", BOXES)
    assert read(document).text == "around\n\nboxed\n\nboxed\n"


@pytest.mark.parametrize(
    ("equation", "text"),
    [
        ("<m:f><m:num>{a}</m:num><m:den>{a}{b}</m:den></m:f>", "a/(ab)"),
        ("<m:sSup><m:e>{a}</m:e><m:sup>{b}</m:sup></m:sSup>", "a^b"),
        ("<m:sSub><m:e>{a}</m:e><m:sub>{b}</m:sub></m:sSub>", "a_b"),
        ("<m:sSubSup><m:e>{a}</m:e><m:sub>{b}</m:sub><m:sup>{a}{b}</m:sup></m:sSubSup>", "a_b^(ab)"),
        ("<m:rad><m:radPr/><m:deg/><m:e>{a}{plus}{b}</m:e></m:rad>", "√(a+b)"),
        ("<m:d><m:e>{a}</m:e></m:d>", "(a)"),
        ('<m:d><m:dPr><m:begChr m:val="["/><m:endChr m:val=""/></m:dPr><m:e>{a}</m:e><m:e>{b}</m:e></m:d>', "[a|b"),
        ('<m:nary><m:naryPr><m:chr m:val="∑"/></m:naryPr><m:sub>{a}</m:sub><m:sup/><m:e>{b}</m:e></m:nary>', "∑_a b"),
    ],
)
def test_equations_are_written_on_one_line(document, equation, text):
    runs = {name: f"<m:r><m:t>{sign}</m:t></m:r>" for name, sign in {"a": "a", "b": "b", "plus": "+"}.items()}
    add(document, f"<w:p><m:oMath>{equation.format(**runs)}</m:oMath></w:p>", MATH)
    assert read(document).text == f"{text}\n"


@E10
def test_comments_and_footnotes_stand_at_the_end(document):
    paragraph = document.add_paragraph("commented")
    document.add_comment(paragraph.runs, "A remark.\nIn two lines.", author="Ann")
    assert sections(read(document)) == [
        ((), "commented\n\n"),
        (("Comments",), "Comments\n\n- Ann: A remark. In two lines.\n"),
    ]
    data = with_part(
        saved(document),
        "footnotes",
        f"<w:footnotes {nsdecls('w')}><w:footnote w:type='separator'><w:p><w:r><w:t>no</w:t></w:r></w:p></w:footnote>"
        "<w:footnote><w:p><w:r><w:t>A note.</w:t></w:r></w:p></w:footnote></w:footnotes>",
    )
    assert sections(read(data))[1] == (("Footnotes",), "Footnotes\n\n- A note.\n\n")


def test_headers_and_footers_are_read_once_and_page_numbers_not_at_all(document):
    document.add_paragraph("words")
    for _ in range(2):
        section = document.add_section()
        section.different_first_page_header_footer = True
        section.header.is_linked_to_previous = section.footer.is_linked_to_previous = False
        section.header.paragraphs[0].text = "Acme Ltd \t confidential"
        section.first_page_header.paragraphs[0].text = "Draft of May"
        section.footer.paragraphs[0].text = "Page 3 of 12"
        section.footer.add_paragraph("Registered in Bonn")
    assert sections(read(document)) == [
        ((), "words\n\n"),
        (
            ("Headers and footers",),
            "Headers and footers\n\n- Acme Ltd confidential\n- Draft of May\n- Registered in Bonn\n",
        ),
    ]


@pytest.mark.parametrize("footer", ["7", "- iv -", "Seite 3 von 9", "第 3 頁", "p. 3/10", ""])
def test_page_numbers_alone_are_no_text(document, footer):
    document.add_paragraph("words")
    document.sections[0].footer.paragraphs[0].text = footer
    assert read(document).text == "words\n"


def with_part(data, kind, xml):
    relation = f'<Relationship Id="new" Type="http://schemas.openxmlformats.org/x/{kind}" Target="{kind}.xml"/>'
    changed = rezipped(data, relate(relation))
    file = io.BytesIO(changed)
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr(f"word/{kind}.xml", xml)
    return file.getvalue()


def relate(relation):
    def change(name, content):
        if name != "word/_rels/document.xml.rels":
            return content
        return content.replace(b"</Relationships>", f"{relation}</Relationships>".encode())

    return change


def test_a_relation_that_leads_nowhere_does_no_harm(document):
    document.add_paragraph("text")
    broken = relate('<Relationship Id="n" Type="http://x/image" Target="NULL"/>')
    assert read(rezipped(saved(document), broken)).text == "text\n"


def test_macros_templates_and_the_strict_variant_are_read_as_well(document):
    document.add_heading("One", 1)
    document.add_paragraph("text")
    transitional = b"http://schemas.openxmlformats.org/wordprocessingml/2006/main"

    def change(name, content):
        content = content.replace(b"document.main+xml", b"template.macroEnabledTemplate.main+xml")
        return content.replace(transitional, b"http://purl.oclc.org/ooxml/wordprocessingml/main")

    assert sections(read(rezipped(saved(document), change), "file.dotm")) == [(("One",), "One\n\ntext\n")]


def test_styles_may_be_missing(document):
    document.add_heading("One", 1)
    bare = rezipped(saved(document), lambda name, content: None if name == "word/styles.xml" else content)
    assert sections(read(bare)) == [(("One",), "One\n")]


@E10
@pytest.mark.parametrize(
    ("part", "content", "reason"),
    [
        ("word/document.xml", b"<w:document><not closed", "damaged: kb cannot read word/document.xml"),
        ("word/document.xml", None, "damaged: its main part is missing"),
        ("_rels/.rels", None, "damaged: its main part is missing"),
    ],
)
def test_a_damaged_document_says_so(document, part, content, reason):
    data = rezipped(saved(document), lambda name, whole: content if name == part else whole)
    with pytest.raises(Unreadable, match=reason):
        read(data)


def test_a_document_that_unpacks_to_too_much_is_refused_before_it_is_unpacked(document):
    document.add_paragraph("text")
    data = bytearray(saved(document))
    directory = data.rindex(b"word/document.xml") - 46
    data[directory + 24 : directory + 28] = struct.pack("<I", MAX_UNPACKED)  # the entry's size, as it claims
    with pytest.raises(Unreadable, match="unpacks to more than 512 MB, the limit"):
        read(bytes(data))


def test_a_document_without_text_says_so(document):
    with pytest.raises(Unreadable, match="the file contains no text"):
        read(document)


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
