"""What every slide of a presentation shows: it is in the text once, behind the slides."""

import pytest
from lxml import etree

from kb.formats.extract import extract
from kb.formats.readers import pptx
from tests.support.office import DRAWING, package
from tests.support.samples import zipped

E10 = pytest.mark.requirement("E-10")


def shape(text, role=""):
    kind = f"<p:nvPr><p:ph {role}/></p:nvPr>" if role else "<p:nvPr/>"
    words = f"<p:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody>"
    return f"<p:sp><p:nvSpPr>{kind}</p:nvSpPr><p:spPr/>{words}</p:sp>"


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
        "sld", shape("Boats", "type='title'") + shape("Harbour Board", "type='ftr'") + shape("3", "type='sldNum'")
    )
    layout = part("sldLayout", shape("Click to add text", "type='body'") + shape("Draft"))
    master = part("sldMaster", shape("Footer of the master", "type='ftr'") + shape("Strictly confidential"))
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
    slide = part("sld", shape("Boats", "type='title'"), hides.get("slide", ""))
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
