"""Waiting: for a job, whose end is never missed, and for a turn, which those who are too many are refused."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from uuid import uuid4

import httpx2
import pytest

from kb.api.errors import Busy
from kb.routes.admission import LONGEST_PAUSE, PAUSE, Admission
from tests.conftest import KEY
from tests.support.eventually import SECONDS

LONG = "The clerks of the counting house kept their ledgers in good order. " * 5000


@pytest.mark.requirement("E-2")
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


@pytest.mark.slow
@pytest.mark.requirement("E-2")
async def test_each_of_many_who_wait_hears_of_the_end_of_the_job_that_is_his(http):
    async def submit_and_wait(number):
        path = "/jobs?wait=30" if number % 2 else "/jobs"
        accepted = (await http.post(path, files={"file": (f"{number}.txt", f"{uuid4()} file".encode())})).json()
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


@pytest.mark.rare
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


async def test_searches_run_a_few_at_a_time_and_in_the_order_they_came():
    searches, order, running, most = Admission(5, 2), [], 0, 0

    async def search(number):
        nonlocal running, most
        async with searches.turn({}):
            running += 1
            most = max(most, running)
            order.append(number)
            await asyncio.sleep(0.001)
            running -= 1

    async with asyncio.TaskGroup() as group:
        for number in range(5):
            group.create_task(search(number))
    assert order == list(range(5))
    assert most == 2


async def test_one_search_too_many_is_refused_and_the_others_are_not():
    searches, go = Admission(2, 1), asyncio.Event()

    async def search():
        async with searches.turn({}):
            await go.wait()

    first, second = asyncio.create_task(search()), asyncio.create_task(search())
    await asyncio.sleep(0)
    with pytest.raises(Busy):
        await search()
    second.cancel()
    await asyncio.wait([second])
    third = asyncio.create_task(search())
    go.set()
    await first
    await third
    assert second.cancelled()
    await search()


async def test_it_is_crowded_as_soon_as_one_waits():
    searches, go, crowded = Admission(2, 1), asyncio.Event(), []

    async def search():
        async with searches.turn({}):
            crowded.append(searches.is_crowded)
            await go.wait()
            crowded.append(searches.is_crowded)

    first = asyncio.create_task(search())
    await asyncio.sleep(0)
    second = asyncio.create_task(search())
    await asyncio.sleep(0)
    go.set()
    await asyncio.gather(first, second)
    assert crowded == [False, True, False, False]
    assert not searches.is_crowded


class Clock:
    """Time that passes where a test says so."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


async def searches_of(seconds, count):
    """When each of some searches begins that take so long and come at once, while there is other work."""
    clock, began = Clock(), []
    searches = Admission(9, 1, gives_way=lambda: True, clock=clock)

    async def search():
        async with searches.turn({}):
            began.append(asyncio.get_running_loop().time())
            await asyncio.sleep(0)  # the others come
            clock.now += seconds

    async with asyncio.timeout(SECONDS):
        await asyncio.gather(*(search() for _ in range(count)))
    return began


async def test_beside_other_work_the_next_of_many_begins_after_a_pause_in_proportion_to_the_last_one():
    began = await searches_of(0.5, 3)
    assert PAUSE > 0.1
    assert all(later - before >= 0.5 * PAUSE for before, later in pairwise(began))


@pytest.mark.rare
async def test_beside_other_work_a_long_search_does_not_let_the_next_one_wait_as_long_again():
    began = await searches_of(100_000, 2)
    assert began[1] - began[0] >= LONGEST_PAUSE


async def test_beside_other_work_who_finds_nobody_else_does_not_wait(monkeypatch):
    monkeypatch.setattr("kb.routes.admission.LONGEST_PAUSE", 100_000)
    clock = Clock()
    searches = Admission(9, 1, gives_way=lambda: True, clock=clock)
    async with searches.turn({}):
        clock.now += 100_000
    async with asyncio.timeout(SECONDS), searches.turn({}):
        pass


async def test_who_is_refused_learns_when_to_come_again(start_server, tmp_path):
    with start_server(tmp_path / "data", KB_APPS="api", KB_API_KEY=KEY, KB_MAX_SEARCHES="1") as server:
        headers = {"Authorization": f"Bearer {KEY}"}
        async with httpx2.AsyncClient(base_url=server.url, headers=headers) as client:
            replies = await asyncio.gather(
                *(client.post("/api/v1/search", json={"query": "lamp"}) for _ in range(30)), return_exceptions=False
            )
            assert (await client.post("/api/v1/search", json={"query": "lamp"})).status_code == 200
    refused = [reply for reply in replies if reply.status_code != 200]
    assert 0 < len(refused) < 30
    assert {(reply.status_code, reply.headers["retry-after"], reply.json()["type"]) for reply in refused} == {
        (503, "1", "urn:kb:problem:busy")
    }
