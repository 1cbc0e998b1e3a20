"""What programs for mail do that the rules do not foresee, or that few others do."""

from __future__ import annotations

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
