"""The line formats of an export: content that kb would never write is refused."""

import re
from datetime import datetime
from typing import Annotated, Any, Final, Literal, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, create_model

from kb.api.fields import DocType, DocumentId, ExactTag, JobKind, Like, VersionNumber
from kb.api.key_models import KeyName
from kb.api.limits import ID_DIGITS
from kb.api.note_fields import OptionalFieldsRequest
from kb.api.rights import Right
from kb.backup.storage import STAGED
from kb.blobs.protocol import DIGEST
from kb.exchange.export_rows import PLAIN
from kb.formats.text.extracted import MOST_MESSAGE_IDS
from kb.store.rows import (
    OPTIONAL_FIELDS,
    Author,
    Binned,
    Chunk,
    ChunkPosition,
    Document,
    NamedKey,
    NewChunk,
    VectorSpace,
    Version,
)
from kb.store.sql.history import MOST_VERSIONS

MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z")


def _moment(text: str) -> str:
    if not MOMENT.fullmatch(text):
        raise ValueError("it is not a time such as 2026-01-31T12:00:00.000Z")
    datetime.fromisoformat(text)
    return text


Moment = Annotated[str, AfterValidator(_moment)]
Digest = Annotated[str, Like(rf"^{DIGEST.pattern}\Z", "it is not a SHA-256")]
Type = Annotated[DocType, Like(r"^[\w.+/-][\w .+/-]*\Z", "it is not a document type")]
Number = Annotated[int, Field(ge=0, le=1 << 53)]
Id = Annotated[int, Field(ge=1, le=10**ID_DIGITS)]
LastId = Annotated[int, Field(ge=0, le=10**ID_DIGITS)]
StoredNumber = Annotated[VersionNumber, Field(lt=MOST_VERSIONS)]
Staged = Annotated[str, Like(rf"^(?:{STAGED.pattern})\Z", "it is not the name of a queued file")]
MessageId = Annotated[str, Like(r"^[!-;=?-~]{0,250}\Z", "it is not the id of an email")]
Counts = dict[Annotated[str, Like(r"^[a-z_]{1,40}\Z", "it is not a kind of skipped content")], Number]


class Line(BaseModel):
    """A line or an object in one; an unknown field or a wrong type is refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class SpaceFields(Line):
    """The vector space of an export."""

    dimensions: Annotated[int, Field(ge=1, le=1 << 16)]
    model: str
    precision: str
    digest: str
    query_prefix: str
    passage_prefix: str


class LastIds(Line):
    """The highest ids ever assigned."""

    documents: LastId
    chunks: LastId
    jobs: LastId
    operations: LastId
    audit: LastId


class ExportHeader(BaseModel):
    """The header of an export. Fields from `last_ids` on exist since format 3."""

    model_config = ConfigDict(strict=True)

    number: Number = Field(alias="kb-export")
    last_document_id: LastId
    history_begins: Moment | None = None
    last_ids: LastIds | None = None
    space: SpaceFields | None = None
    precisions: dict[str, Number] = {}
    staged: dict[Staged, Digest] = {}
    kept: Number = 0
    files: dict[str, Digest] = {}

    @property
    def vector_space(self) -> VectorSpace | None:
        return VectorSpace(**self.space.model_dump()) if self.space else None


class ChunkLine(Line):
    id: Id | None = None
    text: str
    header: str
    heading: tuple[str, ...]
    page: Number | None
    lines: tuple[Number, Number]
    characters: tuple[Number, Number]

    def row(self) -> NewChunk:
        return NewChunk(self.text, self.header, ChunkPosition(*self.lines, *self.characters, self.heading, self.page))

    def former(self, index: int, new_id: int) -> Chunk:
        """Return the chunk of an earlier version, with its own id, or `new_id` if the export has none."""
        chunk = self.row()
        return Chunk(self.id or new_id, index, chunk.header, chunk.text, chunk.place)


class AuthorLine(Line):
    by: str | None = None
    client: str | None = None
    why: str | None = None

    @property
    def author(self) -> Author:
        return Author(self.by, self.client, self.why)


class Deletion(AuthorLine):
    at: Moment
    part_of: DocumentId | None
    operation: Id | None = None


class StateLine(AuthorLine, OptionalFieldsRequest):
    """A document at a point in time."""

    id: DocumentId
    title: str
    source_path: str | None
    doc_type: Type
    content_hash: Digest
    tags: tuple[ExactTag, ...]
    created_at: Moment
    updated_at: Moment | None
    date: str | None = None
    own_tags: tuple[ExactTag, ...]
    filename: str | None = None
    title_given: bool = False
    replaces: DocumentId | None = None
    omitted: Counts = Field(default_factory=dict)
    language: str | None = None
    part_of: DocumentId | None
    operation: Id | None = None

    @property
    def document(self) -> Document:
        return Document(**{name: getattr(self, name) for name in Document.__dataclass_fields__})


class DocumentLine(StateLine):
    version: StoredNumber = 1
    message_ids: Annotated[tuple[MessageId, ...], Field(max_length=MOST_MESSAGE_IDS)] = ()
    chunks: tuple[ChunkLine, ...]

    @property
    def size(self) -> int:
        """The number of its chunks."""
        return len(self.chunks)


class VersionLine(StateLine):
    """An earlier version of a document."""

    version: StoredNumber
    until: Moment
    chunks: tuple[ChunkLine, ...] | None
    chunks_of: VersionNumber | None
    deleted: Deletion | None = None

    @property
    def size(self) -> int:
        """The number of its chunks."""
        return len(self.chunks or ())

    @property
    def former(self) -> Version:
        document = self.document
        return Version(document, self.version, self.until, self.author)

    @property
    def binned(self) -> Binned | None:
        """The document's entry in the bin, if this is its last version and it is there."""
        if self.deleted is None:
            return None
        gone = self.deleted
        return Binned(self.document, self.version, gone.part_of, gone.at, gone.author)


class KeyLine(Line):
    """A key with rights."""

    name: KeyName
    right: Right
    tags: tuple[ExactTag, ...]
    folder: str | None
    digest: Digest
    created_at: Moment
    used_at: Moment | None
    former_digest: Digest | None
    former_until: Moment | None
    expires_at: Moment | None = None
    per_minute: int | None = None
    reads_all: bool = False

    @property
    def key(self) -> NamedKey:
        return NamedKey(**self.model_dump())


class LimitFields(Line):
    """The limits of the key of a job's sender."""

    tags: tuple[ExactTag, ...]
    folder: str | None


FIELDS: Final[dict[str, Any]] = {
    "id": Id,
    "at": Moment,
    "created_at": Moment,
    "started_at": Moment | None,
    "heartbeat_at": Moment | None,
    "finished_at": Moment | None,
    "status": Literal["queued", "done", "failed"],
    "kind": JobKind,
    "tags": tuple[ExactTag, ...],
    "staged": Staged | None,
    "content_hash": Digest | None,
    "progress": float,
    "attempts": Number,
    "depth": Number,
    "part_of": DocumentId | None,
    "document_id": DocumentId | None,
    "job_id": Id | None,
    "replaces": DocumentId | None,
    "limits": LimitFields | None,
    "existed": bool,
    "omitted": Counts,
}
"""The columns of plain tables that are not text or None."""

LATER_FIELDS: Final = (*OPTIONAL_FIELDS, "watch")
"""The columns that exports of earlier versions lack."""

ROW_LINES: Final[dict[str, type[Line]]] = {
    name: create_model(
        table.name,
        __base__=Line,
        **cast(
            "Any",
            {name: (FIELDS.get(name, str | None), None if name in LATER_FIELDS else ...) for name in table.columns},
        ),
    )
    for name, table in PLAIN.items()
}
"""The line formats of the files with the rows of a table."""


def wrong_field(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    if first["type"] == "extra_forbidden":
        first["msg"] = "unknown to this version of kb. If a newer version wrote the export, import it with that version"
    return f"{'.'.join(map(str, first['loc']))}: {first['msg'].removeprefix('Value error, ')}".removeprefix(": ")
