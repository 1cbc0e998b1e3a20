"""What messages of every format have in common: who, when and what about, the body, the files they carry."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from mimetypes import guess_type
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, Literal

from kb.api.errors import Unreadable
from kb.api.omitted import together
from kb.formats.attached import MOST_FILES
from kb.formats.detect import PGP_MESSAGE, is_media
from kb.formats.opaque import SUFFIXES
from kb.formats.readers.html import expanded, flat_text, write_fragment
from kb.formats.text.builder import TextBuilder
from kb.formats.text.dates import iso_date
from kb.formats.text.encoding import clean, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kb.formats.extracted import Attachment, Extracted

HEADERS: Final = ("From", "To", "Cc", "Bcc", "Date", "Subject")
ENCRYPTED: Final = "the message is encrypted: it can only be read with its key"
_SIGNATURES: Final = (".p7s", ".sig", "signature.asc")
_WORD: Final = re.compile(r"\w+")
_FEW: Final = 0.05


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
        packed: what it says again in rich text, in a file that only Outlook opens.
        omitted: what in it cannot be read, by kind.
    """

    headers: dict[str, str]
    bodies: list[Body] = field(default_factory=list)
    attachments: list[Attachment] = field(default_factory=list)
    textless: list[str] = field(default_factory=list)
    pictures: list[Attachment] = field(default_factory=list)
    packed: list[Body] = field(default_factory=list)
    omitted: Counter[str] = field(default_factory=Counter)

    def take_files(self, other: Mail) -> None:
        """Take over what came with another message, or with another version of this one, but for what it says."""
        self.attachments += other.attachments
        self.textless += other.textless
        self.pictures += other.pictures
        self.packed += other.packed
        self.omitted += other.omitted

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
    mail.omitted["files"] += len(mail.attachments[MOST_FILES:])
    del mail.attachments[MOST_FILES:], mail.textless[MOST_FILES:]
    bodies = [body for body in mail.bodies if body]
    bodies += [body for body in mail.packed if _says_more(body, bodies)]
    if bodies and all(body.text.lstrip().startswith(PGP_MESSAGE) for body in bodies):
        raise Unreadable(ENCRYPTED)
    text = TextBuilder()
    for name in HEADERS:
        _write_header(name, mail.headers.get(name, ""), text)
    _write_header("Attachments", ", ".join(each.filename for each in mail.attachments), text)
    _write_header("Attachments without text", ", ".join(mail.textless), text)
    for body in bodies:
        text.blank()
        write_body(body, text)
    for picture in mail.pictures:
        text.picture(partial(bytes, picture.data), picture.filename)
    subject = one_line(clean(mail.headers.get("Subject", ""))) or None
    date = iso_date(mail.headers.get("Date", ""))
    omitted = together(mail.omitted)
    return replace(text.build(subject), attachments=tuple(mail.attachments), date=date, omitted=omitted)


def _says_more(body: Body, others: Sequence[Body]) -> bool:
    """Return whether a body has words that none of the others has, but for a few: signs and marks differ."""
    words = set(_words(body))
    known = {word for other in others for word in _words(other)}
    return len(words - known) > len(words) * _FEW


def _words(body: Body) -> list[str]:
    return _WORD.findall((flat_text(body.text) if body.kind == "html" else body.text).lower())


def _write_header(name: str, value: str, text: TextBuilder) -> None:
    if line := one_line(value):
        text.line(f"{name}: {line}")


def write_body(body: Body, text: TextBuilder) -> None:
    """Add what a part of a message says."""
    if body.kind == "html":
        write_fragment(expanded(body.text), text, below=0)
    else:
        text.line(body.text.strip("\r\n"))
