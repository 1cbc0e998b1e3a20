"""What programs for mail do that the rules do not foresee, and messages in messages, whatever encoding hides them."""

from __future__ import annotations

import quopri
from base64 import encodebytes

import pytest

from kb.formats.extract import extract
from tests.support.cms import element, signed, streamed

pytestmark = pytest.mark.requirement("E-10")

HEAD = "From: a@example.org\nSubject: Tar\nMessage-ID: <1@x>\nMIME-Version: 1.0\n"


def read(source, name="m.eml"):
    return extract(source if isinstance(source, bytes) else (HEAD + source).encode(), name)[1]


def multipart(kind, *parts):
    return f"Content-Type: multipart/{kind}; boundary=b\n\n" + "".join(f"--b\n{part}\n" for part in parts) + "--b--\n"


@pytest.mark.parametrize(("write", "pieces"), [(element, 1), (streamed, 1), (streamed, 3)])
def test_mail_that_is_wrapped_in_its_signature_is_read(write, pieces):
    inner = multipart(
        "mixed", "Content-Type: text/plain\n\nThe keeper is on leave.", "Content-Type: text/csv; name=a.csv\n\n1,2"
    )
    coded = encodebytes(signed(inner.encode(), write, pieces)).decode()
    head = "Content-Type: application/pkcs7-mime; smime-type=signed-data; name=smime.p7m\nContent-Transfer-Encoding: base64\n\n"
    extracted = read(head + coded)
    assert "The keeper is on leave." in extracted.text
    assert [each.filename for each in extracted.attachments] == ["a.csv"]


def test_a_file_that_is_wrapped_in_its_signature_is_read():
    doc_type, extracted = extract(signed(b"# The lease\n\nIt ends in March.\n"), "lease.md.p7m")
    assert (doc_type, extracted.title) == ("markdown", "The lease")


def test_a_file_that_stands_in_the_text_in_uuencode_is_an_attachment():
    extracted = read("\nSee below.\n\nbegin 644 plan.txt\n#86)C\n`\nend\nBye\n")
    assert [(each.filename, each.data) for each in extracted.attachments] == [("plan.txt", b"abc")]
    assert extracted.text.endswith("See below.\n\n[plan.txt]\nBye\n")
    assert "begin 644 at the end" in read("\nWe begin 644 at the end\nbegin 644 the work\n").text


def test_lines_that_flow_are_joined_and_quotes_and_signatures_stay():
    head = "Content-Type: text/plain; format=flowed; delsp={}\n\n"
    assert read(head.format("yes") + "The ferry lea \nves.\n").text.endswith("\nThe ferry leaves.\n")
    text = "The ferry \nleaves.\n> a quote \n> goes on\nsaid \n-- \nAnn\n"
    assert read(head.format("no") + text).text.endswith("\nThe ferry leaves.\n> a quote goes on\nsaid \n-- \nAnn\n")


@pytest.mark.parametrize(
    "part",
    [
        'Content-Type: text/plain; name="plan.pdf"\nX-Mozilla-Altered: AttachmentDeleted; date="Mon"\n\nYou deleted an attachment',
        'Content-Type: application/pdf; name="plan.pdf"\nX-Mozilla-External-Attachment-URL: file:///plan.pdf\n\nYou detached it',
        'Content-Type: message/external-body; name="plan.pdf"; access-type=URL\n\nContent-Type: application/pdf\n\n',
    ],
)
def test_a_file_that_was_taken_out_of_a_message_is_named_and_counted_and_no_document(part):
    extracted = read(multipart("mixed", "Content-Type: text/plain\n\nSee the plan.", part))
    assert "Attachments without text: plan.pdf" in extracted.text
    assert (extracted.attachments, dict(extracted.omitted)) == ((), {"files": 1})


def test_versions_for_other_devices_are_no_attachments_and_an_invitation_is_one():
    versions = [
        f"Content-Type: {kind}\n\n<p>Same words</p>" for kind in ("text/x-amp-html", "text/watch-html", "text/html")
    ]
    extracted = read(
        multipart(
            "alternative",
            "Content-Type: text/plain\n\nSame words",
            *versions,
            "Content-Type: text/calendar\n\nBEGIN:VCALENDAR",
        )
    )
    assert extracted.text.count("Same words") == 1
    assert [each.filename for each in extracted.attachments] == ["attachment.ics"]


def test_a_note_of_joplins_has_its_date_and_title_and_none_of_its_fields():
    fields = "id: 0123456789abcdef0123456789abcdef\nparent_id: \ncreated_time: 2024-05-01T10:00:00.000Z\nis_todo: 0\ntype_: {}"
    note = f"Boat paint\n\nTwo coats of red lead.\n\n{fields.format(1)}"
    extracted = read(note.encode(), "0123.md")
    assert (extracted.title, extracted.date) == ("Boat paint", "2024-05-01T10:00:00.000Z")
    assert extracted.text == "Boat paint\n\nTwo coats of red lead.\n"
    assert "type_: 5" in read(f"a tag\n\n{fields.format(5)}".encode(), "0124.md").text


def test_tasks_in_a_note_of_evernotes_are_boxes_to_tick():
    task = "<task><title>Buy tar</title><taskStatus>{}</taskStatus><dueDate>20260301T000000Z</dueDate></task>"
    note = f"<note><title>T</title><content>&lt;en-note&gt;a&lt;/en-note&gt;</content>{task.format('open')}{task.format('completed')}</note>"
    extracted = read(f"<en-export>{note}</en-export>".encode(), "n.enex")
    assert extracted.text.endswith("[ ] Buy tar (due 2026-03-01)\n[x] Buy tar (due 2026-03-01)\n")


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
