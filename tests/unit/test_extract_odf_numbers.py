"""Numbers that OpenDocument programs count themselves, and what hangs on paragraphs."""

import pytest

from kb.formats.extract import extract
from tests.support.samples import zipped

E10 = pytest.mark.requirement("E-10")
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


def lines(data):
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
    assert lines(odt(items("one", inner) + on + again, levels)) == [
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
    assert lines(data) == ["I. One", "Deep", "II. Two", "1) Listed"]
    assert extract(data, "a.odt")[1].sections[-1].heading == ("1) Listed",)


def test_a_pattern_of_numbers_counts_before_prefix_and_suffix_and_a_header_is_no_item():
    level = NUMBER.format(1, "1", "!", 1, "loext:num-list-format='Art. %1%'")
    header = "<text:list-header><text:p>above</text:p></text:list-header>"
    assert lines(odt(items(header, "one"), level)) == ["above", "Art. 1 one"]


def test_only_the_first_paragraph_of_an_item_has_a_mark():
    assert lines(odt(items("<text:list-item><text:p>one</text:p><text:p>more</text:p></text:list-item>"))) == [
        "- one",
        "more",
    ]


def test_words_in_shapes_charts_and_equations_are_read_beside_their_paragraph():
    shape = "<draw:custom-shape><text:p>in a shape</text:p></draw:custom-shape><draw:rect><text:p>in a box</text:p></draw:rect>"
    objects = "<draw:frame><draw:object xlink:href='./Object 1'/></draw:frame><draw:frame><draw:object xlink:href='./gone'/></draw:frame>"
    math = "<math><semantics><mrow/><annotation>E = m c^2</annotation></semantics></math>"
    data = odt(f"<text:p>around{shape}{objects}</text:p>", **{"Object 1/content.xml": math})
    assert lines(data) == ["around", "in a shape", "in a box", "E = m c^2"]
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
    assert lines(odt(f"<text:p>before{picture}</text:p><text:p>after</text:p>")) == [
        "before",
        "A weir in spring",
        "after",
    ]
