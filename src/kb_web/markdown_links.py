"""The targets of the links and pictures in a Markdown text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final, NamedTuple
from urllib.parse import unquote, urlencode

PICTURES: Final = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".avif", ".bmp", ".svg")
"""Suffixes of the pictures that browsers show."""

FILES: Final = {
    *PICTURES, ".3gp", ".7z", ".base", ".canvas", ".csv", ".doc", ".docx", ".eml", ".epub", ".flac", ".gz", ".heic",
    ".html", ".ics", ".json", ".m4a", ".mkv", ".mov", ".mp3", ".mp4", ".msg", ".odp", ".ods", ".odt", ".ogg", ".ogv",
    ".opus", ".pdf", ".pptx", ".rtf", ".tif", ".tiff", ".txt", ".wav", ".webm", ".xls", ".xlsx", ".zip",
}  # fmt: skip
"""Suffixes of files that are not notes, so that kb does not offer to write them."""

WEB: Final = re.compile(r"(?:https?|mailto):", re.IGNORECASE)
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)
_DOCUMENT: Final = re.compile(r"(?:kb://documents/|/d/)(\d{1,18})(?=$|[/?#])")
_PAGE: Final = re.compile(r"page=(\d{1,6})")


class Destination(NamedTuple):
    """The document that a link leads to."""

    document_id: int
    title: str


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The documents and tags that a text refers to.

    Args:
        root: the relative prefix of links on the page.
        title: the title that the page shows; a first heading that repeats it is hidden.
        links: the documents by targets as written, None for a target without a document. Other targets are unknown.
        tags: the tags of the document, in lower case.
        embedded: the texts and surroundings of the documents to show where the text embeds them, by id.
        part: the part of the page that the text is, to keep ids apart; the page's own text has none.
        level: the level of its highest headings on the page.
        beginning: the beginning of the file, if kb took its front matter out of the text.
        may_write: whether the reader may write the notes that links without a document name.
    """

    root: str = "./"
    title: str = ""
    links: Mapping[str, Destination | None] = field(default_factory=dict)
    tags: Set[str] = frozenset()
    embedded: Mapping[int, tuple[str, Surroundings]] = field(default_factory=dict)
    part: str = ""
    level: int = 2
    beginning: str = ""
    may_write: bool = False

    def destination(self, target: str) -> Destination | None:
        if named := _DOCUMENT.match(target):
            return Destination(int(named[1]), "")
        return next(filter(None, map(self.links.get, _forms(target))), None)

    def new_note(self, target: str) -> str | None:
        """Return the address where the reader can write the note that a broken [[link]] names; None for a file.

        The title keeps the folders of the link, because the link leads only to a note with them. No title can match a
        path that begins at a certain folder.
        """
        title = target.partition("#")[0].removesuffix(".md").strip()
        is_file = PurePosixPath(title).suffix.lower() in FILES
        if not self.may_write or not title or is_file or title.startswith(("/", "./", "../")):
            return None
        return f"{self.root}new?{urlencode({'title': title})}"

    def is_broken(self, target: str) -> bool:
        """Return whether a target certainly leads to no document."""
        return any(form in self.links for form in _forms(target))

    def address(self, target: str) -> str | None:
        path, _, place = target.partition("#")
        anchor = f"#{anchor_of(unquote(place))}" if place else ""
        if not path:
            return anchor or None
        to, page = self.destination(target), _PAGE.fullmatch(place)
        if page and path.lower().endswith(".pdf"):
            anchor = f"?page={page[1]}"
        return f"{self.root}d/{to.document_id}{anchor}" if to else None

    def picture(self, target: str) -> str | None:
        """Return the address of a picture that kb keeps, or of the picture of a page of a PDF."""
        path, _, place = target.partition("#")
        suffix, to = f".{path.rpartition('.')[2].lower()}", self.destination(target)
        if to and suffix in PICTURES:
            return f"{self.root}d/{to.document_id}/picture"
        if to and suffix == ".pdf":
            page = _PAGE.match(place)
            return f"{self.root}d/{to.document_id}/pages/{page[1] if page else 1}.png"
        return None


def _forms(target: str) -> tuple[str, ...]:
    plain = unquote(target)
    return target, plain, plain.partition("#")[0]


def anchor_of(heading: str) -> str:
    """Return the id of a heading, such as `h-what-i-need`, or of a block such as `^4f2a`.

    In a path of headings, only the last one matters.
    """
    last = heading.rpartition("#")[2].strip()
    if last.startswith("^"):
        return f"b-{re.sub(r'[^A-Za-z0-9-]', '', last)}"
    return "h-" + re.sub(r"[^\w-]", "", last.lower().replace(" ", "-"))[:200]


def is_harmless(url: str) -> bool:
    """Return whether a link leads to the web, a file, or a document; kb shows a link to a missing file as text."""
    url = url.strip()
    return bool(WEB.match(url) or _DOCUMENT.match(url) or not _SCHEME.match(url))
