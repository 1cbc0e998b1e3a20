"""What is sent becomes a job: once for each idempotency key, again when it is retried, and none when it is dropped."""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import replace
from hashlib import sha256
from typing import BinaryIO, Final

from kb.api.errors import JobDone, KeyReused, NotRetryable, Unconfirmed
from kb.api.models import NOTE, FileRequest, JobAccepted, JobDropped, NoteRequest
from kb.blobs.protocol import Blobs
from kb.documents.existing import existing_job
from kb.documents.replacement import check_current, check_replaceable
from kb.documents.staging import discard, stage
from kb.formats.text.base64_data import without_embedded
from kb.formats.text.batches import filename_from_title
from kb.ingest.draft import first_line
from kb.store.protocol import Store
from kb.store.rows import NOBODY, Author, Job, NewJob, said

FIRST: Final = {"text", "title", "tags", "source_path"}
"""The fields that notes always had: without the others a note's hash is what it was."""


def submit_note(
    store: Store, blobs: Blobs, note: NoteRequest, idempotency_key: str | None = None, author: Author = NOBODY
) -> JobAccepted:
    """Queue a note; one that carries pictures as base64 becomes a Markdown file, which is kept as it was sent.

    Raises:
        KeyReused: the key came with something else before.
        NotFound, NotANote: it is to replace what is not there, or is no note.
        AlreadyReplaced: another note replaces that one.
        DiskFull, FilesUnavailable: a file cannot be kept now.
    """
    job = NewJob(
        NOTE,
        note.title,
        note.source_path,
        _distinct(note.all_tags),
        text=note.text,
        idempotency_key=idempotency_key,
        request_hash=_sha256(note.model_dump_json(exclude={name for name, value in note if value is None} - FIRST)),
        content_hash=_sha256(note.text),
        author=author,
        replaces=note.replaces,
        **said(note),
    )
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
    """Queue a file, which is staged.

    Raises:
        DiskFull: there is no room for it.
        FilesUnavailable: the place of the files does not answer.
        KeyReused: the key came with something else before.
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
    """Queue a failed job again, whose content was kept: one that failed for a reason of the engine's.

    Raises:
        NotFound: there is no such job.
        NotRetryable: it has not failed, its content was not kept, or it would overwrite what came later for its path.
    """
    with store.write() as tx:
        job = existing_job(tx, job_id)
        if later := tx.jobs.later(job_id) if job.status == "failed" else None:
            raise NotRetryable(f"Job {job_id} would overwrite what came later for its path, by job {later}.")
        if not tx.jobs.retry(job_id):
            raise NotRetryable(_why_not_retried(job))
    return JobAccepted(job_id=job_id, status="queued")


def drop(store: Store, blobs: Blobs, job_id: int) -> JobDropped:
    """Forget a job that has not become a document; what it waited with goes, and nothing of it will be written.

    The worker notices at its next step that a running one is gone, and removes its file.

    Raises:
        NotFound: there is no such job.
        JobDone: it is a document already.
    """
    with store.write() as tx:
        job = existing_job(tx, job_id)
        if job.status == "done":
            raise JobDone(f"Job {job_id} is done, and its document is {job.document_id}: delete that one.")
        tx.jobs.delete(job_id)
    if job.status != "running":
        discard(job.staged, blobs)
    return JobDropped(job_id=job_id, was=job.status)


def receipt(job: Job) -> JobAccepted:
    """Return what the sender of a job is told of it."""
    return JobAccepted(
        job_id=job.id,
        status=job.status,
        document_id=job.document_id,
        existed=job.existed,
        omitted=dict(job.omitted),
        error=job.error,
    )


def _submit_staged(store: Store, blobs: Blobs, job: NewJob) -> JobAccepted:
    """Queue a job whose file is staged; the file goes if the job is not queued."""
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
    """Queue a job, unless its key is one of a job before. Return the receipt, and whether the job was queued."""
    with store.write() as tx:
        before = tx.jobs.with_key(job.idempotency_key) if job.idempotency_key else None
        if before is None:
            if job.replaces is not None:
                check_replaceable(tx, job.replaces)
                check_current(tx, job.replaces, job.content_hash or "", job.source_path)
            return JobAccepted(job_id=tx.jobs.add(job), status="queued"), True
    if before.request_hash != job.request_hash:
        raise KeyReused
    return receipt(before), False


def _why_not_retried(job: Job) -> str:
    if job.status != "failed":
        return f"Job {job.id} is {job.status}: only a failed job can be tried again."
    return f"Job {job.id} failed because of what it holds, which was not kept: send it again."


def _distinct(tags: Iterable[str]) -> tuple[str, ...]:
    """Return each tag once, in order."""
    return tuple(dict.fromkeys(tags))


def _sha256(text: str) -> str:
    return sha256(text.encode()).hexdigest()
