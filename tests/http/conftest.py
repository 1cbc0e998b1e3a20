from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import httpx2
import pytest

from kb.client.client import EngineClient
from tests.conftest import KEY
from tests.support.eventually import eventually_async


@pytest.fixture
async def api(server):
    async with EngineClient(server.url, KEY) as client:
        yield client


@pytest.fixture
async def http(server):
    """Plain HTTP, for requests that a well-behaved client does not send."""
    headers = {"Authorization": f"Bearer {KEY}"}
    async with httpx2.AsyncClient(base_url=f"{server.url}/api/v1", headers=headers) as client:
        yield client


async def moment():
    await asyncio.sleep(0.003)  # a change is stamped to the millisecond
    now = datetime.now(UTC).isoformat()
    await asyncio.sleep(0.003)
    return now


async def finished(api, accepted):
    """The job, once it is done or failed."""
    return await eventually_async(
        "the job has ended", lambda: api.job(accepted["job_id"]), lambda job: job["status"] in ("done", "failed")
    )


async def begun(api, accepted):
    """The job, once it no longer waits in the queue."""
    return await eventually_async(
        "the job has begun", lambda: api.job(accepted["job_id"]), lambda job: job["status"] != "queued"
    )


async def until_idle(api):
    """The number of jobs of each status, when none is queued or running."""

    async def queue():
        return (await api.status())["queue"]

    return await eventually_async("no job waits", queue, lambda queue: not queue["queued"] + queue["running"])


async def added(api, text, **options):
    """The id of a new note's document."""
    job = await finished(api, await api.add_note(text=text, **options))
    assert job["status"] == "done", job
    return job["document_id"]
