"""Pictures inside documents and mail: with OCR, their words appear at the position of the picture."""

import io
import shutil
import sys
import zipfile
from contextlib import closing
from email.message import EmailMessage

import docx
import pytest
from docx.shared import Inches
from PIL import Image

from kb.api.errors import OutOfReach, Unreadable
from kb.formats.ocr_text import has_words
from kb.formats.text.external_types import is_picture
from kb.parser.extracting_sandbox import ExtractingSandbox
from kb.parser.extractors import Extractors
from kb.parser.sandbox import Limits
from tests.support.office import opendocument, presentation, shape, slide
from tests.support.scans import page, photo

pytestmark = [
    pytest.mark.requirement("E-10"),
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux confines processes"),
]


@pytest.fixture(scope="module")
def box():
    with closing(ExtractingSandbox(Limits(), Extractors(), 60)) as box:
        yield box


@pytest.fixture
def read(box, tmp_path):
    """`read("image=cat", data, name)` is a document; each picture is said to hold what `cat` makes of it."""

    def read(named, data, name, languages="", **limits):
        box.extractors, box.limits = Extractors.parse(named, languages), Limits(**limits)
        path = tmp_path / "staged"
        path.write_bytes(data)
        return box.extract(path, name)[1]

    return read


def png(text):
    file = io.BytesIO()
    page(text).save(file, "PNG")
    return file.getvalue()


def word(*pictures, words=True):
    """A Word document of two parts, each with its pictures, the last of them in a table."""
    document = docx.Document()
    if words:
        document.add_heading("The first part", 1)
        document.add_paragraph("before it")
    for picture in pictures[:-1]:
        document.add_picture(io.BytesIO(picture), Inches(4))
    if words:
        document.add_paragraph("after it")
        document.add_heading("The second part", 1)
    cell = document.add_table(1, 2).cell(0, 0)
    cell.paragraphs[0].add_run().add_picture(io.BytesIO(pictures[-1]), Inches(2))
    file = io.BytesIO()
    document.save(file)
    return file.getvalue()


def slides(*pictures):
    """A presentation: a slide of words and one of a picture alone, in turn."""
    names = [f"ppt/media/{number}.png" for number in range(len(pictures))]
    shown = "<p:pic><p:blipFill><a:blip r:embed='p{}'/></p:blipFill></p:pic>"
    pairs = [(shape(f"slide {2 * number + 1}"), shown.format(number)) for number in range(len(pictures))]
    relations = {f"p{number}": ("image", name) for number, name in enumerate(names)}
    return presentation(
        [slide(each) for pair in pairs for each in pair], dict(zip(names, pictures, strict=True)), relations
    )


IMAGE = "<draw:frame><draw:image xlink:href='Pictures/1.png'/></draw:frame>"
SAYS = "image=sh -c 'echo found words && head -c 4 | tail -c 3'"
ONE, TWO = png("one"), png("two")


def lines(extracted):
    assert "".join(extracted.text[part.start : part.end] for part in extracted.sections) == extracted.text
    return [line for line in extracted.text.splitlines() if line]


def test_words_of_pictures_stand_where_the_pictures_do_under_their_headings(read):
    extracted = read(SAYS, word(ONE, TWO), "report.docx")
    found = ["found words", "PNG"]
    assert lines(extracted) == [
        *("The first part", "before it", *found, "after it"),
        *("The second part", *found),
    ]
    assert [part.heading for part in extracted.sections] == [("The first part",), ("The second part",)]


def test_without_ocr_a_document_is_what_it_was_and_its_pictures_are_counted(read):
    report = read("audio=cat", word(ONE, TWO), "report.docx")
    assert lines(report) == ["The first part", "before it", "after it", "The second part"]
    assert report.omitted == {"pictures": 2}
    assert read(SAYS, word(ONE, TWO), "report.docx").omitted == {}


def test_a_picture_that_is_shown_twice_is_read_once(read):
    assert lines(read(SAYS, word(ONE, ONE), "report.docx")).count("found words") == 1


def test_a_document_may_be_nothing_but_pictures(read):
    assert lines(read(SAYS, word(ONE, TWO, words=False), "scan.docx")) == ["found words", "PNG"] * 2
    with pytest.raises(Unreadable, match="contains no text"):
        read("audio=cat", word(ONE, TWO, words=False), "scan.docx")
    with pytest.raises(Unreadable, match="contains no text"):
        read("image=true", word(ONE, TWO, words=False), "scan.docx")


def test_a_slide_of_a_picture_alone_keeps_its_number(read):
    extracted = read(SAYS, slides(ONE, TWO), "show.pptx")
    assert lines(extracted) == ["slide 1", "found words", "PNG", "slide 3", "found words", "PNG"]
    assert [part.page for part in extracted.sections] == [1, 2, 3, 4]


def test_pictures_of_opendocument_are_read(read):
    body = f"<text:h>Part</text:h><text:p>before{IMAGE}</text:p><text:p>after</text:p>"
    text = opendocument("text", body, **{"Pictures/1.png": ONE})
    assert lines(read(SAYS, text, "a.odt")) == ["Part", "before", "found words", "PNG", "after"]
    body = f"<draw:page>{IMAGE}</draw:page>"
    show = opendocument("presentation", body, **{"Pictures/1.png": ONE})
    extracted = read(SAYS, show, "a.odp")
    assert ([part.page for part in extracted.sections], lines(extracted)) == ([1], ["found words", "PNG"])


def message(*pictures):
    mail = EmailMessage()
    mail["Subject"], mail["From"] = "The bill", "ann@example.org"
    mail.set_content("Here it is.")
    for name, data in pictures:
        mail.add_attachment(data, "image", name.rpartition(".")[2], filename=name)
    return mail.as_bytes()


def test_pictures_attached_to_mail_are_read_and_named(read):
    extracted = read(SAYS, message(("bill.png", ONE), ("photo.jpeg", photo("x", 1))), "a.eml")
    assert lines(extracted)[-5:-1] == ["Here it is.", "[bill.png] found words", "PNG", "[photo.jpeg] found words"]
    assert extracted.attachments == ()


def test_pictures_of_nothing_small_ones_and_ones_that_fail_cost_nothing(read):
    icon = io.BytesIO()
    Image.new("L", (20, 20), 255).save(icon, "PNG")
    assert "found" not in read(SAYS, message(("icon.png", icon.getvalue())), "a.eml").text
    for named in ("image=true", "image=false", "image=echo '~ | . ,x'"):
        assert lines(read(named, message(("bill.png", ONE)), "a.eml"))[-1] == "Here it is."
    assert not has_words("~ a |\n) fy .")
    assert has_words("请在周五 之前付款")


def test_a_service_out_of_reach_is_asked_again_later(read):
    with pytest.raises(OutOfReach):
        read("image=http://127.0.0.1:9/", message(("bill.png", ONE)), "a.eml")


def test_a_picture_that_unpacks_to_far_more_than_the_file_is_left_out(read):
    with zipfile.ZipFile(io.BytesIO(word(TWO, ONE))) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    first = min(name for name in parts if name.endswith(".png"))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, b"BM" + bytes(20_000_000) if name == first else data)
    assert lines(read(SAYS, packed.getvalue(), "bomb.docx")).count("found words") == 1


def test_what_is_only_called_a_picture_never_reaches_ocr(read, tmp_path):
    other = tmp_path / "other.png"
    other.write_bytes(ONE)
    listed = f"{other}\n".encode() * 100  # which Tesseract takes for pictures to read
    assert lines(read(SAYS, message(("bill.png", listed)), "a.eml"))[-1] == "Here it is."
    body = f"<text:p>before{IMAGE}</text:p>"
    assert lines(read(SAYS, opendocument("text", body, **{"Pictures/1.png": listed}), "a.odt")) == ["before"]


@pytest.mark.parametrize("kind", ["BMP", "GIF", "JPEG", "PNG", "TIFF", "WEBP"])
def test_pictures_of_all_usual_formats_are_known(kind):
    file = io.BytesIO()
    page("words").convert("L").save(file, kind)
    assert is_picture(file.getvalue())


@pytest.mark.parametrize("named", ["image=true", "audio=cat"])
def test_words_that_stand_on_a_picture_stay(read, named):
    body = f"<draw:page>{IMAGE.replace('/></draw:frame>', '><text:p>on it</text:p></draw:image></draw:frame>')}</draw:page>"
    assert lines(read(named, opendocument("presentation", body, **{"Pictures/1.png": ONE}), "a.odp")) == ["on it"]


@pytest.mark.skipif(shutil.which("tesseract") is None, reason="tesseract is not installed")
def test_tesseract_reads_a_screenshot_in_a_document_and_a_bill_in_mail(read):
    extracted = read("", word(png("The crane is to be repainted in October"), TWO), "a.docx", languages="1")
    assert "crane is to be repainted" in extracted.text
    bill = photo("Total due on Friday: four hundred and twenty crowns", 1)
    assert "four hundred and twenty crowns" in read("", message(("bill.jpg", bill)), "a.eml", languages="1").text
