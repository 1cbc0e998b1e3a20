"""What people put into a PDF beside its text: files, comments, and letters that are set higher or lower."""

import pytest

from tests.support.pdf import filled_form, pdf, with_files
from tests.support.reading import reader

E10 = pytest.mark.requirement("E-10")
read = reader("a.pdf")


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
    extracted = read(pdf("one"))
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
