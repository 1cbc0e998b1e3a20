"""Messages: headers, the body a person sees, the files that came with them."""

import struct
from email.message import EmailMessage

import pytest

from kb.api.errors import Unreadable
from kb.formats.extract import extract
from tests.support.ole import ole

pytestmark = pytest.mark.requirement("E-10")


@pytest.fixture
def read():
    def read(data, name="message"):
        _, extracted = extract(data.replace(b"\n", b"\r\n") if name.endswith(".eml") else data, name)
        assert "".join(extracted.text[part.start : part.end] for part in extracted.sections) == extracted.text
        return extracted

    return read


def mail(**headers):
    message = EmailMessage()
    for name, value in ({"From": "Ann <ann@example.org>", "To": "bob@example.org", "Subject": "Hi"} | headers).items():
        message[name] = value
    message["Message-ID"] = "<1@example.org>"
    return message


def test_a_message_is_its_headers_and_its_body(read):
    message = mail(Subject="Grüße aus Łódź", Date="Sun, 22 Dec 2024 11:23:00 +0300")
    message.set_content("First line.\nSecond line – ok.\n")
    extracted = read(message.as_bytes())
    assert extracted.title == "Grüße aus Łódź"
    assert extracted.text == (
        "From: Ann <ann@example.org>\nTo: bob@example.org\nDate: Sun, 22 Dec 2024 11:23:00 +0300\n"
        "Subject: Grüße aus Łódź\n\nFirst line.\nSecond line – ok.\n"
    )


def test_of_two_versions_the_one_that_is_shown_is_read_once(read):
    message = mail()
    message.set_content("See the web version.")
    message.add_alternative("<h1>News</h1><table><tr><td>a<td>b</table>", subtype="html")
    text = read(message.as_bytes()).text
    assert text.endswith("Subject: Hi\n\nNews\n\na | b\n")
    assert "web version" not in text


def test_the_plain_version_is_read_where_the_other_shows_nothing(read):
    message = mail()
    message.set_content("The words.")
    message.add_alternative("<html><img src=x></html>", subtype="html")
    assert read(message.as_bytes()).text.endswith("\n\nThe words.\n")


def test_attachments_come_beside_the_text_and_are_named_in_it(read):
    inner = mail(Subject="The inner one")
    inner.set_content("inner words")
    message = mail()
    message.set_content("See attached.")
    message.add_attachment(b"1,2\n", maintype="text", subtype="csv", filename="Zahlen für 2024.csv")
    message.add_attachment(inner)
    extracted = read(message.as_bytes())
    assert "Attachments: Zahlen für 2024.csv, The inner one.eml\n" in extracted.text
    assert [each.filename for each in extracted.attachments] == ["Zahlen für 2024.csv", "The inner one.eml"]
    assert extracted.attachments[0].data == b"1,2\n"
    assert read(extracted.attachments[1].data).text.endswith("inner words\n")


def test_pictures_that_the_body_shows_and_signatures_are_no_attachments(read):
    message = mail()
    message.set_content("<img src=cid:1> words", subtype="html")
    message.add_related(
        b"GIF89a", maintype="image", subtype="gif", cid="<1>", filename="logo.gif", disposition="inline"
    )
    assert read(message.as_bytes()).attachments == ()


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (b"Subject: =?koi8-r?B?8NLJ18XU?=\nFrom: a\n\nx", "Subject: Привет\n"),
        (b"Subject: =?nonsense?B?8NLJ18XU?=\nFrom: a\n\nthe body", "the body"),
        (b"Subject: =?utf-8?Q?a_?=\n =?utf-8?Q?b?=\nFrom: a\n\nx", "Subject: a b\n"),
        ("Subject: ungeschützt\nFrom: a\n\nx".encode("cp1252"), "Subject: ungesch"),
        (b"From: a\nContent-Type: text/plain; charset=iso-2022-jp\n\n\x1b$BElKk\x1b(B", "東幕"),
        ("From: a\nContent-Type: text/plain; charset=us-ascii\n\nnaïve – wrong charset".encode(), "naïve – wrong charset"),
        (b"From: a\nContent-Type: multipart/mixed\n\nno boundary, only words", "no boundary, only words"),
        (b"From: a\nContent-Type: multipart/mixed; boundary=x\n\n--x\n\ncut short", "cut short"),
        (b"From: a\nContent-Type: text/html\n\n<style>x{}</style><p>one<p>two", "one\n\ntwo"),
        (b"From: a\nContent-Transfer-Encoding: base64\n\nd29yZHM", "words"),
        (b"From: a\nMIME-Version: 1.0\nContent-Type: multipart/report; boundary=x\n\n--x\n\nfailed\n--x\n"
         b"Content-Type: message/delivery-status\n\nStatus: 5.1.1\n--x--", "Status: 5.1.1"),
    ],
)  # fmt: skip
def test_what_real_mail_gets_wrong_is_read_all_the_same(read, source, words):
    assert words in read(source, "a.eml").text


@pytest.mark.parametrize(
    "kind", ["multipart/encrypted; boundary=x", "application/pkcs7-mime; smime-type=enveloped-data"]
)
def test_an_encrypted_message_says_so(read, kind):
    with pytest.raises(Unreadable, match="encrypted: it can only be read with its key"):
        read(f"From: a\nContent-Type: {kind}\n\nxyz".encode(), "a.eml")


# Outlook


def wide(**properties):
    return {f"__substg1.0_{name}001F": value.encode("utf-16-le") for name, value in properties.items()}


def fixed(header, **properties):
    entries = (struct.pack("<HHI8s", 3, int(name[1:], 16), 6, value) for name, value in properties.items())
    return {"__properties_version1.0": bytes(header) + b"".join(entries)}


SUBJECT, PLAIN, NAME, ADDRESS, LONG_NAME = "0037", "1000", "3001", "39FE", "3707"
SENT = struct.pack("<Q", 133_793_006_000_000_000)


def test_an_outlook_message_is_read_with_its_people_and_its_html(read):
    people = {
        f"__recip_version1.0_#0000000{number}": wide(**{NAME: name, ADDRESS: f"{name.lower()}@example.org"})
        | fixed(8, p0C15=struct.pack("<Q", role))
        for number, (name, role) in enumerate([("Bob", 1), ("Cleo", 1), ("Dan", 2), ("Secret", 3)])
    }
    message = wide(**{SUBJECT: "Plan", "0C1A": "Ann", "5D01": "ann@example.org"}) | fixed(32, p0039=SENT) | people
    message["__substg1.0_10130102"] = '<meta charset="cp1252"><p>dépôt'.encode("cp1252")
    assert read(ole(message)).text == (
        "From: Ann <ann@example.org>\nTo: Bob <bob@example.org>, Cleo <cleo@example.org>\nCc: Dan <dan@example.org>\n"
        "Date: 2024-12-22 00:23:20 UTC\nSubject: Plan\n\ndépôt\n"
    )


def test_the_files_and_messages_inside_an_outlook_message_are_its_attachments(read):
    inner = wide(**{SUBJECT: "Inner", PLAIN: "inner words – ok"}) | fixed(24)
    inner["__attach_version1.0_#00000000"] = wide(**{LONG_NAME: "deep.txt"}) | {"__substg1.0_37010102": b"deep"}
    message = wide(**{SUBJECT: "Outer", PLAIN: "outer words"}) | fixed(32)
    message["__attach_version1.0_#00000000"] = wide(**{LONG_NAME: "Übersicht.csv"}) | {"__substg1.0_37010102": b"a,b"}
    message["__attach_version1.0_#00000001"] = {"__substg1.0_3701000D": inner}
    message["__attach_version1.0_#00000002"] = wide(**{LONG_NAME: "logo.png", "3712": "1@x"}) | {
        "__substg1.0_37010102": b"png"
    }
    outer = read(ole(message))
    assert [each.filename for each in outer.attachments] == ["Übersicht.csv", "Inner.eml"]
    assert outer.attachments[0].data == b"a,b"
    second = read(outer.attachments[1].data, "Inner.eml")
    assert second.title == "Inner"
    assert "inner words – ok\n" in second.text
    assert [(each.filename, each.data) for each in second.attachments] == [("deep.txt", b"deep")]


def test_an_outlook_message_in_a_code_page_is_decoded_with_it(read):
    message = {"__substg1.0_0037001E": "Тема".encode("cp1251"), "__substg1.0_1000001E": "Привет, ещё".encode("cp1251")}
    text = read(ole(message | fixed(32, p3FFD=struct.pack("<Q", 1251)))).text
    assert text == "Subject: Тема\n\nПривет, ещё\n"  # noqa: RUF001 - as written there


# The example of the specification, MS-OXRTFCP 4.1
COMPRESSED = "2d0000002b0000004c5a4675f1c5c7a703000a00726370673132354232 0af32068656c09002062770 5b06c647d0a800fa0"


def test_an_outlook_message_that_only_has_compressed_rich_text_is_read(read):
    message = wide(**{SUBJECT: "Rich"}) | {"__substg1.0_10090102": bytes.fromhex(COMPRESSED.replace(" ", ""))}
    assert read(ole(message | fixed(32))).text == "Subject: Rich\n\nhello world\n"


@pytest.mark.parametrize("body", [b"short", b"\0" * 20])
def test_a_body_that_cannot_be_unpacked_is_said_to_be_damaged(read, body):
    with pytest.raises(Unreadable, match="its body cannot be unpacked"):
        read(ole(wide(**{SUBJECT: "Rich"}) | {"__substg1.0_10090102": body} | fixed(32)))
