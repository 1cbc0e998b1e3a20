"""The background worker: claim, work, wait (requirement S-5).

A job leaves the queue in the same transaction that writes its document, so a crash at any moment loses nothing and
writes nothing twice.

Jobs go in two lanes. Those of the main lane are claimed together, the oldest first, and worked on in slices: short
notes first, long texts last. After each slice, and while a file is read, the worker does the short notes that came
meanwhile. Between two slices of a long text it also does short files. It claims these by themselves, and they are
answerable for themselves. A thread reads files while the model works on what was read before.

No job is overtaken without bound: between two slices only so many notes and so many bytes of files go ahead, and a job
that was begun before has its turn among new ones.
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
from kb.documents.staging import discard, sweep_staged
from kb.filesystem import remove_folder
from kb.ingest.draft import SLICE
from kb.store.rows import Job, VectorSpace
from kb.telemetry.instruments import FollowingPool
from kb.worker.job import ENGINE_ENDED, MAX_ATTEMPTS, DraftedJob, Ingestion, WorkerParts
from kb.worker.lease import Heartbeat, Lease

logger = logging.getLogger(__name__)

CLAIM = 128
"""How many jobs are taken at once: short notes are embedded together."""

EXTRACTED = 4
"""How many of these at most are files for extractors, which take seconds each: a file that comes waits for no more."""

SHORT_JOBS, SHORT_NOTE, SHORT_FILES = 32, 2000, 100_000
"""How many notes of at most so many bytes, and how many bytes of files, go ahead between two slices."""

SIZES = 4096
"""Of so many files it is remembered how large they are: to ask may take a request each."""

SHORT_ROUNDS = 4
"""How often so many notes go ahead, if there are still some."""

BEGUN_EVERY = 4
"""At each claim with such a number one goes first that was begun before: new ones may come all the time."""

LONG_SLICES = 4
"""A text of so many slices is long."""

WAITING_SLICES = 64
"""How much of long texts may wait in memory for the short ones that were claimed with them."""

STALLED_SECONDS = 120.0
"""A running job without a sign of life for so long is begun again."""

EXPIRE_SECONDS = 3600.0
"""How often done jobs, former versions and the bin are searched for what has expired."""

EXPIRED = 1000
"""How many of them go in one transaction: writers wait for it."""

EXPIRED_VERSIONS = 100
"""How many documents of the bin, or former versions, go in one."""

STOPPED = "stopped"
"""The file in the staging folder that says that the engine was told to stop, and was cut off if it is still there."""

IDLE_SECONDS = 5.0
RETRY_SECONDS = 1.0
FILES_SECONDS = 5.0
"""How long files are left alone after their place did not answer; notes are done meanwhile."""

SWEEP_SECONDS = 86_400.0
"""How often a place that engines share is looked through for files that nothing in the database names."""


class Worker:
    """One thread that empties the queue.

    Args:
        parts: what it works with.
        staging: a folder of this engine's; in a data directory it is where files wait for their job.
        keep_jobs_days: for how many days done jobs stay; 0 is for ever.
    """

    def __init__(self, parts: WorkerParts, staging: Path, keep_jobs_days: int = 0) -> None:
        self.ends = parts.ends
        self._store = parts.store
        self._embedder = parts.embedder
        self.is_busy = False
        """Whether there are jobs that it works on."""
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
        """Take up what a stopped engine left behind, and begin."""
        with self._store.write() as tx:
            if (self._staging / STOPPED).exists():
                tx.jobs.release_stalled(0)
            given_up = tx.jobs.take_up(MAX_ATTEMPTS, ENGINE_ENDED)
        for job_id in given_up:
            logger.warning("job gave_up: %s", ENGINE_ENDED, extra={"job_id": job_id})
        self.tidy()
        self._thread.start()

    def tidy(self) -> None:
        """Remove the files that no job waits with and no document came from."""
        with self._store.read() as tx:
            staged = tx.jobs.staged()
        self._originals.sweep(self._store)
        if not self._blobs.is_shared:
            self._originals.sweep_strays(self._store)
        for file in self._staging.iterdir():
            if file.is_dir():  # of an extractor that was cut off
                remove_folder(file)
            elif file.name not in staged:
                file.unlink()

    def before_stop(self) -> None:
        """Have what is under way end, and those who wait answered. If it is cut off, it was not at fault."""
        self._stop.request()
        self.ends.close()
        with suppress(OSError):
            (self._staging / STOPPED).touch()

    def stop(self) -> None:
        """Stop amid a text or a file; what is not finished then is begun again by the next worker."""
        self.before_stop()
        self.sandbox.stop()
        self._wake.set()
        if self._thread.ident:
            self._thread.join()
        (self._staging / STOPPED).unlink(missing_ok=True)

    def wake(self) -> None:
        """Say that there is a new job."""
        self._wake.set()

    def _run(self) -> None:
        if self._stop.is_requested:  # while the thread was started: who stops does not wait for one that was not
            return
        with self._cutter, self._reader, self._writer, self._heartbeat:
            try:
                self._reader.submit(self.sandbox.start).result()
            except OSError:
                logger.exception("the parser did not start; it is tried again with the first file")
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
                logger.info("another model is in use: what it worked on is begun again")
            except LeaseLost as error:
                logger.warning("%s What it worked on besides is begun again", error.detail)
            except FilesUnavailable as error:
                self._leave_files(error)
            except StoreUnavailable as error:
                logger.error("the worker waits for the database: %s", error.detail)
                self._stalled_seconds = 0.0  # what it worked on may not have gone back into the queue
                self._pause()
            except (DiskFull, DiskFault) as error:
                logger.error("the worker waits for the disk: %s", error.detail)
                self._leave_shared_files()
                self._pause()
            except Exception:
                logger.exception("the worker failed; it goes on in a moment")
                self._pause()

    def _pause(self) -> None:
        """Count a failure, and wait a moment."""
        self._instruments.worker_failed()
        self._wake.wait(RETRY_SECONDS)

    def _work(self) -> bool:
        """Do some jobs, and the short notes that come meanwhile; return whether there were any."""
        with self._store.queue() as tx:
            tx.jobs.release_stalled(self._stalled_seconds)
            # What another engine switched to is loaded first; who does not find it leaves the jobs to others.
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
        """Do without files for a while."""
        logger.error("files wait for their place: %s", error.detail)
        self._files_at = time.monotonic() + FILES_SECONDS
        self._instruments.worker_failed()

    def _leave_shared_files(self) -> None:
        """Do without files for a while if the disk may be full where they are: notes need no room there."""
        if self._blobs.is_shared:
            self._files_at = time.monotonic() + FILES_SECONDS

    @property
    def _has_files(self) -> bool:
        return time.monotonic() >= self._files_at

    def _sweep(self) -> None:
        """Remove what engines that were cut off left where all of them have their files."""
        if self._blobs.is_shared and self._has_files and time.monotonic() >= self._sweep_at and not clock.own.look():
            self._sweep_at = time.monotonic() + SWEEP_SECONDS
            bind(self._store, self._blobs)
            sweep_staged(self._store, self._blobs)
            self._originals.sweep_strays(self._store)

    def _expire(self) -> None:
        """Delete what its time has come for: done jobs, audit lines, versions, the bin; new work goes first."""
        if time.monotonic() < self._expire_at or clock.own.look():
            return
        while not (self._stop.is_requested or self._wake.is_set()):
            with self._store.write() as tx:
                days = self._keep_jobs_days
                jobs = tx.jobs.expire(days, EXPIRED) if days else 0
                lines = tx.audit.expire(EXPIRED)
                waiting = tx.jobs.staged()
                history = tx.history.expire(EXPIRED_VERSIONS)
                waiting -= tx.jobs.staged()
            for name in waiting:
                discard(name, self._blobs)
            if history:
                self._originals.sweep(self._store)
            if max(jobs, lines) < EXPIRED and history < EXPIRED_VERSIONS:
                self._expire_at = time.monotonic() + EXPIRE_SECONDS
                return

    def _reclaim(self) -> None:
        """Give back the space that nothing stands on any more; new work goes first."""
        while not (self._stop.is_requested or self._wake.is_set()) and self._store.reclaim():
            pass

    def _do_meanwhile(self, *, files: bool) -> None:
        """Do short notes, and files, which do not wait until a book is through: no more than a bounded number."""
        room = Slots(SHORT_FILES if files and self._has_files else 0, self._size)
        for _ in range(SHORT_ROUNDS):
            if not self._do_short_jobs(room):
                return

    def _do_short_jobs(self, room: Slots) -> bool:
        """Do short notes, and the files that there is room for; return whether there were any.

        What fails of them is theirs alone.
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
            logger.warning("%s The long text goes on", error.detail)
            return False
        except Exception:
            logger.exception("the worker failed at short jobs; it goes on with the long text")
            self._instruments.worker_failed()
            return False
        return bool(jobs)

    def _size_of(self, staged: str) -> int | None:
        with suppress(OSError):
            return self._blobs.size(staged_as(staged))
        return None

    def _do(self, jobs: Sequence[Job]) -> Generator[bool]:
        """Do jobs; once their short notes are done, pause after each slice, and while a file is read.

        Yields whether files may go ahead then: between two slices of a long text, unless an extractor has one.

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
                if not lease.holds(notes):  # what came later does not go before them
                    yield False


class Slots:
    """How many bytes of files may go ahead.

    Args:
        left: so many.
        size_of: returns how many bytes a staged file has, if it is there.
    """

    def __init__(self, left: int = 0, size_of: Callable[[str], int | None] = lambda _: None) -> None:
        self._left = left
        self._size_of = size_of

    @property
    def is_left(self) -> bool:
        """Whether any file may go ahead."""
        return self._left > 0

    def take(self, staged: str) -> bool:
        """Return whether a file may go ahead, for which there is less room then."""
        size = self._size_of(staged)
        if size is None or size > self._left:
            return False
        self._left -= max(size, 1)
        return True


def in_lanes(jobs: Sequence[Job], suffixes: Collection[str]) -> tuple[list[Job], list[Job], list[Job]]:
    """Return jobs as they are worked on: short notes, all else, and files for extractors, whose names end so.

    None goes before an earlier one for its path.
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
    """Return the jobs to begin with, and the ids of those that wait, as there are enough for extractors before them."""
    later = [job.id for job in in_lanes(jobs, suffixes)[2][EXTRACTED:]]
    return [job for job in jobs if job.id not in later], later


def _lane(job: Job, suffixes: Collection[str]) -> int:
    if job.staged is None:
        return 0 if len((job.text or "").encode()) <= SHORT_NOTE else 1
    return 2 if PurePath((job.filename or "").lower()).suffix in suffixes else 1


def grouped(jobs: Iterable[DraftedJob | None]) -> Iterator[list[DraftedJob]]:
    """Put jobs together until they fill a slice, so that short notes share the model's batches; long ones come last.

    So does what comes after a long one for its path. Where None comes instead of a job there is time: what was put
    together until then is not kept waiting, and an empty group says that there is nothing.
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
        if group and (is_full or chunk_count(group) >= SLICE):  # what came before a long one for its path is in it
            yield group
            group = []
        if is_full:
            yield from ([long] for long in later)
            later = []
    if group:
        yield group
    yield from ([long] for long in later)


def chunk_count(jobs: Iterable[DraftedJob]) -> int:
    """Return how many chunks the jobs have."""
    return sum(len(draft.inputs) for _, draft in jobs)


def written_paths(jobs: Iterable[DraftedJob]) -> set[str]:
    """Return the paths that the jobs write to."""
    return {job.source_path for job, _ in jobs if job.source_path}
