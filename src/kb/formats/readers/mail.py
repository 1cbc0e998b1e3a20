"""The common parts of messages in all formats: senders, dates, subject, body, attached files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from email.message import Message
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
from kb.formats.text.extracted import (
    LONGEST_MESSAGE_ID,
    MOST_FILES,
    MOST_MESSAGE_IDS,
    Attachment,
    Extracted,
)

HEADERS: Final = ("From", "To", "Cc", "Bcc", "Date", "Subject")
ENCRYPTED: Final = "the message is encrypted: only a program with its key can read it"
_ID: Final = re.compile(rf"<([!-;=?-~]{{1,{LONGEST_MESSAGE_ID}}})>")
_SIGNATURES: Final = (".p7s", ".sig", "signature.asc")
_WORD: Final = re.compile(r"\w+")
_FEW: Final = 0.05
_SHOWN: Final = re.compile(r"(?i)\bcid:([^\s\"'<>)]{1,500})")
_ADDRESS: Final = re.compile(r"(?i)[a-z]+:|[^<]*/")


@dataclass(frozen=True, slots=True)
class Body:
    kind: Literal["plain", "html"]
    text: str

    def __bool__(self) -> bool:
        return bool(self.text.strip())

    @property
    def words(self) -> str:
        return flat_text(self.text) if self.kind == "html" else self.text


class MailBody(NamedTuple):
    """A picture in a message for its body to show, by an id or an address."""

    id: str
    file: Attachment
    media_type: str


@dataclass(slots=True)
class Mail:
    """A message.

    Args:
        headers: by the names in `HEADERS`.
        bodies: its text.
        attachments: its files with text.
        shown: the pictures that a body may show, each with its id and its declared type.
        textless: the names of its files without text, such as pictures.
        pictures: the pictures among them.
        packed: its text again, as rich text in a file that only Outlook opens.
        omitted: the number of unreadable items, by kind.
        message_ids: see `Extracted`.
    """

    headers: dict[str, str]
    bodies: list[Body] = field(default_factory=list)
    attachments: list[Attachment] = field(default_factory=list)
    shown: list[MailBody] = field(default_factory=list)
    textless: list[str] = field(default_factory=list)
    pictures: list[Attachment] = field(default_factory=list)
    packed: list[Body] = field(default_factory=list)
    omitted: Counter[str] = field(default_factory=Counter)
    message_ids: tuple[str, ...] = ()

    def take_files(self, other: Mail) -> None:
        """Add everything but the text of another message, or of another version of this one."""
        self.attachments += other.attachments
        self.shown += other.shown
        self.textless += other.textless
        self.pictures += other.pictures
        self.packed += other.packed
        self.omitted += other.omitted

    def attach(self, file: Attachment, media_type: str = "") -> None:
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
        Unreadable: its text is encrypted.
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
    built = text.build(subject)
    files, ids = tuple(mail.attachments), mail.message_ids
    return replace(built, attachments=files, date=date, omitted=omitted, message_ids=ids)


def message_ids_in(headers: Message) -> tuple[str, ...]:
    """Return the id of a message, which may be empty, and the ids of mails that it answers, the nearest first."""
    own, answered, thread = (
        _ID.findall(str(headers.get(name, ""))) for name in ("Message-ID", "In-Reply-To", "References")
    )
    others = dict.fromkeys([*answered, *reversed(thread)])
    ids = (next(iter(own), ""), *(other for other in others if other not in own))
    return ids[:MOST_MESSAGE_IDS] if any(ids) else ()


def _attach_unseen(mail: Mail, bodies: Sequence[Body]) -> None:
    """Attach the pictures that were meant for a body but that no body shows."""
    pages = [body.text for body in bodies if body.kind == "html"]
    seen = {unquote(content_id) for page in pages for content_id in _SHOWN.findall(page)}
    for shown in mail.shown:
        if shown.id.strip("<> ") not in seen and not (pages and _ADDRESS.match(shown.id)):
            mail.attach(shown.file, shown.media_type)


def _says_more(body: Body, known: set[str]) -> bool:
    """Return whether a body has more than a few unknown words; punctuation and marks may differ."""
    words = set(_WORD.findall(body.words.lower()))
    return len(words - known) > len(words) * _FEW


def _write_header(name: str, value: str, text: TextBuilder) -> None:
    if line := one_line(value):
        text.line(f"{name}: {line}")


def write_body(body: Body, text: TextBuilder) -> None:
    if body.kind == "html":
        write_fragment(expanded(body.text), text, below=0)
    else:
        text.line(without_embedded(body.text).strip("\r\n"))
