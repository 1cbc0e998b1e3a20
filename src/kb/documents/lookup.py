"""Lookups of documents, versions and jobs that must exist."""

from kb.api.errors import NotFound
from kb.store.protocol import Transaction
from kb.store.rows import NOBODY, Author, Document, Job, Version


def existing_document(tx: Transaction, document_id: int) -> Document:
    """Return a document.

    Raises:
        NotFound: no document has this id.
    """
    document = tx.documents.get(document_id)
    if document is None:
        raise missing_document(tx, document_id)
    return document


def missing_document(tx: Transaction, document_id: int) -> NotFound:
    """Return the error for a document that does not exist or is in the bin."""
    if binned := tx.history.binned(document_id):
        return NotFound(f"Document {document_id} has been in the bin since {binned.deleted_at}; it can be restored.")
    return NotFound(f"Document {document_id} does not exist.")


def existing_version(tx: Transaction, document_id: int, number: int) -> Version:
    """Return a version of a document, which may be in the bin.

    Raises:
        NotFound: the document does not exist, or the version is not kept.
    """
    for version in tx.history.versions(document_id, limit=1, before=number + 1):
        if version.number == number:
            return version
    if tx.documents.get(document_id) is None:
        raise missing_document(tx, document_id)
    raise NotFound(f"Document {document_id} has no version {number}.")


def author_of(tx: Transaction, document_id: int) -> Author:
    """Return the author of a document's latest version."""
    return next((version.author for version in tx.history.versions(document_id, limit=1)), NOBODY)


def existing_job(tx: Transaction, job_id: int) -> Job:
    """Return a job.

    Raises:
        NotFound: no job has this id.
    """
    job = tx.jobs.get(job_id)
    if job is None:
        raise NotFound(f"Job {job_id} does not exist.")
    return job
