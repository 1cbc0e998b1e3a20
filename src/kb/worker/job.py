"""The work of one job: its content is read, embedded and written, or the job fails with a reason."""

import logging
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from kb.access.restricted_store import as_caller
from kb.api.errors import AlreadyReplaced, Forbidden, LeaseLost, OutOfReach, Unreadable
from kb.api.fields import NOTE, VECTORS
from kb.api.job_error_phrases import IN_BIN, OF_ENGINE
from kb.api.rights import Caller
from kb.blobs.protocol import staged_as
from kb.documents.originals import Originals
from kb.documents.replaced_notes import check_current, replacement_remedy
from kb.documents.staging import discard, staged_jobs
from kb.documents.vectors_by_job import add_vectors, await_vectors, draft_of
from kb.documents.write_document import write_document
from kb.embed.protocol import Embedder
from kb.ingest.draft import Draft, draft_file, draft_note, embed_slices, embedded_contents
from kb.ingest.stop_signal import StopSignal
from kb.parser.extracting_sandbox import ExtractingSandbox
from kb.parser.extractors import Extractors
from kb.parser.sandbox import Limits
from kb.store.protocol import Store, Transaction
from kb.store.rows import Content, Job, NewJob, optional_fields
from kb.telemetry.instruments import Instruments, Outcome
from kb.worker.job_waiters import JobWaiters
from kb.worker.lease import Lease

logger = logging.getLogger(__name__)

MAX_ATTEMPTS = 3
"""The maximum number of starts of a job that fails because of the engine."""

ENGINE_ENDED = f"{OF_ENGINE}ended {MAX_ATTEMPTS} times during this job."
ENGINE_FAILED = f"{OF_ENGINE}failed {MAX_ATTEMPTS} times during this job; see its log."

AHEAD, AHEAD_BYTES = 4, 1_000_000
"""The number of jobs that are read ahead of the model: this number, or more up to this total of bytes."""

PATIENCE_SECONDS = 0.5
"""The time that the worker waits for a file being read before it turns to other work."""


class DraftedJob(NamedTuple):
    """A job whose content has been read."""

    job: Job
    draft: Draft


class PreparedWrite(NamedTuple):
    """A document to write, and the jobs of the files found in it, which `staging` discards if the write fails."""

    job: Job
    content: Content
    attached: Collection[NewJob]
    staging: ExitStack


class Writes:
    """The writes of some jobs, each made while the model works on the next slice.

    Args:
        writer: the one thread that makes them.
    """

    def __init__(self, writer: Executor) -> None:
        self._writer = writer
        self._last: Future[None] | None = None

    def add(self, write: Callable[..., None], *arguments: object) -> None:
        """Start the next write when the one before has ended. Raises the error of that write."""
        self.wait()
        self._last = self._writer.submit(write, *arguments)

    def wait(self) -> None:
        """Wait until all writes are done. Raises the error of the last one."""
        last, self._last = self._last, None
        if last is not None:
            last.result()


@dataclass(frozen=True, slots=True)
class WorkerParts:
    """The parts that a worker uses.

    Args:
        embedder: the model.
        originals: the kept and staged files.
        sandbox: reads files.
        instruments: the metrics.
        stop: checked within long texts, because the engine may stop.
        ends: publishes the ends of jobs.
    """

    store: Store
    embedder: Embedder
    originals: Originals
    sandbox: ExtractingSandbox = field(default_factory=lambda: ExtractingSandbox(Limits(), Extractors(), 0))
    instruments: Instruments = field(default_factory=Instruments)
    stop: StopSignal = field(default_factory=StopSignal)
    ends: JobWaiters = field(default_factory=JobWaiters)


class Ingestion:
    """Turns claimed jobs into documents.

    Args:
        reader: the one thread that uses the sandbox.
        cutter: reads notes, which need no file.
        writer: the one thread that writes documents.
    """

    def __init__(self, parts: WorkerParts, reader: Executor, cutter: Executor, writer: Executor) -> None:
        self._store = parts.store
        self._embedder = parts.embedder
        self._originals = parts.originals
        self._blobs = parts.originals.blobs
        self._sandbox = parts.sandbox
        self._ends = parts.ends
        self._instruments = parts.instruments
        self._stop = parts.stop
        self._reader = reader
        self._cutter = cutter
        self._writer = writer

    def drafts(self, lease: Lease) -> Iterator[DraftedJob | None]:
        """Read the jobs' contents, some ahead; jobs without text, or that failed too often, end here.

        While one is being read, it sometimes yields None.
        """
        jobs = deque((job, self._size_of(job)) for job in lease.jobs)
        reading: deque[tuple[Job, int, Future[Draft | None]]] = deque()
        try:
            while True:
                ahead = sum(size for _, size, _ in reading)
                while jobs and (len(reading) < AHEAD or ahead + jobs[0][1] <= AHEAD_BYTES):
                    job, size = jobs.popleft()
                    ahead += size
                    reader = self._cutter if job.staged is None else self._reader
                    reading.append((job, size, reader.submit(self._read, job, lease)))
                if not reading:
                    return
                while not wait([reading[0][2]], PATIENCE_SECONDS).done:
                    yield None
                job, _, future = reading.popleft()
                if draft := self._drafted(job, future, lease):
                    yield DraftedJob(job, draft)
        finally:
            for _, _, future in reading:
                future.cancel()

    def ingest(self, group: Sequence[DraftedJob], lease: Lease, writes: Writes) -> Iterator[None]:
        """Embed documents and start writing them, unless all jobs are dropped; pause after each of several slices."""
        drafts = [draft for _, draft in group]
        total, slices = sum(len(draft.new) for draft in drafts), []
        with self._instruments.ingest("embed", jobs=len(group)):
            done = 0
            for vectors in embed_slices(drafts, self._embedder, self._stop.check):
                slices.append(vectors)
                done += len(vectors)
                if done < total and not lease.record_progress(group_progress(group, done)):
                    return self._end_dropped(group, lease)
                if done < total or len(slices) > 1:
                    yield
        writes.add(self._write, group, embedded_contents(drafts, slices), lease)

    @contextmanager
    def writing(self) -> Iterator[Writes]:
        """Provide a writer for some jobs; all writes are done or have failed when the block ends."""
        writes = Writes(self._writer)
        try:
            yield writes
        except BaseException:
            with suppress(Exception):  # the first error counts
                writes.wait()
            raise
        writes.wait()

    def _read(self, job: Job, lease: Lease) -> Draft | None:
        """Return the draft of a job; None if it failed too often or was dropped."""
        if job.attempts > MAX_ATTEMPTS or (job.staged and self._is_dropped(job)):
            return None
        lease.begin(job.id)
        with self._instruments.ingest("read", job_id=job.id):
            return self._draft(job)

    def _drafted(self, job: Job, future: Future[Draft | None], lease: Lease) -> Draft | None:
        """Return the finished draft; without one the job ends here."""
        try:
            draft = future.result()
        except OutOfReach as error:
            self._give_up(job, f"{OF_ENGINE}could not read it: {error.detail}", lease)
            return None
        except Unreadable as error:
            self._fail(job, error.detail, lease)
            return None
        if draft is None and job.attempts > MAX_ATTEMPTS:
            self._give_up(job, ENGINE_FAILED, lease)
        elif draft is None:
            self._end(job, "dropped", lease)
        return draft

    def _size_of(self, job: Job) -> int:
        if job.staged is None:
            return len(job.text or "")
        if self._blobs.is_shared:  # asking may take a request
            return AHEAD_BYTES
        with suppress(OSError):  # reading reports the reason
            return self._blobs.size(staged_as(job.staged)) or 0
        return AHEAD_BYTES

    def _is_dropped(self, job: Job) -> bool:
        with self._store.read() as tx:
            return not is_there(tx, job)

    def _end_dropped(self, group: Sequence[DraftedJob], lease: Lease) -> None:
        for job, _ in group:
            self._end(job, "dropped", lease)

    def _draft(self, job: Job) -> Draft:
        if job.document_id is not None:
            return draft_of(self._store, job.document_id, self._embedder)
        if job.staged is None:
            note = draft_note(job.text or "", job.title, self._embedder, job.content_hash, self._stop.check)
            return self._knowing(replace(note, replaces=job.replaces, **optional_fields(job)), job)
        with self._local(job, job.staged) as path:
            draft = draft_file(
                path,
                job.filename or "",
                job.title,
                self._embedder,
                self._sandbox,
                job.content_hash,
                self._stop.check,
                depth=job.depth,
            )
        return self._knowing(replace(draft, replaces=job.replaces, **optional_fields(job)), job)

    def _knowing(self, draft: Draft, job: Job) -> Draft:
        """Return the draft without inputs for the model that the document at the job's path makes unnecessary."""
        with self._store.read() as tx:
            document = tx.documents.at_path(job.source_path) if job.source_path else None
            return draft.knowing(tx.documents.chunks(document.id)) if document else draft

    @contextmanager
    def _local(self, job: Job, staged: str) -> Iterator[Path]:
        """Provide a job's file at a local path.

        Raises:
            LeaseLost: another engine has ended the job and removed its file.
        """
        try:
            with self._blobs.local(staged_as(staged)) as path:
                yield path
        except FileNotFoundError:
            with self._store.read() as tx:
                now = tx.jobs.get(job.id)
            if now is None or now.staged != job.staged:
                raise LeaseLost(f"Another engine has finished job {job.id}.") from None
            raise

    def _write(self, group: Sequence[DraftedJob], contents: Sequence[Content], lease: Lease) -> None:
        """Write documents, each in one step with the end of its job."""
        with self._instruments.ingest("write", jobs=len(group)), ExitStack() as stack:
            left = deque[PreparedWrite]()
            for (job, draft), content in zip(group, contents, strict=True):
                staging = stack.enter_context(ExitStack())
                attached = staging.enter_context(staged_jobs(job, draft.attachments, self._blobs))
                left.append(PreparedWrite(job, content, attached, staging))
            self._originals.add_ahead({job.staged: draft.content_hash for job, draft in group if job.staged})
            while left:
                self._write_some(left, lease)
        if any(job.staged for job, _ in group):
            self._originals.sweep(self._store)

    def _write_some(self, left: deque[PreparedWrite], lease: Lease) -> None:
        """Write the next documents in one transaction, which ends early if an urgent write waits."""
        written = list[tuple[PreparedWrite, Outcome]]()
        with self._store.write(self._stop.check) as tx:
            while left and not (written and self._store.has_urgent):
                write = left.popleft()
                written.append((write, self._save(tx, write.job, write.content, write.attached, lease)))
        for write, _ in written:
            write.staging.close()  # keeps the staged files, even if something fails later
        for write, outcome in written:
            self._end(write.job, outcome, lease, write.content)

    def _save(self, tx: Transaction, job: Job, content: Content, attached: Collection[NewJob], lease: Lease) -> Outcome:
        if not is_there(tx, job):
            self._discard(attached)
            return "dropped"
        lease.record_start(tx, job.id)
        if job.part_of and tx.history.binned(job.part_of):
            tx.jobs.fail(job.id, IN_BIN)
            self._discard(attached)
            return "gave_up"
        if job.part_of and tx.documents.get(job.part_of) is None:
            tx.jobs.fail(job.id, "The message or archive that contained it was deleted.", drop=True)
            self._discard(attached)
            return "failed"
        if job.document_id is not None:
            add_vectors(tx, job.document_id, content)
            if job.kind == VECTORS:  # nobody asked for it
                tx.jobs.delete(job.id)
            else:
                tx.jobs.finish(job.id, job.document_id, existed=job.existed, omitted=job.omitted)
            return "done"
        with as_caller(tx, Caller(job.author.by, "write", job.limit), job.author) as mine:
            try:
                if content.replaces is not None:
                    check_current(mine, content.replaces, content.content_hash, job.source_path)
                saved = write_document(mine, content, job.source_path, job.tags, part_of=job.part_of, author=job.author)
            # because of other writes in the meantime; nothing is written yet
            except (Forbidden, AlreadyReplaced) as error:
                replaced = content.replaces if isinstance(error, AlreadyReplaced) else None
                remedy = f" {replacement_remedy(mine, replaced)}" if replaced else ""
                tx.jobs.fail(job.id, f"{OF_ENGINE}did not save it: {error.detail}{remedy}")
                self._discard(attached)
                return "gave_up"
            self._finish(mine, tx, job, saved, content, attached)
        return "done"

    def _finish(
        self,
        mine: Transaction,
        tx: Transaction,
        job: Job,
        saved: tuple[int, bool],
        content: Content,
        attached: Collection[NewJob],
    ) -> None:
        """Finish a job whose document is saved, and queue the files found in it."""
        document_id, existed = saved
        if not content.is_embedded:
            await_vectors(mine, document_id, job.author)  # if it is no longer the document that the draft was for
        elif existed and content.doc_type == NOTE:
            add_vectors(mine, document_id, content)
        tx.jobs.finish(job.id, document_id, existed=existed, omitted=content.omitted)
        if job.staged:
            self._originals.add(job.staged, content.content_hash)
        # Without a path, parts of the same file from an earlier job have that job's path, and exist already.
        if job.source_path or not existed:
            attached_paths = {new.source_path for new in attached}
            mine.history.discard_parts(document_id, keep=attached_paths, author=job.author)
            for new in attached:
                mine.jobs.add(replace(new, part_of=document_id))
        else:
            self._discard(attached)

    def _discard(self, attached: Collection[NewJob]) -> None:
        for new in attached:
            discard(new.staged, self._blobs)

    def _fail(self, job: Job, reason: str, lease: Lease) -> None:
        """Fail a job because of its content, which is no longer needed."""
        with self._store.write() as tx:
            if is_there(tx, job):
                lease.record_start(tx, job.id)
                tx.jobs.fail(job.id, reason, drop=True)
        self._end(job, "failed", lease)

    def _give_up(self, job: Job, reason: str, lease: Lease) -> None:
        """Fail a job because of the engine; its content is kept for another try."""
        with self._store.write() as tx:
            if is_there(tx, job):
                tx.jobs.fail(job.id, reason)
        self._end(job, "gave_up", lease)

    def _end(self, job: Job, outcome: Outcome, lease: Lease, content: Content | None = None) -> None:
        lease.end(job.id)
        self._ends.publish(job.id)
        kind = content.doc_type if content and job.document_id is None else job.kind
        self._instruments.ingested(kind, outcome, lease.seconds(job.id))
        size = {"chunks": len(content.chunks)} if content else {}
        logger.info("job %s", outcome, extra={"job_id": job.id, "kind": kind, **size})
        if outcome != "gave_up":
            try:
                discard(job.staged, self._blobs)
            except OSError as error:  # a sweep removes it; the job has ended anyway
                logger.warning("job %s: could not remove its staged file yet: %s", job.id, error)


def is_there(tx: Transaction, job: Job) -> bool:
    """Return whether a job was not dropped. After a failover that lost the job, its id may belong to another one."""
    now = tx.jobs.get(job.id)
    return now is not None and now.created_at == job.created_at


def group_progress(group: Sequence[DraftedJob], done: int) -> Mapping[int, float]:
    """Return the progress of each job when `done` of the group's chunks are embedded."""
    progress = {}
    for job, draft in group:
        count = len(draft.new)
        progress[job.id] = min(max(done, 0), count) / max(count, 1)
        done -= count
    return progress
