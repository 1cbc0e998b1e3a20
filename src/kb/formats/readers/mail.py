"""What messages of every format have in common: who, when and what about, the body, the files they carry."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from mimetypes import guess_type
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, Literal

from kb.api.errors import Unreadable
from kb.formats.detect import PGP_MESSAGE, is_media
from kb.formats.opaque import SUFFIXES
from kb.formats.readers.html import expanded, write_fragment
from kb.formats.text.builder import TextBuilder
from kb.formats.text.dates import iso_date
from kb.formats.text.encoding import clean, one_line

if TYPE_CHECKING:
    from kb.formats.extracted import Attachment, Extracted

HEADERS: Final = ("From", "To", "Cc", "Bcc", "Date", "Subject")
ENCRYPTED: Final = "the message is encrypted: it can only be read with its key"
_SIGNATURES: Final = (".p7s", ".sig", "signature.asc")


@dataclass(frozen=True, slots=True)
class Body:
    """A part of what a message says."""

    kind: Literal["plain", "html"]
    text: str

    def __bool__(self) -> bool:
        return bool(self.text.strip())


@dataclass(slots=True)
class Mail:
    """A message.

    Args:
        headers: by the names in `HEADERS`.
        bodies: what it says.
        attachments: the files that came with it.
        textless: the names of those in which there is nothing to read, such as pictures.
        pictures: those of them that are pictures.
    """

    headers: dict[str, str]
    bodies: list[Body] = field(default_factory=list)
    attachments: list[Attachment] = field(default_factory=list)
    textless: list[str] = field(default_factory=list)
    pictures: list[Attachment] = field(default_factory=list)

    def attach(self, file: Attachment, media_type: str = "") -> None:
        """Add a file, which the message called of this type."""
        called = media_type if media_type != "application/octet-stream" else ""
        is_signature = file.filename.lower().endswith(_SIGNATURES)
        if not file.data or is_signature or is_media(file.data, called or guess_type(file.filename)[0] or ""):
            self.textless.append(file.filename)
            if file.data and PurePath(file.filename.lower()).suffix in SUFFIXES["image"]:
                self.pictures.append(file)
        else:
            self.attachments.append(file)


def render(mail: Mail) -> Extracted:
    """Return the message as a person reads it.

    Raises:
        Unreadable: what it says is encrypted.
    """
    bodies = [body for body in mail.bodies if body]
    if bodies and all(body.text.lstrip().startswith(PGP_MESSAGE) for body in bodies):
        raise Unreadable(ENCRYPTED)
    text = TextBuilder()
    for name in HEADERS:
        _write_header(name, mail.headers.get(name, ""), text)
    _write_header("Attachments", ", ".join(each.filename for each in mail.attachments), text)
    _write_header("Attachments without text", ", ".join(mail.textless), text)
    for body in mail.bodies:
        text.blank()
        write_body(body, text)
    for picture in mail.pictures:
        text.picture(partial(bytes, picture.data), picture.filename)
    subject = one_line(clean(mail.headers.get("Subject", ""))) or None
    date = iso_date(mail.headers.get("Date", ""))
    return replace(text.build(subject), attachments=tuple(mail.attachments), date=date)


def _write_header(name: str, value: str, text: TextBuilder) -> None:
    if line := one_line(value):
        text.line(f"{name}: {line}")


def write_body(body: Body, text: TextBuilder) -> None:
    """Add what a part of a message says."""
    if body.kind == "html":
        write_fragment(expanded(body.text), text, below=0)
    else:
        text.line(body.text.strip("\r\n"))
