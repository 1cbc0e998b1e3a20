"""PDF: text page by page, whole words, files and comments, and true reasons when there is none."""

import threading

import pytest

from kb.api.errors import Unreadable
from kb.formats.extract import extract
from tests.support.pdf import filled_form, with_files
from tests.support.pdf import pdf as small_pdf
from tests.support.reading import reader

E10 = pytest.mark.requirement("E-10")
read = reader("file.pdf")
PLAIN_FONT = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>"
IMAGE = (
    b"<</Type/XObject/Subtype/Image/Width 1/Height 1/ColorSpace/DeviceGray/BitsPerComponent 8/Length 1>>"
    b"stream\n\0\nendstream"
)
SHOW_IMAGE = b"q 200 0 0 200 50 50 cm /I Do Q"


def pdf(*pages, title=None, outline=(), annotation=None):
    """A PDF of pages, each the operators of its content; `outline`: (level, title, page index) in order."""
    first_page, resources = 10, b"<</Font<</F 3 0 R>>/XObject<</I 4 0 R>>>>"
    kids = b" ".join(b"%d 0 R" % (first_page + 2 * n) for n in range(len(pages)))
    objects = {
        1: b"<</Type/Catalog/Pages 2 0 R/Outlines 5 0 R>>",
        2: b"<</Type/Pages/Kids[%b]/Count %d>>" % (kids, len(pages)),
        3: PLAIN_FONT,
        4: IMAGE,
        6: b"<</Title(%b)>>" % title.encode("latin-1") if title else b"<<>>",
        7: annotation or b"null",
    }
    for number, content in enumerate(pages):
        at = first_page + 2 * number
        objects[at] = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 400 400]/Resources%b/Contents %d 0 R/Annots[7 0 R]>>" % (
            resources,
            at + 1,
        )
        objects[at + 1] = stream(content)
    objects |= bookmarks(outline, first=100, page=first_page)
    return assembled(objects)


def spread(content, *pages, inherited=b"", annotation=b""):
    """A PDF whose pages, each its own entries, share one content stream."""
    kids = b" ".join(b"%d 0 R" % (10 + number) for number in range(len(pages)))
    objects = {
        1: b"<</Type/Catalog/Pages 2 0 R>>",
        2: b"<</Type/Pages/Kids[%b]/Count %d%b>>" % (kids, len(pages), inherited),
        3: PLAIN_FONT,
        4: stream(content),
    }
    for number, entries in enumerate(pages):
        objects[10 + number] = b"<</Type/Page/Parent 2 0 R/Resources<</Font<</F 3 0 R>>>>/Contents 4 0 R%b%b>>" % (
            entries,
            annotation,
        )
    return assembled(objects)


def stream(content, entries=b""):
    return b"<<%b/Length %d>>stream\n%b\nendstream" % (entries, len(content), content)


def bookmarks(outline, first, page):
    numbers = range(first, first + len(outline))
    objects = {5: b"<</Type/Outlines" + children(outline, numbers, -1) + b">>"}
    for index, (level, title, target) in enumerate(outline):
        later = [n for n in range(index + 1, len(outline)) if outline[n][0] <= level]
        follower = later[0] if later and outline[later[0]][0] == level else None
        objects[numbers[index]] = b"<</Title(%b)/Dest[%d 0 R/Fit]%b%b>>" % (
            title.encode(),
            page + 2 * target,
            b"/Next %d 0 R" % numbers[follower] if follower is not None else b"",
            children(outline, numbers, index),
        )
    return objects


def children(outline, numbers, parent):
    level = outline[parent][0] if parent >= 0 else -1
    below = parent + 1
    has_child = below < len(outline) and outline[below][0] > level
    return b"/First %d 0 R" % numbers[below] if has_child else b""


def assembled(objects):
    body, places = b"%PDF-1.7\n", {}
    for number, content in sorted(objects.items()):
        places[number] = len(body)
        body += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    rows = b"".join(
        b"%010d 00000 n \n" % places[n] if n in places else b"0000000000 65535 f \n" for n in range(max(objects) + 1)
    )
    trailer = b"trailer\n<</Size %d/Root 1 0 R/Info 6 0 R>>\n" % (max(objects) + 1)
    return body + b"xref\n0 %d\n%b%bstartxref\n%d\n%%%%EOF" % (max(objects) + 1, rows, trailer, len(body))


def lines(*texts):
    shown = b" 0 -15 Td ".join(b"(%b) Tj" % text.encode("cp1252") for text in texts)
    return b"BT /F 12 Tf 20 380 Td %b ET" % shown


@E10
def test_a_pdf_is_read_page_by_page():
    extracted = read(pdf(lines("Page one.", "Second line — “ok”"), b"", lines("Page three.")))
    assert extracted.text == "Page one.\nSecond line — “ok”\n\nPage three.\n\n"
    assert [(section.page, extracted.text[section.start : section.end]) for section in extracted.sections] == [
        (1, "Page one.\nSecond line — “ok”\n\n"),
        (3, "Page three.\n\n"),
    ]


@pytest.mark.parametrize(
    ("broken", "whole"),
    [
        (("a hyphen-", "ated word"), "a hyphenated word"),
        (("a Ver-", "wendung"), "a Verwendung"),
        (("well-known, and well-", "known again"), "well-known, and well-known again"),
        (("conversation is conversation-", "centric"), "conversation is conversation-centric"),
        (("the process is process-", "ing"), "the process is processing"),
        (("something is some-", "thing"), "something is something"),
        (("Jean-", "Paul and GPT-", "4"), "Jean-Paul and GPT-4"),
        (("from 2019-", "2020"), "from 2019-2020"),
        (("a market-", "based plan"), "a market-based plan"),
        (("water-borne and blood-", "borne"), "water-borne and blood-borne"),
        (("one cell, one stem, a stem-", "cell line"), "one cell, one stem, a stem-cell line"),
        (("an HIV-", "infected cell and N-", "terminal"), "an HIV-infected cell and N-terminal"),
        (("NOT OP-", "TIONAL"), "NOT OPTIONAL"),
        (("two inter-", "related things"), "two interrelated things"),
        (
            ("well known. wellknown, well-known, well-known and well-", "known"),
            "well known. wellknown, well-known, well-known and well-known",
        ),
        (("a dash -", "between"), "a dash -\nbetween"),
        (("a soft\xad", "ened hyphen"), "a softened hyphen"),
    ],
)
def test_words_broken_at_line_ends_are_put_together_when_that_is_safe(broken, whole):
    assert read(pdf(lines(*broken))).text.strip() == whole


def test_a_run_of_letters_of_any_length_is_searched_for_breaks_once():
    run = b"(" + b"a" * 30_000 + b") Tj "
    content = b"BT /F 12 Tf 20 380 Td " + run * 5 + b"0 -15 Td (some-) Tj 0 -15 Td (thing) Tj ET"
    assert read(pdf(content)).text == f"{'a' * 150_000}\nsomething\n\n"


def test_characters_beyond_the_basic_plane_and_ligatures_come_out_right():
    mapping = (
        b"begincmap 1 begincodespacerange <00> <FF> endcodespacerange "
        b"2 beginbfchar <41> <D835DC34> <42> <FB01> endbfchar endcmap"
    )
    objects = {
        1: b"<</Type/Catalog/Pages 2 0 R>>",
        2: b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        3: b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 400 400]/Resources<</Font<</F 4 0 R>>>>/Contents 5 0 R>>",
        4: b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/ToUnicode 6 0 R>>",
        5: stream(lines("AB")),
        6: stream(mapping),
    }
    assert read(assembled(objects)).text.strip() == "\N{MATHEMATICAL ITALIC CAPITAL A}fi"


def test_what_forms_and_annotations_show_is_read():
    annotation = b"<</Type/Annot/Subtype/FreeText/Rect[20 20 300 60]/AP<</N %b>>>>"
    drawn = b"<</Type/XObject/Subtype/Form/BBox[0 0 280 40]/Resources<</Font<</F 3 0 R>>>>/Length 40>>"
    objects = pdf(lines("The page"), annotation=annotation % b"8 0 R")
    shown = b"%b" % lines("filled in").replace(b"20 380", b"5 5")
    appearance = b"8 0 obj\n" + stream(shown, drawn[2:-2].replace(b"/Length 40", b"")) + b"\nendobj\n"
    # PDFium rebuilds the table of objects when it does not fit, as in any file that was edited by hand.
    assert read(objects.replace(b"10 0 obj", appearance + b"10 0 obj")).text == "The page\nfilled in\n\n"


SPREAD = b"BT /F 12 Tf 20 380 Td (left page) Tj 400 0 Td (right page) Tj 0 -20 Td (its second line) Tj ET"


@pytest.mark.parametrize(
    ("pages", "inherited"),
    [
        ((b"/CropBox[0 0 400 400]", b"/CropBox[400 0 800 400]"), b"/MediaBox[0 0 800 400]"),
        ((b"/MediaBox[0 0 400 400]", b"/MediaBox[400 0 800 400]"), b""),
        ((b"/CropBox[0 0 400 400]/Rotate 90", b"/CropBox[800 400 400 0]/Rotate 270"), b"/MediaBox[0 0 800 400]"),
        ((b"", b"/CropBox[400 0 800 400]"), b"/MediaBox[0 0 800 400]/CropBox[0 0 400 400]"),
    ],
)
def test_a_page_holds_the_text_within_its_box_alone(pages, inherited):
    extracted = read(spread(SPREAD, *pages, inherited=inherited))
    assert extracted.text == "left page\n\nright page\nits second line\n\n"
    assert [section.page for section in extracted.sections] == [1, 2]


def test_a_page_keeps_its_box_when_annotations_are_drawn_on_it():
    annotation = b"/Annots[<</Type/Annot/Subtype/Square/Rect[1 1 9 9]/AP<</N 5 0 R>>>>]"
    pages = (b"", b"/CropBox[400 0 800 400]")
    extracted = read(spread(SPREAD, *pages, inherited=b"/MediaBox[0 0 800 400]", annotation=annotation))
    assert extracted.text == "left page right page\nits second line\n\nright page\nits second line\n\n"


@pytest.mark.parametrize("entries", [b"", b"/CropBox[0 0 0 0]", b"/CropBox[900 900 950 950]", b"/CropBox null"])
def test_a_page_without_a_box_of_its_own_is_read_whole(entries):
    data = spread(SPREAD, entries, inherited=b"/MediaBox[0 0 800 400]")
    assert read(data).text == "left page right page\nits second line\n\n"


def test_words_that_stand_over_the_edge_of_a_page_stay_whole():
    content = b"BT /F 12 Tf 380 380 Td (overhanging words) Tj ET BT /F 12 Tf 20 -3 Td (at the foot) Tj ET"
    assert read(spread(content, b"/MediaBox[0 0 400 400]")).text == "overhanging\nat the foot\n\n"


def test_a_pdf_whose_text_lies_outside_its_pages_says_so():
    with pytest.raises(Unreadable, match="no text: all text is outside its pages"):
        read(spread(SPREAD, b"/MediaBox[0 0 400 100]"))


def test_bookmarks_give_each_page_its_heading_path():
    outline = [(0, "One", 0), (1, "One A", 1), (1, "One B", 1), (0, "Two", 3)]
    extracted = read(pdf(*(lines(f"page {n}") for n in range(5)), outline=outline))
    assert [section.heading for section in extracted.sections] == [
        ("One",),
        ("One", "One A"),
        ("One", "One B"),
        ("Two",),
        ("Two",),
    ]


@pytest.mark.parametrize(
    ("title", "found"),
    [
        ("Annual Report 2024", "Annual Report 2024"),
        ("  Two\n lines ", "Two lines"),
        ("Microsoft Word - The minutes", "The minutes"),
        ("Microsoft Word - minutes_v2.doc", None),
        ("(anonymous)", None),
    ],
)
def test_only_a_title_that_says_something_counts(title, found):
    assert read(pdf(lines("text"), title=title)).title == found


def sized(*texts):
    """Lines of text, each of its own size."""
    shown = b" ".join(b"/F %d Tf (%b) Tj 0 -30 Td" % (size, text.encode("cp1252")) for size, text in texts)
    return b"BT 20 380 Td %b ET" % shown


BODY = [(10, "words that say what there is to say")] * 6


@pytest.mark.parametrize(
    ("shown", "title"),
    [
        ([(20, "The state of the"), (20, "harbour in May"), *BODY], "The state of the harbour in May"),
        (
            [(8, "Journal of ropes, 2024"), (18, "On knots and splices"), (12, "Ann Smith"), *BODY],
            "On knots and splices",
        ),
        ([(20, "INVOICE"), *BODY], None),
        ([(20, "2024-05-01 17"), *BODY], None),
        ([(20, "2.1 Later results"), *BODY], None),
        ([(20, "Chapter 4 The way home"), *BODY], None),
        ([(20, "Table of Contents"), *BODY], None),
        (BODY, None),
        ([*BODY, *BODY, *BODY, (20, "A heading far down")], None),
    ],
)
def test_without_a_title_of_its_own_a_pdf_has_the_heading_it_begins_with(shown, title):
    assert read(pdf(sized(*shown), sized((30, "The next page")))).title == title
    assert read(pdf(sized(*shown), title="Microsoft Word - x.doc")).title == title
    assert read(pdf(sized(*shown), title="The title")).title == "The title"


def test_letters_that_are_turned_or_outside_the_page_are_no_heading():
    turned = (
        b"BT /F 30 Tf 0 1 -1 0 30 20 Tm (turned by a quarter) Tj ET BT /F 30 Tf 500 200 Td (beyond the edge) Tj ET "
    )
    assert read(pdf(turned + sized((15, "The real heading"), *BODY))).title == "The real heading"


@pytest.mark.parametrize(
    ("dates", "date"),
    [
        (b"/CreationDate(D:20240501123000+02'00')/ModDate(D:2025)", "2024-05-01T12:30:00+02:00"),
        (b"/CreationDate(D:20240501123000Z00'00')", "2024-05-01T12:30:00Z"),
        (b"/CreationDate(D:20240501123000-0330)", "2024-05-01T12:30:00-03:30"),
        (b"/CreationDate(D:202405011230)", "2024-05-01T12:30:00"),
        (b"/CreationDate(D:20240501)", "2024-05-01"),
        (b"/CreationDate(20240501)", "2024-05-01"),
        (b"/CreationDate(2024-05-01T12:30:00Z)", "2024-05-01T12:30:00Z"),
        (b"/CreationDate(D:19700101000000Z)/ModDate(D:20250102)", "2025-01-02"),
        (b"/CreationDate(D:16010101000000)", None),
        (b"/CreationDate(D:00000000000000)", None),
        (b"/CreationDate(D:29990101000000)", None),
        (b"/CreationDate(Monday)", None),
        (b"", None),
    ],
)
def test_a_pdf_is_of_the_date_at_which_it_was_created(dates, date):
    data = pdf(lines("text"), title="T").replace(b"<</Title(T)>>", b"<</Title(T)" + dates + b">>")
    assert read(data).date == date


@E10
def test_a_scan_without_text_says_so():
    with pytest.raises(Unreadable, match=r"no text: its 2 pages have only images \(a scan\); OCR is not done"):
        read(pdf(SHOW_IMAGE, SHOW_IMAGE))


@E10
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "its only page has nothing"),
        (b"10 10 100 100 re f", "its only page has only drawings"),
        (SHOW_IMAGE, "its only page has only images"),
    ],
)
def test_a_page_without_text_says_what_it_holds(content, reason):
    with pytest.raises(Unreadable, match=reason):
        read(pdf(content))


def test_a_scan_with_text_on_one_page_is_read():
    assert [section.page for section in read(pdf(SHOW_IMAGE, lines("words"))).sections] == [2]


@E10
def test_an_encrypted_pdf_says_that_it_needs_a_password():
    # A key that no password opens: PDFium asks for one before it looks at anything else.
    locked = b"/Encrypt<</Filter/Standard/V 1/R 2/P -4/O(%b)/U(%b)>>/ID[(a)(a)]" % (b"o" * 32, b"u" * 32)
    with pytest.raises(Unreadable, match="needs a password"):
        read(pdf(lines("secret")).replace(b"/Root 1 0 R", b"/Root 1 0 R" + locked))


@E10
@pytest.mark.parametrize("keep", [9, 60, 200])
def test_a_damaged_pdf_says_so(keep):
    with pytest.raises(Unreadable, match="the PDF is damaged"):
        read(pdf(lines("text"))[:keep])


def test_a_damaged_page_is_named_and_does_not_hide_the_others():
    whole = pdf(lines("first"), lines("second"))
    broken = whole.replace(b"12 0 obj\n<</Type/Page/", b"12 0 obj\n<</Type/Nope/")
    assert read(broken).text == "first\n\n[page 2 is damaged and could not be read]\n\n"


def test_threads_may_read_pdfs_at_once():
    results = []

    def read_many(name):
        data = pdf(*(lines(f"{name} {n}") for n in range(20)))
        results.extend(extract(data, name)[1].text.startswith(f"{name} 0") for _ in range(10))

    threads = [threading.Thread(target=read_many, args=(name,)) for name in ("one", "two", "three", "four")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 40


def files(extracted):
    return [(file.filename, file.data.decode()) for file in extracted.attachments]


@E10
def test_files_in_a_pdf_and_pinned_to_a_page_are_attached_and_named():
    extracted = read(with_files("a cover", [("deed.txt", "the orchard")], [("list.csv", "a,b")]))
    assert files(extracted) == [("deed.txt", "the orchard"), ("list.csv", "a,b")]
    assert extracted.text == "a cover\nAttachments: deed.txt, list.csv\n\n"
    assert extracted.omitted == {}


def test_a_file_that_is_named_twice_is_one():
    extracted = read(with_files("a cover", [("deed.txt", "x")], [("deed.txt", "x"), ("deed.txt", "y")], repeated=3))
    assert files(extracted) == [("deed.txt", "x"), ("deed.txt", "y")]


def test_files_are_found_in_a_pdf_whose_pages_show_nothing():
    assert files(read(with_files("", [("deed.txt", "x")]))) == [("deed.txt", "x")]


def test_files_beyond_those_that_one_may_have_and_those_with_no_room_are_counted():
    many = read(with_files("a cover", [(f"{number}.txt", f"text {number}") for number in range(130)]))
    assert (len(many.attachments), many.omitted) == (100, {"files": 30})
    repeated = read(with_files("a cover", [("a.txt", "x")], repeated=100_000))
    assert (len(repeated.attachments), repeated.omitted) == (1, {"files": 99_900})


def test_comments_on_a_page_follow_its_text_once_each():
    extracted = read(with_files("the text", comments=["check this", "check this", "and that"]))
    assert extracted.text == "the text\nComment: check this\nComment: and that\n\n"


def test_a_pdf_without_anything_beside_its_text_has_nothing():
    extracted = read(small_pdf("one"))
    assert (extracted.attachments, extracted.omitted) == ((), {})


RAISED = (
    "BT /F1 12 Tf 72 720 Td (Ada Ray) Tj /F1 8 Tf 5 Ts (1) Tj /F1 12 Tf 0 Ts (, Bo Lind) Tj /F1 8 Tf 5 Ts (2) Tj ET"
)
LOWERED = "BT /F1 12 Tf 72 720 Td (CO) Tj /F1 8 Tf -3 Ts (2) Tj /F1 12 Tf 0 Ts ( and H) Tj /F1 8 Tf -3 Ts (2) Tj /F1 12 Tf 0 Ts (O) Tj ET"


@pytest.mark.parametrize(("stream", "text"), [(RAISED, "Ada Ray1, Bo Lind2"), (LOWERED, "CO2 and H2O")])
def test_letters_set_higher_or_lower_break_no_line(stream, text):
    assert read(with_files(stream)).text.strip() == text


def test_lines_below_each_other_stay_lines_whatever_their_size():
    stream = "BT /F1 12 Tf 14 TL 72 720 Td (one) Tj T* (two) Tj /F1 7 Tf 9 TL T* (three) Tj ET"
    assert read(with_files(stream)).text.split() == ["one", "two", "three"]
    assert read(with_files(stream)).text.count("\n") == 4


def test_what_was_filled_into_a_form_is_read_where_it_stands():
    assert read(filled_form("Name:", "Petra Quill")).text.strip() == "Name: Petra Quill"
