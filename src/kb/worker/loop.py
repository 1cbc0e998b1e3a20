"""The background worker: claim, run, finish (requirement S-5).

A job leaves the queue in the same transaction that writes its document, so a crash at any moment loses nothing and
writes nothing twice.
"""

from __future__ import annotations

import logging
import threading
import time
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from kb.api.errors import DiskFull, Unreadable
from kb.documents.attachments import staged_jobs
from kb.documents.save import save
from kb.ingest.draft import NOTE, SLICE, Draft, draft_file, draft_note, with_vectors
from kb.parser.sandbox import Limits, Sandbox, Stopped
from kb.telemetry.instruments import Watch

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from pathlib import Path

    from kb.documents.originals import KeptFiles
    from kb.embed.protocol import Embedder
    from kb.store.protocol import Store, Transaction
    from kb.store.rows import Content, Job, NewJob
    from kb.telemetry.instruments import Outcome

logger = logging.getLogger(__name__)

CLAIM = 64
"""How many jobs are taken at once: short notes are embedded together."""

SHORT_NOTES, SHORT_CHARS = 8, 2000
"""How many notes of at most so many characters go ahead between two slices of a long text."""

MAX_ATTEMPTS = 3
"""How often a job is begun again that failed for no reason of its own."""

STALLED_SECONDS = 120.0
"""A running job without a sign of life for so long is begun again."""

EXPIRE_SECONDS = 3600.0
"""How often done jobs are looked through for those whose time has come."""

EXPIRED = 1000
"""How many of them go in one transaction: writers wait for it."""

IDLE_SECONDS = 5.0
RETRY_SECONDS = 1.0


class Worker:
    """One thread that empties the queue.

    Args:
        staging: the folder of the files that wait for their job.
        kept: what keeps them afterwards.
        limits: what reading one file may take.
        watch: where it is counted what was done.
        keep_jobs_days: for how many days done jobs stay; 0 is for ever.
    """

    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        staging: Path,
        kept: KeptFiles,
        limits: Limits | None = None,
        watch: Watch | None = None,
        keep_jobs_days: int = 0,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._staging = staging
        self._kept = kept
        self._sandbox = Sandbox(limits)
        self._watch = watch or Watch()
        self._keep_jobs_days = keep_jobs_days
        self._expire_at = time.monotonic()
        self._wake = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="kb-worker")

    def start(self) -> None:
        """Take up what a stopped engine left behind, and begin."""
        with self._store.write() as tx:
            tx.jobs.release_all()
            waited_for = tx.jobs.staged()
        self._kept.sweep(self._store)
        for file in self._staging.iterdir():
            if file.name not in waited_for:
                file.unlink()
        self._thread.start()

    def stop(self) -> None:
        """Stop at the next slice or amid a file; what is not finished then is begun again by the next worker."""
        self._stopping = True
        self._sandbox.stop()
        self._wake.set()
        self._thread.join()

    def wake(self) -> None:
        """Say that there is a new job."""
        self._wake.set()

    def _run(self) -> None:
        with closing(self._sandbox):
            try:
                self._sandbox.start()
            except OSError:
                logger.exception("the parser did not start; it is tried again with the first file")
            self._work_until_stopped()

    def _work_until_stopped(self) -> None:
        while not self._stopping:
            self._wake.clear()
            try:
                busy = self._work()
            except Stopped:
                return
            except Exception:
                logger.exception("the worker failed; it goes on in a moment")
                self._watch.worker_failed()
                self._wake.wait(RETRY_SECONDS)
            else:
                if not busy:
                    self._wake.wait(IDLE_SECONDS)

    def _work(self) -> bool:
        """Do some jobs; answers whether there were any."""
        with self._store.write() as tx:
            tx.jobs.release_stalled(STALLED_SECONDS)
            jobs = tx.jobs.claim(CLAIM)
        if jobs:
            with self._watch.traces.span("ingest", attributes={"kb.jobs": len(jobs)}):
                self._do(jobs)
        else:
            self._expire()
        return bool(jobs)

    def _expire(self) -> None:
        """Delete the done jobs whose time has come; new work goes first."""
        if not self._keep_jobs_days or time.monotonic() < self._expire_at:
            return
        while not (self._stopping or self._wake.is_set()):
            with self._store.write() as tx:
                expired = tx.jobs.expire(self._keep_jobs_days, EXPIRED)
            if expired < EXPIRED:
                self._expire_at = time.monotonic() + EXPIRE_SECONDS
                return

    def _do(self, jobs: Sequence[Job]) -> None:
        unfinished, failed = {job.id for job in jobs}, True
        try:
            for group in grouped(self._drafts(jobs, unfinished)):
                if self._stopping:
                    break
                self._write(group, unfinished)
            failed = False
        except (Stopped, DiskFull):
            failed = False  # neither is a fault of the jobs
            raise
        finally:
            if unfinished:
                with self._store.write() as tx:
                    tx.jobs.release(unfinished, failed=failed)

    def _drafts(self, jobs: Sequence[Job], unfinished: set[int]) -> Iterator[tuple[Job, Draft]]:
        for job in jobs:
            if job.attempts >= MAX_ATTEMPTS:
                self._give_up(job, unfinished)
                continue
            try:
                with self._watch.ingest("read", job_id=job.id):
                    draft = self._draft(job)
                yield job, draft
            except Unreadable as error:
                with self._store.write() as tx:
                    tx.jobs.fail(job.id, error.detail)
                    tx.jobs.drop_content(job.id)
                self._forget(job, unfinished)
                self._tell(job, NOTE if job.kind == NOTE else None, "failed")

    def _give_up(self, job: Job, unfinished: set[int]) -> None:
        """Fail a job for a reason of the engine's, not of its own; its content stays."""
        with self._store.write() as tx:
            tx.jobs.fail(job.id, f"The engine failed {MAX_ATTEMPTS} times while it worked on this; its log says why.")
        unfinished.discard(job.id)
        self._tell(job, NOTE if job.kind == NOTE else None, "gave_up")

    def _draft(self, job: Job) -> Draft:
        if job.staged is None:
            return draft_note(job.text or "", job.title, self._embedder)
        return draft_file(self._staging / job.staged, job.filename or "", job.title, self._embedder, self._sandbox)

    def _write(self, group: Sequence[tuple[Job, Draft]], unfinished: set[int]) -> None:
        drafts = [draft for _, draft in group]
        alive = partial(self._alive, [job.id for job, _ in group], unfinished)
        with self._watch.ingest("embed", jobs=len(group)):
            contents = with_vectors(drafts, self._embedder, alive)
        with self._watch.ingest("write", jobs=len(group)), ExitStack() as staged:
            attached = [
                staged.enter_context(staged_jobs(job, draft.attachments, self._staging)) for job, draft in group
            ]
            with self._store.write() as tx:
                for (job, _), content, jobs in zip(group, contents, attached, strict=True):
                    self._save(tx, job, content, jobs)
        if any(job.staged for job, _ in group):
            self._kept.sweep(self._store)
        for job, draft in group:
            self._forget(job, unfinished)
            self._tell(job, draft.doc_type, "done", chunks=len(draft.chunks))

    def _save(self, tx: Transaction, job: Job, content: Content, attached: Collection[NewJob]) -> None:
        if job.part_of and tx.documents.get(job.part_of) is None:
            return tx.jobs.fail(job.id, "The document that it came in was deleted.")
        same = tx.documents.with_content(content.content_hash, job.source_path, note=job.kind == "note")
        document_id = save(tx, content, job.source_path, job.tags, part_of=job.part_of)
        tx.jobs.finish(job.id, document_id)
        if job.staged:
            self._kept.add(self._staging / job.staged, content.content_hash)
        # Without a path, what came with the same file before has the path of that job, and is there already.
        if job.source_path or same is None:
            tx.documents.delete_parts(document_id, keep={new.source_path for new in attached})
            for new in attached:
                tx.jobs.add(replace(new, part_of=document_id))
        return None

    def _alive(self, group: list[int], unfinished: set[int], progress: float) -> None:
        if self._stopping:
            raise Stopped
        with self._store.write() as tx:
            tx.jobs.heartbeat(unfinished)
            tx.jobs.set_progress(group, progress)
            waiting = tx.jobs.claim_short(SHORT_NOTES, SHORT_CHARS)
        # A note of a few lines does not wait until a book is through.
        self._do(waiting)

    def _tell(self, job: Job, doc_type: str | None, outcome: Outcome, **more: int) -> None:
        self._watch.ingested(doc_type, outcome)
        logger.info("job %s", outcome, extra={"job_id": job.id, "kind": doc_type or job.kind, **more})

    def _forget(self, job: Job, unfinished: set[int]) -> None:
        unfinished.discard(job.id)
        if job.staged:
            (self._staging / job.staged).unlink(missing_ok=True)


def grouped(drafts: Iterable[tuple[Job, Draft]]) -> Iterator[list[tuple[Job, Draft]]]:
    """Drafts together until they fill a slice, so that short notes share the model's batches."""
    group: list[tuple[Job, Draft]] = []
    for job, draft in drafts:
        group.append((job, draft))
        if sum(len(draft.inputs) for _, draft in group) >= SLICE:
            yield group
            group = []
    if group:
        yield group
