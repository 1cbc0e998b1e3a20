"""The store as one caller may see and change it.

Only this module decides which documents and jobs exist for a limited key, and writes the audit log. Handlers get this
store, so a document outside the limit does not exist for them.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import ClassVar, cast

from kb.access.guard_kinds import (
    Guarded,
    allowed,
    at_path,
    changing,
    described,
    filtered,
    of_visible,
    path_refusal,
    within,
)
from kb.api.errors import Forbidden, NotFound
from kb.api.fields import JobStatus
from kb.api.rights import Caller, Limit
from kb.api.tag_tree import is_in_any
from kb.store import rows
from kb.store.protocol import (
    Audit,
    Documents,
    Folders,
    Grants,
    History,
    Index,
    Jobs,
    Links,
    Operations,
    Selection,
    Store,
    Transaction,
)
from kb.store.rows import NOBODY, AuditEvent, Author, HistoryCounts, VectorSpace

PAGE = 500


def restricted(store: Store, caller: Caller, client: str | None = None, *, at_primary: bool = False) -> Store:
    """Return the store as a caller may see and change it; see `CallerStore`."""
    return cast("Store", CallerStore(store, caller, client, at_primary=at_primary))


class CallerStore:
    """See `kb.store.protocol.Store`.

    Args:
        store: the whole store.
        client: the caller's program, for the audit log.
        at_primary: whether to avoid replicas.
    """

    def __init__(self, store: Store, caller: Caller, client: str | None = None, *, at_primary: bool = False) -> None:
        self._store = store
        self._at_primary = at_primary
        self._caller = caller
        self._author = Author(caller.name, client)

    @property
    def schema_version(self) -> int:
        """The number of the database's schema."""
        return self._store.schema_version

    @property
    def full_text(self) -> str:
        """The implementation of keyword search."""
        return self._store.full_text

    @property
    def replica(self) -> rows.ReplicaState | None:
        return self._store.replica

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        """A read transaction with the documents that the caller may write, if it may write."""
        with self._explained(), self._store.read() as tx:
            yield self._limited(tx)

    @contextmanager
    def view(self) -> Iterator[Transaction]:
        """A read transaction for an answer, possibly on a replica, with the documents visible to the caller."""
        with self._store.read() if self._at_primary else self._store.view() as tx:
            yield tx if self._caller.reads_all else self._limited(tx)

    def _limited(self, tx: Transaction) -> Transaction:
        mine = CallerTransaction(tx, self._caller, self._author)
        return tx if self._caller.limit is None else cast("Transaction", mine)

    @contextmanager
    def write(self, checkpoint: Callable[[], None] = lambda: None, *, urgent: bool = False) -> Iterator[Transaction]:
        """A write transaction within the caller's limit, with its lines in the audit log.

        Raises:
            Forbidden: a document would be outside the caller's limit; nothing is written.
        """
        with (
            self._explained(),
            self._store.write(checkpoint, urgent=urgent) as tx,
            as_caller(tx, self._caller, self._author) as mine,
        ):
            yield mine

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Say that a document, which the caller may well have read, can be missing only for those who write."""
        try:
            yield
        except NotFound as error:
            if not self._caller.reads_all:
                raise
            reason = f"it writes only {described(self._caller.limit)}"
            raise NotFound(f"{error.detail.rstrip('.')}, or this key may not change it: {reason}.") from error


@contextmanager
def as_caller(tx: Transaction, caller: Caller, author: Author) -> Iterator[Transaction]:
    """A transaction as a caller sees it; writes are checked against the limit and recorded in the audit log.

    Raises:
        Forbidden: a document would be outside the caller's limit.
    """
    mine = CallerTransaction(tx, caller, author)
    yield cast("Transaction", mine)
    mine.finish()


class CallerTransaction:
    """See `kb.store.protocol.Transaction`; `finish` checks and records the writes."""

    def __init__(self, tx: Transaction, caller: Caller, author: Author) -> None:
        self.inner = tx
        self.caller = caller
        self.documents = CallerDocuments(tx.documents, self)
        self.history = CallerHistory(tx.history, self)
        self.links = CallerLinks(tx.links, self)
        self.jobs = CallerJobs(tx.jobs, self)
        self.operations = CallerOperations(tx.operations, self)
        self.folders = CallerFolders(tx.folders, self)
        self.dismissals = tx.dismissals
        self._author = author
        self.changed: dict[int, str] = {}
        self._events: list[AuditEvent] = []

    @property
    def index(self) -> Index:
        """The index for searches."""
        return cast("Index", LimitedIndex(self.inner.index, self.limit)) if self.limit else self.inner.index

    def counts(self) -> rows.Counts:
        """Return the counts; only callers that read all get the counts of the whole database."""
        return self.inner.counts(self.caller if self.caller.seen else None)

    @property
    def space(self) -> VectorSpace:
        return self.inner.space

    @property
    def audit(self) -> Audit:
        """The audit log; the routes restrict it to admin keys."""
        return self.inner.audit

    @property
    def grants(self) -> Grants:
        """The grants of access to programs; the routes restrict them to admin keys."""
        return self.inner.grants

    @property
    def limit(self) -> Limit | None:
        return self.caller.limit

    def finish(self) -> None:
        """Check the writes, and record them in the audit log.

        Raises:
            Forbidden: a document would be outside the limit.
        """
        for document_id in self.changed:
            document = self.inner.documents.get(document_id)
            if document and not self.sees(document):
                raise Forbidden(
                    f"This key is limited to {described(self.limit)}; the change would move the document out of it."
                )
        changes = [AuditEvent(action, document_id) for document_id, action in self.changed.items()]
        self.inner.audit.add([*self._events, *changes], self._author)

    def record(self, action: str, document_ids: Iterable[int] = (), job_id: int | None = None) -> None:
        """Record an action on documents or on a job."""
        self._events += [AuditEvent(action, document_id) for document_id in document_ids]
        self._events += [AuditEvent(action, job_id=job_id)] if job_id else []

    def record_change(self, document_id: int, action: str) -> None:
        """Record the change of a document; new tags count as part of another change."""
        if self.changed.get(document_id) in (None, "retag"):
            self.changed[document_id] = action

    def sees(self, document: rows.Document) -> bool:
        """Return whether the caller may see a document in this state."""
        return self.limit is None or self.limit.admits(document.tags, document.source_path)

    def check(self, document_id: int) -> None:
        """Refuse a document that the caller may not see, current or in the bin, as if it did not exist.

        Raises:
            NotFound: the document is outside the caller's limit.
        """
        if self.limit and not (self.documents.get(document_id) or self.history.binned(document_id)):
            raise NotFound(f"Document {document_id} does not exist.")

    def check_parts(self, document_id: int) -> None:
        """Refuse to change a document with parts that the caller may not see.

        Raises:
            Forbidden: the document has such parts.
        """
        if self.limit and not all(map(self.documents.get, self.parts_of(document_id))):
            raise Forbidden(f"This key may not change all documents inside document {document_id}.")

    def parts_of(self, document_id: int) -> list[int]:
        parts = [part for part, _ in self.inner.documents.parts(document_id)]
        return parts + [inner for part in parts for inner in self.parts_of(part)]


class CallerDocuments(Guarded[Documents]):
    """See `kb.store.protocol.Documents`."""

    guards: ClassVar = {
        "has_successors": allowed,
        "file_hashes": allowed,
        "take_unneeded_files": allowed,
        "chunks": of_visible,
        "chunks_between": of_visible,
        "chunk_places": of_visible,
        "extent": of_visible,
        "parts": of_visible,
        "stamp": of_visible,
        "has_vectors": of_visible,
        "without_vectors": of_visible,
        "set_vectors": of_visible,
        "replace": changing("update"),
        "update": changing("update"),
        "rename": changing("update"),
        "page": filtered,
        "count": filtered,
        "repeated": within("within"),
        "having": within("within"),
        "named": within("within"),
        "tags": within("limit"),
        "folders": within("limit"),
        "branches": within("limit"),
        "with_content": within("limit"),
        "with_body": within("limit"),
    }

    def chunk_ids(self, document_ids: Sequence[int], most: int) -> list[tuple[int, int]]:
        visible = [document_id for document_id in document_ids if self.get(document_id)]
        return self.inner.chunk_ids(visible, most)

    def get(self, document_id: int) -> rows.Document | None:
        document = self.inner.get(document_id)
        return document if document and (self.tx.sees(document) or document_id in self.tx.changed) else None

    def part_of(self, document_id: int) -> int | None:
        whole = self.inner.part_of(document_id)
        return whole if whole and self.get(whole) else None

    def at_path(self, source_path: str) -> rows.Document | None:
        """Return the document at a path, for writing.

        Raises:
            Forbidden: the path or the document is outside the caller's limit.
        """
        limit = self.tx.limit
        if limit and limit.is_outside(source_path):  # before a look, whose result would show in the answer
            raise path_refusal(source_path, limit)
        document = self.inner.at_path(source_path)
        if document and not self.tx.sees(document):
            raise path_refusal(source_path, limit)
        return document

    def successors(self, document_ids: Iterable[int]) -> dict[int, list[int]]:
        """Return the documents that replace others, as far as the caller may see them."""
        successors = self.inner.successors(document_ids)
        if self.tx.limit is None:
            return successors
        every = {later for ids in successors.values() for later in ids}
        mine = {later for later in every if self.get(later) or self.tx.history.binned(later)}
        visible = {document_id: [id_ for id_ in later if id_ in mine] for document_id, later in successors.items()}
        return {document_id: later for document_id, later in visible.items() if later}

    def check_path(self, source_path: str | None) -> None:
        """Refuse a path that the caller may not write to.

        Raises:
            Forbidden: another caller's document has this path, or may get it.
        """
        limit = self.tx.limit
        if limit and source_path and self.at_path(source_path) is None and not limit.may_take(source_path):
            raise path_refusal(source_path, limit)

    def add(
        self,
        content: rows.Content,
        source_path: str | None,
        tags: Iterable[str],
        part_of: int | None = None,
        author: Author = NOBODY,
    ) -> int:
        """Write a new document.

        Raises:
            Forbidden: the caller may not use its path; the path of a part follows from its document.
        """
        if part_of is None:
            self.check_path(source_path)
        document_id = self.inner.add(content, source_path, tags, part_of, author)
        self.tx.record_change(document_id, "add")
        return document_id

    def move(self, document_id: int, source_path: str | None) -> None:
        self.tx.check(document_id)
        self.check_path(source_path)
        self.tx.check_parts(document_id)
        self.inner.move(document_id, source_path)
        self.tx.record_change(document_id, "move")

    def change_tags(self, document_id: int, *, add: Collection[str], remove: Collection[str]) -> bool:
        self.tx.check(document_id)
        is_changed = self.inner.change_tags(document_id, add=add, remove=remove)
        if is_changed:
            self.tx.record_change(document_id, "retag")
        return is_changed

    def delete(self, document_id: int) -> None:
        self.tx.check(document_id)
        self.tx.check_parts(document_id)
        gone = [document_id, *self.tx.parts_of(document_id), *self.tx.inner.history.parts_in_bin(document_id)]
        self.inner.delete(document_id)
        self.tx.record("purge", gone)


class CallerLinks(Guarded[Links]):
    """See `kb.store.protocol.Links`. For a limited caller, links lead only to documents within its limit."""

    guards: ClassVar = {
        "is_complete": allowed,
        "is_linked": at_path,
        "outgoing": within("limit"),
        "in_text": within("limit"),
        "incoming": within("limit"),
    }


class CallerHistory(Guarded[History]):
    """See `kb.store.protocol.History`. A limited caller sees a version if it and its document are within the limit."""

    guards: ClassVar = {
        "has_bin": allowed,
        "begins": allowed,
        "chunks": allowed,
        "keep": of_visible,
        "restore": changing("restore"),
    }

    def unlink(self, document_id: int, author: Author) -> None:
        """Remove the links to a document, even from documents outside the limit, which lose nothing else."""
        self.tx.check(document_id)
        documents = self.tx.inner.documents
        later = [
            documents.get(successor_id) for successor_id in documents.successors([document_id]).get(document_id, ())
        ]
        self.inner.unlink(document_id, author)
        self.tx.record("update", [document.id for document in later if document and document.replaces == document_id])

    def versions(self, document_id: int, *, limit: int, before: int | None = None) -> list[rows.Version]:
        self.tx.check(document_id)
        if self.tx.limit is None:
            return self.inner.versions(document_id, limit=limit, before=before)
        visible: list[rows.Version] = []
        size = limit
        while len(visible) < limit and (page := self.inner.versions(document_id, limit=size, before=before)):
            visible += [version for version in page if self.tx.sees(version.document)]
            before, size = page[-1].number, PAGE
        return visible[:limit]

    def changed_since(self, instant: datetime) -> list[int]:
        ids = self.inner.changed_since(instant)
        return [
            document_id
            for document_id in ids
            if self.tx.limit is None or self.tx.documents.get(document_id) or self.binned(document_id)
        ]

    def discard(self, document_id: int, author: Author) -> None:
        self.tx.check(document_id)
        self.tx.check_parts(document_id)
        gone = [document_id, *self.tx.parts_of(document_id)]
        self.inner.discard(document_id, author)
        self.tx.record("delete", gone)

    def discard_parts(self, document_id: int, *, keep: Collection[str | None], author: Author) -> None:
        """Discard parts that a document no longer has, except parts that the caller may not see."""
        self.tx.check(document_id)
        for part, path in self.tx.inner.documents.parts(document_id):
            if path not in keep and all(map(self.tx.documents.get, [part, *self.tx.parts_of(part)])):
                self.discard(part, author)

    def binned(self, document_id: int) -> rows.Binned | None:
        binned = self.inner.binned(document_id)
        return binned if binned and self.tx.sees(binned.document) else None

    def in_bin(self, source_path: str, content_hash: str) -> list[rows.Binned]:
        return [binned for binned in self.inner.in_bin(source_path, content_hash) if self.tx.sees(binned.document)]

    def bin(self, *, limit: int, before: tuple[str, int] | None = None) -> list[rows.Binned]:
        visible: list[rows.Binned] = []
        while len(visible) < limit and (page := self.inner.bin(limit=PAGE, before=before)):
            visible += [binned for binned in page if self.tx.sees(binned.document)]
            before = page[-1].deleted_at, page[-1].document.id
        return visible[:limit]

    def parts_in_bin(self, document_id: int) -> list[int]:
        self.tx.check(document_id)
        return [part for part in self.inner.parts_in_bin(document_id) if self.binned(part)]

    def counts(self) -> rows.HistoryCounts:
        """Return the counts; only callers without a limit get the counts of the whole database."""
        if self.tx.limit is None:
            return self.inner.counts()
        return HistoryCounts(0, 0, self.inner.begins(), 0)


class CallerJobs(Guarded[Jobs]):
    """See `kb.store.protocol.Jobs`. A limited caller sees only the jobs that it sent."""

    guards: ClassVar = {
        "staged": allowed,
        "set_document": allowed,
        "finish": allowed,
        "awaits": allowed,
        "retry_parts": of_visible,
    }

    def add(self, job: rows.NewJob) -> int:
        """Queue a job within the limit.

        Raises:
            Forbidden: the job would write outside the limit.
        """
        job = replace(fitted(job, self.tx.limit), idempotency_key=self._own_key(job.idempotency_key))
        if job.part_of is None:
            self.tx.documents.check_path(job.source_path)
        job_id = self.inner.add(job)
        self.tx.record("submit", job_id=job_id)
        return job_id

    def await_vectors(self, document_id: int, title: str, text: str, author: Author) -> None:
        self.inner.await_vectors(document_id, title, text, author, self.tx.limit)

    def get(self, job_id: int) -> rows.Job | None:
        return self._seen(self.inner.get(job_id))

    def with_key(self, idempotency_key: str) -> rows.Job | None:
        return self.inner.with_key(self._own_key(idempotency_key) or "")

    def page(self, *, status: JobStatus | None, limit: int, before: int | None) -> list[rows.Job]:
        return self.inner.page(status=status, limit=limit, before=before, of=self._of)

    def pending(self) -> int:
        return self.inner.pending(self._of)

    def later(self, job_id: int) -> int | None:
        return self.inner.later(job_id) if self.get(job_id) else None

    def retry(self, job_id: int) -> bool:
        is_retried = self.get(job_id) is not None and self.inner.retry(job_id)
        if is_retried:
            self.tx.record("retry", job_id=job_id)
        return is_retried

    def delete(self, job_id: int) -> None:
        if self.get(job_id) is not None:
            self.inner.delete(job_id)
            self.tx.record("drop", job_id=job_id)

    @property
    def _of(self) -> Caller | None:
        return self.tx.caller if self.tx.limit else None

    def _own_key(self, key: str | None) -> str | None:
        """Return the stored form of an idempotency key: a limited caller has its own keys, separate for each limit."""
        limit = self.tx.limit
        if not (key and limit):
            return key
        # A header cannot contain a line break, so no other key can equal this one.
        return f"{self.tx.caller.name}\n{json.dumps([limit.tags, limit.folder])}\n{key}"

    def _seen(self, job: rows.Job | None) -> rows.Job | None:
        caller = self.tx.caller
        is_own = job and (job.author.by, job.limit) == (caller.name, caller.limit)
        return job if self.tx.limit is None or is_own else None


class CallerOperations(Guarded[Operations]):
    """See `kb.store.protocol.Operations`. A limited caller sees its own operations, and their visible documents."""

    guards: ClassVar = {"counts": allowed, "jobs": allowed}

    def get(self, number: int) -> rows.Operation | None:
        operation = self.inner.get(number)
        is_own = operation is not None and operation.by == self.tx.caller.name
        return operation if self.tx.limit is None or is_own else None

    def page(
        self, *, limit: int, before: int | None = None, of: Caller | None = None, key: str | None = None
    ) -> list[rows.Operation]:
        own = of if self.tx.limit is None else self.tx.caller
        return self.inner.page(limit=limit, before=before, of=own, key=key)

    def documents(self, number: int) -> list[int]:
        ids, tx = self.inner.documents(number), self.tx
        return [
            document_id
            for document_id in ids
            if tx.limit is None or tx.documents.get(document_id) or tx.history.binned(document_id)
        ]


class CallerFolders(Guarded[Folders]):
    """See `kb.store.protocol.Folders`. A limited caller syncs only folders within its limit."""

    guards: ClassVar = {
        "let_in": allowed,
        "leave_out": at_path,
        "put": at_path,
        "set_watch": at_path,
        "remove": at_path,
    }

    def all(self) -> list[rows.SyncedFolder]:
        return [folder for folder in self.inner.all() if self._may_take(folder.prefix)]

    def left_out(self) -> list[str]:
        return list(filter(self._may_take, self.inner.left_out()))

    def _may_take(self, path: str) -> bool:
        return self.tx.limit is None or self.tx.limit.may_take(path)


class LimitedIndex:
    """See `kb.store.protocol.Index`.

    All selections are within the limit, and callers only ask for selected documents.
    """

    def __init__(self, index: Index, limit: Limit | None) -> None:
        self._index = index
        self._limit = limit
        self.analyzer = index.analyzer
        self.documents_of = index.documents_of
        self.related = index.related
        self.hits = index.hits
        self.texts = index.texts

    @property
    def languages(self) -> Sequence[str]:
        return self._index.languages

    def select(self, where: rows.Filter) -> Selection:
        return self._index.select(replace(where, limit=self._limit))


def fitted(job: rows.NewJob, limit: Limit | None) -> rows.NewJob:
    """Return a job that fits a limited key, with one of the limit's tags added if it has none of them.

    Raises:
        Forbidden: its source path is outside the limit.
    """
    if limit is None:
        return job
    is_tagged = not limit.tags or is_in_any(job.tags, limit.tags)
    tags = job.tags if is_tagged else (*job.tags, limit.tags[0])
    if not limit.admits(tags, job.source_path):
        raise path_refusal(job.source_path or "", limit)
    return replace(job, tags=tags, limit=limit)
