"""The interface of a store.

All work happens in a transaction. `with store.read() as tx` sees a snapshot of the database. `with store.write() as tx`
changes it completely or not at all; writes run one after the other. A transaction's methods are grouped by subject.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kb.api.fields import JobStatus, ReembedState, Sort
from kb.api.rights import Caller, Limit
from kb.index.vectors.scores import Neighbourhood, ScoredChunks
from kb.index.words.matches import Occurrences
from kb.store.analyzer import Analyzer
from kb.store.rows import (
    AuditEvent,
    AuditLine,
    Author,
    Backlink,
    Binned,
    Chunk,
    ChunkPlace,
    Content,
    Counts,
    Document,
    Extent,
    Filter,
    Grant,
    HistoryCounts,
    Hit,
    Job,
    MemoryUse,
    MissingVector,
    Named,
    NamedKey,
    NewJob,
    NoteFile,
    NotesFolderState,
    Operation,
    OperationCounts,
    OutgoingLink,
    Repeated,
    ReplicaState,
    SecondSpace,
    SyncedFolder,
    VectorSpace,
    Version,
    WrittenText,
)


class Documents(Protocol):
    """Documents with their tags and chunks."""

    def get(self, document_id: int) -> Document | None: ...
    def chunks(self, document_id: int, start: int = 0, limit: int | None = None) -> list[Chunk]: ...
    def chunks_between(self, document_id: int, start: int, end: int) -> list[Chunk]:
        """Return the chunks that overlap the characters from `start` to `end`, excluding `end`."""

    def chunk_places(self, document_id: int) -> list[ChunkPlace]:
        """Return the positions of a document's chunks, in order."""

    def chunk_ids(self, document_ids: Sequence[int], most: int) -> list[tuple[int, int]]:
        """Return the first `most` chunks of each document, as pairs of document and chunk ids."""

    def extent(self, document_id: int) -> Extent: ...
    def page(self, where: Filter, *, sort: Sort, limit: int, cursor: str | None) -> list[Document]:
        """Return the documents after `cursor`, which `cursor_after` made from the last one of the previous page."""

    def count(self, where: Filter) -> int:
        """Return the number of documents that the filter admits."""

    def repeated(self, *, limit: int, before: int | None, within: Limit | None = None) -> list[Repeated]:
        """Return the content that several documents share, newest document first, all below the id `before`.

        Documents inside others, such as attachments, do not count.
        """

    def having(self, content_hash: str, *, limit: int, within: Limit | None = None) -> list[Document]:
        """Return the oldest documents with a content, apart from documents inside others."""

    def beginning_with(self, doc_type: str, beginning: str) -> list[int]:
        """Return the documents of a type whose first chunk begins with `beginning`."""

    def with_content(
        self, content_hash: str, source_path: str | None, *, note: bool, limit: Limit | None = None
    ) -> Document | None:
        """Return the note, or the file, that has this content at this path (requirement E-11)."""

    def with_body(self, body_hash: str, most: int, limit: Limit | None = None) -> Iterator[Document]:
        """Yield at most `most` notes without a path that say the same, the oldest first.

        Titles, dates and tags in their front matter may differ.
        """

    def at_path(self, source_path: str) -> Document | None: ...
    def named(self, tokens: Collection[str], most: int, limit: int, within: Limit | None = None) -> list[Named]:
        """Return at most `limit` documents whose names contain some of these words, matches of rare words first.

        Words in the names of more than `most` documents are ignored. Only documents that `within` admits count.
        """

    def has_successors(self) -> bool:
        """Return whether any document replaces another, or ever did."""

    def successors(self, document_ids: Iterable[int]) -> dict[int, list[int]]:
        """Return the direct and indirect replacements of each document, the nearest first.

        Documents without a replacement are left out, and so are replacements in the bin.
        """

    def add(
        self,
        content: Content,
        source_path: str | None,
        tags: Iterable[str],
        part_of: int | None = None,
        author: Author = ...,
    ) -> int:
        """Write a new document and return its id. `part_of` is the document whose file contained it."""

    def replace(self, document_id: int, content: Content) -> None:
        """Replace the whole content of the document in place, and set `updated_at` (requirement N-2).

        Passages that stay keep their ids and vectors. The file name stays if the content has none.
        """

    def update(self, document_id: int, content: Content) -> None:
        """Do as `replace`, but keep the text."""

    def has_vectors(self, document_id: int) -> bool:
        """Return whether each chunk of the document has a vector other than zeros."""

    def without_vectors(self, document_id: int) -> list[Chunk]:
        """Return the chunks of the document whose vectors are zeros, because they are not made yet."""

    def set_vectors(self, document_id: int, vectors: Mapping[int, NDArray[np.float32]], space: VectorSpace) -> None:
        """Set the vectors of such chunks, by their ids. The document does not change.

        Raises:
            ModelChanged: they are of the model that was in use before.
        """

    def rename(self, document_id: int, filename: str) -> None:
        """Set the name of the document's file, and nothing else."""

    def stamp(self, document_id: int, updated_at: str | None) -> None:
        """Set the time of the document's last change."""

    def move(self, document_id: int, source_path: str | None) -> None:
        """Set the source path of the document, adapt the paths of documents from its file, and change nothing else."""

    def delete(self, document_id: int) -> None:
        """Purge a document, even from the bin, with its earlier versions and the documents from its file.

        No chunk, FTS entry or vector remains (requirement E-6), and its jobs keep nothing about it.
        """

    def change_tags(self, document_id: int, *, add: Iterable[str], remove: Iterable[str]) -> bool:
        """Add and remove tags; return whether they changed, and if so, set `updated_at` (requirements E-7, N-5)."""

    def parts(self, document_id: int) -> list[tuple[int, str | None]]:
        """Return the ids and paths of the documents that came from this one's file, such as attachments."""

    def part_of(self, document_id: int) -> int | None:
        """Return the document whose file contained this one."""

    def tags(self, limit: Limit | None = None) -> list[tuple[str, int]]:
        """Return every tag in use with the number of its documents."""

    def folders(self, prefix: str, most: int, limit: Limit | None = None) -> list[tuple[str, int]]:
        """Return the folders right below a beginning of paths, such as `vault/`, with the number of documents in each.

        Documents inside others do not count. Only the first `most` folders are returned, in the order of their names.
        """

    def branches(self, limit: Limit | None = None) -> dict[str, int]:
        """Return every tag with tags below it, with the number of documents that have it or one of these tags."""

    def file_hashes(self) -> set[str]:
        """Return the hashes of the files of all documents and their earlier versions."""

    def take_unneeded_files(self) -> list[str]:
        """Return the hashes of the files that lost their last document, and clear this list."""

    def link_older(self, limit: int) -> bool:
        """Write the links of up to `limit` documents of an older kb; return whether more may be left."""


class Links(Protocol):
    """The links in documents. Each call looks up the documents that they lead to."""

    @property
    def is_complete(self) -> bool:
        """Whether kb has read the links of all documents since an upgrade."""

    def outgoing(self, document: Document, limit: Limit | None = None) -> list[OutgoingLink]:
        """Return the links in a document, in order. Web addresses that kb does not hold are left out."""

    def in_text(self, text: str, document: Document | None, limit: Limit | None = None) -> list[OutgoingLink]:
        """Return the links in a text that a document, or failing that, a new note, will have."""

    def is_linked(self, source_path: str) -> bool:
        """Return whether a document links to a file that kb may not have, by its path or name."""

    def incoming(self, document: Document, most: int, limit: Limit | None = None) -> tuple[list[Backlink], int]:
        """Return the first `most` documents with a link to a document, and the number of all of them."""


class History(Protocol):
    """Earlier versions of documents, and the bin."""

    @property
    def has_bin(self) -> bool:
        """Whether deleted documents can be restored."""

    def keep(self, document_id: int, author: Author) -> None:
        """Keep the document's current state, before the author changes it in this transaction."""

    def unlink(self, document_id: int, author: Author) -> None:
        """Take a document out of its chain of replacements: its successors now replace its predecessor."""

    def versions(self, document_id: int, *, limit: int, before: int | None = None) -> list[Version]:
        """Return versions with a number below `before`, newest first; works for documents in the bin."""

    def chunks(self, version: Version) -> list[Chunk]: ...
    def begins(self) -> str | None:
        """Return the time since which every earlier version is kept; None if the history is complete."""

    def changed_since(self, instant: datetime) -> list[int]:
        """Return the documents that were added, changed or deleted at or after `instant`, by ascending id."""

    def discard(self, document_id: int, author: Author) -> None:
        """Move a document to the bin, with the documents from its file; purge them if the bin is off."""

    def discard_parts(self, document_id: int, *, keep: Collection[str | None], author: Author) -> None:
        """Discard the documents from this one's file, except at the paths to `keep`."""

    def binned(self, document_id: int) -> Binned | None: ...
    def in_bin(self, source_path: str, content_hash: str) -> list[Binned]:
        """Return the files in the bin that had this path or this content, most recently deleted first."""

    def bin(self, *, limit: int, before: tuple[str, int] | None = None) -> list[Binned]:
        """Return the documents in the bin, most recently deleted first.

        `before` is the deletion time and id of the last document on the previous page.
        """

    def parts_in_bin(self, document_id: int) -> list[int]:
        """Return the documents in the bin that came from this one's file."""

    def restore(self, document_id: int, content: Content, author: Author) -> None:
        """Restore a document from the bin with its content."""

    def expire(self, limit: int) -> int:
        """Purge at most `limit` documents and versions whose time is up; return the number."""

    def counts(self) -> HistoryCounts: ...


class Jobs(Protocol):
    """The queue."""

    def add(self, job: NewJob) -> int:
        """Queue a job and return its id, or the id of the job already accepted with its idempotency key."""

    def await_vectors(
        self, document_id: int, title: str, text: str, author: Author, limit: Limit | None = None
    ) -> None:
        """Queue a job for the vectors of a document's passages with this text, unless one is queued."""

    def get(self, job_id: int) -> Job | None: ...
    def with_key(self, idempotency_key: str) -> Job | None:
        """Return the job that was accepted with this key."""

    def pending(self, of: Caller | None = None) -> int:
        """Return the number of queued and running jobs, of all callers or of one."""

    def page(self, *, status: JobStatus | None, limit: int, before: int | None, of: Caller | None = None) -> list[Job]:
        """Return jobs with an id below `before`, newest first, of all callers or of one."""

    def claim(self, limit: int, *, files: bool = True, begun_first: bool = False) -> list[Job]:
        """Set the oldest queued jobs to running, which counts as an attempt.

        Takes up to `limit` new jobs, or if no new job is queued, one job with an earlier attempt. `begun_first` tries
        the job with an earlier attempt first. No job overtakes an earlier one with the same path. Jobs for files are
        left out unless `files`.
        """

    def claim_short(self, limit: int, size: int, is_short: Callable[[str], bool] | None) -> list[Job]:
        """Set queued new notes of at most `size` bytes to running, and files for which `is_short` returns True.

        No job overtakes an earlier one with the same path. Notes are found after any number of files, but only the
        first files are examined.
        """

    def heartbeat(self, job_ids: Iterable[int]) -> None:
        """Record that the jobs are still in progress."""

    def set_progress(self, job_id: int, progress: float) -> bool:
        """Set the progress of a job, from 0 to 1; return whether the job still exists."""

    def set_started(self, job_id: int, seconds: float) -> None:
        """Set the start of a job to `seconds` ago; until then it waited for other jobs claimed with it."""

    def take_up(self, attempts: int, error: str) -> list[int]:
        """Requeue the running jobs of engines that are gone.

        Jobs with at least `attempts` attempts fail with `error` instead; return their ids.
        """

    def try_vectors_again(self, seconds: float, attempts: int) -> int:
        """Requeue the jobs that failed `seconds` ago and whose documents lack only vectors; return their number.

        They count as having had so many attempts.
        """

    def release_stalled(self, seconds: float) -> int:
        """Requeue running jobs without a heartbeat for `seconds`; the attempt does not count. Return the number."""

    def release(self, job_ids: Iterable[int], *, failed: bool) -> None:
        """Requeue running jobs that this engine still holds; the attempt counts if it `failed`."""

    def finish(
        self, job_id: int, document_id: int, *, existed: bool = False, omitted: Mapping[str, int] | None = ...
    ) -> None:
        """Mark a job as done.

        Its text is now in the document, or `existed` there already. `omitted` counts the unread parts of its file.
        Earlier jobs for its path that failed because of their content, such as half of a file, are deleted.

        Raises:
            LeaseLost: another engine has the job.
        """

    def set_document(self, job_id: int, document_id: int, *, existed: bool, omitted: Mapping[str, int]) -> None:
        """Record the document of a queued job that is stored already: only its vectors are missing."""

    def awaits(self, source_path: str, before: int) -> bool:
        """Return whether a queued or running job with an id below `before` will write to this path."""

    def fail(self, job_id: int, error: str, *, drop: bool = False) -> None:
        """Mark a job as failed, for a reason in plain words; `drop` deletes its content, which is of no further use.

        Raises the same errors as `finish`.
        """

    def later(self, job_id: int) -> int | None:
        """Return the last later job for the same path that is done or running."""

    def retry(self, job_id: int) -> bool:
        """Requeue a failed job that still has its content; return whether it was one."""

    def retry_parts(self, document_id: int) -> None:
        """Requeue the failed jobs for files inside a document that still have their content and no `later` job."""

    def expire(self, days: int, limit: int) -> int:
        """Delete at most `limit` jobs that finished more than `days` ago, the oldest first; return the number.

        Their documents stay, and so do failed jobs.
        """

    def delete(self, job_id: int) -> None:
        """Delete the job, its idempotency key and its content."""

    def staged(self) -> set[str]:
        """Return the staged files that are still needed."""


class SecondVectors(Protocol):
    """Vectors of another model or prefix, in addition to the vectors in use."""

    def get(self) -> SecondSpace | None:
        """Return their space and state, or None if there are no second vectors."""

    def begin(self, space: VectorSpace) -> None:
        """Delete any second vectors and begin an empty set of this space."""

    def set_state(self, state: ReembedState) -> None: ...
    def take(self) -> bool:
        """Make this engine compute them, or let it go on; return False if another live engine does."""

    def discard(self) -> None:
        """Delete the second vectors."""

    def counts(self) -> tuple[int, int]:
        """Return the current and the final number of second vectors, including vectors of earlier contents."""

    def missing(self, after: int, limit: int) -> list[MissingVector]:
        """Return at most `limit` chunks without a second vector and with an id above `after`, by ascending id."""

    def add(self, ids: Sequence[int], vectors: NDArray[np.float32]) -> None:
        """Write the vectors of these chunks, except for chunks that no longer exist."""

    def code(self) -> bool:
        """Build a part of the structures that searches over many vectors need; return whether more may be missing."""

    def switch(self) -> bool:
        """Swap them with the vectors in use; return False and change nothing if a vector is missing.

        The same transaction must write nothing else.
        """


class Selection(Protocol):
    """The chunks that a filter admits, for keyword and semantic search."""

    def chunk_ids(self) -> NDArray[np.int64]:
        """Return the ids of the chunks, ascending; possibly of all chunks in the store."""

    def full_text(self, words: Sequence[str], limit: int) -> ScoredChunks:
        """Return the `limit` chunks that match any of the words best."""

    def look_up(self, words: Iterable[str]) -> None:
        """Look up words that are needed later in one request, which saves time over a network."""

    def best_ids(self, words: Sequence[str], limit: int) -> NDArray[np.int64]:
        """Return the ids, ascending, of the `limit` chunks that match any of the words best."""

    def full_text_scores(self, words: Sequence[str], ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the full-text scores of these chunks; NaN for a chunk without any of the words."""

    def occurrences(self, words: Sequence[str], ids: NDArray[np.int64]) -> list[Occurrences | None]:
        """Return the occurrences of each word in these chunks, all of which must exist.

        They are None for a word that no chunk contains, for a prefix, and for a word of very many tokens.
        """

    def nearest(self, vector: NDArray[np.float32], limit: int, *, exact: bool = False) -> ScoredChunks:
        """Return the `limit` chunks nearest to a unit vector, by cosine. Unless `exact`, some may be missed."""

    def cosines(self, vector: NDArray[np.float32], ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the cosines of these chunks' vectors with a unit vector."""

    def vectors(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the vectors of these chunks by ascending id, shape (n, dimensions); zeros for one without a vector."""

    def in_context(self, words: Sequence[str], vector: NDArray[np.float32], ids: NDArray[np.int64]) -> Neighbourhood:
        """Return the scores of chunks together with their neighbours, for chunks that have any.

        The ids come best first. The neighbours are the rest of the document, or for a short note, the rest of its
        thread. Neighbours in a thread are also among the returned chunks if the filter admits them.
        """

    def unknown(self, words: Sequence[str]) -> dict[str, list[str]]:
        """Return the words that no chunk contains, each with similar words that some contain, the nearest first."""


class Index(Protocol):
    """The indexes for searches."""

    @property
    def analyzer(self) -> Analyzer: ...
    @property
    def languages(self) -> Sequence[str]:
        """The languages of the documents."""

    def select(self, where: Filter) -> Selection: ...
    def related(self, words: Iterable[str]) -> dict[str, list[str]]:
        """Return the words of the database that are compounds with a word, or the word in another script."""

    def documents_of(self, chunk_ids: NDArray[np.int64]) -> list[int]:
        """Return the document of each chunk, in the order given."""

    def hits(self, chunk_ids: Sequence[int]) -> list[Hit]:
        """Return the chunks with their documents, in the order given."""

    def texts(self, chunk_ids: Sequence[int]) -> list[WrittenText]:
        """Return the texts of the chunks, in the order given: much faster than `hits`."""


class Audit(Protocol):
    """The audit log. A line is written in the same transaction as the change that it records."""

    def add(self, events: Iterable[AuditEvent], author: Author) -> None: ...
    def page(self, *, limit: int, before: int | None, document_id: int | None, by: str | None) -> list[AuditLine]:
        """Return lines with an id below `before`, newest first, optionally only of one document or key."""

    def expire(self, limit: int) -> int:
        """Delete at most `limit` lines that are too old or too many, the oldest first; return the number."""


class Operations(Protocol):
    """Changes that belong together and can be undone together."""

    def get(self, number: int) -> Operation | None: ...
    def page(
        self, *, limit: int, before: int | None = None, of: Caller | None = None, key: str | None = None
    ) -> list[Operation]:
        """Return operations that still have changes to undo, newest first, of all callers, of one, or with a key."""

    def documents(self, number: int) -> list[int]:
        """Return the documents that an operation added, changed or deleted, by ascending id."""

    def jobs(self, operation: Operation) -> list[int]:
        """Return the unfinished jobs of an operation."""

    def counts(self, number: int) -> OperationCounts: ...


class Folders(Protocol):
    """The synced folders, and the files in them that kb leaves out."""

    def all(self) -> list[SyncedFolder]: ...
    def put(self, folder: SyncedFolder) -> None:
        """Record a folder. Its `watch` stays, unless another machine takes the folder over."""

    def set_watch(self, prefix: str, watch: str | None, *, is_kept: bool = False) -> None: ...
    def remove(self, prefix: str) -> None: ...
    def left_out(self) -> list[str]:
        """Return the paths of the files that kb leaves out."""

    def leave_out(self, source_path: str) -> None: ...
    def let_in(self, source_path: str) -> None: ...


class Dismissals(Protocol):
    """Pairs of contents that a person called no duplicates, each in ascending order of the hashes."""

    def all(self) -> set[tuple[str, str]]: ...
    def set(self, pairs: Iterable[tuple[str, str]], *, dismissed: bool) -> None:
        """Add or remove pairs."""


class Grants(Protocol):
    """The grants of access to programs."""

    def all(self) -> list[Grant]:
        """Return all grants, the oldest first."""

    def add(self, grant: Grant) -> None: ...
    def exchange(self, grant: Grant, before: str) -> bool:
        """Write new tokens of a grant if its next digest is still `before`; return whether it was."""

    def used(self, grant_id: str, at: str) -> None: ...
    def remove(self, grant_id: str) -> None: ...
    def remove_of(self, key_name: str) -> None:
        """Remove the grants of a key."""

    def expire(self, now: str) -> None:
        """Remove grants that nobody can use any more."""


class NoteFiles(Protocol):
    """A folder that the engine keeps, and the files in it."""

    def take(self, holder: str, seconds: float) -> bool:
        """Become or stay the engine that holds the folder; False if another one held it in the last `seconds`.

        With 0 seconds, the engine always takes it.
        """

    def release(self, holder: str) -> None:
        """Release the folder if this engine holds it."""

    def folder(self) -> NotesFolderState: ...
    def set_folder(self, state: NotesFolderState) -> None:
        """Write the state of the folder; an engine must hold it."""

    def forget(self) -> None:
        """Forget the folder and its files."""

    def all(self) -> list[NoteFile]:
        """Return the files of notes."""

    def attachments(self) -> list[NoteFile]:
        """Return the files of other documents."""

    def unwritten_attachments(self) -> list[tuple[int, int]]:
        """Return the other documents with a file that changed, or below `attachments`, as `unwritten` returns notes."""

    def base(self, document_id: int) -> bytes | None:
        """Return what `put` got along with the file of a note."""

    def put(self, file: NoteFile, base: bytes) -> None:
        """Write the row of a file. A path has one row: another note's file loses it, and that of another file goes."""

    def settle(self, document_id: int, version: int) -> None:
        """Record that the file of a note matches this version of the note."""

    def remove(self, document_id: int) -> None: ...
    def clear(self) -> None: ...
    def distrust(self) -> None:
        """Forget the content of all files, but not the notes that they belong to."""

    def unwritten(self) -> list[tuple[int, int]]:
        """Return the notes whose version is not the version of their file, with their versions, by ascending id."""

    def without_path(self, after: int, since: str) -> list[int]:
        """Return notes without a path, created since a time and with an id above `after`, in ascending order of id."""

    def gone(self) -> list[int]:
        """Return the notes that no longer exist, or belong to another folder now, but still have a file."""


class Transaction(Protocol):
    """A snapshot of the database, or one change to it."""

    @property
    def documents(self) -> Documents: ...
    @property
    def history(self) -> History: ...
    @property
    def links(self) -> Links: ...
    @property
    def jobs(self) -> Jobs: ...
    @property
    def operations(self) -> Operations: ...
    @property
    def folders(self) -> Folders: ...
    @property
    def dismissals(self) -> Dismissals: ...
    def note_files(self, folder: str) -> NoteFiles:
        """Return the files of a folder that the engine keeps, whose paths begin so; empty for the notes folder."""

    @property
    def grants(self) -> Grants: ...
    @property
    def second(self) -> SecondVectors: ...
    @property
    def space(self) -> VectorSpace:
        """The space of the vectors."""

    @property
    def generation(self) -> int:
        """A number that changes with each change of the vectors."""

    @property
    def index(self) -> Index: ...
    @property
    def audit(self) -> Audit: ...
    def counts(self, of: Caller | None = None) -> Counts:
        """Return the counts of the database, or only of the documents and jobs that the caller may see."""


class Keys(Protocol):
    """The named keys. Each change is durable when the method returns."""

    def all(self) -> list[NamedKey]: ...
    def add(self, key: NamedKey) -> bool:
        """Write a key unless its name is taken; return whether it was written."""

    def rotate(self, key: NamedKey, before: str) -> bool:
        """Write the new digests of a key if its digest is still `before`; return whether it was."""

    def remove(self, name: str) -> None: ...
    def used(self, moments: Mapping[str, str]) -> None:
        """Write the time of the last use of keys, by name; a removed key stays removed."""


class Store(Protocol):
    """A database of documents. Threads may share a store, but not a transaction."""

    @property
    def schema_version(self) -> int: ...
    @property
    def full_text(self) -> str:
        """The engine of keyword searches, in words."""

    @property
    def memory(self) -> MemoryUse: ...
    @property
    def is_shared(self) -> bool:
        """Whether other engines may use the database at the same time."""

    @property
    def keys(self) -> Keys | None:
        """The keys that the engines share; None if the database has a single engine, which keeps them in a file."""

    @property
    def replica(self) -> ReplicaState | None:
        """The state of the replica that `view` uses, or None if there is no replica."""

    def read(self) -> AbstractContextManager[Transaction]: ...
    def view(self) -> AbstractContextManager[Transaction]:
        """Read for an answer, from a replica if possible. Like `read`, it sees all that `write` has committed.

        Changes by `queue` may not be visible yet.

        Raises:
            StoreUnavailable: the replica failed; use `read` instead.
        """

    def write(
        self, checkpoint: Callable[[], None] = lambda: None, *, urgent: bool = False
    ) -> AbstractContextManager[Transaction]:
        """Commit durably when the block ends; roll back if it raises.

        An `urgent` write, for which somebody waits, may go before other waiting writes.

        The store calls `checkpoint` between the chunks that it writes; `checkpoint` may end the block by raising.

        Writes are serialised across all processes. So the data that a write has read stays valid until it commits, and
        callers can check first and then write. This is why the same content makes only one document, and why a path has
        only one. (A unique index also keeps an idempotency key to one job.) A backend whose database allows concurrent
        writers takes its own lock.
        """

    @property
    def has_urgent(self) -> bool:
        """Whether an urgent write waits in this process. A long write should then end early and continue later."""

    def queue(self) -> AbstractContextManager[Transaction]:
        """Commit like `write`, but only changes of job states, which need not wait for writes of documents.

        Such changes are serialised among themselves.
        """

    def listen(self, wake: Callable[[], None], ended: Callable[[int], None] = ...) -> None:
        """Call `wake` when a job is queued, and `ended` with the id of a job that ends in another process.

        The calls come from any thread. If a connection breaks, the end of a job may go unreported.
        """

    def renew_words(self, documents: int) -> bool:
        """Index again the words of some documents of an older kb; return whether there may be more."""

    def reclaim(self) -> bool:
        """Free a little unused space; return whether more can be freed.

        Call it when kb is idle: writes wait a few milliseconds during the call.
        """

    def check(self) -> None:
        """Check that the database can be read.

        Raises:
            StoreError: the database cannot be read.
            StoreUnavailable: the database does not answer.
        """

    def close(self) -> None: ...
