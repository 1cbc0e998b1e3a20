"""From the bytes of a file to its text and structure.

`extract` finds out from the content what a file is and hands its bytes to the one reader of that kind. A reader is
a module of `kb.formats` with a function `read(data: bytes) -> Extracted`: pure, without state, and raising
`Unreadable` when the file is at fault. Readers are imported when first needed, so that starting stays fast.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final

from kb.api.errors import Unreadable
from kb.formats.detect import detect

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

READERS: Final = {
    "code": "kb.formats.readers.code",
    "csv": "kb.formats.readers.delimited",
    "docx": "kb.formats.readers.docx",
    "eml": "kb.formats.readers.eml",
    "epub": "kb.formats.readers.epub",
    "html": "kb.formats.readers.html",
    "json": "kb.formats.readers.json",
    "markdown": "kb.formats.readers.markdown",
    "msg": "kb.formats.readers.msg",
    "notebook": "kb.formats.readers.notebook",
    "odp": "kb.formats.readers.odf",
    "ods": "kb.formats.readers.spreadsheet",
    "odt": "kb.formats.readers.odf",
    "pdf": "kb.formats.readers.pdf",
    "pptx": "kb.formats.readers.pptx",
    "rtf": "kb.formats.readers.rtf",
    "text": "kb.formats.readers.text",
    "xls": "kb.formats.readers.spreadsheet",
    "xlsx": "kb.formats.readers.spreadsheet",
    "xml": "kb.formats.readers.xml",
}


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


@dataclass(frozen=True, slots=True)
class Extracted:
    """A document's text. `sections` partition it: in order, without a gap or an overlap.

    `attachments` are documents of their own. `tags`, `date` and `aliases` are what the document says of itself, as
    written.
    """

    doc_type: str
    title: str | None
    text: str
    sections: tuple[Section, ...]
    attachments: tuple[Attachment, ...] = ()
    tags: tuple[str, ...] = ()
    date: str | None = None
    aliases: tuple[str, ...] = ()


def extract(path: Path, filename: str) -> Extracted:
    """Read the file at `path`, which its sender called `filename`.

    Raises:
        Unreadable: the file gives no text; the message says why, for a person to read.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise Unreadable(f"the file cannot be opened: {error.strerror}") from error
    extracted = _read(data, filename)
    if not _shows_anything(extracted.text):
        raise Unreadable("the file holds no text")
    return extracted


def _read(data: bytes, filename: str) -> Extracted:
    try:
        read: Callable[[bytes], Extracted] = import_module(READERS[detect(data, filename)]).read
        return read(data)
    except (Unreadable, ImportError, MemoryError):
        raise
    except Exception as error:
        raise Unreadable(f"the parser failed: {type(error).__name__}") from error


def _shows_anything(text: str) -> bool:
    return any(character.isprintable() and not character.isspace() for character in text)
