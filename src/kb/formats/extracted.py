"""What a reader gets out of a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Section:
    """A stretch `text[start:end]` of a document under one heading path, on one page."""

    start: int
    end: int
    heading: tuple[str, ...] = ()
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that came inside another, such as a message."""

    filename: str
    data: bytes


class Scan(NamedTuple):
    """A page that shows a picture and next to no text, and the headings it stands under."""

    page: int
    heading: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Extracted:
    """A document's text. `sections` partition it: in order, without a gap or an overlap.

    `attachments` are documents of their own. `tags`, `date` and `aliases` are what the document says of itself, as
    written. `scans` are the pages whose text would have to be read from pictures, in order.
    """

    title: str | None
    text: str
    sections: tuple[Section, ...]
    attachments: tuple[Attachment, ...] = ()
    tags: tuple[str, ...] = ()
    date: str | None = None
    aliases: tuple[str, ...] = ()
    scans: tuple[Scan, ...] = ()

    @classmethod
    def of_text(cls, text: str, title: str | None = None) -> Extracted:
        """Return a text as it stands: one section without a heading."""
        return cls(title, text, (Section(0, len(text)),) if text else ())
