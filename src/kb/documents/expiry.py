"""Deletion of expired jobs, audit lines, earlier versions and documents in the bin."""

from typing import Final

from kb.documents.originals import Originals
from kb.documents.staging import discard
from kb.store.protocol import Store

ROWS: Final = 1000
"""The number of rows deleted in one transaction: writers wait for it."""

VERSIONS: Final = 100
"""The number of documents in the bin, or earlier versions, deleted in one transaction."""


def expire(store: Store, originals: Originals, keep_jobs_days: int) -> bool:
    """Delete some of the expired rows, with their files; return whether more may be left.

    Done jobs are kept for `keep_jobs_days`, or forever if that is 0.
    """
    with store.write() as tx:
        jobs = tx.jobs.expire(keep_jobs_days, ROWS) if keep_jobs_days else 0
        lines = tx.audit.expire(ROWS)
        waiting = tx.jobs.staged()
        versions = tx.history.expire(VERSIONS)
        waiting -= tx.jobs.staged()
    for name in waiting:
        discard(name, originals.blobs)
    if versions:
        originals.sweep(store)
    return max(jobs, lines) >= ROWS or versions >= VERSIONS
