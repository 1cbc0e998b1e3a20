"""A job that ends the engine each time it is worked on ends itself, and not the queue."""

from __future__ import annotations

import httpx2
import pytest
from lxml import html

from kb.api.errors import JobDone, NotFound
from kb.client.client import EngineClient
from tests.conftest import free_port
from tests.http.conftest import finished, until_idle
from tests.support.eventually import eventually_async

BEHIND = 100
LONG = "Many words about ledgers keep the engine busy for a long while. " * 3_000


async def running(client, job_id):
    return await eventually_async("the job runs", lambda: client.job(job_id), lambda job: job["status"] == "running")


@pytest.mark.slow
async def test_after_three_deaths_of_the_engine_a_job_is_failed_and_those_behind_it_are_done(start_server, tmp_path):
    port, deadly = free_port(), None
    for _ in range(3):
        with start_server(tmp_path, port=port) as server:
            async with EngineClient(server.url) as client:
                if deadly is None:
                    deadly = (await client.add_note(text=LONG, source_path="/deadly"))["job_id"]
                    jobs = [
                        (await client.add_note(text=f"Note {number}.", source_path=f"/{number}"))["job_id"]
                        for number in range(BEHIND)
                    ]
                await running(client, deadly)
                server.kill()
    with start_server(tmp_path, port=port, KB_APPS="api,web") as server:
        async with EngineClient(server.url) as client:
            job = await client.job(deadly)
            assert (job["status"], job["error"]) == ("failed", "The engine ended 3 times while it worked on this.")
            queue = await until_idle(client)
            assert (queue["done"], queue["failed"]) == (BEHIND, 1)
            page = html.fromstring(httpx2.get(f"{server.url}/jobs?status=failed").text)
            assert page.xpath("//ul[contains(@class, 'jobs')]//button/text()") == ["Try again", "Drop"]
            assert (await client.status())["documents"] == {"note": BEHIND}
            assert (await client.retry_job(deadly))["status"] == "queued"
            await running(client, deadly)
            assert await client.drop_job(deadly) == {"status": "dropped", "job_id": deadly, "was": "running"}
            with pytest.raises(NotFound):
                await client.job(deadly)
            with pytest.raises(JobDone, match="is done, and its document is "):
                await client.drop_job((await finished(client, {"job_id": jobs[0]}))["id"])
            assert (await client.status())["documents"] == {"note": BEHIND}
