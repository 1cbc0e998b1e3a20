"""What Outlook's two formats, .msg and winmail.dat, have in common: properties by number (MS-OXPROPS)."""

from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta
from email.header import Header
from email.mime.application import MIMEApplication
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from typing import TYPE_CHECKING, Final

from kb.formats.extracted import Attachment
from kb.formats.readers.mail import Shown
from kb.formats.readers.rtf import decode_rtf
from kb.formats.text.encoding import one_line

if TYPE_CHECKING:
    from kb.formats.readers.mail import Mail

SUBJECT, HEADERS, SENT, DELIVERED = 0x0037, 0x007D, 0x0039, 0x0E06
SENDER_NAME, SENDER_SMTP, SENDER_ADDRESS = 0x0C1A, 0x5D01, 0x0C1F
TO, CC, BCC = 0x0E04, 0x0E03, 0x0E02
TEXT, RTF, HTML = 0x1000, 0x1009, 0x1013
ROLE, NAME, SMTP, ADDRESS = 0x0C15, 0x3001, 0x39FE, 0x3003
METHOD, AS_OBJECT = 0x3705, 6
DATA, LONG_NAME, SHORT_NAME, CONTENT_ID, MEDIA_TYPE = 0x3701, 0x3707, 0x3704, 0x3712, 0x370E
CODE_PAGES: Final = (0x3FFD, 0x3FDE)
RECIPIENT_ROLES: Final = {1: "To", 2: "Cc", 3: "Bcc"}
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
    """Return a time in UTC; nothing where none is set, for which times far in the future stand, too."""
    count = int.from_bytes(ticks[:8], "little")
    if not 0 < count < 1 << 59:
        return ""
    return f"{_EPOCH + timedelta(microseconds=count // 10):%Y-%m-%d %H:%M:%S} UTC"


def person(name: str, address: str) -> str:
    """Return someone as the headers of mail name people."""
    if "@" not in address or address == name:  # inside an organisation addresses are paths that mean nothing
        return name or address
    return f"{name} <{address}>" if name else address


def rich_text(compressed: bytes) -> str | None:
    """Return the words of a body in compressed rich text; None if it is damaged."""
    try:
        return decode_rtf(_decompressed(compressed).decode("latin-1")) if compressed else ""
    except ValueError:
        return None


def attach(file: Attachment, content_id: str, media_type: str, mail: Mail) -> None:
    """Add a file to a message; a picture with an id is one that the body may show."""
    if content_id and file.filename.lower().endswith(PICTURES):
        mail.shown.append(Shown(content_id, file, media_type))
    else:
        mail.attach(file, media_type)


def as_file(mail: Mail) -> Attachment:
    """A message inside another is no file by itself: it becomes one in the format in which mail is sent."""
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
    """Return the rich text in `data` (MS-OXRTFCP); where that is cut short, as much as there is of it.

    Not compressed-rtf, which refuses a body over one wrong bit or a missing end.

    Raises:
        ValueError: it is not compressed in this way.
    """
    if len(data) < _RTF_HEADER.size:
        raise ValueError("shorter than its header")
    _, size, kind, _ = _RTF_HEADER.unpack_from(data)
    if kind == b"MELA":  # kept as it is
        return data[_RTF_HEADER.size : _RTF_HEADER.size + size]
    if kind != b"LZFu":
        raise ValueError("an unknown compression")
    return _expanded(data[_RTF_HEADER.size :])


def _expanded(data: bytes) -> bytes:
    """Runs of eight tokens, each run behind a byte whose bits say which of them refer back into the window."""
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
            if not back or back > len(text):  # the mark of the end, or damage
                return bytes(text[len(_WINDOW_BEGINS) :])
            for _ in range(length + 2):
                text.append(text[-back])
    return bytes(text[len(_WINDOW_BEGINS) :])
