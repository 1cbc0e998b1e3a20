"""Slides: their texts in reading order, and repeated texts only once."""

import pytest
from lxml import etree

from kb.formats.extract import extract
from kb.formats.readers import pptx
from kb.formats.text.reading_order import Box, around, in_reading_order
from tests.support.office import document_content, document_styles, opendocument, position, presentation, shape, slide

E10 = pytest.mark.requirement("E-10")


def test_boxes_are_read_row_by_row():
    boxes = {
        "right": Box(60, 12, 30, 10),
        "below": Box(0, 50, 90, 10),
        "left": Box(0, 10, 30, 10),
        "tall": Box(0, 70, 30, 90),
        "beside one": Box(40, 75, 30, 20),
        "beside two": Box(40, 100, 30, 20),
        "unknown": None,
    }
    names = ["unknown", "right", "below", "left", "beside two", "beside one", "tall"]
    assert in_reading_order(names, boxes.get) == [
        *("unknown", "left", "right", "below", "tall", "beside one", "beside two"),
    ]


def test_what_has_no_place_stays_behind_what_it_was_drawn_after():
    boxes = {"low": Box(0, 90, 10, 10), "its label": None, "high": Box(0, 10, 10, 10)}
    assert in_reading_order(["low", "its label", "high"], boxes.get) == ["high", "low", "its label"]


def test_a_box_around_others_holds_them():
    assert around([Box(10, 10, 5, 5), Box(0, 12, 5, 30)]) == Box(0, 10, 15, 32)
    assert around([]) is None


def group(place, *shapes):
    return f"<p:grpSp><p:nvGrpSpPr/><p:grpSpPr>{position(place)}</p:grpSpPr>{''.join(shapes)}</p:grpSp>"


def read(shapes, layout=""):
    return filled_lines(presentation([slide(shapes)], layout=slide(layout, "sldLayout")), "a.pptx")


def filled_lines(data, name):
    return [line for line in extract(data, name)[1].text.split("\n") if line]


@E10
def test_shapes_are_read_as_they_lie_and_those_of_a_group_together():
    shapes = shape("last", (0, 900, 50, 50)) + shape("right", (200, 100, 50, 50))
    shapes += group((0, 300, 900, 300), shape("group, second", (0, 60, 9, 9)), shape("group, first", (0, 10, 9, 9)))
    shapes += shape("left", (0, 110, 50, 50)) + shape("The title", (0, 950, 50, 50), "type='title'")
    assert read(shapes) == ["The title", "left", "right", "group, first", "group, second", "last"]


def test_a_text_in_a_place_of_the_layout_lies_there():
    layout = shape("", (0, 800, 50, 50), "type='body' idx='1'") + shape("", (0, 100, 50, 50), "idx='2'")
    shapes = shape("low", role="idx='1' type='body'") + shape("high", role="idx='2'") + shape("between", (0, 400, 9, 9))
    assert read(shapes, layout) == ["high", "between", "low"]


def test_shapes_of_an_opendocument_slide_are_read_as_they_lie():
    frame = "<draw:frame svg:x='{}' svg:y='{}' svg:width='4cm' svg:height='1cm'><draw:text-box><text:p>{}</text:p></draw:text-box></draw:frame>"
    turned = "<draw:custom-shape draw:transform='rotate (0.1) translate (1cm 20mm)' svg:width='4cm' svg:height='1cm'><text:p>turned</text:p></draw:custom-shape>"
    shapes = (
        frame.format("1cm", "9cm", "last") + f"<draw:g>{frame.format('1cm', '3in', 'in a group')}</draw:g>" + turned
    )
    shapes += (
        frame.format("0cm", "0cm", "first")
        + "<draw:frame svg:x='0cm' svg:y='12cm' svg:width='4cm' svg:height='1cm'><draw:object xlink:href='./Object 1'/></draw:frame>"
    )
    cell = "<table:table-cell><text:p>{}</text:p></table:table-cell>"
    rows = "".join(
        f"<table:table-row>{cell.format(a)}{cell.format(b)}</table:table-row>" for a, b in [("", "Catch"), ("May", "7")]
    )
    chart = document_content(
        "chart",
        f"<chart:chart><chart:title><text:p>Fish</text:p></chart:title><table:table>{rows}</table:table></chart:chart>",
    )
    data = opendocument("presentation", f"<draw:page>{shapes}</draw:page>", **{"Object 1/content.xml": chart})
    lines = filled_lines(data, "a.odp")
    assert lines == ["first", "turned", "in a group", "last", "Fish", " | Catch", "May | 7"]


def test_many_shapes_side_by_side_are_ordered_at_once():
    boxes = [Box(float(10 * number), 0.0, 5.0, 5.0) for number in range(20_000)][::-1]
    assert in_reading_order(boxes, lambda box: box) == boxes[::-1]


@E10
def test_footers_and_the_words_of_the_template_follow_the_slides_once():
    shapes = shape("Boats", role="type='title'") + shape("Harbour Board", role="type='ftr'")
    shown = slide(shapes + shape("3", role="type='sldNum'"))
    layout = slide(shape("Click to add text", role="type='body'") + shape("Draft"), "sldLayout")
    master = slide(shape("Footer of the master", role="type='ftr'") + shape("Strictly confidential"), "sldMaster")
    _, extracted = extract(presentation([shown, shown], layout=layout, master=master), "a.pptx")
    assert extracted.text == (
        "Boats\n\nBoats\n\nHeaders and footers\n\n- Harbour Board\n- Draft\n- Strictly confidential\n\n"
    )
    assert [section.page for section in extracted.sections] == [1, 2, None]


@pytest.mark.parametrize(
    ("hides", "shown"),
    [({"slide": "showMasterSp='0'"}, []), ({"layout": "showMasterSp='0'"}, ["- Draft"]), ({}, ["- Draft", "- Secret"])],
)
def test_a_template_that_a_slide_hides_is_not_in_its_text(hides, shown):
    boats = slide(shape("Boats", role="type='title'"), more=hides.get("slide", ""))
    layout = slide(shape("Draft"), "sldLayout", hides.get("layout", ""))
    data = presentation([boats], layout=layout, master=slide(shape("Secret"), "sldMaster"))
    assert [line for line in filled_lines(data, "a.pptx") if line.startswith("- ")] == shown


def test_the_tree_of_a_slide_is_not_kept(monkeypatch):
    slides = []
    monkeypatch.setattr(pptx._Slide, "__init__", kept_in(slides, pptx._Slide.__init__))
    shown = slide(shape("Boats", role="type='title'") + shape("Harbour Board", role="type='ftr'"))
    extract(presentation([shown, shown]), "a.pptx")
    assert len(slides) == 2
    assert not [each for slide in slides for each in vars(slide).values() if isinstance(each, etree._Element)]


def kept_in(slides, make):
    """`make` that keeps what it is given to make."""

    def keep(slide, *arguments):
        slides.append(slide)
        make(slide, *arguments)

    return keep


def frame(inner, more=""):
    return f"<draw:frame {more}><draw:text-box><text:p>{inner}</text:p></draw:text-box></draw:frame>"


def impress(shows, master, of_master=""):
    """A presentation of two slides that show what `shows` says, with a footer of their own."""
    style = f"<style:style style:name='dp1' style:family='drawing-page'><style:drawing-page-properties {shows}/></style:style>"
    page = f"<draw:page draw:style-name='dp1' draw:master-page-name='M' presentation:use-footer-name='f1'>{frame('Boats', 'presentation:class=&quot;title&quot;'.replace('&quot;', chr(34)))}</draw:page>"
    footer = "<presentation:footer-decl presentation:name='f1'>Harbour Board</presentation:footer-decl>"
    styles = f"<office:automatic-styles>{style}</office:automatic-styles>"
    pages = f"<style:master-page style:name='M' {of_master}>{master}</style:master-page>"
    data = opendocument("presentation", f"{footer}{page * 2}", styles, **{"styles.xml": document_styles(pages)})
    return filled_lines(data, "a.odp")


PROMPTS = frame("Click to edit", "presentation:class='outline' presentation:placeholder='true'")
PROMPTS += f"<presentation:notes>{frame('Notes of the master')}</presentation:notes>"
FOOTER = frame("<presentation:footer/>", "presentation:class='footer'")
NUMBER = frame("<text:page-number>&lt;number&gt;</text:page-number>", "presentation:class='page-number'")


@E10
@pytest.mark.parametrize(
    ("shows", "master", "shown"),
    [
        ("presentation:display-footer='true'", FOOTER + NUMBER + PROMPTS, ["- Harbour Board"]),
        ("presentation:display-footer='false'", FOOTER, []),
        ("", FOOTER + frame("Strictly confidential"), ["- Harbour Board", "- Strictly confidential"]),
        ("", frame("Written by hand", "presentation:class='footer'"), ["- Written by hand"]),
        ("presentation:background-objects-visible='false'", FOOTER + frame("Strictly confidential"), []),
    ],
)
def test_an_opendocument_slide_shows_its_master(shows, master, shown):
    lines = impress(shows, master)
    assert lines == ["Boats", "Boats", *(["Headers and footers", *shown] if shown else [])]
