"""Messages in messages, whatever encoding hides them, and messages as other programs keep them."""

from __future__ import annotations

import quopri
from base64 import encodebytes

import pytest

from kb.formats.extract import extract

pytestmark = pytest.mark.requirement("E-10")

INNER = (
    "From: Ilse <ilse@example.org>\nSubject: Compost rota\nDate: Sun, 1 Mar 2026 08:00:00 +0000\n"
    'Content-Type: text/plain; charset="utf-8"\n\n{}\n'
)
LONG = "The compost heap of all gardeners, which lies between the two long hedges, is turned by Ilse, und zwar früh."


def outer(inner, encoding, name='; name="rota.eml"', kind="message/rfc822", boundary="b"):
    coded = {"base64": encodebytes, "quoted-printable": quopri.encodestring}.get(encoding, bytes)(inner)
    return (
        (
            f"From: a@example.org\nSubject: Fwd\nMessage-ID: <1@x>\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary={boundary}"
            f"\n\n--{boundary}\nContent-Type: text/plain\n\nSee below.\n--{boundary}\nContent-Type: {kind}{name}\n"
            f"Content-Disposition: attachment\nContent-Transfer-Encoding: {encoding}\n\n"
        ).encode()
        + coded
        + f"\n--{boundary}--\n".encode()
    )


def attached(data):
    _, extracted = extract(data, "m.eml")
    [inner] = extracted.attachments
    return inner


@pytest.mark.parametrize("ends", [b"\n", b"\r\n"])
@pytest.mark.parametrize("encoding", ["base64", "quoted-printable", "8bit", "7bit"])
def test_a_message_in_a_message_is_read_however_it_is_encoded(encoding, ends):
    inner = attached(outer(INNER.format(LONG).encode(), encoding).replace(b"\n", ends))
    doc_type, extracted = extract(inner.data, inner.filename)
    assert (inner.filename, doc_type, extracted.title) == ("rota.eml", "eml", "Compost rota")
    assert LONG in extracted.text


def test_without_a_name_it_is_called_after_its_own_subject():
    assert attached(outer(INNER.format(LONG).encode(), "base64", name="")).filename == "Compost rota.eml"
    assert attached(outer(INNER.format(LONG).encode(), "base64", name='; name="Fwd rota"')).filename == "Fwd rota.eml"


def test_encodings_within_encodings_are_followed():
    data = INNER.format(LONG).encode()
    for boundary, encoding in (("x", "base64"), ("y", "quoted-printable"), ("z", "base64")):
        data = outer(data, encoding, boundary=boundary)
    for _ in range(3):
        data = attached(data).data
    assert LONG in extract(data, "rota.eml")[1].text


def test_an_encoding_that_is_said_but_not_there_changes_nothing():
    source = INNER.format("A sign =41 is a sign, and a=b, too").encode()
    assert b"=41 is a sign" in attached(outer(source, "8bit").replace(b"8bit", b"quoted-printable")).data
    assert b"=41 is a sign" in attached(outer(source, "8bit").replace(b"8bit", b"base64")).data


def test_an_encoding_that_is_there_but_not_said_is_found():
    source = outer(INNER.format(LONG).encode(), "base64").replace(b"Content-Transfer-Encoding: base64\n\nR", b"\nR")
    assert LONG in extract(attached(source).data, "rota.eml")[1].text


def apple(message):
    return (
        f"{len(message):<10}\n".encode()
        + message
        + b'<?xml version="1.0"?><plist><dict><key>flags</key></dict></plist>'
    )


@pytest.mark.parametrize("name", ["3.emlx", "3.partial.emlx", "message", "3.eml"])
def test_a_message_of_apple_mail_is_one_without_what_mail_put_around_it(name):
    doc_type, extracted = extract(apple(outer(INNER.format(LONG).encode(), "base64")), name)
    assert (doc_type, extracted.title) == ("eml", "Fwd")
    assert "plist" not in extracted.text
    assert [each.filename for each in extracted.attachments] == ["rota.eml"]


def test_a_file_that_apple_mail_keeps_apart_is_named_and_counted():
    message = outer(b"", "base64", '; name="plan.pdf"', "application/pdf").replace(
        b"Content-Disposition", b"X-Apple-Content-Length: 9000\nContent-Disposition"
    )
    _, extracted = extract(apple(message), "3.partial.emlx")
    assert "Attachments without text: plan.pdf" in extracted.text
    assert (extracted.attachments, dict(extracted.omitted)) == ((), {"files": 1})
