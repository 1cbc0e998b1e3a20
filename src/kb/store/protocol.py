"""What the engine asks of a store, and the rows it answers with.

All work happens in a transaction: `with store.read() as tx` sees one moment of the database, `with store.write() as tx`
changes it whole or not at all. A transaction's methods are grouped by what they are about.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from contextlib import AbstractContextManager
    from datetime import datetime

    from numpy.typing import NDArray

    from kb.api.models import JobStatus, Sort


@dataclass(frozen=True, slots=True)
class Place:
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
    place: Place


@dataclass(frozen=True, slots=True)
class VectorSpace:
    """What makes the vectors: those of two spaces cannot be compared.

    `digest` is the SHA-256 of the model's weights, `precision` the arithmetic.
    """

    dimensions: int
    model: str
    precision: str
    digest: str

    def __str__(self) -> str:
        return f"{self.model} in {self.precision} (weights {self.digest[:12]})"


@dataclass(frozen=True, slots=True)
class Content:
    """What a document holds. `vectors` has one row for each chunk; `own_tags` and `date` are what it says of itself."""

    doc_type: str
    title: str
    content_hash: str
    chunks: Sequence[NewChunk]
    vectors: NDArray[np.float32]
    own_tags: tuple[str, ...] = ()
    date: str | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """A document as it stands. Times are UTC, ISO 8601; `date` is as the document has it.

    `own_tags` are those that its content asks for; they are among its `tags` unless someone removed them.
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


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk as it stands."""

    id: int
    index: int
    header: str
    text: str
    place: Place


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk and what a search result says of its document."""

    chunk_id: int
    document_id: int
    title: str
    source_path: str | None
    doc_type: str
    text: str
    place: Place
    tags: tuple[str, ...]
    created_at: str
    updated_at: str | None
    date: str | None = None


@dataclass(frozen=True, slots=True)
class Filter:
    """Which documents: all of `tags`, one of `tag_any`, none of `tag_not`, the type, the path, when created.

    `created_after` is included, `created_before` is not. `source_prefix` is how the path begins.
    """

    tags: tuple[str, ...] = ()
    tag_any: tuple[str, ...] = ()
    tag_not: tuple[str, ...] = ()
    doc_type: str | None = None
    source_path: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    source_prefix: str | None = None


@dataclass(frozen=True, slots=True)
class Scored:
    """Chunks by ascending id, each with a score; higher is better. Both of shape (n,)."""

    ids: NDArray[np.int64]
    scores: NDArray[np.float64]

    def best(self, limit: int) -> Scored:
        """The `limit` best of them, the older one of equals."""
        if self.ids.size <= limit:
            return self
        # A partition first: sorting everything takes longer.
        threshold = np.partition(self.scores, -limit)[-limit]
        above, equal = np.flatnonzero(self.scores > threshold), np.flatnonzero(self.scores == threshold)
        rows = np.sort(np.concatenate([above, equal[: limit - above.size]]))
        return Scored(self.ids[rows], self.scores[rows])

    def of(self, ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """The scores of these chunks; NaN where there is none."""
        scores = np.full(ids.size, np.nan)
        known = np.isin(ids, self.ids, assume_unique=True)
        scores[known] = self.scores[np.searchsorted(self.ids, ids[known])]
        return scores


@dataclass(frozen=True, slots=True)
class NewJob:
    """A note (`text`) or a file (`staged`, a name in the staging folder, and the `filename` it came with)."""

    kind: Literal["note", "file"]
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


@dataclass(frozen=True, slots=True)
class Job:
    """A job as it stands."""

    id: int
    status: JobStatus
    kind: Literal["note", "file"]
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


class Documents(Protocol):
    """Documents with their tags and chunks."""

    def get(self, document_id: int) -> Document | None: ...
    def chunks(self, document_id: int) -> list[Chunk]: ...
    def page(self, where: Filter, *, sort: Sort, limit: int, cursor: str | None) -> list[Document]:
        """Documents after `cursor`, which `cursor_after` made of the last one before."""

    def cursor_after(self, document_id: int) -> str: ...
    def with_content(self, content_hash: str, source_path: str | None, *, note: bool) -> Document | None:
        """The note, or the file, that holds this content under this path (requirement E-11)."""

    def at_path(self, source_path: str) -> Document | None: ...
    def add(self, content: Content, source_path: str | None, tags: Iterable[str], part_of: int | None = None) -> int:
        """Write a new document; answers its id. `part_of` is the document whose file it came in."""

    def replace(self, document_id: int, content: Content) -> None:
        """Replace all that the document holds, in place, and set `updated_at` (requirement N-2)."""

    def delete(self, document_id: int) -> None:
        """Leave no chunk, FTS entry or vector behind (requirement E-6)."""

    def delete_parts(self, document_id: int, *, keep: Collection[str | None]) -> None:
        """Delete the documents that came inside this one, but those at the paths to `keep`."""

    def change_tags(self, document_id: int, *, add: Iterable[str], remove: Iterable[str]) -> None:
        """Set `updated_at` if the tags really change (requirements E-7, N-5)."""

    def tags(self) -> list[tuple[str, int]]:
        """Every tag in use with the number of its documents."""

    def filename(self, document_id: int) -> str | None:
        """What the file was called that the document came from, as far as its jobs tell."""

    def take_unneeded_files(self) -> list[str]:
        """The hashes of the files that lost their last document; they are not noted any more after this."""


class Jobs(Protocol):
    """The queue."""

    def add(self, job: NewJob) -> int: ...
    def get(self, job_id: int) -> Job | None: ...
    def with_key(self, idempotency_key: str) -> Job | None:
        """The job that was accepted under this key."""

    def pending(self) -> int:
        """How many jobs are queued or running."""

    def queue_age(self) -> float:
        """For how many seconds the oldest queued job has waited; 0 if there is none."""

    def page(self, *, status: JobStatus | None, limit: int, before: int | None) -> list[Job]:
        """Jobs with an id below `before`, newest first."""

    def claim(self, limit: int) -> list[Job]:
        """Turn the oldest queued jobs to running: new ones together, one that failed before by itself."""

    def claim_short(self, limit: int, chars: int) -> list[Job]:
        """Turn queued new notes of at most so many characters, that replace nothing, to running."""

    def heartbeat(self, job_ids: Iterable[int]) -> None:
        """Say that the jobs are still being worked on."""

    def set_progress(self, job_ids: Iterable[int], progress: float) -> None:
        """Say how far the jobs are, from 0 to 1."""

    def release_all(self) -> None:
        """Queue every running job again: whoever ran it is gone."""

    def release_stalled(self, seconds: float) -> int:
        """Queue running jobs again that gave no heartbeat for so long; answers how many."""

    def release(self, job_ids: Iterable[int], *, failed: bool) -> None:
        """Queue running jobs again; `failed` counts it as an attempt."""

    def finish(self, job_id: int, document_id: int) -> None: ...
    def fail(self, job_id: int, error: str) -> None: ...
    def retry(self, job_id: int) -> bool:
        """Queue a failed job again whose content is still there; answers whether it was one."""

    def drop_content(self, job_id: int) -> None:
        """The staged file is of no use any more."""

    def staged(self) -> set[str]:
        """The staged files that are still needed."""


class Index(Protocol):
    """The two legs of search."""

    def matches(self, match: str, where: Filter) -> Scored:
        """Every chunk that matches, by BM25; `match` is in FTS5's syntax."""

    def nearest(self, vector: NDArray[np.float32], where: Filter, limit: int) -> Scored:
        """The `limit` chunks nearest to a unit vector, by cosine."""

    def cosines(self, vector: NDArray[np.float32], ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """How near these chunks are to a unit vector."""

    def hits(self, chunk_ids: Sequence[int]) -> list[Hit]:
        """The chunks with their documents, in the order given."""

    def highlights(self, text: str, words: Sequence[str]) -> list[tuple[int, int]]:
        """The ranges of `text` that match one of `words`, as the full-text leg compares them."""


@dataclass(frozen=True, slots=True)
class Counts:
    """The size of things: sizes in bytes, of the database and of the vectors in memory.

    `queue_age` is for how many seconds the oldest queued job has waited.
    """

    documents: dict[str, int]
    chunks: int
    jobs: dict[str, int]
    queue_age: float
    schema_version: int
    size: int
    vectors_size: int


class Transaction(Protocol):
    """One moment of the database, or one change of it."""

    @property
    def documents(self) -> Documents: ...
    @property
    def jobs(self) -> Jobs: ...
    @property
    def index(self) -> Index: ...
    def counts(self) -> Counts: ...


class Store(Protocol):
    """A database of documents. Safe to use from several threads; a transaction belongs to one."""

    def read(self) -> AbstractContextManager[Transaction]: ...
    def write(self) -> AbstractContextManager[Transaction]:
        """Commits, durably, when the block ends; rolls back when it raises."""

    def close(self) -> None: ...
