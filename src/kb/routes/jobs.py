"""Adding notes and files, and their jobs."""

import asyncio
import logging
import re
import time
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response
from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData

from kb.api.errors import UnsupportedMedia
from kb.api.fields import ENDED, NOTE, JobsCursor, JobStatus, Why
from kb.api.job_models import Job, JobAccepted, JobDropped, JobList
from kb.api.limits import DEFAULT_PAGE, MAX_ID, MAX_LABEL
from kb.documents.job_queue import drop, receipt, retry, submit_file
from kb.documents.lookup import existing_job
from kb.documents.write_new_note import NoteIntake
from kb.routes.dependencies import READ, WRITE, Id, PageLimit, QueryModel, Services, ServicesDep, author_from
from kb.routes.error_replies import problems
from kb.routes.submissions import BODIES, basename, parse_form, parse_note, read_form
from kb.routes.thread_route import ThreadRoute
from kb.store import rows
from kb.store.rows import Author

logger = logging.getLogger(__name__)

router = APIRouter(route_class=ThreadRoute, prefix="/jobs", tags=["jobs"])


class WaitQuery(QueryModel):
    """The time to wait for a job."""

    wait: Annotated[int, Field(ge=0, le=MAX_ID, description="Wait up to this many seconds for the job to end.")] = 0


class JobsQuery(QueryModel):
    """The filter and the page of a list of jobs."""

    status: JobStatus | None = None
    limit: PageLimit = DEFAULT_PAGE
    cursor: JobsCursor | None = None


class SubmitQuery(WaitQuery):
    """The time to wait for the job, and the reason for the history."""

    why: Why = None


ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"model": JobAccepted, "description": "The job has ended, or `if_new` stored nothing."},
    202: {
        "description": "The job is accepted.",
        "links": {"job": {"operationId": "get_job", "parameters": {"job_id": "$response.body#/job_id"}}},
    },
    **problems(400, 404, 409, 413, 415, 507),
}


@router.post(
    "", summary="Add a note or a file", dependencies=[WRITE], status_code=202, openapi_extra=BODIES, responses=ANSWERS
)
async def submit(
    request: Request,
    response: Response,
    services: ServicesDep,
    query: Annotated[SubmitQuery, Query()],
    prefer: Annotated[
        str | None, Header(description="`wait=30` has the same effect as the parameter `wait` (RFC 7240).")
    ] = None,
    idempotency_key: Annotated[
        str | None,
        Header(
            min_length=1,
            max_length=MAX_LABEL,
            description="A key of your choice. A repeated call with this key returns the same job.",
        ),
    ] = None,
) -> JobAccepted:
    """Add a note (JSON) or a file (form). Accepted content survives a crash.

    kb stores a note before it answers: the answer has the note's `document_id` and similar notes (`alike`), and keyword
    search finds the note at once. If the model is busy, the note's vectors follow later, and its job stays queued
    until then.

    The status is 202, or 200 if the call waited and the job is done or failed, or if `if_new` stored nothing.
    """
    accepted = await _accept(request, services, idempotency_key, author_from(request, query.why))
    logger.info("job accepted", extra={"job_id": accepted.job_id})
    seconds = query.wait or preferred_wait(prefer)
    if seconds and not query.wait:
        response.headers["Preference-Applied"] = f"wait={seconds}"
    if accepted.job_id and seconds and accepted.status not in ENDED:
        job = await awaited_job(services, accepted.job_id, seconds)
        accepted = receipt(job, accepted.alike, accepted.nearest)
    if (seconds or not accepted.stored) and accepted.status in ENDED:
        response.status_code = 200
    return accepted


@router.get("", summary="List jobs", dependencies=[READ])
def list_jobs(services: ServicesDep, query: Annotated[JobsQuery, Query()]) -> JobList:
    """Return a page of jobs, newest first."""
    limit = query.limit
    before = int(query.cursor) if query.cursor else None
    with services.store.read() as tx:
        page = tx.jobs.page(status=query.status, limit=limit + 1, before=before)
    jobs = [Job.model_validate(job) for job in page[:limit]]
    return JobList(jobs=jobs, next_cursor=str(jobs[-1].id) if len(page) > limit else None)


@router.get("/{job_id}", summary="Get a job", dependencies=[READ], responses=problems(404))
async def get_job(job_id: Id, services: ServicesDep, query: Annotated[WaitQuery, Query()]) -> Job:
    """Return the progress of an added note or file, and the reason if it failed."""
    return Job.model_validate(await awaited_job(services, job_id, query.wait))


@router.post(
    "/{job_id}/retry",
    summary="Retry a failed job",
    dependencies=[WRITE],
    status_code=202,
    responses=problems(404, 409),
)
def retry_job(job_id: Id, services: ServicesDep) -> JobAccepted:
    """Retry a failed job. This works if the engine caused the failure, because kb then keeps the content."""
    accepted = retry(services.store, job_id)
    services.worker.wake()
    return accepted


@router.delete("/{job_id}", summary="Drop a job", dependencies=[WRITE], responses=problems(404, 409, 507))
def drop_job(job_id: Id, services: ServicesDep) -> JobDropped:
    """Drop a queued, running or failed job, with its content and its Idempotency-Key.

    The job will not add or change a document.
    """
    dropped = drop(services.store, services.originals.blobs, job_id)
    services.worker.ends.publish(job_id)
    return dropped


async def _accept(request: Request, services: Services, idempotency_key: str | None, author: Author) -> JobAccepted:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type == "multipart/form-data":
        async with read_form(request, services.settings) as form:
            return await run_in_threadpool(_accept_file, services, form, idempotency_key, author)
    if media_type == "application/json":
        return await run_in_threadpool(_accept_note, services, await request.body(), idempotency_key, author)
    raise UnsupportedMedia


def _accept_note(services: Services, body: bytes, idempotency_key: str | None, author: Author) -> JobAccepted:
    note = parse_note(body, services.settings)
    intake = NoteIntake(services.store, services.originals.blobs, services.note_vectors, services.stop.check)
    started = time.monotonic()
    accepted = intake.add(note, idempotency_key, author)
    if accepted.status == "done" and accepted.stored:
        services.instruments.ingested(NOTE, "done", time.monotonic() - started)
    return accepted


def _accept_file(services: Services, form: FormData, idempotency_key: str | None, author: Author) -> JobAccepted:
    file, request = parse_form(form, services.settings)
    blobs, filename = services.originals.blobs, basename(file.filename or "")
    return submit_file(services.store, blobs, file.file, filename, request, idempotency_key, author)


def preferred_wait(prefer: str | None) -> int:
    """Return the seconds that a Prefer header asks to wait (RFC 7240)."""
    match = re.search(r'(?:^|[,;\s])wait\s*=\s*"?(\d{1,9})\b', prefer or "", re.IGNORECASE)
    return int(match[1]) if match else 0


async def awaited_job(services: Services, job_id: int, seconds: int) -> rows.Job:
    """Return a job when it has ended, or after this number of seconds, or when the engine stops.

    Raises:
        NotFound: the job does not exist.
    """
    deadline = asyncio.get_running_loop().time() + min(seconds, services.settings.max_wait_seconds)
    goes_on = seconds > 0
    with services.worker.ends.subscribe(job_id) as subscription:
        while (job := await run_in_threadpool(_job, services, job_id)).status not in ENDED and goes_on:
            goes_on = await subscription.wait(deadline)
    return job


def _job(services: Services, job_id: int) -> rows.Job:
    with services.store.read() as tx:
        return existing_job(tx, job_id)
