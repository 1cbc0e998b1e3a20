"""What Outlook packs into winmail.dat: the message's rich text, its files, messages inside, appointments."""

from __future__ import annotations

import struct
from email.message import EmailMessage

import pytest

from kb.api.errors import Unreadable
from kb.formats.extract import extract
from tests.support.outlook import Embedded, attribute, file, file_with, message, properties, rich_text, tnef

pytestmark = pytest.mark.requirement("E-10")

SUBJECT, BODY, RTF, HTML, TO_NAME, TO_ADDRESS, ROLE, DATA, LONG_NAME, CONTENT_ID = (
    *(0x0037, 0x1000, 0x1009, 0x1013, 0x3001, 0x39FE, 0x0C15, 0x3701, 0x3707, 0x3712),
)
PNG = b"\x89PNG\r\n\x1a\n" + bytes(60)


def mail(packed, text=" \n", name="winmail.dat", kind="ms-tnef"):
    outer = EmailMessage()
    outer["From"], outer["Subject"], outer["Message-ID"] = "a@example.org", "Outer", "<1@example.org>"
    outer.set_content(text)
    outer.add_attachment(packed, maintype="application", subtype=kind, filename=name)
    return extract(outer.as_bytes(), "m.eml")[1]


@pytest.mark.parametrize(
    "body",
    [
        {BODY: "The oars are in the shed."},
        {HTML: b"<p>The oars are in <b>the shed</b>.</p>"},
        {RTF: rich_text("The oars are in the shed.")},
    ],
    ids=["plain", "html", "rich"],
)
def test_a_body_that_is_packed_is_the_body_of_the_message(body):
    extracted = mail(message(body))
    assert "The oars are in the shed." in extracted.text
    assert (extracted.attachments, dict(extracted.omitted)) == ((), {})


def test_a_body_that_both_have_is_there_once_and_one_that_says_more_is_added():
    words = "The oars are in the green shed behind the jetty at the lake"
    assert mail(message({BODY: words}), text=words).text.count("oars") == 1
    assert "Ask Jonas" in mail(message({BODY: f"{words}. Ask Jonas for keys and lamps"}), text=words).text


def test_files_in_it_are_attachments_of_the_message():
    named = file_with({DATA: b"The lease ends.", LONG_NAME: "A long name of a lease.txt"})
    extracted = mail(message({}, file("lease.txt", b"The lease ends in March."), named))
    assert [(each.filename, each.data) for each in extracted.attachments] == [
        ("lease.txt", b"The lease ends in March."),
        ("A long name of a lease.txt", b"The lease ends."),
    ]
    assert "winmail.dat" not in extracted.text


def test_a_message_inside_is_read_with_its_own_files_however_deep():
    packed = message({SUBJECT: "Innermost", BODY: "Third words"}, file("deep.txt", b"deep words"))
    for depth in ("Second", "First"):
        packed = message({SUBJECT: depth, BODY: f"{depth} words"}, file_with({DATA: Embedded(packed)}))
    texts = []
    while True:
        doc_type, extracted = extract(packed, "winmail.dat")
        texts.append((doc_type, extracted.title, extracted.text.splitlines()[-1]))
        [inner] = extracted.attachments
        if inner.filename == "deep.txt":
            break
        packed = inner.data
    assert texts == [
        ("tnef", "First", "First words"),
        ("tnef", "Second", "Second words"),
        ("tnef", "Innermost", "Third words"),
    ]


def test_by_itself_it_has_people_and_a_date():
    sent = (116444736000000000 + 1709287200 * 10_000_000).to_bytes(8, "little")
    head = struct.pack("<I", 1) + struct.pack("<HH", 0x0040, 0x0039) + sent
    people = struct.pack("<I", 1) + properties({TO_NAME: "Ben", TO_ADDRESS: "ben@example.org", ROLE: 1})
    packed = tnef(
        attribute(1, 0x9003, head),
        attribute(1, 0x9004, people),
        attribute(1, 0x8004, b"Keys\0"),
        attribute(1, 0x800C, b"ok\0"),
    )
    _, extracted = extract(packed, "winmail.dat")
    assert extracted.title == "Keys"
    assert extracted.date == "2024-03-01 10:00:00 UTC"
    assert "To: Ben <ben@example.org>" in extracted.text


def test_an_appointment_says_when_and_where():
    named = bytes(16) + struct.pack("<II", 0, 0x8208)
    place = "Jetty\0".encode("utf-16-le")
    found = struct.pack("<IHH", 1, 0x001F, 0x8001) + named + struct.pack("<II", 1, len(place)) + place
    starts, ends = (struct.pack("<7H", 2026, 3, 2, hour, 30, 0, 1) for hour in (9, 10))
    packed = tnef(attribute(1, 0x9003, found), attribute(1, 0x0006, starts), attribute(1, 0x0007, ends))
    text = mail(packed).text
    assert "When: 2026-03-02 09:30:00 to 2026-03-02 10:30:00" in text
    assert "Where: Jetty" in text


def test_what_cannot_be_unpacked_fails_nothing_and_is_said():
    for data in (b"no package at all", tnef(), tnef(attribute(1, 0x9003, b"\xff" * 40))):
        extracted = mail(data, text="See the file.")
        assert "Attachments without text: winmail.dat" in extracted.text
        assert (extracted.attachments, dict(extracted.omitted)) == ((), {"files": 1})
    with pytest.raises(Unreadable, match="empty or damaged"):
        extract(tnef(), "winmail.dat")


def test_an_object_of_another_program_is_counted_and_no_file():
    extracted = mail(message({BODY: "See the drawing"}, file_with({0x3705: 6, DATA: b"\1\2\3", LONG_NAME: "Drawing"})))
    assert (extracted.attachments, dict(extracted.omitted)) == ((), {"objects": 1})


def test_one_under_another_name_and_type_is_found_by_its_beginning():
    extracted = mail(message({BODY: "Found anyway"}), name="WINMAIL.DAT", kind="octet-stream")
    assert "Found anyway" in extracted.text


def test_counts_that_lie_take_no_time_and_what_was_cut_off_is_read_as_far_as_it_goes():
    lies = struct.pack("<I", 0xFFFFFFFF) + struct.pack("<HHII", 0x101F, 0x1000, 0xFFFFFFFF, 0xFFFFFFFF)
    mail(tnef(attribute(1, 0x9003, lies), attribute(1, 0x9004, lies)))
    whole = message({BODY: "The oars"}, file("a.txt", b"words " * 50))
    for size in range(len(whole)):
        mail(whole[:size])
    [cut] = mail(whole[:-100]).attachments
    assert cut.data.startswith(b"words words")


def test_of_a_flood_of_files_the_first_are_taken_and_the_others_counted():
    extracted = mail(message({BODY: "words"}, *(file(f"{number}.txt", b"x") for number in range(1500))))
    assert len(extracted.attachments) + extracted.omitted["files"] == 1500
    assert len(extracted.attachments) <= 1000


def test_an_outlook_package_with_a_damaged_body_keeps_its_files():
    packed = message({SUBJECT: "Plan", RTF: b"short"}, file_with({LONG_NAME: "plan.txt", DATA: b"The plan."}))
    _, extracted = extract(packed, "winmail.dat")
    assert [file.filename for file in extracted.attachments] == ["plan.txt"]
    assert extracted.omitted == {"parts": 1}


def test_a_picture_that_a_package_has_for_its_body_and_no_body_shows_is_named():
    photo = file_with({LONG_NAME: "photo.png", DATA: PNG, CONTENT_ID: "p1"})
    _, extracted = extract(message({SUBJECT: "Plan", BODY: "See the photo"}, photo), "winmail.dat")
    assert "Attachments without text: photo.png" in extracted.text
