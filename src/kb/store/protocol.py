"""What the engine asks of a store.

All work happens in a transaction: `with store.read() as tx` sees one moment of the database, `with store.write() as tx`
changes it whole or not at all, one after the other. A transaction's methods are grouped by what they are about.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kb.api.models import JobStatus, ReembedState, Sort
from kb.api.rights import Caller, Limit
from kb.lexical.matches import Occurrences
from kb.store.analyzer import Analyzer
from kb.store.rows import (
    AuditEvent,
    AuditLine,
    Author,
    Binned,
    Chunk,
    ChunkPlace,
    Content,
    Counts,
    Document,
    Extent,
    Filter,
    HistoryCounts,
    Hit,
    Job,
    MemoryUse,
    MissingVector,
    Named,
    NamedKey,
    NewJob,
    Operation,
    OperationCounts,
    ReplicaState,
    SecondSpace,
    SyncedFolder,
    VectorSpace,
    Version,
)
from kb.vectors.scores import Neighbourhood, ScoredChunks


class Documents(Protocol):
    """Documents with their tags and chunks."""

    def get(self, document_id: int) -> Document | None: ...
    def chunks(self, document_id: int, start: int = 0, limit: int | None = None) -> list[Chunk]: ...
    def chunks_between(self, document_id: int, start: int, end: int) -> list[Chunk]:
        """Return the chunks that hold some of the characters from `start` to before `end`."""

    def chunk_places(self, document_id: int) -> list[ChunkPlace]:
        """Return where a document's chunks stand, in order."""

    def chunk_ids(self, document_ids: Sequence[int], most: int) -> list[tuple[int, int]]:
        """Return at most so many chunks of each of these documents, the first ones, with the document before each."""

    def extent(self, document_id: int) -> Extent: ...
    def page(self, where: Filter, *, sort: Sort, limit: int, cursor: str | None) -> list[Document]:
        """Documents after `cursor`, which `cursor_after` made of the last one before."""

    def count(self, where: Filter) -> int:
        """Return how many documents the filter admits."""

    def beginning_with(self, doc_type: str, beginning: str) -> list[int]:
        """Return the documents of a type whose first chunk begins so."""

    def with_content(
        self, content_hash: str, source_path: str | None, *, note: bool, limit: Limit | None = None
    ) -> Document | None:
        """Return the note, or the file, that holds this content under this path (requirement E-11)."""

    def at_path(self, source_path: str) -> Document | None: ...
    def named(self, tokens: Collection[str], most: int, limit: int, within: Limit | None = None) -> list[Named]:
        """Return at most `limit` documents with some of these words in their names, those of the rarest first.

        Words that more than `most` documents have in theirs are left out. Only documents that `within` admits count.
        """

    def has_successors(self) -> bool:
        """Return whether any document replaces another one, or ever did."""

    def successors(self, document_ids: Iterable[int]) -> dict[int, list[int]]:
        """Return what replaced each of these documents, directly or in turn, and is there; the nearest first.

        Those that nothing replaced are left out. What is in the bin is passed over.
        """

    def add(
        self,
        content: Content,
        source_path: str | None,
        tags: Iterable[str],
        part_of: int | None = None,
        author: Author = ...,
    ) -> int:
        """Write a new document; answers its id. `part_of` is the document whose file it came in."""

    def replace(self, document_id: int, content: Content) -> None:
        """Replace all that the document holds, in place, and set `updated_at` (requirement N-2).

        The file name stays if the content has none.
        """

    def rename(self, document_id: int, filename: str) -> None:
        """Set what the document's file is called; nothing else changes."""

    def stamp(self, document_id: int, updated_at: str | None) -> None:
        """Set when the document was changed last."""

    def move(self, document_id: int, source_path: str | None) -> None:
        """Set where the document comes from, and with it what came in its file; nothing else changes."""

    def delete(self, document_id: int) -> None:
        """Delete a document for good, from the bin, too, with its former versions and what came inside it.

        No chunk, FTS entry or vector stays behind (requirement E-6), and nothing that tells of it in its jobs.
        """

    def change_tags(self, document_id: int, *, add: Iterable[str], remove: Iterable[str]) -> bool:
        """Set `updated_at` if the tags really change (requirements E-7, N-5); return whether they do."""

    def parts(self, document_id: int) -> list[tuple[int, str | None]]:
        """Return the ids and paths of the documents that came inside this one."""

    def part_of(self, document_id: int) -> int | None:
        """Return the document that this one came inside."""

    def tags(self, limit: Limit | None = None) -> list[tuple[str, int]]:
        """Return every tag in use with the number of its documents."""

    def file_hashes(self) -> set[str]:
        """Return the hashes of the files that documents and their former versions came from."""

    def take_unneeded_files(self) -> list[str]:
        """Return the hashes of the files that lost their last document; they are not noted any more after this."""


class History(Protocol):
    """Former versions of documents, and the bin."""

    @property
    def has_bin(self) -> bool:
        """Whether what is deleted can be restored."""

    def keep(self, document_id: int, author: Author) -> None:
        """Keep the document as it stands, before the author changes it in this transaction."""

    def unlink(self, document_id: int, author: Author) -> None:
        """Let what replaces a document replace what that does: the document is to stand behind it."""

    def versions(self, document_id: int, *, limit: int, before: int | None = None) -> list[Version]:
        """Return versions with a number below `before`, newest first, also those of a document in the bin."""

    def chunks(self, version: Version) -> list[Chunk]: ...
    def begins(self) -> str | None:
        """Return from when on every former version is kept; None if that is so for all times."""

    def changed_since(self, instant: datetime) -> list[int]:
        """Return the documents that were added, changed or deleted after a moment, by ascending id."""

    def discard(self, document_id: int, author: Author) -> None:
        """Move a document to the bin, with those that came inside it; if nothing is kept there, delete it for good."""

    def discard_parts(self, document_id: int, *, keep: Collection[str | None], author: Author) -> None:
        """Discard the documents that came inside this one, but those at the paths to `keep`."""

    def binned(self, document_id: int) -> Binned | None: ...
    def in_bin(self, source_path: str, content_hash: str) -> list[Binned]:
        """Return the files in the bin that were at a path or held a content, the last deleted first."""

    def bin(self, *, limit: int, before: tuple[str, int] | None = None) -> list[Binned]:
        """Return what is in the bin, the last deleted first; `before` is the time and id of the last one of a page."""

    def parts_in_bin(self, document_id: int) -> list[int]:
        """Return the documents in the bin that came inside this one."""

    def restore(self, document_id: int, content: Content, author: Author) -> None:
        """Bring a document back from the bin, with the content that it had."""

    def expire(self, limit: int) -> int:
        """Delete at most `limit` documents and versions for good whose time has come; return how many."""

    def counts(self) -> HistoryCounts: ...


class Jobs(Protocol):
    """The queue."""

    def add(self, job: NewJob) -> int:
        """Queue a job and return its id, or the id of the job that was accepted under its idempotency key."""

    def get(self, job_id: int) -> Job | None: ...
    def with_key(self, idempotency_key: str) -> Job | None:
        """Return the job that was accepted under this key."""

    def pending(self, of: Caller | None = None) -> int:
        """Return how many jobs are queued or running, of all or of those that one sent."""

    def page(self, *, status: JobStatus | None, limit: int, before: int | None, of: Caller | None = None) -> list[Job]:
        """Jobs with an id below `before`, newest first, of all or of those that one sent."""

    def claim(self, limit: int, *, files: bool = True, begun_first: bool = False) -> list[Job]:
        """Turn the oldest queued jobs to running, which counts as an attempt: new ones together.

        When there is none, one that was begun before, by itself; with `begun_first` the other way round. No job goes
        before an earlier one with its path. Those of files are left out unless `files`.
        """

    def claim_short(self, limit: int, size: int, is_short: Callable[[str], bool] | None) -> list[Job]:
        """Turn queued new notes of at most so many bytes to running, and the files that `is_short` says are short.

        No job goes before an earlier one with its path. Notes are found behind any number of files; of the files only
        the first are looked at.
        """

    def heartbeat(self, job_ids: Iterable[int]) -> None:
        """Say that the jobs are still being worked on."""

    def set_progress(self, job_id: int, progress: float) -> bool:
        """Say how far the job is, from 0 to 1; answers whether it is still there."""

    def set_started(self, job_id: int, seconds: float) -> None:
        """Say that the job was begun so long ago: before, it waited for others that were claimed with it."""

    def take_up(self, attempts: int, error: str) -> list[int]:
        """Queue every running job again: whoever ran it is gone. Fail those begun so often; return their ids."""

    def release_stalled(self, seconds: float) -> int:
        """Queue running jobs again that gave no heartbeat for so long, which counts as no attempt; answers how many."""

    def release(self, job_ids: Iterable[int], *, failed: bool) -> None:
        """Queue running jobs again that are this engine's still; the attempt counts if it `failed`."""

    def finish(
        self, job_id: int, document_id: int, *, existed: bool = False, omitted: Mapping[str, int] | None = ...
    ) -> None:
        """The job is done; its text is in the document now, or `existed` there; so much of its file was not read.

        Earlier jobs for its path that failed for what they held, such as half of a file, are forgotten.

        Raises:
            LeaseLost: another engine has it.
        """

    def fail(self, job_id: int, error: str, *, drop: bool = False) -> None:
        """The job failed, for a reason in plain words; to `drop` what it waited with is of no use any more.

        Raises as `finish`.
        """

    def later(self, job_id: int) -> int | None:
        """Return the last job that came after this one for its path, and is done or runs."""

    def retry(self, job_id: int) -> bool:
        """Queue a failed job again whose content is still there; answers whether it was one."""

    def retry_parts(self, document_id: int) -> None:
        """Queue the failed jobs again of what came inside a document that have their content and no `later`."""

    def expire(self, days: int, limit: int) -> int:
        """Delete at most `limit` jobs that were done so many days ago, the oldest first; return how many.

        Nothing of their documents goes. Failed jobs stay.
        """

    def delete(self, job_id: int) -> None:
        """Forget the job, its idempotency key and what it would have written."""

    def staged(self) -> set[str]:
        """Return the staged files that are still needed."""


class SecondVectors(Protocol):
    """Vectors of another model or prefix, beside those in use."""

    def get(self) -> SecondSpace | None:
        """Return what they are of, and what is being done with them; None if there are none."""

    def begin(self, space: VectorSpace) -> None:
        """Begin with none, of this space; those that were there go."""

    def set_state(self, state: ReembedState) -> None: ...
    def take(self) -> bool:
        """Have this engine make them, from now on or still; return False if another one that is there does."""

    def discard(self) -> None:
        """Delete them."""

    def counts(self) -> tuple[int, int]:
        """Return how many there are, and how many there will be: of chunks and of former contents."""

    def missing(self, after: int, limit: int) -> list[MissingVector]:
        """Return at most `limit` chunks above an id that have none, by ascending id."""

    def add(self, ids: Sequence[int], vectors: NDArray[np.float32]) -> None:
        """Write the vectors of those of these chunks that are there still."""

    def code(self) -> bool:
        """Make some of what searches over many vectors need; return whether there may be more to make."""

    def switch(self) -> bool:
        """Let them and the vectors in use change places; return False, and change nothing, if one is missing.

        Nothing else may be written in the same transaction.
        """


class Selection(Protocol):
    """The chunks that a filter admits, as the two legs of search see them."""

    def chunk_ids(self) -> NDArray[np.int64]:
        """Return the chunks, ascending; there may be as many as there are in the store."""

    def full_text(self, words: Sequence[str], limit: int) -> ScoredChunks:
        """Return the `limit` chunks that match any of the words best."""

    def look_up(self, words: Iterable[str]) -> None:
        """Find out together where words are that will be asked for; what is asked over a network takes less time so."""

    def best_ids(self, words: Sequence[str], limit: int) -> NDArray[np.int64]:
        """Return the ids, ascending, of the `limit` chunks that match any of the words best."""

    def full_text_scores(self, words: Sequence[str], ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how well these chunks match; NaN for one that has none of the words."""

    def occurrences(self, words: Sequence[str], ids: NDArray[np.int64]) -> list[Occurrences | None]:
        """Return the occurrences of each word in these chunks, of which each is there.

        They are None for a word that no chunk has, for a beginning, and for a word of very many tokens.
        """

    def nearest(self, vector: NDArray[np.float32], limit: int, *, exact: bool = False) -> ScoredChunks:
        """Return the `limit` chunks nearest to a unit vector, by cosine. Unless `exact`, some may be missed."""

    def cosines(self, vector: NDArray[np.float32], ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how near these chunks are to a unit vector."""

    def vectors(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the vectors of these chunks by ascending id, shape (n, dimensions); zeros for one without a vector."""

    def in_context(self, words: Sequence[str], vector: NDArray[np.float32], ids: NDArray[np.int64]) -> Neighbourhood:
        """Return the scores of chunks, given best first, together with what stands beside them, where something does.

        That is the rest of their document, or of their thread if they are short notes: then the neighbours, if the
        filter admits them, are among the chunks returned.
        """

    def unknown(self, words: Sequence[str]) -> dict[str, list[str]]:
        """Return those of the words that no chunk has, each with others that some have, the nearest first."""


class Index(Protocol):
    """What search asks."""

    @property
    def analyzer(self) -> Analyzer: ...
    @property
    def languages(self) -> Sequence[str]:
        """The languages that documents are in."""

    def select(self, where: Filter) -> Selection: ...
    def documents_of(self, chunk_ids: NDArray[np.int64]) -> list[int]:
        """Return the documents that the chunks are of, in the order given."""

    def hits(self, chunk_ids: Sequence[int]) -> list[Hit]:
        """Return the chunks with their documents, in the order given."""


class Audit(Protocol):
    """Who did what. A line is written in the transaction of what it tells of."""

    def add(self, events: Iterable[AuditEvent], author: Author) -> None: ...
    def page(self, *, limit: int, before: int | None, document_id: int | None, by: str | None) -> list[AuditLine]:
        """Return lines with an id below `before`, newest first, of all or of a document or a key."""

    def expire(self, limit: int) -> int:
        """Delete at most `limit` lines that are too old or too many, the oldest first; return how many."""


class Operations(Protocol):
    """What belongs together and is taken back together."""

    def get(self, number: int) -> Operation | None: ...
    def page(self, *, limit: int, before: int | None = None, of: Caller | None = None) -> list[Operation]:
        """Return operations of which something is left, newest first, of all or of one caller."""

    def documents(self, number: int) -> list[int]:
        """Return the documents that an operation added, changed or deleted, by ascending id."""

    def jobs(self, operation: Operation) -> list[int]:
        """Return the jobs of an operation that are not done yet."""

    def counts(self, number: int) -> OperationCounts: ...


class Folders(Protocol):
    """The folders that are kept in step, and the files in them that stay out."""

    def all(self) -> list[SyncedFolder]: ...
    def put(self, folder: SyncedFolder) -> None: ...
    def remove(self, prefix: str) -> None: ...
    def left_out(self) -> list[str]:
        """Return the paths of the files that stay out."""

    def leave_out(self, source_path: str) -> None: ...
    def let_in(self, source_path: str) -> None: ...


class Transaction(Protocol):
    """One moment of the database, or one change of it."""

    @property
    def documents(self) -> Documents: ...
    @property
    def history(self) -> History: ...
    @property
    def jobs(self) -> Jobs: ...
    @property
    def operations(self) -> Operations: ...
    @property
    def folders(self) -> Folders: ...
    @property
    def second(self) -> SecondVectors: ...
    @property
    def space(self) -> VectorSpace:
        """What the vectors are of."""

    @property
    def generation(self) -> int:
        """The number of the moment that the vectors are of: another one after each change of them."""

    @property
    def index(self) -> Index: ...
    @property
    def audit(self) -> Audit: ...
    def counts(self, of: Caller | None = None) -> Counts:
        """Return how much is in the database; or how many of the documents and jobs are the caller's to see."""


class Keys(Protocol):
    """The keys that have names. Each change is durable when the method returns."""

    def all(self) -> list[NamedKey]: ...
    def add(self, key: NamedKey) -> bool:
        """Write a key, unless there is one of its name; return whether there was none."""

    def rotate(self, key: NamedKey, before: str) -> bool:
        """Write the digests of a key whose digest is still `before`; return whether there was one."""

    def remove(self, name: str) -> None: ...
    def used(self, moments: Mapping[str, str]) -> None:
        """Write when keys were used last, by their names; one that is not there any more does not come back."""


class Store(Protocol):
    """A database of documents. Safe to use from several threads; a transaction belongs to one."""

    @property
    def schema_version(self) -> int: ...
    @property
    def full_text(self) -> str:
        """What answers searches by words, in words."""

    @property
    def memory(self) -> MemoryUse: ...
    @property
    def is_shared(self) -> bool:
        """Whether other engines may use it at the same time."""

    @property
    def keys(self) -> Keys | None:
        """The keys that its engines share; None where there is one engine, which has them in a file."""

    @property
    def replica(self) -> ReplicaState | None:
        """How the replica does that `view` asks; None where there is none."""

    def read(self) -> AbstractContextManager[Transaction]: ...
    def view(self) -> AbstractContextManager[Transaction]:
        """Read for an answer, at a replica where there is one: what `write` committed before is seen, as by `read`.

        What `queue` did may not be seen yet.

        Raises:
            StoreUnavailable: the replica broke off; ask `read` instead.
        """

    def write(self, checkpoint: Callable[[], None] = lambda: None) -> AbstractContextManager[Transaction]:
        """Commit, durably, when the block ends; roll back when it raises.

        `checkpoint` is called between chunks that are written, and may end the block by raising.

        Writes are serialised: between the beginning of one and its end there is no other, from this process or another
        one. So what a write has read stays true until it commits, and its callers may look first and then write: that
        the same content is one document, and that a path has one, rests on this. (That a key has one job is a unique
        index besides.) A backend whose database lets two writers in takes a lock of its own.
        """

    def queue(self) -> AbstractContextManager[Transaction]:
        """Commit as `write` does a change of the queue's states alone, which need not wait for who writes documents.

        Such changes are serialised among themselves.
        """

    def listen(self, wake: Callable[[], None], ended: Callable[[int], None] = ...) -> None:
        """Have `wake` called, from any thread, when another process queued a job, and `ended` with one that ended.

        Where a connection breaks, word of an end may be lost.
        """

    def reclaim(self) -> bool:
        """Give a little of the space back that nothing stands on any more; answers whether there is more.

        For when nothing else is to be done: what is written meanwhile waits some milliseconds.
        """

    def check(self) -> None:
        """Read something.

        Raises:
            StoreError: the database cannot be read.
            StoreUnavailable: it does not answer.
        """

    def close(self) -> None: ...
