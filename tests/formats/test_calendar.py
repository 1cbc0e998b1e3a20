"""Calendars and contacts: unfolded, and said as people say it."""

from __future__ import annotations

from base64 import b64encode

import pytest

from kb.formats.extract import extract


def ics(*lines, name="c.ics", kind="VEVENT", more=()):
    source = ["BEGIN:VCALENDAR", "VERSION:2.0", *more, f"BEGIN:{kind}", *lines, f"END:{kind}", "END:VCALENDAR", ""]
    return extract("\r\n".join(source).encode(), name)


def test_a_line_that_is_folded_amid_a_word_or_a_letter_is_whole():
    doc_type, extracted = ics("SUMMARY:Inspection of the embank\r\n ment", "DESCRIPTION:Jonas\\, the staff\\nand lunch")
    assert (doc_type, extracted.title) == ("ics", "Inspection of the embankment")
    assert extracted.text.endswith("Jonas, the staff\nand lunch\n")
    cut = "BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:Gr\u00fc\u00dfe\nEND:VEVENT\nEND:VCALENDAR\n".encode()
    cut = cut.replace("\u00fc".encode(), b"\xc3\n \xbc")
    assert extract(cut, "c.ics")[1].title == "Gr\u00fc\u00dfe"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["DTSTART:20260614T090000Z", "DTEND:20260614T103000Z"], "When: 2026-06-14 09:00 UTC to 2026-06-14 10:30 UTC"),
        (
            ["DTSTART;TZID=Europe/Oslo:20260614T090000", "DTEND;TZID=Europe/Oslo:20260614T100000"],
            "When: 2026-06-14 09:00 to 2026-06-14 10:00 (Europe/Oslo)",
        ),
        (["DTSTART;VALUE=DATE:20260614", "DTEND;VALUE=DATE:20260615"], "When: 2026-06-14"),
        (["DTSTART;VALUE=DATE:20260614", "DTEND;VALUE=DATE:20260617"], "When: 2026-06-14 to 2026-06-16"),
        (["DTSTART:20260614T090000", "DURATION:PT1H30M"], "When: 2026-06-14 09:00 to 2026-06-14 10:30"),
        (["DTSTART;VALUE=DATE:20260614", "DURATION:P2D"], "When: 2026-06-14 to 2026-06-15"),
        (
            ["RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,FR;UNTIL=20261231"],
            "Repeats: weekly, every 2 on Monday, Friday until 2026-12-31",
        ),
        (["RRULE:FREQ=MONTHLY;BYDAY=-1SU;COUNT=3"], "Repeats: monthly on the last Sunday 3 times"),
        (["RRULE:FREQ=MONTHLY;BYDAY=1MO,+3MO"], "Repeats: monthly on the first Monday, the third Monday"),
        (["RRULE:FREQ=MONTHLY;BYMONTHDAY=15,-1"], "Repeats: monthly on day 15, the last day"),
        (["RRULE:FREQ=MONTHLY;BYDAY=FR;BYSETPOS=-2"], "Repeats: monthly on the second to last Friday"),
        (["RRULE:FREQ=MONTHLY;BYDAY=MO,FR;BYSETPOS=1"], "Repeats: monthly on the first of Monday, Friday"),
        (["RRULE:FREQ=YEARLY;BYMONTH=4,10;BYMONTHDAY=1"], "Repeats: yearly on day 1 in April, October"),
        (["RRULE:FREQ=YEARLY;BYMONTH=13;BYDAY=;BYSETPOS=x"], "Repeats: yearly"),
        (["LOCATION:Weir\\; north bank"], "Where: Weir; north bank"),
        (['ORGANIZER;CN="Quill, Petra":mailto:petra@x.example'], "Organizer: Quill, Petra <petra@x.example>"),
        (["ATTENDEE;CN=Jonas;PARTSTAT=DECLINED:mailto:j@x.example"], "People: Jonas <j@x.example> (declined)"),
        (["STATUS:CANCELLED"], "Status: Cancelled"),
        (["EXDATE:20260621T090000Z,20260628T090000Z"], "Except: 2026-06-21 09:00 UTC, 2026-06-28 09:00 UTC"),
        (["DUE;VALUE=DATE:20260614"], "Due: 2026-06-14"),
        (["DTSTART:no date"], "When: no date"),
        (["BEGIN:VALARM", "DESCRIPTION:Remember the milk", "END:VALARM"], "Reminder: Remember the milk"),
    ],
)
def test_dates_places_and_people_are_said(lines, said):
    assert said in ics("SUMMARY:Weir", *lines)[1].text.splitlines()


def test_each_appointment_stands_under_its_title_and_what_programs_need_is_left_out():
    more = [
        "X-WR-CALNAME:Club",
        "BEGIN:VTIMEZONE",
        "TZID:X",
        "BEGIN:DAYLIGHT",
        "DTSTART:19700101T000000",
        "END:DAYLIGHT",
        "END:VTIMEZONE",
    ]
    second = [
        "END:VEVENT",
        "BEGIN:VTODO",
        "SUMMARY:Tar the boat",
        "BEGIN:VALARM",
        "DESCRIPTION:Event reminder",
        "END:VALARM",
        "END:VTODO",
        "BEGIN:VEVENT",
        "SUMMARY:Row",
    ]
    _, extracted = ics("SUMMARY:Meet", *second, more=more)
    assert extracted.title == "Club"
    assert [section.heading for section in extracted.sections] == [("Meet",), ("Tar the boat",), ("Row",)]
    assert "1970" not in extracted.text
    assert "reminder" not in extracted.text


def test_a_description_that_is_markup_is_read_as_such():
    _, extracted = ics("SUMMARY:Meet", 'DESCRIPTION:<b>Bring</b> oars<br>and <a href="https://x.example/m">a map</a>')
    assert "Bring oars\nand a map (https://x.example/m)" in extracted.text


def test_a_file_in_a_calendar_is_an_attachment():
    data = b64encode(b"The plan of the weir.").decode()
    _, extracted = ics(
        "SUMMARY:M", f"ATTACH;ENCODING=BASE64;VALUE=BINARY;FILENAME=plan.txt:{data[:20]}\r\n {data[20:]}"
    )
    assert [(each.filename, each.data) for each in extracted.attachments] == [("plan.txt", b"The plan of the weir.")]
    assert data[:20] not in extracted.text


def test_a_calendar_of_the_nineties_is_read_whatever_it_is_called():
    doc_type, extracted = ics("SUMMARY;ENCODING=QUOTED-PRINTABLE;CHARSET=UTF-8:Caf=C3=\r\n=A9 am Ufer", name="old.txt")
    assert (doc_type, extracted.title) == ("ics", "Caf\u00e9 am Ufer")


def test_a_calendar_with_nothing_in_it_is_the_text_it_is():
    assert extract(b"BEGIN:VCALENDAR\nVERSION:2.0\nEND:VCALENDAR\n", "c.ics")[1].text.startswith("BEGIN")


def test_contacts_are_said_with_their_numbers_and_addresses():
    picture = b64encode(bytes(3000)).decode()
    card = (
        "BEGIN:VCARD\nVERSION:3.0\nFN:Petra Quill\nN:Quill;Petra;;Dr.;\nORG:Quill & Sons;Boats\nTEL;TYPE=CELL,VOICE:+47 1 23\n"
        "item1.EMAIL;TYPE=INTERNET:petra@x.example\nitem1.X-ABLabel:_$!<Boathouse>!$_\nADR;TYPE=home:;;Quay 3;Lindholm;;0150;Norway\n"
        f"NOTE:Knows\\, where the oars\n  are.\nPHOTO;ENCODING=b;TYPE=JPEG:{picture}\nEND:VCARD\n"
    )
    doc_type, extracted = extract(card.encode(), "people.vcf")
    assert (doc_type, extracted.title) == ("vcf", "Petra Quill")
    assert extracted.text == (
        "Petra Quill\n\nFull name: Dr. Petra Quill\nOrganization: Quill & Sons, Boats\nPhone (cell): +47 1 23\nEmail (Boathouse): petra@x.example\n"
        "Address (home): Quay 3, Lindholm, 0150, Norway\nNote: Knows, where the oars are.\nPhoto: [picture: image/jpeg, 3 kB]\n"
    )


def test_a_contact_of_the_nineties_is_called_by_the_parts_of_its_name():
    card = "BEGIN:VCARD\nVERSION:2.1\nN;CHARSET=UTF-8;QUOTED-PRINTABLE:M=C3=BCller;J=C3=B6rg\nTEL;HOME;VOICE:123\nEND:VCARD\n"
    _, extracted = extract(card.encode(), "old.vcf")
    assert extracted.text == "J\u00f6rg M\u00fcller\n\nPhone (home): 123\n"


def test_a_calendar_in_utf_16_keeps_the_lines_that_go_on():
    source = "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nSUMMARY:Inspection of the embank\r\n ment\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
    assert extract(source.encode("utf-16"), "c.ics")[1].title == "Inspection of the embankment"


def test_a_line_that_is_not_a_property_is_more_of_the_one_before_it():
    _, extracted = ics("SUMMARY:Meet", "DESCRIPTION:The oars", "are in the shed.", "", "Bring a lamp")
    assert "The oars\nare in the shed.\n\nBring a lamp" in extracted.text


def test_a_component_in_another_takes_nothing_from_it():
    lines = [
        "SUMMARY:Regatta",
        "BEGIN:VLOCATION",
        "NAME:Weir",
        "END:VLOCATION",
        "LOCATION:North bank",
        "DTSTART:20260614",
    ]
    _, extracted = ics(*lines)
    assert extracted.text == "Regatta\n\nWhen: 2026-06-14\nWhere: North bank\n\nLocation\n\nName: Weir\n"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            ["FREEBUSY;FBTYPE=BUSY:20260614T090000Z/PT1H,20260615T090000Z/20260615T100000Z"],
            "Busy: 2026-06-14 09:00 UTC to 2026-06-14 10:00 UTC, 2026-06-15 09:00 UTC to 2026-06-15 10:00 UTC",
        ),
        (["PRIORITY:1"], "Priority: 1"),
        (["PERCENT-COMPLETE:40"], "Percent complete: 40"),
        (["RECURRENCE-ID:20260614T090000Z"], "Instead of: 2026-06-14 09:00 UTC"),
        (["X-BOAT-NUMBER:17"], "Boat number: 17"),
        (["DESCRIPTION:\\n", "X-ALT-DESC;FMTTYPE=text/html:<p>Bring oars</p>"], "Bring oars"),
    ],
)
def test_properties_that_are_rare_or_of_one_program_are_said(lines, said):
    assert said in ics("SUMMARY:Weir", *lines)[1].text.splitlines()


def test_what_only_programs_need_is_not_said():
    lines = ["UID:1234", "DTSTAMP:20260101T000000Z", "SEQUENCE:4", "TRANSP:OPAQUE", "X-MICROSOFT-CDO-BUSYSTATUS:BUSY"]
    assert ics("SUMMARY:Weir", *lines)[1].text == "Weir\n"


def test_a_damaged_file_in_a_calendar_is_counted():
    _, extracted = ics("SUMMARY:M", "ATTACH;ENCODING=BASE64;VALUE=BINARY:QUJ")
    assert (extracted.attachments, extracted.omitted) == ((), {"files": 1})


def test_contacts_say_what_is_rare_or_of_one_program():
    card = (
        "BEGIN:VCARD\nVERSION:3.0\nFN:Bo\nN:Quill;Petra Boel;;;\nX-SPOUSE:Jonas\nX-EVOLUTION-MANAGER:Ada\nGENDER:F\n"
        "LABEL;TYPE=home:Quay 3\\nLindholm\nUID:1\nREV:2\nSOUND;ENCODING=b:QUJD\nEND:VCARD\n"
    )
    assert extract(card.encode(), "a.vcf")[1].text == (
        "Bo\n\nFull name: Petra Boel Quill\nSpouse: Jonas\nManager: Ada\nGender: F\nLabel (home): Quay 3 Lindholm\n"
        "Sound: [file: application/octet-stream, 3 B]\n"
    )


def test_a_card_in_a_card_leaves_the_rest_to_the_outer_one():
    card = "BEGIN:VCARD\nVERSION:2.1\nFN:Ada\nAGENT:\nBEGIN:VCARD\nFN:Bo\nTEL:1\nEND:VCARD\nTEL:2\nEND:VCARD\n"
    text = extract(card.encode(), "a.vcf")[1].text
    assert text == "Ada\n\nPhone: 2\n\nBo\n\nPhone: 1\n"


@pytest.mark.parametrize("line", ["FN;A=b" + ";A=b" * 20_000 + ":x", "NOTE;QUOTED-PRINTABLE:a" + "=\nb" * 20_000])
def test_a_line_of_any_length_is_read_in_a_moment(line):
    data = f"BEGIN:VCARD\nFN:a\n{line}\nEND:VCARD\n".encode()
    assert extract(data, "a.vcf")[1].text


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("SOUND;X-IRMC-N:;;;;", ""),
        (f"PHOTO;DATA:IMAGE/JPEG;BASE64,{b64encode(bytes(3000)).decode()}", "Photo: [picture: image/jpeg, 3 kB]\n"),
        ("NOTE:first\nsecond", "Note: first\nsecond\n"),
        ("NOTE:where the\n  oars are", "Note: where the oars are\n"),
    ],
)
def test_lines_of_contacts_that_programs_write_wrongly_are_said_as_far_as_they_say_anything(line, said):
    card = f"BEGIN:VCARD\nVERSION:3.0\nFN:Bo\n{line}\nEND:VCARD\n"
    assert extract(card.encode(), "a.vcf")[1].text == ("Bo\n\n" + said if said else "Bo\n")


def test_what_stands_in_a_calendar_outside_of_appointments_is_said():
    _, extracted = ics("SUMMARY:Row", more=["X-WR-CALDESC:Dates of the club", "X-CLUB-HOUSE:Quay 3", "METHOD:PUBLISH"])
    assert extracted.text == "Club house: Quay 3\n\nDates of the club\n\nRow\n"
    misspelt = ["NoneBEGIN:VEVENT", "SUMMARY:Lost", "LOCATION:Weir", "END:VEVENT"]
    assert "Lost\n\nWhere: Weir\n" in ics("SUMMARY:Row", more=misspelt)[1].text
