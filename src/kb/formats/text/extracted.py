"""The result of a reader."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

MOST_FILES: Final = 1000
"""The maximum number of files inside another that are read; only the first of them become documents."""

NO_TEXT: Final = "the file contains no text"

LONGEST_MESSAGE_ID: Final = 250
MOST_MESSAGE_IDS: Final = 100
"""The maximum number of message ids that kb keeps of a mail."""


@dataclass(frozen=True, slots=True)
class Section:
    """A part `text[start:end]` of a document under one heading path, on one page."""

    start: int
    end: int
    heading: tuple[str, ...] = ()
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Attachment:
    filename: str
    data: bytes


def attached_room(size: int) -> int:
    """Return the maximum size of the files in a file of `size` bytes: they are packed in it, not compressed."""
    return 2 * size + (1 << 20)


class Properties(NamedTuple):
    title: str | None = None
    date: str | None = None


class Scan(NamedTuple):
    """A page that is a picture with almost no text, and the headings above it."""

    page: int
    heading: tuple[str, ...] = ()


class Picture(NamedTuple):
    """A picture inside a document.

    Args:
        place: its position in the text.
        page: its page, if the document has pages.
        name: its name for people, or an empty string.
        read: returns its bytes.
    """

    place: int
    page: int | None
    name: str
    read: Callable[[], bytes]


@dataclass(frozen=True, slots=True)
class Extracted:
    """A document's text. `sections` partition it: in order, without a gap or an overlap.

    `attachments` become separate documents. `tags`, `date` and `aliases` are the document's own, as written. `scans`
    are the pages whose text is only in pictures, in order, and `pictures` are the other pictures, in order of their
    places. `omitted` counts visible content of the file that the text lacks, by the kinds in `kb.api.omissions`.
    `message_ids` are the id of a mail, which may be empty, and the ids of the mails that it answers, the nearest first.
    """

    title: str | None
    text: str
    sections: tuple[Section, ...]
    attachments: tuple[Attachment, ...] = ()
    tags: tuple[str, ...] = ()
    date: str | None = None
    aliases: tuple[str, ...] = ()
    scans: tuple[Scan, ...] = ()
    pictures: tuple[Picture, ...] = ()
    omitted: Mapping[str, int] = field(default_factory=dict, hash=False)
    message_ids: tuple[str, ...] = ()

    @property
    def shows_text(self) -> bool:
        """Whether the text contains a visible character."""
        return any(character.isprintable() and not character.isspace() for character in self.text)

    @classmethod
    def of_text(cls, text: str, title: str | None = None) -> Extracted:
        """Return plain text: one section without a heading."""
        return cls(title, text, (Section(0, len(text)),) if text else ())
