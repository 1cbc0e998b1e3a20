"""The background worker: claim, work, wait (requirement S-5).

A job leaves the queue in the same transaction that writes its document, so a crash at any point loses nothing and
writes nothing twice. A note may be a document already when its job is queued: then the job only adds its vectors.

Jobs have two lanes. Jobs of the main lane are claimed together, oldest first, and processed in slices: short notes
first, long texts last. After each slice, and while a file is read, the worker processes short notes that have arrived
in the meantime. Between two slices of a long text it also processes short files. It claims these jobs separately, so
that an error in one lane does not affect the other. A thread reads files while the model embeds earlier files.

No job can be overtaken endlessly: between two slices, the number of notes and the bytes of files are limited, and
interrupted jobs get their turn among new ones.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from itertools import chain
from pathlib import Path, PurePath

from kb import clock
from kb.api.errors import DiskFault, DiskFull, FilesUnavailable, LeaseLost, ModelChanged, Stopped, StoreUnavailable
from kb.blobs.protocol import staged_as
from kb.documents.blob_place import bind
from kb.documents.expiry import expire
from kb.documents.staging import sweep_staged
from kb.filesystem import remove_folder
from kb.ingest.draft import SLICE
from kb.store.rows import Job, VectorSpace
from kb.telemetry.instruments import FollowingPool
from kb.worker.job import ENGINE_ENDED, MAX_ATTEMPTS, DraftedJob, Ingestion, WorkerParts
from kb.worker.lease import STALLED_SECONDS, Heartbeat, Lease

logger = logging.getLogger(__name__)

CLAIM = 128
"""The number of jobs that are claimed at once: short notes are embedded together."""

EXTRACTED = 4
"""The number of these that may be files for extractors: each takes seconds, during which new files wait."""

SHORT_JOBS, SHORT_NOTE, SHORT_FILES = 32, 2000, 100_000
"""The number of notes, the size in bytes of a short note, and the bytes of files that may precede the next slice."""

SIZES = 4096
"""The number of files whose sizes are cached, because a size may cost a request."""

SHORT_ROUNDS = 4
"""The number of such batches of notes that may go first."""

BEGUN_EVERY = 4
"""Every claim with this number takes an interrupted job first, because new jobs may arrive all the time."""

LONG_SLICES = 4
"""A text with this many slices is long."""

WAITING_SLICES = 64
"""The number of slices of long texts that may wait in memory for the short texts claimed with them."""

EXPIRE_SECONDS = 3600.0
"""The pause between deletions of expired jobs, earlier versions and documents in the bin."""

STOPPED = "stopped"
"""A file in the staging folder: the engine was asked to stop, and if the file remains, was killed while stopping."""

IDLE_SECONDS = 5.0
RETRY_SECONDS = 1.0
FILES_SECONDS = 5.0
"""The time that files wait after their storage did not answer; notes continue."""

SWEEP_SECONDS = 86_400.0
"""The pause between searches of shared storage for files that the database does not know."""


class Worker:
    """One thread that empties the queue.

    Args:
        parts: the parts that it works with.
        staging: a folder of this engine; with a database file, the folder of staged files.
        keep_jobs_days: for how many days done jobs are kept; 0 means forever.
    """

    def __init__(self, parts: WorkerParts, staging: Path, keep_jobs_days: int = 0) -> None:
        self.ends = parts.ends
        self._store = parts.store
        self._embedder = parts.embedder
        self.is_busy = False
        """Whether it is processing jobs."""
        self._staging = staging
        self._originals = parts.originals
        self._blobs = parts.originals.blobs
        self._size = lru_cache(SIZES)(self._size_of)
        self.sandbox = parts.sandbox
        self._reader = FollowingPool(1, "kb-reader")
        self._cutter = FollowingPool(1, "kb-cutter")
        self._writer = FollowingPool(1, "kb-writer")
        self._heartbeat = Heartbeat()
        self._instruments = parts.instruments
        self._stop = parts.stop
        self._ingestion = Ingestion(parts, self._reader, self._cutter, self._writer)
        self._keep_jobs_days = keep_jobs_days
        self._claims = 0
        self._expire_at = self._sweep_at = time.monotonic()
        self._files_at = time.monotonic()
        self._stalled_seconds = STALLED_SECONDS
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kb-worker")

    def start(self) -> None:
        """Requeue jobs that a stopped engine left running, and start."""
        with self._store.write() as tx:
            if (self._staging / STOPPED).exists():
                tx.jobs.release_stalled(0)
            given_up = tx.jobs.take_up(MAX_ATTEMPTS, ENGINE_ENDED)
        for job_id in given_up:
            logger.warning("job gave_up: %s", ENGINE_ENDED, extra={"job_id": job_id})
        self.tidy()
        self._thread.start()

    def tidy(self) -> None:
        """Remove files that no job and no document needs."""
        with self._store.read() as tx:
            staged = tx.jobs.staged()
        self._originals.sweep(self._store)
        if not self._blobs.is_shared:
            self._originals.sweep_strays(self._store)
        for file in self._staging.iterdir():
            if file.is_dir():  # left by an interrupted extractor
                remove_folder(file)
            elif file.name not in staged:
                file.unlink()

    def before_stop(self) -> None:
        """Let current work end, and wake waiting clients. A job killed from now on is not blamed."""
        self._stop.request()
        self.ends.close()
        with suppress(OSError):
            (self._staging / STOPPED).touch()

    def stop(self) -> None:
        """Stop, even within a text or a file; the next worker restarts unfinished jobs."""
        self.before_stop()
        self.sandbox.stop()
        self._wake.set()
        if self._thread.ident:
            self._thread.join()
        (self._staging / STOPPED).unlink(missing_ok=True)

    def wake(self) -> None:
        """Announce a new job."""
        self._wake.set()

    def _run(self) -> None:
        if self._stop.is_requested:  # `stop` does not wait for a thread that had not started
            return
        with self._cutter, self._reader, self._writer, self._heartbeat:
            try:
                self._reader.submit(self.sandbox.start).result()
            except OSError:
                logger.exception("the parser did not start; kb will retry with the first file")
            try:
                self._work_until_stopped()
            finally:
                self._reader.submit(self.sandbox.close)

    def _work_until_stopped(self) -> None:
        while not self._stop.is_requested:
            self._wake.clear()
            try:
                if not self._work():
                    self._wake.wait(IDLE_SECONDS)
            except Stopped:
                return
            except ModelChanged:
                logger.info("another model is in use; the current jobs start again")
            except LeaseLost as error:
                logger.warning("%s The other current jobs are starting again", error.detail)
            except FilesUnavailable as error:
                self._leave_files(error)
            except StoreUnavailable as error:
                logger.error("the worker waits for the database: %s", error.detail)
                self._stalled_seconds = 0.0  # its jobs may not be back in the queue
                self._pause()
            except (DiskFull, DiskFault) as error:
                logger.error("the worker waits for the disk: %s", error.detail)
                self._leave_shared_files()
                self._pause()
            except Exception:
                logger.exception("the worker failed; it will retry in a moment")
                self._pause()

    def _pause(self) -> None:
        """Count a failure, and pause."""
        self._instruments.worker_failed()
        self._wake.wait(RETRY_SECONDS)

    def _work(self) -> bool:
        """Process some jobs, and short notes that arrive in the meantime; return whether there were any."""
        with self._store.queue() as tx:
            tx.jobs.release_stalled(self._stalled_seconds)
            # If another engine switched models, that model is loaded first; an engine that cannot find it leaves the
            # jobs.
            is_ready = tx.space == VectorSpace.of(self._embedder.spec)
            self._claims += 1
            begun_first = not self._claims % BEGUN_EVERY
            jobs = tx.jobs.claim(CLAIM, files=self._has_files, begun_first=begun_first) if is_ready else []
            jobs, later = few_extracted(jobs, self.sandbox.extracts)
            tx.jobs.release(later, failed=False)
        self._stalled_seconds = STALLED_SECONDS
        if jobs:
            with self._at_work(), self._instruments.ingestion(len(jobs)), closing(self._do(jobs)) as pauses:
                for files in pauses:
                    self._do_meanwhile(files=files)
        else:
            self._expire()
            self._sweep()
            self._reclaim()
        return bool(jobs)

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        self.is_busy = True
        try:
            yield
        finally:
            self.is_busy = False

    def _leave_files(self, error: FilesUnavailable) -> None:
        """Skip files for a while."""
        logger.error("files wait until their storage is available: %s", error.detail)
        self._files_at = time.monotonic() + FILES_SECONDS
        self._instruments.worker_failed()

    def _leave_shared_files(self) -> None:
        """Skip files for a while if their disk may be full: notes do not need it."""
        if self._blobs.is_shared:
            self._files_at = time.monotonic() + FILES_SECONDS

    @property
    def _has_files(self) -> bool:
        return time.monotonic() >= self._files_at

    def _sweep(self) -> None:
        """Remove leftovers of interrupted engines from shared storage."""
        if self._blobs.is_shared and self._has_files and time.monotonic() >= self._sweep_at and not clock.own.look():
            self._sweep_at = time.monotonic() + SWEEP_SECONDS
            bind(self._store, self._blobs)
            sweep_staged(self._store, self._blobs)
            self._originals.sweep_strays(self._store)

    def _expire(self) -> None:
        """Try vectors again that failed some time ago, and delete expired rows; new work comes first."""
        if time.monotonic() < self._expire_at or clock.own.look():
            return
        with self._store.write() as tx:
            tx.jobs.try_vectors_again(EXPIRE_SECONDS, MAX_ATTEMPTS - 1)
        while not (self._stop.is_requested or self._wake.is_set()):
            if not expire(self._store, self._originals, self._keep_jobs_days):
                self._expire_at = time.monotonic() + EXPIRE_SECONDS
                return

    def _reclaim(self) -> None:
        """Release unused space in the database; new work comes first."""
        while not (self._stop.is_requested or self._wake.is_set()) and self._store.reclaim():
            pass

    def _do_meanwhile(self, *, files: bool) -> None:
        """Process short notes and files, so that they do not wait for a whole book; their number is limited."""
        room = Slots(SHORT_FILES if files and self._has_files else 0, self._size)
        for _ in range(SHORT_ROUNDS):
            if not self._do_short_jobs(room):
                return

    def _do_short_jobs(self, room: Slots) -> bool:
        """Process short notes, and files that fit; return whether there were any.

        Their errors do not affect the long text.
        """
        try:
            with self._store.queue() as tx:
                jobs = tx.jobs.claim_short(SHORT_JOBS, SHORT_NOTE, room.take if room.is_left else None)
            for _ in self._do(jobs):
                if any(job.staged for job in jobs):
                    self._do_short_jobs(Slots())
        except (Stopped, ModelChanged, StoreUnavailable):
            raise
        except FilesUnavailable as error:
            self._leave_files(error)
            return False
        except LeaseLost as error:
            logger.warning("%s The long text continues", error.detail)
            return False
        except Exception:
            logger.exception("the worker failed at short jobs; it continues with the long text")
            self._instruments.worker_failed()
            return False
        return bool(jobs)

    def _size_of(self, staged: str) -> int | None:
        with suppress(OSError):
            return self._blobs.size(staged_as(staged))
        return None

    def _do(self, jobs: Sequence[Job]) -> Generator[bool]:
        """Process jobs. Once their short notes are done, pause after each slice, and while a file is read.

        Yields whether files may go first in the pause: between two slices of a long text, unless an extractor runs.

        Raises:
            Stopped: `stop` was called.
        """
        lanes = in_lanes(jobs, self.sandbox.extracts)
        notes = [job.id for job in lanes[0]]
        with (
            Lease(self._store, list(chain(*lanes))) as lease,
            self._heartbeat.of(lease),
            self._ingestion.writing() as writes,
        ):
            for group in grouped(self._ingestion.drafts(lease)):
                self._stop.check()
                for _ in self._ingestion.ingest(group, lease, writes) if group else ():
                    yield not self.sandbox.is_extracting
                if not lease.holds(notes):  # later files do not overtake these notes
                    yield False


class Slots:
    """The bytes of files that may go first.

    Args:
        left: the number of bytes.
        size_of: returns the size of a staged file in bytes, or None if it is missing.
    """

    def __init__(self, left: int = 0, size_of: Callable[[str], int | None] = lambda _: None) -> None:
        self._left = left
        self._size_of = size_of

    @property
    def is_left(self) -> bool:
        """Whether any file may go first."""
        return self._left > 0

    def take(self, staged: str) -> bool:
        """Return whether a file fits; if so, subtract its size."""
        size = self._size_of(staged)
        if size is None or size > self._left:
            return False
        self._left -= max(size, 1)
        return True


def in_lanes(jobs: Sequence[Job], suffixes: Collection[str]) -> tuple[list[Job], list[Job], list[Job]]:
    """Return jobs in the order of work: short notes, other jobs, and files for extractors (by suffix).

    No job overtakes an earlier one for the same path.
    """
    lanes: tuple[list[Job], list[Job], list[Job]] = ([], [], [])
    of_path: dict[str | None, int] = {}
    for job in jobs:
        lane = max(_lane(job, suffixes), of_path.get(job.source_path, 0))
        lanes[lane].append(job)
        if job.source_path:
            of_path[job.source_path] = lane
    return lanes


def few_extracted(jobs: Sequence[Job], suffixes: Collection[str]) -> tuple[list[Job], list[int]]:
    """Return the jobs to start with, and the ids of jobs that wait because extractors have enough files."""
    later = [job.id for job in in_lanes(jobs, suffixes)[2][EXTRACTED:]]
    return [job for job in jobs if job.id not in later], later


def _lane(job: Job, suffixes: Collection[str]) -> int:
    if job.staged is None:
        return 0 if len((job.text or "").encode()) <= SHORT_NOTE else 1
    return 2 if PurePath((job.filename or "").lower()).suffix in suffixes else 1


def grouped(jobs: Iterable[DraftedJob | None]) -> Iterator[list[DraftedJob]]:
    """Group jobs into slices, so that short notes share the model's batches; long ones come last.

    Jobs that follow a long one for the same path also come last. None instead of a job means idle time: the current
    group is yielded at once, and an empty group means that nothing is ready.
    """
    group: list[DraftedJob] = []
    later: list[DraftedJob] = []
    for job in jobs:
        if job is None:
            yield group or later[:1]
            group, later = [], later if group else later[1:]
        elif chunk_count([job]) >= LONG_SLICES * SLICE or job.job.source_path in written_paths(later):
            later.append(job)
        else:
            group.append(job)
        is_full = chunk_count(later) >= WAITING_SLICES * SLICE
        # first, because it has the earlier jobs for the paths of long ones
        if group and (is_full or chunk_count(group) >= SLICE):
            yield group
            group = []
        if is_full:
            yield from ([long] for long in later)
            later = []
    if group:
        yield group
    yield from ([long] for long in later)


def chunk_count(jobs: Iterable[DraftedJob]) -> int:
    return sum(len(draft.new) for _, draft in jobs)


def written_paths(jobs: Iterable[DraftedJob]) -> set[str]:
    return {job.source_path for job, _ in jobs if job.source_path}
