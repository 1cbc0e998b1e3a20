"""Waiting for a job: the answer comes with its end, and no end is missed."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import httpx2
import pytest

from tests.conftest import KEY

pytestmark = pytest.mark.requirement("E-2")

LONG = "The clerks of the counting house kept their ledgers in good order. " * 5000


async def test_a_job_is_answered_when_it_is_done_or_failed(http):
    async def job(**request):
        accepted = (await http.post("/jobs", **request)).json()
        return (await http.get(f"/jobs/{accepted['job_id']}?wait=30")).json()

    done = await job(json={"text": f"note {uuid4()}"})
    failed = await job(files={"file": ("a.txt", b"")})
    assert (done["status"], done["progress"]) == ("done", 1)
    assert (failed["status"], "empty" in failed["error"]) == ("failed", True)
    assert (await http.get(f"/jobs/{done['id']}?wait=30")).json() == done


@pytest.mark.parametrize(("path", "status"), [("/jobs/99999999?wait=30", 404), ("/jobs/1?wait=-1", 422)])
async def test_there_is_no_waiting_for_what_is_not_there_or_for_less_than_no_time(http, path, status):
    assert (await http.get(path)).status_code == status


async def test_each_of_many_who_wait_hears_of_the_end_of_the_job_that_is_his(http):
    async def submit_and_wait(number):
        text = f"{uuid4()} note {number}"
        waited = (
            http.post("/jobs?wait=30", json={"text": text}) if number % 2 else http.post("/jobs", json={"text": text})
        )
        accepted = (await waited).json()
        jobs = await asyncio.gather(*(http.get(f"/jobs/{accepted['job_id']}?wait=30") for _ in range(4)))
        return accepted, [job.json() for job in jobs]

    async with asyncio.timeout(60):
        everyone = await asyncio.gather(*(submit_and_wait(number) for number in range(60)))
    for number, (accepted, jobs) in enumerate(everyone):
        assert accepted["status"] == ("done" if number % 2 else "queued")
        assert {(job["id"], job["status"]) for job in jobs} == {(accepted["job_id"], "done")}


@pytest.mark.slow
async def test_no_wait_is_longer_than_the_setting_allows(start_server, tmp_path):
    with start_server(tmp_path, KB_MAX_WAIT_SECONDS="1") as server:
        async with httpx2.AsyncClient(base_url=f"{server.url}/api/v1") as http:
            submitted = await http.post("/jobs?wait=99999", json={"text": LONG})
            assert submitted.status_code == 202
            assert submitted.json()["status"] in ("queued", "running")
            asked = await http.get(f"/jobs/{submitted.json()['job_id']}?wait=99999")
            assert asked.json()["status"] in ("queued", "running")


async def test_who_waits_is_answered_when_the_engine_stops(start_server, tmp_path):
    with start_server(tmp_path, KB_APPS="api", KB_API_KEY=KEY) as server:
        headers = {"Authorization": f"Bearer {KEY}"}
        async with httpx2.AsyncClient(base_url=f"{server.url}/api/v1", headers=headers) as http:
            accepted = (await http.post("/jobs", json={"text": LONG})).json()
            waiting = [asyncio.create_task(http.get(f"/jobs/{accepted['job_id']}?wait=60")) for _ in range(3)]
            waiting.append(asyncio.create_task(http.post("/jobs?wait=60", json={"text": f"{LONG} more"})))
            while server.log.read_text().count("job accepted") < 2:
                await asyncio.sleep(0.01)
            await asyncio.to_thread(server.stop)
            replies = await asyncio.gather(*waiting)
    assert {reply.status_code for reply in replies} == {200, 202}
    assert {reply.json()["status"] for reply in replies} <= {"queued", "running"}
    assert server.process.returncode == 0
    assert "Cancel" not in server.log.read_text()
