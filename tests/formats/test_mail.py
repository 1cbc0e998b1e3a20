"""Messages: headers, the body a person sees, the files that came with them."""

import quopri
from base64 import b64encode, encodebytes
from email.message import EmailMessage
from email.mime.image import MIMEImage
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText

import pytest

from kb.api.errors import Unreadable
from kb.formats.detect import detect
from kb.formats.extract import extract
from kb.formats.text.batches import MAX_PARTS
from kb.ingest.draft import MAX_ATTACHMENTS
from tests.support import reading
from tests.support.cms import element, signed, streamed
from tests.support.ole import ole
from tests.support.outlook import stored

pytestmark = pytest.mark.requirement("E-10")


def read(data, name="message"):
    return reading.read(data.replace(b"\n", b"\r\n") if name.endswith(".eml") else data, name)


def mail(**headers):
    message = EmailMessage()
    for name, value in ({"From": "Ann <ann@example.org>", "To": "bob@example.org", "Subject": "Hi"} | headers).items():
        message[name] = value
    message["Message-ID"] = "<1@example.org>"
    return message


def test_a_message_is_its_headers_and_its_body():
    message = mail(Subject="Grüße aus Łódź", Date="Sun, 22 Dec 2024 11:23:00 +0300")
    message.set_content("First line.\nSecond line – ok.\n")
    extracted = read(message.as_bytes())
    assert extracted.title == "Grüße aus Łódź"
    assert extracted.text == (
        "From: Ann <ann@example.org>\nTo: bob@example.org\nDate: Sun, 22 Dec 2024 11:23:00 +0300\n"
        "Subject: Grüße aus Łódź\n\nFirst line.\nSecond line – ok.\n"
    )


def test_of_two_versions_the_one_that_is_shown_is_read_once():
    message = mail()
    message.set_content("See the web version.")
    message.add_alternative("<h1>News</h1><table><tr><td>a<td>b</table>", subtype="html")
    text = read(message.as_bytes()).text
    assert text.endswith("Subject: Hi\n\nNews\n\na | b\n")
    assert "web version" not in text


def test_what_a_message_hides_is_no_text():
    message = mail()
    message.set_content("<div style='display:none;max-height:0'>preview</div><p>The words.</p>", subtype="html")
    assert read(message.as_bytes()).text.endswith("Subject: Hi\n\nThe words.\n")


def test_the_plain_version_is_read_where_the_other_shows_nothing():
    message = mail()
    message.set_content("The words.")
    message.add_alternative("<html><img src=x></html>", subtype="html")
    assert read(message.as_bytes()).text.endswith("\n\nThe words.\n")


def test_attachments_come_beside_the_text_and_are_named_in_it():
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


def test_pictures_that_the_body_shows_and_signatures_are_no_attachments():
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
        (b"From: a\nBcc: Hidden <h@example.org>\n\nx", "Bcc: Hidden <h@example.org>\n"),
        (b"From: a\nMIME-Version: 1.0\nContent-Type: multipart/report; boundary=x\n\n--x\n\nread\n--x\n"
         b"Content-Type: message/disposition-notification\n\nDisposition: displayed\n--x--", "Disposition: displayed"),
        (b"From: a\nMIME-Version: 1.0\nContent-Type: multipart/report; boundary=x\n\n--x\n\nfailed\n--x\n"
         b"Content-Type: message/delivery-status\n\nStatus: 5.1.1\n--x--", "Status: 5.1.1"),
    ],
)  # fmt: skip
def test_what_real_mail_gets_wrong_is_read_all_the_same(source, words):
    assert words in read(source, "a.eml").text


SIGNED, ENVELOPED = (bytes.fromhex(f"3080 06092a864886f70d01070{kind} a080") for kind in (2, 3))
ARMORED = "-----BEGIN PGP MESSAGE-----\n\nhQEMA5\n-----END PGP MESSAGE-----\n"
ENCRYPTED = "encrypted: only a program with its key can read it"


def part(kind, body):
    return (
        f"From: a\nMIME-Version: 1.0\nContent-Type: {kind}\nContent-Transfer-Encoding: base64\n\n".encode()
        + b64encode(body)
    )


@pytest.mark.parametrize(
    "source",
    [
        b"From: a\nContent-Type: multipart/encrypted; boundary=x\n\nxyz",
        b"From: a\nContent-Type: application/pkcs7-mime; smime-type=enveloped-data\n\nxyz",
        part("application/x-pkcs7-mime; name=smime.p7m", ENVELOPED),
        f"From: a\nSubject: s\n\n{ARMORED}".encode(),
        f"From: a\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=x\n\n--x\nContent-Type: application/pgp-encrypted\n\nVersion: 1\n--x\n\n{ARMORED}--x--".encode(),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["a.eml", "a.msg"])
def test_an_encrypted_message_says_so(source, name):
    with pytest.raises(Unreadable, match=ENCRYPTED):
        read(source, name)


@pytest.mark.parametrize("name", ["a.asc", "a.txt", "a.msg", "smime.p7m"])
def test_a_file_that_is_nothing_but_encrypted_says_so(name):
    with pytest.raises(Unreadable, match=ENCRYPTED):
        read(ENVELOPED + bytes(range(256)) if name.endswith("p7m") else ARMORED.encode(), name)


def test_words_around_an_encrypted_part_are_read():
    assert "See below." in read(f"From: a\n\nSee below.\n\n{ARMORED}".encode(), "a.eml").text


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        ("Sun, 22 Dec 2024 11:23:00 +0300", "2024-12-22T11:23:00+03:00"),
        ("22 Dec 2024 11:23 GMT (Greenwich)", "2024-12-22T11:23:00+00:00"),
        ("2024-12-22T11:23:00Z", "2024-12-22T11:23:00Z"),
        ("some day in spring", None),
        ("Sun, 99 Dec 2024 99:99:00", None),
    ],
)
def test_the_date_of_a_message_is_the_one_it_was_sent_on(date, expected):
    assert read(f"From: a\nDate: {date}\n\nx".encode(), "a.eml").date == expected


PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(60)
MP3 = b"ID3\x03\0\0\0\0\0\x21TPE1" + bytes(300)


@pytest.mark.parametrize(
    ("filename", "kind", "data"),
    [
        ("photo.png", "image/png", PNG),
        ("photo.png", "application/octet-stream", PNG),
        ("no suffix", "application/octet-stream", PNG),
        ("photo.heic", "application/octet-stream", b"\0\0\0\x18ftypheic" + bytes(range(256))),
        ("damaged.jpg", "image/jpeg", b"\xff\xd8cut"),
        ("voice.mp3", "audio/mpeg", MP3),
        ("film.mp4", "video/mp4", b"\0\0\0\x18ftypmp42" + bytes(range(256))),
        ("smime.p7s", "application/pkcs7-signature", b"0\x80\x06\x09"),
        ("smime.p7s", "application/octet-stream", b"0\x80\x06\x09"),
        ("signature.asc", "application/pgp-signature", b"-----BEGIN PGP SIGNATURE-----"),
        ("invite.ics", "text/calendar; method=REPLY", b"BEGIN:VCALENDAR"),
        ("empty.txt", "text/plain", b""),
    ],
)
def test_attached_files_without_text_are_named_and_no_attachments(filename, kind, data):
    message = mail()
    message.set_content("See attached.")
    maintype, _, subtype = kind.partition("/")
    subtype, _, method = subtype.partition("; method=")
    message.add_attachment(
        data, maintype=maintype, subtype=subtype, filename=filename, params={"method": method} if method else None
    )
    message.add_attachment(b"words", maintype="text", subtype="csv", filename="a.csv")
    extracted = read(message.as_bytes())
    assert [each.filename for each in extracted.attachments] == ["a.csv"]
    assert f"Attachments: a.csv\nAttachments without text: {filename}\n" in extracted.text


@pytest.mark.parametrize(
    ("filename", "kind", "data"),
    [
        ("broken.pdf", "application/pdf", b"%PDF-1.7 cut short"),
        ("broken.pdf", "image/png", b"%PDF-1.7 cut short"),
        ("broken.bin", "application/octet-stream", b"\0\1\2"),
        ("main.ts", "video/mp2t", b"export const x = 1\n"),
        ("invite.ics", "text/calendar", b"BEGIN:VCALENDAR\nSUMMARY:Lunch"),
    ],
)
def test_an_attached_file_that_should_hold_text_is_an_attachment(filename, kind, data):
    message = mail()
    message.set_content("See attached.")
    maintype, _, subtype = kind.partition("/")
    message.add_attachment(data, maintype=maintype, subtype=subtype, filename=filename)
    assert [each.filename for each in read(message.as_bytes()).attachments] == [filename]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_a_message_that_was_saved_in_utf_16_is_read(tmp_path, encoding):
    source = "From: Ann <a@example.org>\r\nMessage-ID: <1@x>\r\nSubject: Überblick\r\nContent-Type: text/plain; charset=iso-8859-1\r\n\r\nGrüße, 東京\r\n"
    mark = {"utf-16-le": "\ufeff", "utf-16-be": "\ufeff"}.get(encoding, "")
    extracted = read((mark + source).encode(encoding), "message")
    assert extracted.title == "Überblick"
    assert extracted.text.endswith("Grüße, 東京\n")


@pytest.mark.parametrize("charset", ["utf-16", "utf-16le", "UTF-16BE", "utf-32"])
@pytest.mark.parametrize("text", ["Grüße and more", "東京都の人口"])
def test_a_part_in_utf_16_is_read(charset, text):
    source = (
        b"From: a\nMIME-Version: 1.0\nContent-Transfer-Encoding: base64\nContent-Type: text/plain; charset="
        + charset.encode()
    )
    assert read(source + b"\n\n" + b64encode(text.encode(charset)), "a.eml").text.endswith(f"\n{text}\n")


@pytest.mark.parametrize("charset", ["utf\0-8", "undefined", "idna", "no-such"])
def test_a_parameter_in_what_is_no_character_set_is_read_as_it_stands(charset):
    source = (
        "From: a\nContent-Type: multipart/mixed; boundary*=%(charset)s''b\n\n"
        "--b\nContent-Type: text/plain; charset*=%(charset)s''utf-8\n\nGrüße\n"
        "--b\nContent-Type: text/csv\nContent-Disposition: attachment; filename*=%(charset)s''a.csv\n\na,b\n--b--\n"
    )
    extracted = read((source % {"charset": charset}).encode(), "a.eml")
    assert "Grüße" in extracted.text
    assert [attachment.filename for attachment in extracted.attachments] == ["a.csv"]


# Mailboxes

FROM = "From ann@example.org Mon Jan  1 10:00:00 2024\n"


def in_mailbox(number, body="words", separator=FROM):
    return f"{separator}From: Ann{number} <ann@example.org>\nDate: Mon, 1 Jan 2024 10:00:00 +0000\nSubject: Subject {number}\n\n{body} {number}\n"


@pytest.mark.parametrize(
    "separator",
    [
        FROM,
        "From - Mon Jan 01 10:00:00 2024\n",
        "From ann at example.org  Mon Jan  1 10:00:00 2024\n",
        "From 1786651@xxx Mon Jan 01 10:00:00 +0000 2024\n",
        "From MAILER-DAEMON Mon Jan  1 10:00 2024 remote from x\n>From ann Mon Jan  1 10:00:00 2024\n",
    ],
)
@pytest.mark.parametrize("name", ["inbox", "a.mbox", "a.eml", "a.txt"])
def test_a_message_behind_a_mailboxes_line_is_one_message(separator, name):
    extracted = read(in_mailbox(1, ">From here on,\n>>From there,", separator).encode(), name)
    assert (extracted.title, extracted.date, extracted.attachments) == ("Subject 1", "2024-01-01T10:00:00+00:00", ())
    assert extracted.text.startswith("From: Ann1 <ann@example.org>\n")
    assert extracted.text.endswith("\n\nFrom here on,\n>From there, 1\n")


@pytest.mark.parametrize("between", ["", "\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_each_message_of_a_mailbox_is_a_document_of_its_own(between, encoding):
    body = ">From the beginning\nFrom now on it is 10:00 in 2024\nwords"
    mailbox = read(between.join(in_mailbox(number, body) for number in (1, 2, 3)).encode(encoding), "a.mbox")
    assert [each.filename for each in mailbox.attachments] == [
        f"000{number} Subject {number}.eml" for number in (1, 2, 3)
    ]
    second = read(mailbox.attachments[1].data, "0002 Subject 2.eml")
    assert (second.title, second.date) == ("Subject 2", "2024-01-01T10:00:00+00:00")
    assert second.text.endswith("\n\nFrom the beginning\nFrom now on it is 10:00 in 2024\nwords 2\n")
    assert mailbox.text.startswith(
        "3 messages\n\nMon, 1 Jan 2024 10:00:00 +0000 · Ann1 <ann@example.org> · Subject 1\n"
    )


def test_a_text_that_begins_with_the_word_from_is_no_message(tmp_path):
    for text in (
        "From here on\nNote: it rains\n",
        "From 10:00 on 3 May 2024\nwe meet\n",
        "From 10:00, 3 May 2024\nNote: rain",
    ):
        assert detect(text.encode(), "a.txt") == "text"


def test_a_large_mailbox_becomes_mailboxes_within_the_limit_on_attachments():
    numbers = range(1, 251)
    mailbox = read("".join(map(in_mailbox, numbers)).encode(), "a.mbox")
    assert [each.filename for each in mailbox.attachments] == ["0001-0100.mbox", "0101-0200.mbox", "0201-0250.mbox"]
    inner = [message for batch in mailbox.attachments for message in read(batch.data, batch.filename).attachments]
    assert [read(each.data, each.filename).title for each in inner] == [f"Subject {number}" for number in numbers]
    assert MAX_PARTS <= MAX_ATTACHMENTS


def test_the_names_of_messages_are_names_of_files():
    source = f"{FROM}Subject: Re: 1/2 \\ {'x' * 300}\n\na\n{FROM}From: b\n\nb\n"
    names = [each.filename for each in read(source.encode(), "a.mbox").attachments]
    assert names[0].startswith("0001 Re- 1-2 - xxx")
    assert len(names[0]) < 120
    assert names[1] == "0002 message.eml"


# Outlook

SUBJECT, PLAIN, RICH, HTML, HEADERS = 0x0037, 0x1000, 0x1009, 0x1013, 0x007D
NAME, ADDRESS, LONG_NAME, DATA, METHOD, MEDIA_TYPE, CONTENT_ID = 0x3001, 0x39FE, 0x3707, 0x3701, 0x3705, 0x370E, 0x3712
SENT = {0x0039: 133_793_006_000_000_000}


def outlook(values, files=(), numbers=None, **more):
    """An Outlook message with files of these folders."""
    return ole(stored(values, numbers, 32, files) | more)


def kept(name, data, kind=""):
    """The folder of a file in an Outlook message."""
    return stored({LONG_NAME: name, MEDIA_TYPE: kind, DATA: data})


def test_an_outlook_message_is_read_with_its_people_and_its_html():
    people = {
        f"__recip_version1.0_#0000000{number}": stored(
            {NAME: name, ADDRESS: f"{name.lower()}@example.org"}, {0x0C15: role}
        )
        for number, (name, role) in enumerate([("Bob", 1), ("Cleo", 1), ("Dan", 2), ("Eve", 3)])
    }
    page = '<meta charset="cp1252"><p>dépôt'.encode("cp1252")
    values = {SUBJECT: "Plan", 0x0C1A: "Ann", 0x5D01: "ann@example.org", HTML: page}
    assert read(outlook(values, numbers=SENT, **people)).text == (
        "From: Ann <ann@example.org>\nTo: Bob <bob@example.org>, Cleo <cleo@example.org>\nCc: Dan <dan@example.org>\n"
        "Bcc: Eve <eve@example.org>\nDate: 2024-12-22 00:23:20 UTC\nSubject: Plan\n\ndépôt\n"
    )


def test_the_files_and_messages_inside_an_outlook_message_are_its_attachments():
    inner = stored({SUBJECT: "Inner", PLAIN: "inner words – ok"}, header=24, files=[kept("deep.txt", b"deep")])
    logo = stored({LONG_NAME: "logo.png", CONTENT_ID: "1@x", DATA: b"png"})
    files = [kept("Übersicht.csv", b"a,b"), stored({DATA: inner}), logo]
    outer = read(outlook({SUBJECT: "Outer", PLAIN: "outer words"}, files))
    assert [each.filename for each in outer.attachments] == ["Übersicht.csv", "Inner.eml"]
    assert outer.attachments[0].data == b"a,b"
    second = read(outer.attachments[1].data, "Inner.eml")
    assert second.title == "Inner"
    assert "inner words – ok\n" in second.text
    assert [(each.filename, each.data) for each in second.attachments] == [("deep.txt", b"deep")]


def test_an_outlook_message_in_a_code_page_is_decoded_with_it():
    texts = {"__substg1.0_0037001E": "Тема".encode("cp1251"), "__substg1.0_1000001E": "Привет, ещё".encode("cp1251")}
    text = read(outlook({}, numbers={0x3FFD: 1251}, **texts)).text
    assert text == "Subject: Тема\n\nПривет, ещё\n"  # noqa: RUF001 - as written there


# The example of the specification, MS-OXRTFCP 4.1
COMPRESSED = "2d0000002b0000004c5a4675f1c5c7a703000a00726370673132354232 0af32068656c09002062770 5b06c647d0a800fa0"


def test_an_outlook_message_that_only_has_compressed_rich_text_is_read():
    message = outlook({SUBJECT: "Rich", RICH: bytes.fromhex(COMPRESSED.replace(" ", ""))})
    assert read(message).text == "Subject: Rich\n\nhello world\n"


@pytest.mark.parametrize("body", [b"short", b"\0" * 20])
def test_a_message_whose_body_cannot_be_unpacked_is_read_without_it(body):
    extracted = read(outlook({SUBJECT: "Rich", RICH: body}, [kept("plan.txt", b"The plan.")]))
    assert extracted.text == "Subject: Rich\nAttachments: plan.txt\n"
    assert extracted.omitted == {"parts": 1}


@pytest.mark.parametrize(
    ("values", "files", "reason"),
    [
        ({HEADERS: "Subject: x\nContent-Type: multipart/encrypted; protocol=x\n", PLAIN: "hQEMA"}, [], ENCRYPTED),
        ({HEADERS: "Content-Type: application/pkcs7-mime; smime-type=enveloped-data\n"}, [], ENCRYPTED),
        ({PLAIN: ARMORED}, [], ENCRYPTED),
        ({}, [kept("smime.p7m", ENVELOPED)], ENCRYPTED),
        ({}, [kept("message.rpmsg", b"x")], "protected by rights management"),
    ],
)
def test_an_encrypted_outlook_message_says_so(values, files, reason):
    with pytest.raises(Unreadable, match=reason):
        read(outlook({SUBJECT: "Secret"} | values, files), "a.msg")


def test_pictures_in_an_outlook_message_are_named_and_no_attachments():
    files = [kept("photo.png", PNG, "image/png"), kept("voice.mp3", MP3)]
    extracted = read(outlook({SUBJECT: "Trip", PLAIN: "words"}, files, SENT), "a.msg")
    assert extracted.attachments == ()
    assert "Attachments without text: photo.png, voice.mp3\n" in extracted.text
    assert extracted.date == "2024-12-22 00:23:20 UTC"


def test_an_encrypted_message_inside_another_is_left_out_alone():
    inner = stored({SUBJECT: "Inner"}, header=24, files=[kept("smime.p7m", ENVELOPED)])
    outer = read(outlook({SUBJECT: "Outer", PLAIN: "outer words"}, [stored({DATA: inner})]), "a.msg")
    assert outer.text.endswith("outer words\n")
    assert [each.filename for each in outer.attachments] == ["Inner.eml"]


def test_an_object_in_an_outlook_message_is_named_and_counted():
    drawing = stored({LONG_NAME: "Drawing", DATA: {"CONTENTS": b"x"}}, {METHOD: 6})
    _, extracted = extract(outlook({SUBJECT: "Plan", PLAIN: "See the drawing"}, [drawing]), "a.msg")
    assert (extracted.attachments, extracted.omitted) == ((), {"objects": 1})
    assert "Attachments without text: Drawing\n" in extracted.text


def test_a_message_in_an_outlook_message_keeps_its_pictures_and_the_names_of_other_files():
    files = [kept("photo.png", PNG), kept("voice.mp3", b"ID3" + bytes(40)), stored({LONG_NAME: "Drawing"}, {METHOD: 6})]
    inner = stored({SUBJECT: "Inner", PLAIN: "words"}, header=24, files=files)
    _, extracted = extract(outlook({SUBJECT: "Outer", PLAIN: "words"}, [stored({DATA: inner})]), "a.msg")
    assert extracted.omitted == {"objects": 1}
    [file] = extracted.attachments
    _, inside = extract(file.data, file.filename, pictures=True)
    assert "Attachments without text: photo.png, voice.mp3, Drawing\n" in inside.text
    assert [(picture.name, picture.read()) for picture in inside.pictures] == [("photo.png", PNG)]


# Pictures that a body shows


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


# What programs for mail do that the rules do not foresee, and messages in messages

HEAD = "From: a@example.org\nSubject: Tar\nMessage-ID: <1@x>\nMIME-Version: 1.0\n"


def read_part(source, name="m.eml"):
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
    extracted = read_part(head + coded)
    assert "The keeper is on leave." in extracted.text
    assert [each.filename for each in extracted.attachments] == ["a.csv"]


def test_a_file_that_is_wrapped_in_its_signature_is_read():
    doc_type, extracted = extract(signed(b"# The lease\n\nIt ends in March.\n"), "lease.md.p7m")
    assert (doc_type, extracted.title) == ("markdown", "The lease")


def test_a_file_that_stands_in_the_text_in_uuencode_is_an_attachment():
    extracted = read_part("\nSee below.\n\nbegin 644 plan.txt\n#86)C\n`\nend\nBye\n")
    assert [(each.filename, each.data) for each in extracted.attachments] == [("plan.txt", b"abc")]
    assert extracted.text.endswith("See below.\n\n[plan.txt]\nBye\n")
    assert "begin 644 at the end" in read_part("\nWe begin 644 at the end\nbegin 644 the work\n").text


def test_lines_that_flow_are_joined_and_quotes_and_signatures_stay():
    head = "Content-Type: text/plain; format=flowed; delsp={}\n\n"
    assert read_part(head.format("yes") + "The ferry lea \nves.\n").text.endswith("\nThe ferry leaves.\n")
    text = "The ferry \nleaves.\n> a quote \n> goes on\nsaid \n-- \nAnn\n"
    assert read_part(head.format("no") + text).text.endswith(
        "\nThe ferry leaves.\n> a quote goes on\nsaid \n-- \nAnn\n"
    )


@pytest.mark.parametrize(
    "part",
    [
        'Content-Type: text/plain; name="plan.pdf"\nX-Mozilla-Altered: AttachmentDeleted; date="Mon"\n\nYou deleted an attachment',
        'Content-Type: application/pdf; name="plan.pdf"\nX-Mozilla-External-Attachment-URL: file:///plan.pdf\n\nYou detached it',
        'Content-Type: message/external-body; name="plan.pdf"; access-type=URL\n\nContent-Type: application/pdf\n\n',
    ],
)
def test_a_file_that_was_taken_out_of_a_message_is_named_and_counted_and_no_document(part):
    extracted = read_part(multipart("mixed", "Content-Type: text/plain\n\nSee the plan.", part))
    assert "Attachments without text: plan.pdf" in extracted.text
    assert (extracted.attachments, dict(extracted.omitted)) == ((), {"files": 1})


def test_versions_for_other_devices_are_no_attachments_and_an_invitation_is_one():
    versions = [
        f"Content-Type: {kind}\n\n<p>Same words</p>" for kind in ("text/x-amp-html", "text/watch-html", "text/html")
    ]
    extracted = read_part(
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
    extracted = read_part(note.encode(), "0123.md")
    assert (extracted.title, extracted.date) == ("Boat paint", "2024-05-01T10:00:00.000Z")
    assert extracted.text == "Boat paint\n\nTwo coats of red lead.\n"
    assert "type_: 5" in read_part(f"a tag\n\n{fields.format(5)}".encode(), "0124.md").text


def test_tasks_in_a_note_of_evernotes_are_boxes_to_tick():
    task = "<task><title>Buy tar</title><taskStatus>{}</taskStatus><dueDate>20260301T000000Z</dueDate></task>"
    note = f"<note><title>T</title><content>&lt;en-note&gt;a&lt;/en-note&gt;</content>{task.format('open')}{task.format('completed')}</note>"
    extracted = read_part(f"<en-export>{note}</en-export>".encode(), "n.enex")
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


@pytest.mark.parametrize(
    ("headers", "ids"),
    [
        ("Message-ID: <c@x>\nIn-Reply-To: <b@x>\nReferences: <a@x>\n <b@x>", ("c@x", "b@x", "a@x")),
        ("message-id:\n <c@x>\nREFERENCES: <a@x>\t<b@x>", ("c@x", "b@x", "a@x")),
        ("Message-ID: <c@x>", ("c@x",)),
        ("In-Reply-To: <b@x>", ("", "b@x")),
        ("In-Reply-To: Your message of Monday <b@x> (Ben)", ("", "b@x")),
        ("Message-ID: <c@x>\nReferences: <c@x> <a@x> <a@x>", ("c@x", "a@x")),
        ("Message-ID: c@x\nReferences: a@x", ()),
        ("Message-ID: <c x@y>\nReferences: <>< >", ()),
        (f"Message-ID: <{'x' * 251}>", ()),
        (
            f"References: {' '.join(f'<{number}@x>' for number in range(500))}",
            ("", *(f"{499 - n}@x" for n in range(99))),
        ),
        ("Subject: none", ()),
    ],
)
def test_a_mail_has_its_id_and_the_ids_of_mails_that_it_answers_the_nearest_first(headers, ids):
    assert read(f"From: ada@example.org\n{headers}\n\nText.".encode(), "x.eml").message_ids == ids
