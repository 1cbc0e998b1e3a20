"""What messages of every format have in common: who, when and what about, the body, the files they carry."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal

from kb.formats.readers.html import expanded, write_fragment
from kb.formats.text.builder import TextBuilder
from kb.formats.text.encoding import clean, one_line

if TYPE_CHECKING:
    from kb.formats.extracted import Attachment, Extracted

HEADERS: Final = ("From", "To", "Cc", "Date", "Subject")


@dataclass(frozen=True, slots=True)
class Body:
    """A part of what a message says."""

    kind: Literal["plain", "html"]
    text: str

    def __bool__(self) -> bool:
        return bool(self.text.strip())


@dataclass(slots=True)
class Mail:
    """A message; `headers` by the names in `HEADERS`."""

    headers: dict[str, str]
    bodies: list[Body] = field(default_factory=list)
    attachments: list[Attachment] = field(default_factory=list)


def render(mail: Mail) -> Extracted:
    """Return the message as a person reads it."""
    text = TextBuilder()
    for name in HEADERS:
        if value := one_line(mail.headers.get(name, "")):
            text.line(f"{name}: {value}")
    if mail.attachments:
        text.line(f"Attachments: {', '.join(one_line(each.filename) for each in mail.attachments)}")
    for body in mail.bodies:
        text.blank()
        _write(body, text)
    subject = one_line(clean(mail.headers.get("Subject", ""))) or None
    return replace(text.build(subject), attachments=tuple(mail.attachments))


def _write(body: Body, text: TextBuilder) -> None:
    if body.kind == "html":
        write_fragment(expanded(body.text), text, below=0)
    else:
        text.line(body.text.strip("\r\n"))
