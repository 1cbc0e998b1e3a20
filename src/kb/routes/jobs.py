"""What goes in, and how far it is."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Iterable
from dataclasses import replace
from hashlib import sha256
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile

from kb.api.errors import Invalid, KeyReused, NotFound, NotRetryable, UnsupportedMedia
from kb.api.models import (
    DEFAULT_PAGE,
    WORD,
    Job,
    JobAccepted,
    JobList,
    JobsCursor,
    JobStatus,
    NoteRequest,
    SourcePath,
    Tags,
    Title,
)
from kb.documents.staging import discard, stage
from kb.routes.examples import EXAMPLES
from kb.routes.limits import check_note, check_tags, page_size
from kb.routes.problems import problems
from kb.routes.services import MAX_ID, Engine, EngineDep, Id, Limit, QueryModel
from kb.routes.thread_route import ThreadRoute
from kb.store import rows
from kb.store.rows import NewJob

logger = logging.getLogger(__name__)

router = APIRouter(route_class=ThreadRoute, prefix="/jobs", tags=["jobs"])

MAX_FIELDS = 10_000
"""Far more than the tags that a setting may allow: that limit shall be the one that is met."""

EMPTY_OR_WORD = rf"^$|{WORD}"


class ListQuery(QueryModel):
    """Which jobs to list."""

    status: JobStatus | None = None
    limit: Limit = DEFAULT_PAGE
    cursor: JobsCursor | None = None


class SubmitQuery(QueryModel):
    """How long to wait."""

    wait: Annotated[int, Field(ge=0, le=MAX_ID, description="Answer when the job ends, or after so many seconds.")] = 0


class FileFields(BaseModel):
    """The form's fields beside the file."""

    title: Title | None = None
    source_path: SourcePath | None = None
    tags: Tags = []


FORM = {
    "type": "object",
    "required": ["file"],
    "additionalProperties": False,
    "properties": {
        "file": {"type": "string", "format": "binary"},
        "title": {"type": "string", "pattern": EMPTY_OR_WORD, "maxLength": 500},
        "source_path": {"type": "string", "pattern": EMPTY_OR_WORD, "maxLength": 4096},
        "tags": {
            "type": "array",
            "items": {"type": "string", "pattern": r"^[^\x00-\x1f\x7f]*$"},
            "description": "As repeated fields, or as one with commas.",
        },
    },
}
BODIES = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": NoteRequest.model_json_schema() | {"examples": [EXAMPLES["NoteRequest"]]}},
            "multipart/form-data": {"schema": FORM},
        },
    }
}
ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"model": JobAccepted, "description": "The job has ended."},
    202: {
        "description": "The job is accepted.",
        "links": {"job": {"operationId": "get_job", "parameters": {"job_id": "$response.body#/job_id"}}},
    },
    **problems(400, 409, 413, 415, 507),
}


@router.post("", summary="Add a note or a file", status_code=202, openapi_extra=BODIES, responses=ANSWERS)
async def submit(
    request: Request,
    response: Response,
    engine: EngineDep,
    query: Annotated[SubmitQuery, Query()],
    prefer: Annotated[str | None, Header(description="`wait=30` does the same (RFC 7240).")] = None,
    idempotency_key: Annotated[
        str | None, Header(min_length=1, max_length=255, description="The same key again is the same job again.")
    ] = None,
) -> JobAccepted:
    """A note as JSON, a file as a form; what is accepted survives a crash.

    Answers 202, or 200 when the job that was waited for is done or failed.
    """
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type == "multipart/form-data":
        async with request.form(max_files=1, max_fields=MAX_FIELDS) as form:
            job = await run_in_threadpool(_file_job, engine, form)
    elif media_type == "application/json":
        job = await run_in_threadpool(_note_job, engine, await request.body())
    else:
        raise UnsupportedMedia
    accepted = await run_in_threadpool(_accept, engine, replace(job, idempotency_key=idempotency_key))
    logger.info("job accepted", extra={"job_id": accepted.job_id})
    seconds = query.wait or preferred_wait(prefer)
    if seconds and not query.wait:
        response.headers["Preference-Applied"] = f"wait={seconds}"
    if seconds:
        accepted = await until_ended(engine, accepted, min(seconds, engine.settings.max_wait_seconds))
    if accepted.status in ("done", "failed"):
        response.status_code = 200
    return accepted


@router.get("", summary="List jobs")
def list_jobs(engine: EngineDep, query: Annotated[ListQuery, Query()]) -> JobList:
    """A page of jobs, newest first."""
    limit = page_size(query.limit, engine.settings)
    before = int(query.cursor) if query.cursor else None
    with engine.store.read() as tx:
        page = tx.jobs.page(status=query.status, limit=limit + 1, before=before)
    jobs = [Job.model_validate(job) for job in page[:limit]]
    return JobList(jobs=jobs, next_cursor=str(jobs[-1].id) if len(page) > limit else None)


@router.get("/{job_id}", summary="Get a job", responses=problems(404))
def get_job(job_id: Id, engine: EngineDep) -> Job:
    """How far a note or a file is, and why it failed if it did."""
    with engine.store.read() as tx:
        job = tx.jobs.get(job_id)
    if job is None:
        raise NotFound(f"There is no job {job_id}.")
    return Job.model_validate(job)


@router.post("/{job_id}/retry", summary="Try a failed job again", status_code=202, responses=problems(404, 409))
def retry_job(job_id: Id, engine: EngineDep) -> JobAccepted:
    """Try a failed job again, whose content was kept: one that failed for a reason of the engine's."""
    with engine.store.write() as tx:
        job = tx.jobs.get(job_id)
        if job is None:
            raise NotFound(f"There is no job {job_id}.")
        if not tx.jobs.retry(job_id):
            raise NotRetryable(why_not_retried(job))
        accepted = _receipt_of(tx.jobs.get(job_id))
    engine.worker.wake()
    return accepted


def why_not_retried(job: rows.Job) -> str:
    """Why a job cannot be tried again."""
    if job.status != "failed":
        return f"Job {job.id} is {job.status}: only a failed job can be tried again."
    return f"Job {job.id} failed because of what it holds, which was not kept: send it again."


def preferred_wait(prefer: str | None) -> int:
    """The seconds that a Prefer header asks to wait (RFC 7240)."""
    found = re.search(r'(?:^|[,;\s])wait\s*=\s*"?(\d{1,9})\b', prefer or "", re.IGNORECASE)
    return int(found[1]) if found else 0


async def until_ended(engine: Engine, accepted: JobAccepted, seconds: int) -> JobAccepted:
    """The job's receipt when it is done or failed, or as it is after so many seconds."""
    deadline = time.monotonic() + seconds
    pause = 0.005
    while accepted.status not in ("done", "failed") and time.monotonic() < deadline:
        await asyncio.sleep(pause)
        pause = min(2 * pause, 0.1)
        accepted = await run_in_threadpool(_receipt, engine, accepted.job_id)
    return accepted


def _receipt(engine: Engine, job_id: int) -> JobAccepted:
    with engine.store.read() as tx:
        return _receipt_of(tx.jobs.get(job_id))


def _receipt_of(job: rows.Job | None) -> JobAccepted:
    assert job is not None  # noqa: S101 - what is asked for here was found, or is too young to expire
    return JobAccepted(job_id=job.id, status=job.status, document_id=job.document_id, error=job.error)


def _note_job(engine: Engine, body: bytes) -> NewJob:
    try:
        note = NoteRequest.model_validate_json(body)
    except ValidationError as error:
        raise RequestValidationError(error.errors(include_url=False)) from None
    check_note(note.text, engine.settings)
    check_tags(engine.settings, note.tags)
    fingerprint = sha256(note.model_dump_json().encode()).hexdigest()
    return NewJob(
        "note",
        note.title,
        note.source_path,
        distinct(note.tags),
        text=note.text,
        request_hash=fingerprint,
        content_hash=sha256(note.text.encode()).hexdigest(),
    )


def _file_job(engine: Engine, form: FormData) -> NewJob:
    file = form.get("file")
    if not isinstance(file, UploadFile):
        raise Invalid("file: send the file as the form's part named 'file'.")
    fields = _fields(form)
    # Fields without a word are no tags, but count: a form may not have more of them than its description says.
    blanks = sum(map(_is_blank, form.getlist("tags")))
    check_tags(engine.settings, [*fields.tags, *[""] * blanks])
    filename = name_of(file.filename or "")
    staged, digest = stage(file.file, engine.settings.staging_dir)
    fingerprint = sha256(f"{digest} {filename} {fields.model_dump_json()}".encode()).hexdigest()
    return NewJob(
        "file",
        fields.title,
        fields.source_path,
        distinct(fields.tags),
        staged=staged,
        filename=filename,
        request_hash=fingerprint,
        content_hash=digest,
    )


def distinct(tags: Iterable[str]) -> tuple[str, ...]:
    """Each tag once, in order."""
    return tuple(dict.fromkeys(tags))


def _accept(engine: Engine, job: NewJob) -> JobAccepted:
    with engine.store.write() as tx:
        known = tx.jobs.with_key(job.idempotency_key) if job.idempotency_key else None
        accepted = _receipt_of(known or tx.jobs.get(tx.jobs.add(job)))
    if known:
        discard(job.staged, engine.settings.staging_dir)
        if known.request_hash != job.request_hash:
            raise KeyReused
    else:
        engine.worker.wake()
    return accepted


def name_of(filename: str) -> str:
    """The file's own name: what forms escape is read, and folders are left out, also those of Windows."""
    for escaped, character in (("%22", '"'), ("%0D", "\r"), ("%0A", "\n")):
        filename = filename.replace(escaped, character)
    if re.match(r"[A-Za-z]:\\|\\\\", filename):
        filename = filename.replace("\\", "/")
    return filename.rpartition("/")[2]


def _fields(form: FormData) -> FileFields:
    if unknown := form.keys() - {"file", *FileFields.model_fields}:
        raise Invalid(f"{min(unknown)}: there is no such field; there are file, title, source_path and tags.")
    try:
        return FileFields(
            title=_text(form.get("title")),
            source_path=_text(form.get("source_path")),
            tags=list(_split(form.getlist("tags"))),
        )
    except ValidationError as error:
        raise RequestValidationError(error.errors(include_url=False)) from None


def _split(tags: Iterable[UploadFile | str]) -> Iterable[str]:
    """Tags as repeated fields, or as one with commas."""
    for field in tags:
        yield from filter(None, (tag.strip() for tag in (_text(field) or "").split(",")))


def _is_blank(field: UploadFile | str) -> bool:
    return isinstance(field, str) and not field.strip()


def _text(field: UploadFile | str | None) -> str | None:
    if isinstance(field, UploadFile):
        raise Invalid("title, source_path, tags: send them as plain fields, not as files.")
    return field or None
