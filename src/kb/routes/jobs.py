"""What goes in, and how far it is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile

from kb.contract.errors import Invalid, NotFound, UnsupportedMedia
from kb.contract.models import (
    DEFAULT_PAGE,
    Job,
    JobAccepted,
    JobList,
    JobStatus,
    NoteRequest,
    SourcePath,
    Tags,
    Title,
)
from kb.ingest.staging import stage
from kb.routes.engine import MAX_ID, Cursor, Engine, EngineDep, Id, Limit
from kb.store.base import NewJob

router = APIRouter(prefix="/jobs", tags=["jobs"])


class FileFields(BaseModel):
    """The form's fields beside the file."""

    title: Title | None = None
    source_path: SourcePath | None = None
    tags: Tags = []


BODIES = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": NoteRequest.model_json_schema()},
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {
                        "file": {"type": "string", "format": "binary"},
                        "title": {"type": "string"},
                        "source_path": {"type": "string"},
                        "tags": {"type": "array", "items": {"type": "string"}},
                    },
                }
            },
        },
    }
}


@router.post("", status_code=202, openapi_extra=BODIES)
async def submit(request: Request, engine: EngineDep) -> JobAccepted:
    """Submit a note (JSON) or a file (multipart); what is accepted survives a crash."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type == "multipart/form-data":
        async with request.form(max_files=1, max_fields=200) as form:
            return await run_in_threadpool(_accept_file, engine, form)
    if media_type == "application/json":
        return await run_in_threadpool(_accept_note, engine, await request.body())
    raise UnsupportedMedia


@router.get("")
def list_jobs(
    engine: EngineDep,
    status: Annotated[JobStatus | None, Query()] = None,
    limit: Limit = DEFAULT_PAGE,
    cursor: Cursor = None,
) -> JobList:
    """List jobs, newest first."""
    with engine.store.read() as tx:
        page = tx.jobs.page(status=status, limit=limit + 1, before=_before(cursor))
    jobs = [Job.model_validate(job) for job in page[:limit]]
    return JobList(jobs=jobs, next_cursor=str(jobs[-1].id) if len(page) > limit else None)


@router.get("/{job_id}")
def get_job(job_id: Id, engine: EngineDep) -> Job:
    """Get a job."""
    with engine.store.read() as tx:
        job = tx.jobs.get(job_id)
    if job is None:
        raise NotFound(f"There is no job {job_id}.")
    return Job.model_validate(job)


def _accept_note(engine: Engine, body: bytes) -> JobAccepted:
    try:
        note = NoteRequest.model_validate_json(body)
    except ValidationError as error:
        raise RequestValidationError(error.errors(include_url=False)) from None
    return _accept(engine, NewJob("note", note.title, note.source_path, tuple(note.tags), text=note.text))


def _accept_file(engine: Engine, form: FormData) -> JobAccepted:
    file = form.get("file")
    if not isinstance(file, UploadFile):
        raise Invalid("file: send the file as the form's part named 'file'.")
    fields = _fields(form)
    staged = stage(file.file, engine.settings.staging_dir)
    filename = (file.filename or "").replace("\\", "/").rpartition("/")[2]
    return _accept(
        engine,
        NewJob("file", fields.title, fields.source_path, tuple(fields.tags), staged=staged, filename=filename),
    )


def _accept(engine: Engine, job: NewJob) -> JobAccepted:
    with engine.store.write() as tx:
        job_id = tx.jobs.add(job)
    engine.worker.wake()
    return JobAccepted(job_id=job_id, status="queued")


def _fields(form: FormData) -> FileFields:
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


def _text(field: UploadFile | str | None) -> str | None:
    if isinstance(field, UploadFile):
        raise Invalid("title, source_path, tags: send them as plain fields, not as files.")
    return field or None


def _before(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    if not (cursor.isascii() and cursor.isdigit() and int(cursor) <= MAX_ID):
        raise Invalid("cursor: not one that this list answered; leave it out to begin again.")
    return int(cursor)
