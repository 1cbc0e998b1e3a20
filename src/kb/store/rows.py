"""The rows that a store accepts and returns: frozen, and the same for every database."""

from __future__ import annotations

import hmac
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kb import clock
from kb.api.document_day import Dated
from kb.api.fields import JobKind, JobStatus, ReembedState
from kb.api.rights import Caller, Limit, Right
from kb.clock import shown
from kb.embed.protocol import ModelSpec
from kb.index.words.document_names import file_stem, folded_names, parse_aliases
from kb.settings import Settings


@dataclass(frozen=True, slots=True)
class ChunkPosition:
    """The position of a chunk in its document: lines and pages from 1, characters from 0, the end excluded."""

    line_start: int
    line_end: int
    char_start: int
    char_end: int
    heading: tuple[str, ...] = ()
    page: int | None = None

    def moved(self, lines: int, characters: int) -> ChunkPosition:
        """Return the position after more lines and characters were inserted before it."""
        return ChunkPosition(
            self.line_start + lines,
            self.line_end + lines,
            self.char_start + characters,
            self.char_end + characters,
            self.heading,
            self.page,
        )


@dataclass(frozen=True, slots=True)
class NewChunk:
    """A chunk to write. `header` is its title and headings: searches match it, but it is not part of the text."""

    text: str
    header: str
    place: ChunkPosition


@dataclass(frozen=True, slots=True)
class VectorSpace:
    """The model and prefixes that make vectors. Vectors of different spaces cannot be compared.

    `digest` is the SHA-256 of the model's weights and architecture, including pooling. The model reads a prefix before
    each text. Vectors of several precisions share a space: `precision` is the arithmetic of the model, or the first
    arithmetic of the database. `folder` is the location of the model, if it is not in the data folder.
    """

    dimensions: int
    model: str
    precision: str = field(compare=False)
    digest: str
    query_prefix: str = ""
    passage_prefix: str = ""
    folder: str | None = field(default=None, compare=False)

    @classmethod
    def of(cls, spec: ModelSpec, folder: Path | None = None) -> VectorSpace:
        """Return the space of a model's vectors."""
        where = None if folder is None else str(folder.absolute())
        prefixes = spec.query_prefix, spec.passage_prefix
        return cls(spec.dimensions, spec.name, spec.precision, spec.digest, *prefixes, where)

    def __str__(self) -> str:
        prefixes = {"query": self.query_prefix, "passage": self.passage_prefix}
        shown = [f"{kind} prefix {prefix!r}" for kind, prefix in prefixes.items() if prefix]
        return f"{self.model} ({', '.join([f'weights {self.digest[:12]}', *shown])})"


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionalFields:
    """Fields that a sender may give a note. Each is a column of documents, earlier versions and jobs in both stores.

    `Hit` has them too. Statements, jobs, the history, exports and imports use whatever is declared here.

    `source` is the origin in the author's words, `valid_until` the last day on which the note is true.
    """

    source: str | None = None
    valid_until: str | None = None


OPTIONAL_FIELDS: Final = tuple(field.name for field in fields(OptionalFields))


def optional_fields(record: object) -> dict[str, Any]:
    """Return the `OptionalFields` of a record by name."""
    return {name: getattr(record, name) for name in OPTIONAL_FIELDS}


@dataclass(frozen=True, slots=True)
class Content(OptionalFields):
    """The content of a document; `own_tags` and `date` come from the content itself.

    `vectors` has one row per chunk, with zeros for a chunk whose vector is made later, or no row if all are made later.

    `filename` is the name of its file. `title_given` is True if a person or program set the title, and False if the
    title comes from the content. `space` is the space of the vectors if it may differ from the store's. `replaces` is
    the document that this one replaces. `omitted` counts the unread parts of the file by kind. `language` is the ISO
    639-1 code of the text's language, if that is clear. `body_hash` is of a note's text without the title, date and
    tags in its front matter. `message_ids` are the id of a mail and the ids of the mails that it answers.
    """

    doc_type: str
    title: str
    content_hash: str
    chunks: Sequence[NewChunk]
    vectors: NDArray[np.float32]
    own_tags: tuple[str, ...] = ()
    date: str | None = None
    filename: str | None = None
    title_given: bool = False
    space: VectorSpace | None = None
    replaces: int | None = None
    omitted: Mapping[str, int] = field(default_factory=dict, hash=False)
    language: str | None = None
    body_hash: str | None = None
    message_ids: tuple[str, ...] = ()

    @property
    def is_embedded(self) -> bool:
        """Whether each chunk has a vector here."""
        return len(self.vectors) == len(self.chunks) and bool(self.vectors.any(axis=1).all())


class OutgoingLink(NamedTuple):
    """A link in a document: the target as written, and the document that it leads to, if there is one."""

    target: str
    document_id: int | None
    title: str | None


class Backlink(NamedTuple):
    """A document with a link to another one, with the line of its first link."""

    document_id: int
    title: str
    passage: str


class Named(NamedTuple):
    """A document and its names; a missing name is an empty text.

    `is_part` is True if it came from inside another document's file. `header` is the header of its first chunk. `lacks`
    is the number of searched tokens that its names lack, not counting tokens of very many names.
    """

    document_id: int
    title: str
    source_path: str
    filename: str
    is_part: bool
    header: str
    lacks: int = 0

    @property
    def folded_names(self) -> list[str]:
        """Its names in the form that a filter by name compares."""
        return folded_names(self.source_path or None, self.filename, self.title, self.is_part)

    @property
    def aliases(self) -> list[str]:
        """The aliases and authors that follow its title in the header of its passages."""
        return parse_aliases(self.title, self.header)

    @property
    def other_names(self) -> list[str]:
        """The names other than its title, without duplicates."""
        stems = (file_stem(self.source_path, is_part=self.is_part), file_stem(self.filename))
        return list(dict.fromkeys(filter(None, (*stems, *self.aliases))))

    @property
    def names(self) -> list[str]:
        """All its names, without duplicates."""
        return list(dict.fromkeys(filter(None, (*self.other_names, self.title))))


@dataclass(frozen=True, slots=True)
class Author:
    """The author of a change: the name of the key, the client, and the reason if given.

    Changes with the same `operation_key` are one operation.
    """

    by: str | None = None
    client: str | None = None
    why: str | None = None
    operation_key: str | None = field(default=None, compare=False)


NOBODY = Author()
"""The author of changes from before kb recorded authors."""


@dataclass(frozen=True, slots=True)
class Document(OptionalFields, Dated):
    """The current state of a document. Times are UTC, ISO 8601; `date` is in the document's own form.

    `own_tags` are the tags that its content names; `tags` includes them unless someone removed them. `replaces`,
    `omitted` and `language` are as in `Content`.
    """

    id: int
    title: str
    source_path: str | None
    doc_type: str
    content_hash: str
    tags: tuple[str, ...]
    created_at: str
    updated_at: str | None
    date: str | None = None
    own_tags: tuple[str, ...] = ()
    filename: str | None = None
    title_given: bool = False
    replaces: int | None = None
    omitted: Mapping[str, int] = field(default_factory=dict, hash=False)
    language: str | None = None


class Repeated(NamedTuple):
    """A content that several documents have: their number, and the id of the newest."""

    content_hash: str
    documents: int
    newest: int


CONTENT_FIELDS: Final = {field.name for field in fields(Content)}.intersection(field.name for field in fields(Document))


def content_fields(document: Document) -> dict[str, Any]:
    """Return the fields that a document shares with `Content` by name."""
    return {name: getattr(document, name) for name in CONTENT_FIELDS}


@dataclass(frozen=True, slots=True)
class Chunk:
    id: int
    index: int
    header: str
    text: str
    place: ChunkPosition


def unchanged(before: Sequence[Chunk], after: Sequence[NewChunk]) -> dict[int, Chunk]:
    """Return the chunks that have the text, header, heading and page of a new chunk, by the index of the new one."""
    known = defaultdict[tuple[object, ...], deque[Chunk]](deque)
    for chunk in before:
        known[_said(chunk)].append(chunk)
    return {index: left.popleft() for index, chunk in enumerate(after) if (left := known.get(_said(chunk)))}


def _said(chunk: Chunk | NewChunk) -> tuple[object, ...]:
    """Return all of a chunk apart from its place in the text."""
    return chunk.text, chunk.header, chunk.place.heading, chunk.place.page


@dataclass(frozen=True, slots=True)
class Extent:
    chunks: int
    characters: int


@dataclass(slots=True)
class Hit(Dated):
    """A chunk with the details of its document for a search result; `author` made the document's last change.

    It is mutable because a passage, which is a hit with its scores, may have its text cut.
    """

    chunk_id: int
    index: int
    document_id: int
    title: str
    source_path: str | None
    doc_type: str
    text: str
    place: ChunkPosition
    tags: tuple[str, ...]
    created_at: str
    updated_at: str | None
    date: str | None = None
    language: str | None = None
    author: Author = NOBODY
    source: str | None = field(default=None, kw_only=True)
    valid_until: str | None = field(default=None, kw_only=True)


class WrittenText(NamedTuple):
    """The text of a chunk with its document's title and its headings, as written."""

    title: str
    heading: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Filter:
    """The conditions on documents: all of `tags`, one of `tag_any`, none of `tag_not`, and the other fields.

    Each tag also includes the tags below it, unless `tag_exact` is True; the tags of `limit` always do.
    `by`, all of `authors` and none of `authors_not` are its author: the key or the program of its last change, or its
    `source`. A document has one of `doc_types` and none of `doc_types_not`. `created_after` is inclusive,
    `created_before` exclusive. `source_prefix` is the beginning of the path; `source_parts` are all in it and
    `source_parts_not` are not, with ASCII case ignored. `name` is the name of the file or the title of the note, with
    `*` and `?` as wildcards. `id_prefix` is the beginning of the id. `updated_after` compares the time of the last
    change, otherwise of the creation; `after` and `before` compare the document date, otherwise the same time. `among`
    lists the ids to choose from. A document contains all the texts in `holding` and none in `lacking`. `limit` is the
    limit of the caller's key.
    """

    tags: tuple[str, ...] = ()
    tag_any: tuple[str, ...] = ()
    tag_not: tuple[str, ...] = ()
    tag_exact: bool = False
    doc_type: str | None = None
    doc_types: tuple[str, ...] = ()
    doc_types_not: tuple[str, ...] = ()
    lang: str | None = None
    by: str | None = None
    authors: tuple[str, ...] = ()
    authors_not: tuple[str, ...] = ()
    source_path: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    source_prefix: str | None = None
    source_parts: tuple[str, ...] = ()
    source_parts_not: tuple[str, ...] = ()
    name: str | None = None
    id_prefix: str | None = None
    updated_after: datetime | None = None
    after: datetime | None = None
    before: datetime | None = None
    document_id: int | None = None
    among: tuple[int, ...] | None = None
    holding: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()
    limit: Limit | None = None


@dataclass(frozen=True, slots=True)
class ChunkPlace:
    """The position of a chunk, without its text."""

    id: int
    index: int
    heading: tuple[str, ...]
    page: int | None


@dataclass(frozen=True, slots=True)
class Version:
    """A document's state from `at` to before `until`, which is None for the current state. `number` counts from 1.

    `content_id` identifies its stored text; None if the document still has this text. `author` made this version, as
    part of `operation`.
    """

    document: Document
    number: int
    until: str | None
    author: Author
    content_id: int | None = None
    operation: int | None = None

    @property
    def at(self) -> str:
        """The time when this version began."""
        return self.document.changed


@dataclass(frozen=True, slots=True)
class Binned:
    """A document in the bin, in its state at deletion, and the document whose file contained it."""

    document: Document
    number: int
    part_of: int | None
    deleted_at: str
    author: Author
    operation: int | None = None


@dataclass(frozen=True, slots=True)
class Operation:
    """All changes of one command, request or sync round, which can be undone together.

    `at` is the time of the command, however long its jobs run.
    """

    id: int
    key: str
    at: str
    by: str | None
    client: str | None


@dataclass(frozen=True, slots=True)
class OperationCounts:
    """The numbers of documents that an operation added, changed, deleted and restored.

    `added` includes restored documents.
    """

    added: int
    changed: int
    deleted: int
    restored: int


@dataclass(frozen=True, slots=True)
class SyncedFolder:
    """A synced folder: the prefix of its files' paths, and its location.

    `mounts` names the device of the folder, and the folders below it on other devices. `watch` is the JSON of a
    `kb.api.folder_models.WatchState`, if the folder is watched. If `is_kept`, the engine itself keeps it.
    """

    prefix: str
    machine: str
    host: str
    path: str
    mounts: str
    at: str
    watch: str | None = None
    is_kept: bool = False


@dataclass(frozen=True, slots=True)
class NotesFolderState:
    """The notes folder when it was last seen: its path, the session of the engine, and its devices."""

    path: str = ""
    session: str = ""
    mounts: str = ""


@dataclass(frozen=True, slots=True)
class NoteFile:
    """The file of a note in the notes folder, as it was written or read last.

    `path` is relative to the folder. `source_path` and `version` are the note's at that time; version 0 means that the
    file must be compared with the note. `state` changes when the file changes on the disk; `digest` is of its bytes.
    """

    document_id: int
    path: str
    source_path: str | None
    version: int
    state: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """The limits of the history and the bin, in days and in bytes of all earlier versions; 0 days keep nothing.

    The audit log has limits in days and in lines.
    """

    history_days: int = 90
    history_size: int = 1 << 30
    bin_days: int = 30
    audit_days: int = 365
    audit_lines: int = 1_000_000

    @classmethod
    def of(cls, settings: Settings) -> Retention:
        days = {"bin_days": settings.bin_days, "audit_days": settings.audit_days}
        return cls(history_days=settings.history_days, history_size=settings.history_mb << 20, **days)


@dataclass(frozen=True, slots=True)
class HistoryCounts:
    """The number of earlier versions, the bytes of their contents, since when all are kept, and the size of the bin."""

    versions: int
    size: int
    begins: str | None
    binned: int


@dataclass(frozen=True, slots=True)
class SecondSpace:
    """The space and the state of the second vectors, which are not in use."""

    state: ReembedState
    space: VectorSpace


@dataclass(frozen=True, slots=True)
class MissingVector:
    """A chunk that still needs a vector."""

    chunk_id: int
    header: str
    text: str


@dataclass(frozen=True, slots=True)
class NewJob(OptionalFields):
    """A note (`text`) or a file (`staged`, a name in the staging folder, and its original `filename`).

    `part_of` is the document whose file contained this file, and `depth` the number of files around it. `limit` is the
    limit of the sender's key.
    """

    kind: JobKind
    title: str | None = None
    source_path: str | None = None
    tags: tuple[str, ...] = ()
    text: str | None = None
    staged: str | None = None
    filename: str | None = None
    idempotency_key: str | None = None
    request_hash: str | None = None
    content_hash: str | None = None
    part_of: int | None = None
    depth: int = 0
    author: Author = NOBODY
    limit: Limit | None = None
    replaces: int | None = None


@dataclass(frozen=True, slots=True)
class Job(OptionalFields):
    """The current state of a job.

    `existed` is True if its document already had this content; `omitted` counts the unread parts of its file.
    """

    id: int
    status: JobStatus
    kind: JobKind
    title: str | None
    filename: str | None
    source_path: str | None
    tags: tuple[str, ...]
    progress: float
    document_id: int | None
    error: str | None
    created_at: str
    started_at: str | None
    finished_at: str | None
    attempts: int = 0
    text: str | None = field(default=None, repr=False)
    staged: str | None = None
    request_hash: str | None = None
    content_hash: str | None = None
    part_of: int | None = None
    depth: int = 0
    author: Author = NOBODY
    limit: Limit | None = None
    replaces: int | None = None
    existed: bool = False
    omitted: Mapping[str, int] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class AuditLine:
    """Who did what to which document, job or key, and when. It contains none of their contents."""

    id: int
    at: str
    by: str | None
    client: str | None
    action: str
    document_id: int | None
    job_id: int | None
    key: str | None


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """The action that a line of the audit log records."""

    action: str
    document_id: int | None = None
    job_id: int | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of the database: `size` is in bytes, `queue_age` is the wait of the oldest queued job in seconds.

    `documents` counts documents by type and `languages` by language, the most frequent first. `precisions` counts the
    vectors of each precision, the most frequent first, including deleted chunks. `foreign` names declarations in the
    database that kb never makes.
    """

    documents: dict[str, int]
    languages: dict[str, int]
    chunks: int
    jobs: dict[str, int]
    queue_age: float
    size: int
    precisions: dict[str, int]
    foreign: Sequence[str] = ()


class MemoryUse(NamedTuple):
    """The bytes of memory for the newest vectors and the full text, and the number of faults found in them."""

    vectors: int = 0
    words: int = 0
    faults: int = 0


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """The state of the replicas: `behind` is the number of seconds without one that answers and is up to date.

    `reads` counts the transactions that a replica answered, `passed_on` the reads that the primary answered instead.
    """

    answers: bool
    behind: float
    reads: int
    passed_on: int


@dataclass(frozen=True, slots=True)
class NamedKey:
    """A named key. After a rotation, the earlier key also works until `former_until`.

    It is not valid from `expires_at` on. `per_minute` is the maximum number of its requests per minute. If it
    `reads_all`, its tags and its folder limit only what it writes.
    """

    name: str
    right: Right
    tags: tuple[str, ...]
    folder: str | None
    digest: str
    created_at: str
    used_at: str | None = None
    former_digest: str | None = None
    former_until: str | None = None
    expires_at: str | None = None
    per_minute: int | None = None
    reads_all: bool = False

    @property
    def is_expired(self) -> bool:
        return self.expires_at is not None and shown(clock.own.expiry().timestamp()) >= self.expires_at

    @property
    def caller(self) -> Caller:
        limit = Limit(self.tags, self.folder) if self.tags or self.folder else None
        return Caller(self.name, self.right, limit, is_named=True, reads_all=self.reads_all)

    def opens(self, digest: str) -> bool:
        """Return whether a token with this digest is the key. Comparing both keeps the time constant."""
        is_former = hmac.compare_digest(digest, self.former_digest or "") and shown(clock.own.expiry().timestamp()) < (
            self.former_until or ""
        )
        return (hmac.compare_digest(digest, self.digest) or is_former) and not self.is_expired


@dataclass(frozen=True, slots=True)
class Grant:
    """Access that a person granted to a program with a key; only digests of the program's code and tokens are kept.

    All codes and refresh tokens of a grant begin with the same secret, whose digest is `family`. The one of them that
    can still be exchanged has the digest `next_digest`, until `until`: a code while `access_digest` is None, and a
    refresh token afterwards. `scopes` are separated by spaces.
    """

    id: str
    family: str
    key_name: str
    key_digest: str
    client_id: str
    client_name: str
    scopes: str
    resource: str
    redirect_uri: str
    challenge: str
    created_at: str
    next_digest: str
    until: str
    used_at: str | None = None
    access_digest: str | None = None
    access_scopes: str | None = None
    access_until: str | None = None

    @property
    def is_code(self) -> bool:
        return self.access_digest is None


def now_iso() -> str:
    """Return kb's own time in the form of an answer."""
    return shown(clock.own_time())
