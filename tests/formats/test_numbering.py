"""Numbers that Word and OpenDocument programs compute: they are part of the text, and of the position of a passage."""

import pytest

from kb.formats.extract import extract
from kb.formats.text.numerals import written
from tests.support.office import level, listed, paragraph
from tests.support.samples import zipped

E10 = pytest.mark.requirement("E-10")
CLAUSES = (level(0, "decimal", "%1.", 4), level(1, "decimal", "%1.%2"), level(2, "lowerLetter", "(%3)"))
HEADING = "<w:style w:type='paragraph' w:styleId='Part'><w:name w:val='heading 1'/></w:style>"


def lines(data):
    return [line for line in extract(data, "a.docx")[1].text.split("\n") if line.strip()]


def headings(data):
    return [section.heading for section in extract(data, "a.docx")[1].sections]


@E10
def test_numbered_clauses_have_their_numbers_in_the_text_and_in_the_place_of_a_passage():
    body = paragraph("Rent", 0, style="Part") + paragraph("When it is due", 1) + paragraph("Late payment. It costs.", 1)
    body += paragraph("after a week", 2) + paragraph("End", 0, style="Part")
    data = listed(body, *CLAUSES, styles=HEADING)
    assert lines(data) == [
        "4. Rent",
        "  4.1 When it is due",
        "  4.2 Late payment. It costs.",
        "    (a) after a week",
        "5. End",
    ]
    assert headings(data) == [
        ("4. Rent",),
        ("4. Rent", "4.1 When it is due"),
        ("4. Rent", "4.2 Late payment"),
        ("5. End",),
    ]


def test_a_deeper_level_begins_again_under_each_higher_one():
    body = "".join(paragraph("x", depth) for depth in (0, 1, 1, 0, 1, 2, 1, 2))
    numbers = [line.split()[0] for line in lines(listed(body, *CLAUSES))]
    assert numbers == ["4.", "4.1", "4.2", "5.", "5.1", "(a)", "5.2", "(a)"]


def test_a_level_that_never_begins_again_counts_on():
    levels = level(0, "decimal", "%1."), level(1, "decimal", "Question %2", more="<w:lvlRestart w:val='0'/>")
    body = "".join(paragraph("x", depth) for depth in (0, 1, 0, 1))
    assert lines(listed(body, *levels)) == ["1. x", "  Question 1 x", "2. x", "  Question 2 x"]


def test_a_list_that_starts_again_counts_from_where_it_says_and_one_that_does_not_goes_on():
    again = (
        "<w:num w:numId='2'><w:abstractNumId w:val='0'/><w:lvlOverride w:ilvl='0'><w:startOverride w:val='3'/></w:lvlOverride></w:num>"
        "<w:num w:numId='3'><w:abstractNumId w:val='0'/></w:num>"
    )
    body = "".join(paragraph("x", 0, number) for number in "112231")
    numbers = [line.split()[0] for line in lines(listed(body, level(0, "decimal", "%1)"), lists=again))]
    assert numbers == ["1)", "2)", "3)", "4)", "5)", "6)"]


@pytest.mark.parametrize(
    ("levels", "shown"),
    [
        ((level(0, "none", ""),), "x"),
        ((level(0, "none", "%1."),), "x"),
        ((level(0, "none", "Note:"),), "Note: x"),
        ((level(0, "decimal", ""),), "x"),
        ((level(0, "decimal", "%1.", more="<w:rPr><w:vanish/></w:rPr>"),), "x"),
        ((level(0, "bullet", "\uf0b7"),), "- x"),
        ((level(0, "decimalZero", "§ %1"),), "§ 01 x"),
        ((level(0, "upperRoman", "Article %1."),), "Article I. x"),
        ((level(0, "ordinalText", "%1"),), "First x"),
        ((level(0, "japaneseCounting", "第%1条"),), "第一条 x"),
        ((level(0, "somethingNew", "%1."),), "1. x"),
    ],
)
def test_what_stands_before_an_item_is_what_word_shows(levels, shown):
    assert lines(listed(paragraph("x", 0), *levels)) == [shown]


def test_legal_numbers_are_arabic_whatever_the_levels_above_are():
    levels = level(0, "upperRoman", "%1."), level(1, "decimal", "%1.%2", more="<w:isLgl/>")
    assert lines(listed(paragraph("x", 0) + paragraph("y", 1), *levels)) == ["I. x", "  1.1 y"]


def test_a_number_format_of_the_authors_own_keeps_its_zeros():
    own = "<w:lvl w:ilvl='0'><w:start w:val='7'/><w:numFmt w:val='custom' w:format='001, 002, 003, ...'/><w:lvlText w:val='R-%1'/></w:lvl>"
    assert lines(listed(paragraph("x", 0), own)) == ["R-007 x"]


def test_a_style_can_number_its_paragraphs_and_its_level_is_the_one_that_names_it():
    levels = level(0, "decimal", "%1."), level(1, "decimal", "%1.%2", more="<w:pStyle w:val='Sub'/>")
    styles = "<w:style w:type='paragraph' w:styleId='{0}'><w:basedOn w:val='{1}'/><w:pPr><w:numPr>{2}<w:numId w:val='1'/></w:numPr></w:pPr></w:style>"
    styles = styles.format("Top", "x", "") + styles.format("Sub", "Top", "")
    body = paragraph("one", style="Top") + paragraph("two", style="Sub")
    assert lines(listed(body, *levels, styles=styles)) == ["1. one", "  1.1 two"]


def test_a_paragraph_can_leave_the_list_of_its_style():
    styles = (
        "<w:style w:type='paragraph' w:styleId='Top'><w:pPr><w:numPr><w:numId w:val='1'/></w:numPr></w:pPr></w:style>"
    )
    body = paragraph("out", 0, "0", style="Top") + paragraph("in", style="Top")
    assert lines(listed(body, level(0, "decimal", "%1."), styles=styles)) == ["out", "1. in"]


def test_a_column_of_numbers_that_word_counts_is_part_of_its_table():
    row = "<w:tr><w:tc>{}</w:tc><w:tc>{}</w:tc></w:tr>"
    rows = "".join(row.format(paragraph("", 0), paragraph(name)) for name in ("oars", "ropes"))
    assert lines(listed(f"<w:tbl>{rows}</w:tbl>", level(0, "decimal", "%1."))) == ["1. | oars", "2. | ropes"]


def test_a_deleted_paragraph_is_not_counted_and_one_whose_end_was_deleted_goes_on_in_the_next():
    gone = "<w:p><w:pPr><w:numPr><w:ilvl w:val='0'/><w:numId w:val='1'/></w:numPr><w:rPr><w:del w:id='1'/></w:rPr></w:pPr><w:del><w:r><w:delText>old</w:delText></w:r></w:del></w:p>"
    joined = paragraph("half ", more="<w:rPr><w:del w:id='2'/></w:rPr>") + paragraph("and half", 0)
    data = listed(paragraph("one", 0) + gone + joined, level(0, "decimal", "%1."))
    assert lines(data) == ["1. one", "2. half and half"]


def test_ten_thousand_levels_and_numbers_that_are_none_are_read_like_any():
    many = "".join(level(place, "decimal", f"%{place}", start="9" * 30) for place in range(10_000))
    body = "".join(paragraph("x", depth) for depth in (0, 9_999, 8))
    lists = "".join(f"<w:num w:numId='{n}'><w:abstractNumId w:val='0'/></w:num>" for n in range(2, 2000))
    assert len(lines(listed(body, many, lists=lists))) == 3


@pytest.mark.parametrize(
    ("number", "way", "text"),
    [
        (1999, "lowerRoman", "mcmxcix"),
        (27, "upperLetter", "AA"),
        (112, "ordinal", "112th"),
        (21, "ordinalText", "Twenty-first"),
        (1005, "chineseCounting", "一千〇五"),
        (10**9, "lowerRoman", "1000000000"),
        (30_000, "lowerLetter", "30000"),
        (0, "lowerRoman", "0"),
    ],
)
def test_a_number_is_written_as_its_document_writes_numbers(number, way, text):
    assert written(number, way) == text


SPACES = "xmlns:office='o' xmlns:text='t' xmlns:table='b' xmlns:draw='d' xmlns:style='s' xmlns:xlink='x' xmlns:loext='l' xmlns:xml2='z' xmlns:chart='c'"
NUMBER = "<text:list-level-style-number text:level='{}' style:num-format='{}' style:num-suffix='{}' text:display-levels='{}' {}/>"


def odt(body, levels="", outline="", **parts):
    styles = (
        f"<office:automatic-styles><text:list-style style:name='L'>{levels}</text:list-style></office:automatic-styles>"
    )
    content = f"<office:document-content {SPACES}>{styles}<office:body><office:text>{body}</office:text></office:body></office:document-content>"
    outlined = f"<office:document-styles {SPACES}><office:styles><text:outline-style>{outline}</text:outline-style></office:styles></office:document-styles>"
    kind = "application/vnd.oasis.opendocument.text"
    return zipped({"mimetype": kind, "content.xml": content, "styles.xml": outlined} | parts)


def odt_lines(data):
    return [line for line in extract(data, "a.odt")[1].text.split("\n") if line]


def items(*texts, attributes="text:style-name='L'"):
    inside = "".join(
        text if text.startswith("<") else f"<text:list-item><text:p>{text}</text:p></text:list-item>" for text in texts
    )
    return f"<text:list {attributes}>{inside}</text:list>"


@E10
def test_lists_have_the_numbers_that_their_style_counts():
    levels = NUMBER.format(1, "1", ".", 1, "text:start-value='4'") + NUMBER.format(2, "a", ")", 1, "")
    inner = f"<text:list-item><text:p>two</text:p>{items('in one', 'in two', attributes='')}</text:list-item>"
    on = items("three", attributes="text:style-name='L' text:continue-numbering='true'")
    again = items("one")
    assert odt_lines(odt(items("one", inner) + on + again, levels)) == [
        *("4. one", "5. two", "  a) in one", "  b) in two", "6. three", "4. one"),
    ]


def test_clauses_of_several_numbers_are_places_of_their_own():
    levels = NUMBER.format(1, "1", ".", 1, "") + NUMBER.format(2, "1", "", 2, "")
    inner = f"<text:list-item><text:p>Rent</text:p>{items('When it is due', attributes='')}</text:list-item>"
    extracted = extract(odt(items(inner), levels), "a.odt")[1]
    assert [section.heading for section in extracted.sections] == [("1. Rent",), ("1. Rent", "1.1 When it is due")]


def test_headings_have_the_numbers_of_the_outline_and_those_in_lists_theirs():
    outline = "<text:outline-level-style text:level='1' style:num-format='I' style:num-suffix='.'/>"
    outline += "<text:outline-level-style text:level='2' style:num-format=''/>"
    heading = "<text:h text:outline-level='{}'>{}</text:h>"
    listed = items(f"<text:list-item>{heading.format(1, 'Listed')}</text:list-item>")
    body = heading.format(1, "One") + heading.format(2, "Deep") + heading.format(1, "Two") + listed
    data = odt(body, NUMBER.format(1, "1", ")", 1, ""), outline)
    assert odt_lines(data) == ["I. One", "Deep", "II. Two", "1) Listed"]
    assert extract(data, "a.odt")[1].sections[-1].heading == ("1) Listed",)


def test_a_pattern_of_numbers_counts_before_prefix_and_suffix_and_a_header_is_no_item():
    level = NUMBER.format(1, "1", "!", 1, "loext:num-list-format='Art. %1%'")
    header = "<text:list-header><text:p>above</text:p></text:list-header>"
    assert odt_lines(odt(items(header, "one"), level)) == ["above", "Art. 1 one"]


def test_only_the_first_paragraph_of_an_item_has_a_mark():
    assert odt_lines(odt(items("<text:list-item><text:p>one</text:p><text:p>more</text:p></text:list-item>"))) == [
        "- one",
        "more",
    ]


def test_words_in_shapes_charts_and_equations_are_read_beside_their_paragraph():
    shape = "<draw:custom-shape><text:p>in a shape</text:p></draw:custom-shape><draw:rect><text:p>in a box</text:p></draw:rect>"
    objects = "<draw:frame><draw:object xlink:href='./Object 1'/></draw:frame><draw:frame><draw:object xlink:href='./gone'/></draw:frame>"
    math = "<math><semantics><mrow/><annotation>E = m c^2</annotation></semantics></math>"
    data = odt(f"<text:p>around{shape}{objects}</text:p>", **{"Object 1/content.xml": math})
    assert odt_lines(data) == ["around", "in a shape", "in a box", "E = m c^2"]
    assert extract(data, "a.odt")[1].omitted == {"objects": 1}


def boxed(content):
    return f"<draw:frame><draw:text-box><text:p>{content}</text:p></draw:text-box></draw:frame>"


def test_what_stands_in_boxes_in_boxes_is_written_once():
    content = "deepest<draw:frame><draw:object xlink:href='./Object 1'/></draw:frame>"
    for _ in range(20):
        content = boxed(content)
    chart = f"<office:document-content {SPACES}><office:body><office:chart><chart:chart><chart:title><text:p>Catch</text:p></chart:title></chart:chart></office:chart></office:body></office:document-content>"
    text = extract(odt(f"<text:p>before{content}</text:p>", **{"Object 1/content.xml": chart}), "a.odt")[1].text
    assert text == "before\n\ndeepest\n\nCatch\n"


def test_a_document_in_another_is_read_in_its_place_and_objects_of_other_programs_are_counted():
    cell = "<table:table-cell><text:p>oars</text:p></table:table-cell>"
    sheet = f"<office:document-content {SPACES}><office:body><office:spreadsheet><table:table><table:table-row>{cell}</table:table-row></table:table></office:spreadsheet></office:body></office:document-content>"
    shown = "<draw:frame><draw:object xlink:href='./Object 1'/></draw:frame>"
    own, other = (
        "<draw:frame><draw:object xlink:href='.'/></draw:frame>",
        "<draw:frame><draw:object-ole xlink:href='a'/><draw:plugin/></draw:frame>",
    )
    body = f"<text:p>before{shown}{own}{other}</text:p><table:table><table:table-row><table:table-cell><text:p>in a cell{other}</text:p></table:table-cell></table:table-row></table:table>"
    extracted = extract(odt(body, **{"Object 1/content.xml": sheet}), "a.odt")[1]
    assert extracted.text == "before\n\noars\n\nin a cell\n"
    assert extracted.omitted == {"objects": 4}


def test_a_description_of_a_picture_is_read_where_it_stands():
    picture = "<draw:frame><draw:image xlink:href='a'/><draw:desc>A weir in spring</draw:desc></draw:frame>"
    assert odt_lines(odt(f"<text:p>before{picture}</text:p><text:p>after</text:p>")) == [
        "before",
        "A weir in spring",
        "after",
    ]
