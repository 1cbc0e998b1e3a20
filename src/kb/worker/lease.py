"""Jobs in work, and their heartbeat, which continues through slow files, models and disks.

Several engines may share a database. An engine without a heartbeat for too long loses its jobs to the others.
"""

import errno
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from time import monotonic
from types import TracebackType
from typing import Final, Self

from kb.api.errors import DiskFull, KbError, Overloaded, Unavailable
from kb.store.protocol import Store, Transaction
from kb.store.rows import Job
from kb.threads import BackgroundThread

logger = logging.getLogger(__name__)

BEAT_SECONDS = 4.0
"""The interval in seconds: an engine with a broken connection counts as dead ten seconds after its last heartbeat."""

STALLED_SECONDS = 120.0
"""A running job without a heartbeat for this time is restarted."""

RETRY_SECONDS: Final = 1.0


class Lease:
    """Jobs that were claimed together. Jobs that have not ended with the block return to the queue.

    The attempt then counts only if the block ended with an error that may come from a job. It does not count if the
    engine stops, the disk is full or read-only, the limit of open files is reached, the model was changed, the database
    does not answer, another engine has one of the jobs, or the block was a generator that was closed.

    An I/O error may concern only one file or one page of the database. If the disk cannot be written at all, the jobs
    do not return to the queue but count as stalled later.
    """

    def __init__(self, store: Store, jobs: Sequence[Job]) -> None:
        self.jobs = jobs
        self._store = store
        self._held = frozenset(job.id for job in jobs)
        self._ending = Lock()
        self._begun: dict[int, float] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self._held:
            failed = error is not None and not is_ours(error)
            with self._store.queue() as tx:
                tx.jobs.release(self._held, failed=failed)

    def holds(self, job_ids: Iterable[int]) -> bool:
        """Return whether any of these jobs has not ended."""
        return not self._held.isdisjoint(job_ids)

    def begin(self, job_id: int) -> None:
        """Record the start of a job."""
        self._begun[job_id] = monotonic()

    def seconds(self, job_id: int) -> float | None:
        """Return the seconds since a job was started, if it was."""
        return monotonic() - self._begun[job_id] if job_id in self._begun else None

    def record_start(self, tx: Transaction, job_id: int) -> None:
        if job_id in self._begun:
            tx.jobs.set_started(job_id, monotonic() - self._begun[job_id])

    def renew(self) -> None:
        """Send a heartbeat for the jobs; any thread may."""
        if job_ids := self._held:
            with self._store.queue() as tx:
                tx.jobs.heartbeat(job_ids)

    def record_progress(self, progress: Mapping[int, float]) -> bool:
        """Store the progress of jobs; return whether any of them still exists."""
        with self._store.queue() as tx:
            for job_id in progress:
                self.record_start(tx, job_id)
            job_ids = [job_id for job_id, share in progress.items() if tx.jobs.set_progress(job_id, share)]
        return bool(job_ids)

    def end(self, job_id: int) -> None:
        """Release a job that has ended; any thread may."""
        with self._ending:
            self._held -= {job_id}


def is_ours(error: BaseException) -> bool:
    """Return whether an error comes from the engine or the machine, not from a job."""
    if isinstance(error, (Unavailable, DiskFull, GeneratorExit)) or Overloaded.is_why(error):
        return True
    return isinstance(error, OSError) and error.errno == errno.EROFS


class Heartbeat(BackgroundThread):
    """Renews leases as long as its block runs."""

    def __init__(self) -> None:
        super().__init__("kb-heartbeat")
        self._leases: set[Lease] = set()

    @contextmanager
    def of(self, lease: Lease) -> Iterator[None]:
        """Renew a lease during the block."""
        self._leases.add(lease)
        try:
            yield
        finally:
            self._leases.discard(lease)

    def _run(self) -> None:
        pause = BEAT_SECONDS
        while not self._stopping.wait(pause):
            went_well = [self._renew(lease) for lease in tuple(self._leases)]
            pause = BEAT_SECONDS if all(went_well) else RETRY_SECONDS

    def _renew(self, lease: Lease) -> bool:
        """Renew a lease; return whether that succeeded."""
        try:
            lease.renew()
        except KbError as error:
            logger.warning("could not renew the leases of running jobs: %s", error.detail)
            return False
        except Exception:
            logger.exception("could not renew the leases of running jobs")
            return False
        return True
