"""Of the files that come with mail none is lost without a word, however the message refers to it."""

from __future__ import annotations

import struct
from email.message import EmailMessage
from email.mime.image import MIMEImage
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText

import pytest

from kb.formats.extract import extract
from tests.support.ole import ole
from tests.support.outlook import file_with, message

PNG = b"\x89PNG\r\n\x1a\n" + bytes(60)
LONG_NAME, DATA, CONTENT_ID, METHOD, SUBJECT, PLAIN, RICH = 0x3707, 0x3701, 0x3712, 0x3705, 0x0037, 0x1000, 0x1009


def sent(body, kind, headers):
    """A message with a picture whose part has these headers."""
    whole = MIMEMultipart("related")
    whole["From"], whole["Subject"] = "a@example.org", "Trip"
    whole.attach(MIMEText(body, kind))
    picture = MIMEImage(PNG, "png")
    for name, value in headers.items():
        picture[name] = value
    whole.attach(picture)
    return extract(whole.as_bytes(), "m.eml", pictures=True)[1]


INLINE = {"Content-Disposition": 'inline; filename="IMG_1.png"'}


@pytest.mark.parametrize(
    ("body", "kind", "headers", "is_named"),
    [
        ("See the photo.", "plain", INLINE, True),
        ("See the photo.", "plain", INLINE | {"Content-ID": "<p1@x>"}, True),
        ("<p>See the photo.</p>", "html", INLINE | {"Content-ID": "<p1@x>"}, True),
        ("<p>See <img src='cid:p1@x'></p>", "html", INLINE | {"Content-ID": "<p1@x>"}, False),
        ("<p>See <img src='cid:p1%40x'></p>", "html", INLINE | {"Content-ID": "<p1@x>"}, False),
        ("<p>See <img src='https://x/p.png'></p>", "html", INLINE | {"Content-Location": "https://x/p.png"}, False),
    ],
)
def test_a_picture_that_no_body_shows_is_a_file_like_any_other(body, kind, headers, is_named):
    extracted = sent(body, kind, headers)
    assert ("Attachments without text: IMG_1.png" in extracted.text) == is_named
    assert [picture.name for picture in extracted.pictures] == (["IMG_1.png"] if is_named else [])


def test_base64_in_a_plain_body_is_a_few_words():
    mail = EmailMessage()
    mail["From"], mail["Subject"] = "a@example.org", "Fwd"
    mail.set_content("It was:\n> iVBORw0KGgo" + "\n> ".join(["Ab9" * 24] * 40) + "\n\nBo\n")
    text = extract(mail.as_bytes(), "m.eml")[1].text
    assert "Ab9Ab9" not in text
    assert "[picture: image/png" in text
    assert text.endswith("Bo\n")


def stored(values, numbers=None, header=8):
    """A folder of an Outlook message: texts by their numbers, and whole numbers."""
    fixed = b"".join(struct.pack("<HHIQ", 3, number, 0, value) for number, value in (numbers or {}).items())
    streams = {f"__substg1.0_{number:04X}001F": text.encode("utf-16-le") for number, text in values.items()}
    return streams | {"__properties_version1.0": bytes(header) + fixed}


def test_an_object_in_an_outlook_message_is_named_and_counted():
    drawing = stored({LONG_NAME: "Drawing"}, {METHOD: 6}) | {"__substg1.0_3701000D": {"CONTENTS": b"x"}}
    data = ole(
        stored({SUBJECT: "Plan", PLAIN: "See the drawing"}, header=32) | {"__attach_version1.0_#00000000": drawing}
    )
    _, extracted = extract(data, "a.msg")
    assert (extracted.attachments, extracted.omitted) == ((), {"objects": 1})
    assert "Attachments without text: Drawing\n" in extracted.text


def test_a_message_in_an_outlook_message_keeps_its_pictures_and_the_names_of_other_files():
    photo = stored({LONG_NAME: "photo.png"}) | {f"__substg1.0_{DATA:04X}0102": PNG}
    voice = stored({LONG_NAME: "voice.mp3"}) | {f"__substg1.0_{DATA:04X}0102": b"ID3" + bytes(40)}
    drawing = stored({LONG_NAME: "Drawing"}, {METHOD: 6})
    inner = stored({SUBJECT: "Inner", PLAIN: "words"}, header=24)
    inner |= {f"__attach_version1.0_#0000000{number}": each for number, each in enumerate((photo, voice, drawing))}
    outer = stored({SUBJECT: "Outer", PLAIN: "words"}, header=32)
    outer["__attach_version1.0_#00000000"] = stored({}) | {"__substg1.0_3701000D": inner}
    _, extracted = extract(ole(outer), "a.msg")
    assert extracted.omitted == {"objects": 1}
    [file] = extracted.attachments
    _, read = extract(file.data, file.filename, pictures=True)
    assert "Attachments without text: photo.png, voice.mp3, Drawing\n" in read.text
    assert [(picture.name, picture.read()) for picture in read.pictures] == [("photo.png", PNG)]


def test_an_outlook_package_with_a_damaged_body_keeps_its_files():
    packed = message({SUBJECT: "Plan", RICH: b"short"}, file_with({LONG_NAME: "plan.txt", DATA: b"The plan."}))
    _, extracted = extract(packed, "winmail.dat")
    assert [file.filename for file in extracted.attachments] == ["plan.txt"]
    assert extracted.omitted == {"parts": 1}


def test_a_picture_that_a_package_has_for_its_body_and_no_body_shows_is_named():
    photo = file_with({LONG_NAME: "photo.png", DATA: PNG, CONTENT_ID: "p1"})
    _, extracted = extract(message({SUBJECT: "Plan", PLAIN: "See the photo"}, photo), "winmail.dat")
    assert "Attachments without text: photo.png" in extracted.text
