"""Slides: what stands on them in the order in which people read it, and once what stands on all of them."""

import pytest
from lxml import etree

from kb.formats.extract import extract
from kb.formats.readers import pptx
from kb.formats.text.layout import Box, around, in_reading_order
from tests.support.office import DRAWING, package
from tests.support.samples import zipped

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


def shape(text, place=None, role=None):
    kind = f"<p:nvPr><p:ph {role}/></p:nvPr>" if role else "<p:nvPr/>"
    where = (
        f"<a:xfrm><a:off x='{place[0]}' y='{place[1]}'/><a:ext cx='{place[2]}' cy='{place[3]}'/></a:xfrm>"
        if place
        else ""
    )
    body = f"<p:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody>"
    return f"<p:sp><p:nvSpPr>{kind}</p:nvSpPr><p:spPr>{where}</p:spPr>{body}</p:sp>"


def group(place, *shapes):
    where = f"<a:xfrm><a:off x='{place[0]}' y='{place[1]}'/><a:ext cx='{place[2]}' cy='{place[3]}'/></a:xfrm>"
    return f"<p:grpSp><p:nvGrpSpPr/><p:grpSpPr>{where}</p:grpSpPr>{''.join(shapes)}</p:grpSp>"


def slide(shapes, kind="sld"):
    return f"<p:{kind} xmlns:p='p' xmlns:a='{DRAWING}'><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:{kind}>"


def read(shapes, layout=""):
    parts = {
        "ppt/presentation.xml": "<p:presentation xmlns:p='p' xmlns:r='r'><p:sldIdLst><p:sldId r:id='s'/></p:sldIdLst></p:presentation>",
        "ppt/slides/slide1.xml": slide(shapes),
        "ppt/layout1.xml": slide(layout, "sldLayout"),
    }
    relations = {
        "ppt/presentation.xml": {"s": ("slide", "ppt/slides/slide1.xml")},
        "ppt/slides/slide1.xml": {"l": ("slideLayout", "ppt/layout1.xml")},
    }
    text = extract(package("ppt/presentation.xml", parts, relations), "a.pptx")[1].text
    return [line for line in text.split("\n") if line]


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
    odp = "xmlns:office='o' xmlns:text='t' xmlns:draw='d' xmlns:svg='s' xmlns:xlink='x' xmlns:chart='c' xmlns:table='b' xmlns:math='m'"
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
    chart = f"<office:document-content {odp}><office:body><office:chart><chart:chart><chart:title><text:p>Fish</text:p></chart:title><table:table>{rows}</table:table></chart:chart></office:chart></office:body></office:document-content>"
    content = f"<office:document-content {odp}><office:body><office:presentation><draw:page>{shapes}</draw:page></office:presentation></office:body></office:document-content>"
    kind = "application/vnd.oasis.opendocument.presentation"
    data = zipped({"mimetype": kind, "content.xml": content, "Object 1/content.xml": chart})
    lines = [line for line in extract(data, "a.odp")[1].text.split("\n") if line]
    assert lines == ["first", "turned", "in a group", "last", "Fish", " | Catch", "May | 7"]


def test_many_shapes_side_by_side_are_ordered_at_once():
    boxes = [Box(float(10 * number), 0.0, 5.0, 5.0) for number in range(20_000)][::-1]
    assert in_reading_order(boxes, lambda box: box) == boxes[::-1]


def part(kind, shapes, more=""):
    tree = f"<p:cSld><p:spTree>{shapes}</p:spTree></p:cSld>"
    return f"<p:{kind} xmlns:p='p' xmlns:a='{DRAWING}' {more}>{tree}</p:{kind}>"


def powerpoint(slides, layout="", master=""):
    ids = "".join(f"<p:sldId r:id='s{number}'/>" for number in range(len(slides)))
    main = f"<p:presentation xmlns:p='p' xmlns:r='r'><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>"
    parts = {"ppt/presentation.xml": main, "ppt/layout1.xml": layout, "ppt/master1.xml": master}
    parts |= {f"ppt/slide{number}.xml": slide for number, slide in enumerate(slides)}
    relations = {
        "ppt/presentation.xml": {f"s{n}": ("slide", f"ppt/slide{n}.xml") for n in range(len(slides))},
        "ppt/layout1.xml": {"m": ("slideMaster", "ppt/master1.xml")},
    }
    relations |= {f"ppt/slide{n}.xml": {"l": ("slideLayout", "ppt/layout1.xml")} for n in range(len(slides))}
    return extract(package("ppt/presentation.xml", parts, relations), "a.pptx")[1]


@E10
def test_footers_and_the_words_of_the_template_follow_the_slides_once():
    slide = part(
        "sld",
        shape("Boats", role="type='title'")
        + shape("Harbour Board", role="type='ftr'")
        + shape("3", role="type='sldNum'"),
    )
    layout = part("sldLayout", shape("Click to add text", role="type='body'") + shape("Draft"))
    master = part("sldMaster", shape("Footer of the master", role="type='ftr'") + shape("Strictly confidential"))
    extracted = powerpoint([slide, slide], layout, master)
    assert extracted.text == (
        "Boats\n\nBoats\n\nHeaders and footers\n\n- Harbour Board\n- Draft\n- Strictly confidential\n\n"
    )
    assert [section.page for section in extracted.sections] == [1, 2, None]


@pytest.mark.parametrize(
    ("hides", "shown"),
    [({"slide": "showMasterSp='0'"}, []), ({"layout": "showMasterSp='0'"}, ["- Draft"]), ({}, ["- Draft", "- Secret"])],
)
def test_a_template_that_a_slide_hides_is_not_in_its_text(hides, shown):
    slide = part("sld", shape("Boats", role="type='title'"), hides.get("slide", ""))
    layout = part("sldLayout", shape("Draft"), hides.get("layout", ""))
    text = powerpoint([slide], layout, part("sldMaster", shape("Secret"))).text
    assert [line for line in text.split("\n") if line.startswith("- ")] == shown


def test_the_tree_of_a_slide_is_not_kept(monkeypatch):
    slides = []
    monkeypatch.setattr(pptx._Slide, "__init__", kept_in(slides, pptx._Slide.__init__))
    slide = part("sld", shape("Boats", "type='title'") + shape("Harbour Board", "type='ftr'"))
    powerpoint([slide, slide])
    assert len(slides) == 2
    assert not [each for slide in slides for each in vars(slide).values() if isinstance(each, etree._Element)]


def kept_in(slides, make):
    """`make` that keeps what it is given to make."""

    def keep(slide, *arguments):
        slides.append(slide)
        make(slide, *arguments)

    return keep


ODP = "xmlns:office='o' xmlns:text='t' xmlns:draw='d' xmlns:presentation='n' xmlns:style='s'"
KIND = "application/vnd.oasis.opendocument.presentation"


def frame(inner, more=""):
    return f"<draw:frame {more}><draw:text-box><text:p>{inner}</text:p></draw:text-box></draw:frame>"


def impress(shows, master, of_master=""):
    """A presentation of two slides that show what `shows` says, with a footer of their own."""
    style = f"<style:style style:name='dp1' style:family='drawing-page'><style:drawing-page-properties {shows}/></style:style>"
    page = f"<draw:page draw:style-name='dp1' draw:master-page-name='M' presentation:use-footer-name='f1'>{frame('Boats', 'presentation:class=&quot;title&quot;'.replace('&quot;', chr(34)))}</draw:page>"
    footer = "<presentation:footer-decl presentation:name='f1'>Harbour Board</presentation:footer-decl>"
    content = f"<office:document-content {ODP}><office:automatic-styles>{style}</office:automatic-styles><office:body><office:presentation>{footer}{page * 2}</office:presentation></office:body></office:document-content>"
    styles = f"<office:document-styles {ODP}><office:master-styles><style:master-page style:name='M' {of_master}>{master}</style:master-page></office:master-styles></office:document-styles>"
    data = zipped({"mimetype": KIND, "content.xml": content, "styles.xml": styles})
    return [line for line in extract(data, "a.odp")[1].text.split("\n") if line]


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
