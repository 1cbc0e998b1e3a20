"""A whole database on its way into another one, of the same kind or not: each row as all of them have it.

A document goes with all that it holds and was, or not at all. Its `State` says whether the other database has it
already: chunks and former contents never change under an id. So a copy that was cut off goes on where it was, and one
that is made again takes over what changed since.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from kb.api.errors import StoreError
from kb.store.compressed import decompressed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from kb.store.protocol import Folders, Transaction
    from kb.store.rows import Chunk, SyncedFolder, VectorSpace

Row = tuple[Any, ...]

ARRAYS: Final = {"tags", "own_tags"}
FLAGS: Final = {"title_given", "existed"}
MOMENTS: Final = {
    "created_at", "updated_at", "until", "deleted_at", "started_at", "heartbeat_at", "finished_at", "at",
}  # fmt: skip
MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{3})?")


@dataclass(frozen=True, slots=True)
class Table:
    """A table whose rows go as they are.

    Args:
        name: its name.
        key: the column that rows go together by.
        columns: those that every database has.
    """

    name: str
    key: str
    columns: tuple[str, ...]

    def row(self, stored: Iterable[Any]) -> Row:
        """Return a row as all databases have it: arrays as tuples, moments to the millisecond.

        A job that runs is one that waits: who runs it does not come with it.

        Raises:
            StoreError: a column cannot be read.
        """
        row = dict(zip(self.columns, stored, strict=True))
        for name, value in row.items():
            try:
                row[name] = _common(name, value)
            except ValueError as error:
                raise StoreError(
                    f"{self.name}, {self.key} {row[self.key]}: {name} cannot be read ({error}). {REMEDY}"
                ) from error
        if self is JOBS and row["status"] == "running":
            row["status"] = "queued"
        return tuple(row.values())


DOCUMENTS: Final = Table(
    "documents",
    "id",
    (
        "id", "title", "source_path", "doc_type", "content_hash", "created_at", "updated_at", "date", "own_tags",
        "part_of", "uploaded_as", "title_given", "version", "changed_by", "changed_with", "changed_why", "source",
        "replaces", "omitted", "operation", "language",
    ),
)  # fmt: skip
VERSIONS: Final = Table(
    "versions",
    "document_id",
    (
        "document_id", "number", "title", "source_path", "doc_type", "content_hash", "tags", "created_at", "updated_at",
        "until", "date", "own_tags", "part_of", "uploaded_as", "title_given", "changed_by", "changed_with",
        "changed_why", "content_id", "source", "replaces", "omitted", "operation",
        "language",
    ),
)  # fmt: skip
BIN: Final = Table(
    "bin",
    "document_id",
    ("document_id", "number", "part_of", "deleted_at", "deleted_by", "deleted_with", "deleted_why", "operation"),
)
JOBS: Final = Table(
    "jobs",
    "id",
    (
        "id", "status", "kind", "title", "filename", "source_path", "tags", "text", "staged", "content_hash",
        "progress", "attempts", "idempotency_key", "request_hash", "part_of", "document_id", "error", "created_at",
        "started_at", "heartbeat_at", "finished_at", "depth", "sent_by", "sent_with", "sent_why", "limits", "source",
        "replaces", "existed", "omitted", "operation_key",
    ),
)  # fmt: skip
OPERATIONS: Final = Table("operations", "id", ("id", "key", "at", "by_key", "client"))
AUDIT: Final = Table("audit", "id", ("id", "at", "by_key", "client", "action", "document_id", "job_id", "key"))

NEVER_LOWER: Final = ("documents", "chunks", "jobs", "audit")
"""The kinds whose ids are never given twice."""

REMEDY: Final = "In a file 'kb doctor --fix' may mend it; else restore a backup."


@dataclass(frozen=True, slots=True)
class State:
    """A document without its texts and vectors: what it is and was, and that it is in the bin.

    Args:
        document: its row, if it is there.
        tags: those that it carries.
        chunks: how many it has, and the first and the last id of them.
        versions: what it was.
        contents: the id of what each of these held, and the bytes of its chunks and of their vectors.
        binned: its row in the bin, if it is there.
    """

    document: Row | None
    tags: tuple[str, ...]
    chunks: Row
    versions: tuple[Row, ...]
    contents: tuple[Row, ...]
    binned: Row | None

    @property
    def size(self) -> int:
        """About how many bytes its texts and vectors take."""
        size: int = CHUNK_SIZE * self.chunks[0] + sum(chunks + vectors for _, chunks, vectors in self.contents)
        return size


CHUNK_SIZE: Final = 4096


@dataclass(frozen=True, slots=True)
class Former:
    """What a document held: its chunks, compressed, and their vectors in half precision."""

    id: int
    chunks: bytes
    vectors: bytes | None


@dataclass(frozen=True, slots=True)
class Held:
    """What a document holds and held: its chunks, the bytes of the vectors that they have, and former contents."""

    chunks: Sequence[Chunk]
    vectors: Sequence[bytes | None]
    contents: Sequence[Former]

    def check(self, dimensions: int) -> None:
        """Look whether it is whole.

        Raises:
            ValueError: it is not.
            zlib.error: a former content cannot be read.
        """
        if [chunk.index for chunk in self.chunks] != list(range(len(self.chunks))):
            raise ValueError("some of its chunks are missing")
        if any(vector is not None and len(vector) != 4 * dimensions for vector in self.vectors):
            raise ValueError("a vector is of another length")
        if not np.isfinite(np.frombuffer(b"".join(filter(None, self.vectors)), "<f4")).all():
            raise ValueError("a vector is damaged")
        for former in self.contents:
            count = len(decompressed(former.chunks))
            if former.vectors is not None and len(former.vectors) != 2 * dimensions * count:
                raise ValueError("a vector of a former version is of another length")


@dataclass(frozen=True, slots=True)
class Whole:
    """A document with all that it is and was."""

    id: int
    state: State
    held: Held

    @property
    def language(self) -> str | None:
        """The language that the document is in."""
        return dict(zip(DOCUMENTS.columns, self.state.document or (), strict=False)).get("language")


@dataclass(frozen=True, slots=True)
class Facts:
    """What belongs to no document.

    Args:
        begins: from when on history is whole.
        last_ids: the highest id of each kind that was ever given.
        folders: the folders that are kept in step.
        left_out: the paths of the files that stay out.
        precisions: how many vectors were made in each precision.
    """

    begins: str | None
    last_ids: Mapping[str, int]
    folders: Sequence[SyncedFolder]
    left_out: Sequence[str]
    precisions: Mapping[str, int]


class Origin(Protocol):
    """One moment of a database that is read."""

    space: VectorSpace

    @property
    def tx(self) -> Transaction:
        """The same moment as the engine sees it."""

    def arrival(self) -> tuple[str, bool] | None:
        """Return what the database was copied from, and whether it is whole; None if it is no copy."""

    def count(self) -> int:
        """Return how many documents there are, those in the bin too."""

    def ids(self, after: int, limit: int) -> list[int]:
        """Return at most so many documents above an id, ascending, those in the bin too."""

    def states(self, after: int, upto: int) -> dict[int, State]:
        """Return the documents with these ids."""

    def held(self, document_id: int) -> Held:
        """Return what a document holds and held.

        Raises:
            StoreError: it cannot be read; the message names it.
        """

    def former(self, document_id: int) -> list[Former]:
        """Return what it held."""

    def keys(self, table: Table, after: int, limit: int) -> list[int]:
        """Return at most so many keys above one, ascending."""

    def rows(self, table: Table, after: int, upto: int) -> dict[int, Row]:
        """Return the rows with these keys, of a table where a key has one."""

    def facts(self) -> Facts: ...

    def full_text_faults(self) -> Iterator[str]:
        """Yield what the full text has otherwise than the texts say, a line each."""


class Destination(Protocol):
    """A database that is written, which no engine uses. What is written in one call is written whole or not at all."""

    @property
    def origin(self) -> Origin:
        """What there is."""

    def begin(self, source: str, last_ids: Mapping[str, int]) -> None:
        """Begin, or go on, to take over a source of this name, whose highest ids are these.

        Raises:
            StoreError: the database holds what is not from there.
        """

    def write(self, gone: Collection[int], documents: Sequence[Whole]) -> None:
        """Remove documents that are there, and then add some."""

    def write_rows(self, table: Table, gone: Collection[int], rows: Sequence[Row]) -> None:
        """Remove rows by their keys, and then add some."""

    def complete(self, facts: Facts) -> None:
        """Bring what stands for itself over, and make what was left for the end."""

    def finish(self) -> None:
        """Let engines use the database."""


def state_of(rows: Mapping[str, list[Row]]) -> State:
    """Return the state of a document, of its rows by the names of their tables."""
    document, binned = rows.get("documents"), rows.get("bin")
    return State(
        document[0] if document else None,
        tuple(tag for (tag,) in rows.get("tags", ())),
        rows.get("chunks", [(0, None, None)])[0],
        tuple(rows.get("versions", ())),
        tuple(rows.get("contents", ())),
        binned[0] if binned else None,
    )


def check_source(mark: tuple[str, bool] | None, source: str, *, is_empty: bool) -> None:
    """Compare what a database says of where it is from with a source.

    Raises:
        StoreError: it holds something of elsewhere.
    """
    if mark is None and not is_empty:
        raise StoreError(
            "The target holds something that was not copied from there, or an engine has used it since: name an empty"
            " database."
        )
    if mark is not None and mark[0] != source:
        raise StoreError(f"The target is a copy of {mark[0]}: name an empty database.")


def check_ids(there: Mapping[str, int], last_ids: Mapping[str, int]) -> None:
    """Compare the highest ids of a copy with those of what it was made of, which never go down.

    Raises:
        StoreError: it was made of something else.
    """
    if any(there[name] > last_ids[name] for name in NEVER_LOWER):
        raise StoreError("The target is a copy of what the source held once: name an empty database.")


def take_folders(folders: Folders, facts: Facts) -> None:
    """Let the same folders be kept in step, and the same files stay out."""
    for folder in facts.folders:
        folders.put(folder)
    for path in facts.left_out:
        folders.leave_out(path)


def check_arrived(mark: tuple[str, bool] | None) -> None:
    """Look whether a database is whole.

    Raises:
        StoreError: it is a copy that was cut off.
    """
    if mark is not None and not mark[1]:
        raise StoreError(
            f"The database is an unfinished copy of {mark[0]}: run 'kb migrate-store' again, or name another database."
        )


def _common(name: str, value: Any) -> Any:  # noqa: ANN401 - a column's
    if name in ARRAYS:
        return tuple(json.loads(value) if isinstance(value, str) else value)
    if name in FLAGS:
        return bool(value)
    if name in MOMENTS and value is not None:
        if not MOMENT.fullmatch(value):
            raise ValueError(f"no moment: {value!r}")
        return value if "." in value else f"{value}.000"
    return value
