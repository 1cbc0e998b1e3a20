from __future__ import annotations

import asyncio

import httpx2
import pytest

from kb.client.client import EngineClient
from tests.conftest import KEY


@pytest.fixture
async def api(server):
    async with EngineClient(server.url, KEY) as client:
        yield client


@pytest.fixture
async def http(server):
    """Plain HTTP, for what a well-behaved client does not send."""
    headers = {"Authorization": f"Bearer {KEY}"}
    async with httpx2.AsyncClient(base_url=f"{server.url}/api/v1", headers=headers) as client:
        yield client


async def finished(api, accepted):
    """The job, once it is done or failed."""
    while (job := await api.job(accepted["job_id"]))["status"] not in ("done", "failed"):
        await asyncio.sleep(0.01)
    return job


async def added(api, text, **options):
    """The id of the document that a note became."""
    job = await finished(api, await api.add_note(text=text, **options))
    assert job["status"] == "done", job
    return job["document_id"]
