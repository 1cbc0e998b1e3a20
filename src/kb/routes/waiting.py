"""How a request waits for the end of a job."""

from __future__ import annotations

import asyncio
import re
from typing import Annotated

from pydantic import Field
from starlette.concurrency import run_in_threadpool

from kb.api.models import ENDED
from kb.documents.lookup import existing_job
from kb.routes.dependencies import MAX_ID, QueryModel, Services
from kb.store.rows import Job


class WaitQuery(QueryModel):
    """How long to wait."""

    wait: Annotated[int, Field(ge=0, le=MAX_ID, description="Answer when the job ends, or after so many seconds.")] = 0


def preferred_wait(prefer: str | None) -> int:
    """Return the seconds that a Prefer header asks to wait (RFC 7240)."""
    found = re.search(r'(?:^|[,;\s])wait\s*=\s*"?(\d{1,9})\b', prefer or "", re.IGNORECASE)
    return int(found[1]) if found else 0


async def awaited_job(services: Services, job_id: int, seconds: int) -> Job:
    """Return a job when it has ended, or as it is after so many seconds or when the engine stops.

    Raises:
        NotFound: there is no such job.
    """
    deadline = asyncio.get_running_loop().time() + min(seconds, services.settings.max_wait_seconds)
    goes_on = seconds > 0
    with services.worker.ends.subscribe(job_id) as subscription:
        while (job := await run_in_threadpool(_job, services, job_id)).status not in ENDED and goes_on:
            goes_on = await subscription.wait(deadline)
    return job


def _job(services: Services, job_id: int) -> Job:
    with services.store.read() as tx:
        return existing_job(tx, job_id)
