"""What messages of every format have in common: who, when and what about, the body, the files they carry."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from mimetypes import guess_type
from pathlib import PurePath
from typing import Final, Literal, NamedTuple
from urllib.parse import unquote

from kb.api.errors import Unreadable
from kb.api.omissions import together
from kb.formats.detect import PGP_MESSAGE, is_media
from kb.formats.readers.html import expanded, flat_text, write_fragment
from kb.formats.text.base64_data import without_embedded
from kb.formats.text.builder import TextBuilder
from kb.formats.text.dates import iso_date
from kb.formats.text.encoding import clean, one_line
from kb.formats.text.external_types import SUFFIXES
from kb.formats.text.extracted import MOST_FILES, Attachment, Extracted

HEADERS: Final = ("From", "To", "Cc", "Bcc", "Date", "Subject")
ENCRYPTED: Final = "the message is encrypted: it can only be read with its key"
_SIGNATURES: Final = (".p7s", ".sig", "signature.asc")
_WORD: Final = re.compile(r"\w+")
_FEW: Final = 0.05
_SHOWN: Final = re.compile(r"(?i)\bcid:([^\s\"'<>)]{1,500})")
_ADDRESS: Final = re.compile(r"(?i)[a-z]+:|[^<]*/")


@dataclass(frozen=True, slots=True)
class Body:
    """A part of what a message says."""

    kind: Literal["plain", "html"]
    text: str

    def __bool__(self) -> bool:
        return bool(self.text.strip())

    @property
    def words(self) -> str:
        """What it says, without markup."""
        return flat_text(self.text) if self.kind == "html" else self.text


class MailBody(NamedTuple):
    """A picture that came with a message for its body to show, by an id or as an address."""

    id: str
    file: Attachment
    media_type: str


@dataclass(slots=True)
class Mail:
    """A message.

    Args:
        headers: by the names in `HEADERS`.
        bodies: what it says.
        attachments: the files that came with it.
        shown: the pictures that a body may show, each with what it calls them, and the type that the message says.
        textless: the names of those in which there is nothing to read, such as pictures.
        pictures: those of them that are pictures.
        packed: what it says again in rich text, in a file that only Outlook opens.
        omitted: what in it cannot be read, by kind.
    """

    headers: dict[str, str]
    bodies: list[Body] = field(default_factory=list)
    attachments: list[Attachment] = field(default_factory=list)
    shown: list[MailBody] = field(default_factory=list)
    textless: list[str] = field(default_factory=list)
    pictures: list[Attachment] = field(default_factory=list)
    packed: list[Body] = field(default_factory=list)
    omitted: Counter[str] = field(default_factory=Counter)

    def take_files(self, other: Mail) -> None:
        """Take over what came with another message, or with another version of this one, but for what it says."""
        self.attachments += other.attachments
        self.shown += other.shown
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
    bodies = [body for body in mail.bodies if body]
    _attach_unseen(mail, bodies)
    mail.omitted["files"] += len(mail.attachments[MOST_FILES:])
    del mail.attachments[MOST_FILES:], mail.textless[MOST_FILES:]
    if mail.packed:
        known = {word for body in bodies for word in _WORD.findall(body.words.lower())}
        bodies += [body for body in mail.packed if _says_more(body, known)]
    if bodies and all(body.text.lstrip().startswith(PGP_MESSAGE) for body in bodies):
        raise Unreadable(ENCRYPTED)
    text = TextBuilder()
    for name in HEADERS:
        _write_header(name, mail.headers.get(name, ""), text)
    _write_header("Attachments", ", ".join(attachment.filename for attachment in mail.attachments), text)
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


def _attach_unseen(mail: Mail, bodies: Sequence[Body]) -> None:
    """Add the pictures that were meant to be seen in a body, but that none shows."""
    pages = [body.text for body in bodies if body.kind == "html"]
    seen = {unquote(content_id) for page in pages for content_id in _SHOWN.findall(page)}
    for shown in mail.shown:
        if shown.id.strip("<> ") not in seen and not (pages and _ADDRESS.match(shown.id)):
            mail.attach(shown.file, shown.media_type)


def _says_more(body: Body, known: set[str]) -> bool:
    """Return whether a body has words that are not known, but for a few: signs and marks differ."""
    words = set(_WORD.findall(body.words.lower()))
    return len(words - known) > len(words) * _FEW


def _write_header(name: str, value: str, text: TextBuilder) -> None:
    if line := one_line(value):
        text.line(f"{name}: {line}")


def write_body(body: Body, text: TextBuilder) -> None:
    """Add what a part of a message says."""
    if body.kind == "html":
        write_fragment(expanded(body.text), text, below=0)
    else:
        text.line(without_embedded(body.text).strip("\r\n"))
