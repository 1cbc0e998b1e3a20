"""What goes in, and how far it is."""

from __future__ import annotations

import logging
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData

from kb.api.errors import UnsupportedMedia
from kb.api.models import DEFAULT_PAGE, ENDED, Job, JobAccepted, JobList, JobsCursor, JobStatus
from kb.documents.submit import receipt, retry, submit_file, submit_note
from kb.routes.forms import BODIES, MAX_FIELDS, basename, parse_form, parse_note
from kb.routes.limits import page_size
from kb.routes.problems import problems
from kb.routes.services import Engine, EngineDep, Id, Limit, QueryModel
from kb.routes.thread_route import ThreadRoute
from kb.routes.waiting import WaitQuery, awaited_job, preferred_wait

logger = logging.getLogger(__name__)

router = APIRouter(route_class=ThreadRoute, prefix="/jobs", tags=["jobs"])


class ListQuery(QueryModel):
    """Which jobs to list."""

    status: JobStatus | None = None
    limit: Limit = DEFAULT_PAGE
    cursor: JobsCursor | None = None


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
    query: Annotated[WaitQuery, Query()],
    prefer: Annotated[str | None, Header(description="`wait=30` does the same (RFC 7240).")] = None,
    idempotency_key: Annotated[
        str | None, Header(min_length=1, max_length=255, description="The same key again is the same job again.")
    ] = None,
) -> JobAccepted:
    """A note as JSON, a file as a form; what is accepted survives a crash.

    Answers 202, or 200 when the job that was waited for is done or failed.
    """
    accepted = await _accept(request, engine, idempotency_key)
    logger.info("job accepted", extra={"job_id": accepted.job_id})
    engine.worker.wake()
    seconds = query.wait or preferred_wait(prefer)
    if seconds and not query.wait:
        response.headers["Preference-Applied"] = f"wait={seconds}"
    if seconds and accepted.status not in ENDED:
        accepted = receipt(await awaited_job(engine, accepted.job_id, seconds))
    if accepted.status in ENDED:
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
async def get_job(job_id: Id, engine: EngineDep, query: Annotated[WaitQuery, Query()]) -> Job:
    """How far a note or a file is, and why it failed if it did."""
    return Job.model_validate(await awaited_job(engine, job_id, query.wait))


@router.post("/{job_id}/retry", summary="Try a failed job again", status_code=202, responses=problems(404, 409))
def retry_job(job_id: Id, engine: EngineDep) -> JobAccepted:
    """Try a failed job again, whose content was kept: one that failed for a reason of the engine's."""
    accepted = retry(engine.store, job_id)
    engine.worker.wake()
    return accepted


async def _accept(request: Request, engine: Engine, idempotency_key: str | None) -> JobAccepted:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type == "multipart/form-data":
        async with request.form(max_files=1, max_fields=MAX_FIELDS) as form:
            return await run_in_threadpool(_accept_file, engine, form, idempotency_key)
    if media_type == "application/json":
        return await run_in_threadpool(_accept_note, engine, await request.body(), idempotency_key)
    raise UnsupportedMedia


def _accept_note(engine: Engine, body: bytes, idempotency_key: str | None) -> JobAccepted:
    return submit_note(engine.store, parse_note(body, engine.settings), idempotency_key)


def _accept_file(engine: Engine, form: FormData, idempotency_key: str | None) -> JobAccepted:
    file, request = parse_form(form, engine.settings)
    staging, filename = engine.settings.staging_dir, basename(file.filename or "")
    return submit_file(engine.store, staging, file.file, filename, request, idempotency_key)
