"""The common parts of Outlook's two formats, .msg and winmail.dat: properties by number (MS-OXPROPS)."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from email.header import Header
from email.mime.application import MIMEApplication
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from typing import Final

from kb.formats.readers.html import decode_html
from kb.formats.readers.mail import Body, Mail, MailBody
from kb.formats.readers.rtf import decode_rtf
from kb.formats.text.encoding import one_line
from kb.formats.text.extracted import Attachment

Texts = Callable[..., str]
"""A function that returns the first non-empty one of some properties, given by number."""

SUBJECT, HEADERS, SENT, DELIVERED = 0x0037, 0x007D, 0x0039, 0x0E06
SENDER_NAME, SENDER_SMTP, SENDER_ADDRESS = 0x0C1A, 0x5D01, 0x0C1F
TEXT, RTF, HTML = 0x1000, 0x1009, 0x1013
ROLE, NAME, SMTP, ADDRESS = 0x0C15, 0x3001, 0x39FE, 0x3003
METHOD, AS_OBJECT = 0x3705, 6
DATA, LONG_NAME, SHORT_NAME, CONTENT_ID, MEDIA_TYPE = 0x3701, 0x3707, 0x3704, 0x3712, 0x370E
CODE_PAGES: Final = (0x3FFD, 0x3FDE)
_ROLES: Final = {1: "To", 2: "Cc", 3: "Bcc"}
_NAMES: Final = {"To": 0x0E04, "Cc": 0x0E03, "Bcc": 0x0E02}
"""The properties with all recipients of a role, if the message has no list of recipients."""

PICTURES: Final = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".emz", ".wmz")
_EPOCH: Final = datetime(1601, 1, 1, tzinfo=UTC)
_WINDOW_BEGINS: Final = (
    rb"{\rtf1\ansi\mac\deff0\deftab720{\fonttbl;}{\f0\fnil \froman \fswiss \fmodern \fscript \fdecor "
    rb"MS Sans SerifSymbol"
    rb"ArialTimes New RomanCourier{\colortbl\red0\green0\blue0" + b"\r\n" + rb"\par \pard\plain\f0\fs20\b\i\u\tab\tx"
)
_WINDOW: Final = 4096
_RTF_HEADER: Final = struct.Struct("<II4sI")


def moment_text(ticks: bytes) -> str:
    """Return a time in UTC; empty if it is not set, which a time far in the future also means."""
    count = int.from_bytes(ticks[:8], "little")
    if not 0 < count < 1 << 59:
        return ""
    return f"{_EPOCH + timedelta(microseconds=count // 10):%Y-%m-%d %H:%M:%S} UTC"


def person(name: str, address: str) -> str:
    """Return a person in the form of mail headers."""
    if "@" not in address or address == name:  # inside an organisation, addresses are paths without meaning
        return name or address
    return f"{name} <{address}>" if name else address


def headers(text: Texts, recipients: Iterable[tuple[int, Texts]], date: str) -> dict[str, str]:
    """Return the headers of a message; each recipient has the number of a role."""
    people = defaultdict[str, list[str]](list)
    for role, recipient in recipients:
        people[_ROLES.get(role, "")].append(person(recipient(NAME), recipient(SMTP, ADDRESS)))
    return {
        "From": person(text(SENDER_NAME), text(SENDER_SMTP, SENDER_ADDRESS)),
        **{role: ", ".join(filter(None, people[role])) or text(number) for role, number in _NAMES.items()},
        "Date": date,
        "Subject": text(SUBJECT).lstrip("\1 "),
    }


def body(text: Texts, binary: Callable[[int], bytes], plain: str = "") -> Body | None:
    """Return the text of a message, from its properties or otherwise from `plain`; None if it is damaged."""
    html = Body("html", text(HTML) or decode_html(binary(HTML)))
    if said := html or Body("plain", text(TEXT)) or Body("plain", plain):
        return said
    compressed = binary(RTF)
    try:
        return Body("plain", decode_rtf(_decompressed(compressed).decode("latin-1")) if compressed else "")
    except ValueError:
        return None


def attach(file: Attachment, content_id: str, media_type: str, mail: Mail) -> None:
    """Add a file to a message; a picture with an id is one that the body may show."""
    if content_id and file.filename.lower().endswith(PICTURES):
        mail.shown.append(MailBody(content_id, file, media_type))
    else:
        mail.attach(file, media_type)


def as_file(mail: Mail) -> Attachment:
    """Return a message as a file in the format of sent mail, because a message inside another is not a file."""
    file = MIMEMultipart()
    for name, value in mail.headers.items():
        if value:
            file[name] = Header(one_line(value), "utf-8").encode()
    for body in mail.bodies:
        file.attach(MIMEText(body.text.encode("utf-8", "replace").decode(), body.kind, "utf-8"))
    named = {picture.filename for picture in mail.pictures}
    textless = [Attachment(name, b"") for name in mail.textless if name not in named]
    for attachment in (*mail.attachments, *mail.pictures, *textless):
        part = MIMEApplication(attachment.data)
        part.add_header("Content-Disposition", "attachment", filename=("utf-8", "", attachment.filename))
        file.attach(part)
    return Attachment(f"{one_line(mail.headers['Subject']) or 'message'}.eml", file.as_bytes())


def _decompressed(data: bytes) -> bytes:
    """Return the rich text in `data` (MS-OXRTFCP); if it is cut short, the part that exists.

    kb does not use compressed-rtf, because it refuses a body over one wrong bit or a missing end.

    Raises:
        ValueError: it is not compressed in this way.
    """
    if len(data) < _RTF_HEADER.size:
        raise ValueError("shorter than its header")
    _, size, kind, _ = _RTF_HEADER.unpack_from(data)
    if kind == b"MELA":  # stored without compression
        return data[_RTF_HEADER.size : _RTF_HEADER.size + size]
    if kind != b"LZFu":
        raise ValueError("an unknown compression")
    return _expanded(data[_RTF_HEADER.size :])


def _expanded(data: bytes) -> bytes:
    """Expand runs of eight tokens; the bits of the byte before each run mark references back into the window."""
    text, at = bytearray(_WINDOW_BEGINS), 0
    while at < len(data):
        flags, at = data[at], at + 1
        for bit in range(8):
            if not flags >> bit & 1:
                text += data[at : at + 1]
                at += 1
                continue
            offset, length = divmod(int.from_bytes(data[at : at + 2].ljust(2, b"\0"), "big"), 16)
            at += 2
            back = (len(text) - offset) % _WINDOW
            if not back or back > len(text):  # the end mark, or damage
                return bytes(text[len(_WINDOW_BEGINS) :])
            for _ in range(length + 2):
                text.append(text[-back])
    return bytes(text[len(_WINDOW_BEGINS) :])
