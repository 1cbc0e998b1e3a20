"""Jobs: queue content once per idempotency key, retry failed jobs, and drop jobs."""

import io
from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import BinaryIO, Final

from kb.api.errors import JobDone, KeyReused, NotRetryable, Unconfirmed
from kb.api.fields import NOTE
from kb.api.job_models import FileRequest, JobAccepted, JobDropped
from kb.api.note_models import Alike, NoteRequest
from kb.api.web_address import is_page, page_address
from kb.blobs.protocol import Blobs
from kb.documents.lookup import existing_job
from kb.documents.replaced_notes import check_current, check_replaceable
from kb.documents.staging import discard, stage
from kb.formats.text.base64_data import without_embedded
from kb.formats.text.batches import filename_from_title
from kb.ingest.draft import first_line
from kb.markdown.tags import tags_in
from kb.store.protocol import Store, Transaction
from kb.store.rows import NOBODY, Author, Job, NewJob, optional_fields

ORIGINAL_FIELDS: Final = {"text", "title", "tags", "source_path"}
"""The fields that notes always had: if the others are None, the hash of a note stays the same."""


def note_job(note: NoteRequest, idempotency_key: str | None = None, author: Author = NOBODY) -> NewJob:
    return NewJob(
        NOTE,
        note.title,
        note.source_path,
        _distinct([*note.all_tags, *(tags_in(note.text) if note.inline_tags else ())]),
        text=note.text,
        idempotency_key=idempotency_key,
        request_hash=_sha256(
            note.model_dump_json(exclude={name for name, value in note if value in (None, False)} - ORIGINAL_FIELDS)
        ),
        content_hash=_sha256(note.text),
        author=author,
        replaces=note.replaces,
        **optional_fields(note),
    )


def submit_note(
    store: Store, blobs: Blobs, note: NoteRequest, idempotency_key: str | None = None, author: Author = NOBODY
) -> JobAccepted:
    """Queue a note; a note with embedded base64 pictures becomes a Markdown file, kept as it was sent.

    Raises:
        KeyReused: the key was used for another request.
        NotFound, NotANote: the document to replace does not exist, or is not a note.
        AlreadyReplaced: another note replaces that note.
        DiskFull, FilesUnavailable: a file cannot be kept now.
    """
    job = note_job(note, idempotency_key, author)
    shown = without_embedded(note.text)
    if shown == note.text:
        accepted, _ = _submit(store, job)
        return accepted
    staged, _ = stage(io.BytesIO(note.text.encode()), blobs)
    filename = f"{filename_from_title(first_line(shown)) or NOTE}.md"
    return _submit_staged(store, blobs, replace(job, kind="file", text=None, staged=staged, filename=filename))


def submit_file(
    store: Store,
    blobs: Blobs,
    content: BinaryIO,
    filename: str,
    request: FileRequest,
    idempotency_key: str | None = None,
    author: Author = NOBODY,
) -> JobAccepted:
    """Stage a file and queue its job.

    Raises:
        DiskFull: the disk has no room for the file.
        FilesUnavailable: the file storage does not answer.
        KeyReused: the key was used for another request.
    """
    staged, digest = stage(content, blobs)
    job = NewJob(
        "file",
        request.title,
        request.source_path,
        _distinct(request.tags),
        staged=staged,
        filename=filename,
        idempotency_key=idempotency_key,
        request_hash=_sha256(f"{digest} {filename} {request.model_dump_json()}"),
        content_hash=digest,
        author=author,
    )
    return _submit_staged(store, blobs, job)


def retry(store: Store, job_id: int) -> JobAccepted:
    """Queue a failed job again. Its content must have been kept, as after an internal error.

    Raises:
        NotFound: the job does not exist.
        NotRetryable: the job has not failed, its content was not kept, or it would overwrite newer content at its path.
    """
    with store.write() as tx:
        job = existing_job(tx, job_id)
        if later := tx.jobs.later(job_id) if job.status == "failed" else None:
            raise NotRetryable(f"Job {job_id} would overwrite newer content at its path, from job {later}.")
        if not tx.jobs.retry(job_id):
            raise NotRetryable(_why_not_retried(job))
    return JobAccepted(job_id=job_id, status="queued")


def drop(store: Store, blobs: Blobs, job_id: int) -> JobDropped:
    """Delete a job that has not become a document, along with its staged file; nothing of it will be written.

    If the job is running, the worker notices at its next step and removes the file.

    Raises:
        NotFound: the job does not exist.
        JobDone: the job has become a document.
    """
    with store.write() as tx:
        job = existing_job(tx, job_id)
        if job.document_id is not None and job.status != "failed":
            raise JobDone(f"Job {job_id} is done, and its document is {job.document_id}. Delete that document instead.")
        tx.jobs.delete(job_id)
    if job.status != "running":
        discard(job.staged, blobs)
    return JobDropped(job_id=job_id, was=job.status)


def receipt(job: Job, alike: Sequence[Alike] = (), nearest: Alike | None = None) -> JobAccepted:
    """Return the receipt for the sender of a job, with the notes that say nearly the same, or the nearest one."""
    return JobAccepted(
        job_id=job.id,
        status=job.status,
        document_id=job.document_id,
        existed=job.existed,
        omitted=dict(job.omitted),
        error=job.error,
        alike=list(alike),
        nearest=nearest,
    )


def _submit_staged(store: Store, blobs: Blobs, job: NewJob) -> JobAccepted:
    """Queue a job with a staged file; remove the file if the job is not queued."""
    is_queued = False
    try:
        accepted, is_queued = _submit(store, job)
    except Unconfirmed:  # if it was not queued, a sweep removes the file
        is_queued = True
        raise
    finally:
        if not is_queued:
            discard(job.staged, blobs)
    return accepted


def _submit(store: Store, job: NewJob) -> tuple[JobAccepted, bool]:
    """Queue a job, unless an earlier job has its key. Return the receipt, and whether the job was queued."""
    with store.write() as tx:
        before = tx.jobs.with_key(job.idempotency_key) if job.idempotency_key else None
        if before is None:
            check_replaced(tx, job)
            job = replace(job, source_path=_first_address(tx, job.source_path))
            return JobAccepted(job_id=tx.jobs.add(job), status="queued"), True
    return receipt_again(before, job), False


def _first_address(tx: Transaction, source_path: str | None) -> str | None:
    """Return the address under which a page was saved first; other paths unchanged."""
    if source_path is None or not is_page(source_path) or tx.documents.at_path(source_path):
        return source_path
    for link in tx.links.in_text(f"[](<{source_path}>)", None):
        document = tx.documents.get(link.document_id) if link.document_id else None
        first = document.source_path if document and tx.documents.part_of(document.id) is None else None
        if first and page_address(first) == source_path:
            return first
    return source_path


def check_replaced(tx: Transaction, job: NewJob) -> None:
    """Check that a note can replace the document that it names. Raises the same errors as `submit_note`."""
    if job.replaces is not None:
        check_replaceable(tx, job.replaces)
        check_current(tx, job.replaces, job.content_hash or "", job.source_path)


def receipt_again(before: Job, job: NewJob) -> JobAccepted:
    """Return the receipt of the job that has the key of another request.

    Raises:
        KeyReused: they are not the same request.
    """
    if before.request_hash != job.request_hash:
        raise KeyReused
    return receipt(before)


def _why_not_retried(job: Job) -> str:
    if job.status != "failed":
        return f"Job {job.id} is {job.status}. Only a failed job can be retried."
    return f"Job {job.id} failed because of its content, which kb did not keep. Send the content again."


def _distinct(tags: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(tags))


def _sha256(text: str) -> str:
    return sha256(text.encode()).hexdigest()
