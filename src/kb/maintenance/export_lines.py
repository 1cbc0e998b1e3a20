"""The lines of an export as they are read: what a knowledge base would never write is refused."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from kb.api.models import DocType, DocumentId, Like, Tag, VersionNumber
from kb.blobs.protocol import DIGEST
from kb.store.rows import Author, Binned, Document, NewChunk, Place, Version

MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z")


def _moment(text: str) -> str:
    if not MOMENT.fullmatch(text):
        raise ValueError("it is no moment such as 2026-01-31T12:00:00.000Z")
    datetime.fromisoformat(text)
    return text


Moment = Annotated[str, AfterValidator(_moment)]
Digest = Annotated[str, Like(rf"^{DIGEST.pattern}\Z", "it is no SHA-256")]
Type = Annotated[DocType, Like(r"^[\w.+/-][\w .+/-]*\Z", "it is no type of a document")]
Number = Annotated[int, Field(ge=0, le=1 << 53)]
Counts = dict[Annotated[str, Like(r"^[a-z_]{1,40}\Z", "it is no kind of what is not read")], Number]


class Line(BaseModel):
    """A line, or what stands in one: an unknown field or a wrong type is refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class ExportHeader(BaseModel):
    """What an export says of itself."""

    model_config = ConfigDict(strict=True)

    number: Number = Field(alias="kb-export")
    last_document_id: Annotated[int, Field(ge=0, le=10**18)]
    history_begins: Moment | None = None


class ChunkLine(Line):
    """A chunk."""

    text: str
    header: str
    heading: tuple[str, ...]
    page: Number | None
    lines: tuple[Number, Number]
    characters: tuple[Number, Number]

    def row(self) -> NewChunk:
        """Return the chunk."""
        return NewChunk(self.text, self.header, Place(*self.lines, *self.characters, self.heading, self.page))


class AuthorLine(Line):
    """Who did something."""

    by: str | None = None
    client: str | None = None
    why: str | None = None

    @property
    def author(self) -> Author:
        """Who did it."""
        return Author(self.by, self.client, self.why)


class Deletion(AuthorLine):
    """When a document went to the bin, and by whose hand."""

    at: Moment
    part_of: DocumentId | None


class StateLine(AuthorLine):
    """A document at some time."""

    id: DocumentId
    title: str
    source_path: str | None
    doc_type: Type
    content_hash: Digest
    tags: tuple[Tag, ...]
    created_at: Moment
    updated_at: Moment | None
    date: str | None = None
    own_tags: tuple[Tag, ...]
    filename: str | None = None
    title_given: bool = False
    source: str | None = None
    replaces: DocumentId | None = None
    omitted: Counts = Field(default_factory=dict)
    language: str | None = None
    part_of: DocumentId | None

    @property
    def document(self) -> Document:
        """The document as it was then."""
        return Document(**{name: getattr(self, name) for name in Document.__dataclass_fields__})


class DocumentLine(StateLine):
    """A document as it stands."""

    version: VersionNumber = 1
    chunks: tuple[ChunkLine, ...]


class VersionLine(StateLine):
    """A document as it stood."""

    version: VersionNumber
    until: Moment
    chunks: tuple[ChunkLine, ...] | None
    chunks_of: VersionNumber | None
    deleted: Deletion | None = None

    @property
    def former(self) -> Version:
        """The version."""
        document = self.document
        return Version(document, self.version, document.updated_at or document.created_at, self.until, self.author)

    @property
    def binned(self) -> Binned | None:
        """What is known of the document in the bin, if this is its last version."""
        if self.deleted is None:
            return None
        gone = self.deleted
        return Binned(self.document, self.version, gone.part_of, gone.at, gone.author)


def wrong_field(error: ValidationError) -> str:
    """Return what is wrong with a line, and where."""
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg'].removeprefix('Value error, ')}".removeprefix(": ")
