"""A worker over a store, as the engine makes one."""

from __future__ import annotations

from contextlib import contextmanager

from kb.blobs.folder import FolderBlobs
from kb.documents.originals import Originals
from kb.worker.job import WorkerParts
from kb.worker.loop import Worker


def new_worker(store, embedder, folder, keep_jobs_days=0, **parts):
    """A worker that has its files in a folder."""
    (folder / "staging").mkdir(exist_ok=True)
    originals = Originals(FolderBlobs(folder), keep=True)
    return Worker(WorkerParts(store, embedder, originals, **parts), folder / "staging", keep_jobs_days)


@contextmanager
def working(store, embedder, folder, **parts):
    """The same, running during the block."""
    worker = new_worker(store, embedder, folder, **parts)
    worker.start()
    store.listen(worker.wake)
    try:
        yield worker
    finally:
        worker.stop()


def job_of(store, job_id):
    with store.read() as tx:
        return tx.jobs.get(job_id)


def queued(store, *jobs):
    """The ids of jobs that wait together."""
    with store.write() as tx:
        return [tx.jobs.add(job) for job in jobs]
