"""What a reader gets out of a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

MOST_FILES: Final = 1000
"""How many files inside another are looked at; of these, the first become documents."""

NO_TEXT: Final = "the file holds no text"


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


def attached_room(size: int) -> int:
    """Return how many bytes of files a file of `size` may give: they are packed in it, not compressed."""
    return 2 * size + (1 << 20)


class Properties(NamedTuple):
    """The title and the date that a document gives itself."""

    title: str | None = None
    date: str | None = None


class Scan(NamedTuple):
    """A page that shows a picture and next to no text, and the headings it stands under."""

    page: int
    heading: tuple[str, ...] = ()


class Picture(NamedTuple):
    """A picture inside a document.

    Args:
        place: where in the text it stands.
        page: on which page, if there are pages.
        name: what people know it by, if anything.
        read: returns its bytes.
    """

    place: int
    page: int | None
    name: str
    read: Callable[[], bytes]


@dataclass(frozen=True, slots=True)
class Extracted:
    """A document's text. `sections` partition it: in order, without a gap or an overlap.

    `attachments` are documents of their own. `tags`, `date` and `aliases` are what the document says of itself, as
    written. `scans` are the pages whose text would have to be read from pictures, in order, and `pictures`
    those beside the text, in order of their places. `omitted` counts what a person sees in the file and the text lacks,
    by the kinds in `kb.api.omissions`.
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

    @property
    def shows_text(self) -> bool:
        """Whether there is anything to read."""
        return any(character.isprintable() and not character.isspace() for character in self.text)

    @classmethod
    def of_text(cls, text: str, title: str | None = None) -> Extracted:
        """Return a text as it stands: one section without a heading."""
        return cls(title, text, (Section(0, len(text)),) if text else ())
