"""What the store takes and answers with: frozen rows, alike for every database."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kb import clock
from kb.api.models import JobKind, JobStatus, ReembedState
from kb.api.rights import Caller, Limit, Right
from kb.clock import shown
from kb.embed.protocol import ModelSpec
from kb.lexical.document_names import file_stem, folded_name, parse_aliases


@dataclass(frozen=True, slots=True)
class ChunkPosition:
    """Where a chunk stands in its document: lines and pages from 1, characters from 0, the end excluded."""

    line_start: int
    line_end: int
    char_start: int
    char_end: int
    heading: tuple[str, ...] = ()
    page: int | None = None


@dataclass(frozen=True, slots=True)
class NewChunk:
    """A chunk to be written. `header` is what it stands under (title, headings): searched, but not its text."""

    text: str
    header: str
    place: ChunkPosition


@dataclass(frozen=True, slots=True)
class VectorSpace:
    """What makes the vectors: those of two spaces cannot be compared.

    `digest` is the SHA-256 of the model's weights and of how they are put together, pooling included; the prefixes are
    what the model reads before each text. Vectors of several precisions are of one space: `precision` is the arithmetic
    that a model runs in, or that a database was begun in. `folder` is where the model was found, if not in the data
    directory.
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
class Said:
    """What who adds a note says of it besides: here, and once more where they say it, and where it is shown.

    Each is a column of that name of documents, former versions and jobs in both stores. `source` is where it comes
    from.
    """

    source: str | None = None


SAID: Final = tuple(field.name for field in fields(Said))


def said(record: object) -> dict[str, Any]:
    """Return the fields of `Said` that a record has, by name."""
    return {name: getattr(record, name) for name in SAID}


@dataclass(frozen=True, slots=True)
class Content(Said):
    """What a document holds. `vectors` has one row for each chunk; `own_tags` and `date` are what it says of itself.

    `filename` is what its file was called; `title_given` tells a title that someone gave it from one that it has of
    itself. `space` is what the vectors are of, where that may be another than the store's. `replaces` is the
    document in whose place it stands. `omitted` counts what
    of its file was not read, by kind. `language` is the ISO 639-1 code of what it is written in, if that is clear.
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


class Named(NamedTuple):
    """A document and what it is called, with empty texts for names it does not have.

    It may have come inside another one. The header is that of its first passage. `lacks` is how many of the tokens that
    it was looked for by its names lack, without those that very many names have.
    """

    document_id: int
    title: str
    source_path: str
    filename: str
    is_part: bool
    header: str
    lacks: int = 0

    @property
    def folded_name(self) -> str:
        """The name of its file, or else its title, as a filter by name compares it."""
        return folded_name(self.source_path or None, self.title, self.is_part)

    @property
    def other_names(self) -> list[str]:
        """The names that are not its title, each once."""
        stems = (file_stem(self.source_path, is_part=self.is_part), file_stem(self.filename))
        return list(dict.fromkeys(filter(None, (*stems, *parse_aliases(self.title, self.header)))))

    @property
    def names(self) -> list[str]:
        """All its names, each once."""
        return list(dict.fromkeys(filter(None, (*self.other_names, self.title))))


@dataclass(frozen=True, slots=True)
class Author:
    """Who changes a document: the name of a key, the client that it came from, and why if that was said.

    What has the same `operation_key` is one operation.
    """

    by: str | None = None
    client: str | None = None
    why: str | None = None
    operation_key: str | None = field(default=None, compare=False)


NOBODY = Author()
"""Who changed what was changed before authors were kept."""


@dataclass(frozen=True, slots=True)
class Document(Said):
    """A document as it stands. Times are UTC, ISO 8601; `date` is as the document has it.

    `own_tags` are those that its content asks for; they are among its `tags` unless someone removed them. `replaces`,
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


SHARED: Final = {field.name for field in fields(Content)}.intersection(field.name for field in fields(Document))


def held(document: Document) -> dict[str, Any]:
    """Return what a document says of what it holds, by the names of the fields of `Content`."""
    return {name: getattr(document, name) for name in SHARED}


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk as it stands."""

    id: int
    index: int
    header: str
    text: str
    place: ChunkPosition


@dataclass(frozen=True, slots=True)
class Extent:
    """How much there is of a document."""

    chunks: int
    characters: int


@dataclass(slots=True)
class Hit:
    """A chunk and what a search result says of its document; `author` made that what it is.

    A passage, which is one with its scores, may have its text cut: that is why it can be changed.
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
    source: str | None = None
    language: str | None = None
    author: Author = NOBODY


@dataclass(frozen=True, slots=True)
class Filter:
    """Which documents: all of `tags`, one of `tag_any`, none of `tag_not`, type, language, path, when created.

    `created_after` is included, `created_before` is not. `source_prefix` is how the path begins, `source_part` stands
    in it, ASCII letters in any case; `name` is what its file, or the note, is called, with `*` and `?` for what may be
    anything; `id_prefix` is how the id begins. `updated_after` goes by when it was last
    changed, or else created; `after` and `before` by the date it gives itself, or else by that.
    `among` are the ids of those to choose from. All of the texts `holding` stand in a document, and none of
    `lacking`. `limit` is what the caller's key is limited to.
    """

    tags: tuple[str, ...] = ()
    tag_any: tuple[str, ...] = ()
    tag_not: tuple[str, ...] = ()
    doc_type: str | None = None
    language: str | None = None
    source_path: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    source_prefix: str | None = None
    source_part: str | None = None
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
    """Where a chunk stands, without its text."""

    id: int
    index: int
    heading: tuple[str, ...]
    page: int | None


@dataclass(frozen=True, slots=True)
class Version:
    """A document as it stood from `at` to before `until`; None if it stands so still. `number` counts from 1.

    `content_id` is where its text is kept, None if the document holds it still; `author` is who made it so, in which
    `operation`.
    """

    document: Document
    number: int
    at: str
    until: str | None
    author: Author
    content_id: int | None = None
    operation: int | None = None


@dataclass(frozen=True, slots=True)
class Binned:
    """A document in the bin, as it was when it was deleted, and the document that it came inside."""

    document: Document
    number: int
    part_of: int | None
    deleted_at: str
    author: Author
    operation: int | None = None


@dataclass(frozen=True, slots=True)
class Operation:
    """What belongs together and is taken back together: all that a command, a request or a sync round changed.

    `at` is when it was given, however long its jobs run.
    """

    id: int
    key: str
    at: str
    by: str | None
    client: str | None


@dataclass(frozen=True, slots=True)
class OperationCounts:
    """How many documents an operation added, changed and deleted."""

    added: int
    changed: int
    deleted: int


@dataclass(frozen=True, slots=True)
class SyncedFolder:
    """A folder that is kept in step: how the paths of its files begin, and where it is.

    `mounts` says on which device the folder is, and which folders below it are on another.
    """

    prefix: str
    machine: str
    host: str
    path: str
    mounts: str
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long what was changed or deleted is kept: days, and bytes of all former versions. 0 days keep nothing.

    And how long it is kept who did what: days, and lines.
    """

    history_days: int = 90
    history_size: int = 1 << 30
    bin_days: int = 30
    audit_days: int = 365
    audit_lines: int = 1_000_000


@dataclass(frozen=True, slots=True)
class HistoryCounts:
    """How many former versions there are, the bytes of their contents, since when none is missing, and the bin."""

    versions: int
    size: int
    begins: str | None
    binned: int


@dataclass(frozen=True, slots=True)
class SecondSpace:
    """The vectors beside those in use: what they are of, and what is being done with them."""

    state: ReembedState
    space: VectorSpace


@dataclass(frozen=True, slots=True)
class MissingVector:
    """A chunk that is to get a vector."""

    chunk_id: int
    header: str
    text: str


@dataclass(frozen=True, slots=True)
class NewJob(Said):
    """A note (`text`) or a file (`staged`, a name in the staging folder, and the `filename` it came with).

    `part_of` is the document that the file was inside, `depth` how many files it was inside. `limit` is that of
    the key that it was sent with.
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
class Job(Said):
    """A job as it stands.

    `existed` says that its document held what was sent already; `omitted` counts what of its file was not read.
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
    """Who did what to which document, job or key, and when; nothing of what they hold."""

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
    """What a line of the audit log says was done."""

    action: str
    document_id: int | None = None
    job_id: int | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Counts:
    """How much is in the database: `size` is in bytes, `queue_age` for how many seconds the oldest queued job waits.

    `documents` counts them by type and `languages` by language, the most first. `precisions` says how many vectors were
    made in each precision, the most first, those of deleted chunks included. `foreign` names what the database declares
    and kb never does.
    """

    documents: dict[str, int]
    languages: dict[str, int]
    chunks: int
    jobs: dict[str, int]
    queue_age: float
    size: int
    precisions: dict[str, int]
    foreign: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """How replicas do: `behind` is for how many seconds none was good enough.

    Of what could be read at one, `reads` were, and the primary did the others: `passed_on`.
    """

    answers: bool
    behind: float
    reads: int
    passed_on: int


@dataclass(frozen=True, slots=True)
class NamedKey:
    """A key. Until `former_until` the one that it was before it was rotated is good, too."""

    name: str
    right: Right
    tags: tuple[str, ...]
    folder: str | None
    digest: str
    created_at: str
    used_at: str | None = None
    former_digest: str | None = None
    former_until: str | None = None

    @property
    def caller(self) -> Caller:
        """Who calls with this key."""
        limit = Limit(self.tags, self.folder) if self.tags or self.folder else None
        return Caller(self.name, self.right, limit, is_named=True)

    def opens(self, digest: str) -> bool:
        """Return whether a token with this digest is the key; both are compared, so that the time tells nothing."""
        is_former = hmac.compare_digest(digest, self.former_digest or "") and shown(clock.own.expiry().timestamp()) < (
            self.former_until or ""
        )
        return hmac.compare_digest(digest, self.digest) or is_former


def now_iso() -> str:
    """Return kb's own time as it is answered."""
    return shown(clock.own_time())
