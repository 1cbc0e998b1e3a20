"""What a request names must be there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kb.api.errors import NotFound

if TYPE_CHECKING:
    from kb.store.protocol import Transaction
    from kb.store.rows import Document, Job


def existing_document(tx: Transaction, document_id: int) -> Document:
    """Return a document.

    Raises:
        NotFound: there is none with this id.
    """
    document = tx.documents.get(document_id)
    if document is None:
        raise NotFound(f"There is no document {document_id}.")
    return document


def existing_job(tx: Transaction, job_id: int) -> Job:
    """Return a job.

    Raises:
        NotFound: there is none with this id.
    """
    job = tx.jobs.get(job_id)
    if job is None:
        raise NotFound(f"There is no job {job_id}.")
    return job
