"""Accepted content survives any end of the process."""

from __future__ import annotations

import asyncio
import io
from collections import Counter

import httpx2
import pytest
from lxml import html

from kb.api.errors import EngineUnreachable, JobDone, NotFound
from kb.client.client import EngineClient
from tests.conftest import free_port
from tests.http.conftest import finished, until_idle
from tests.support.eventually import eventually_async
from tests.support.hostile import slow
from tests.support.stores import TRIED, Database

NOTES = 200


async def send(client, number):
    """The job's id, or None when the engine did not live to acknowledge it."""
    text = f"Note number{number} of many. " + "It says something about ledgers and lighthouses. " * (number % 30)
    try:
        return (await client.add_note(text=text, source_path=f"/notes/{number}"))["job_id"]
    except EngineUnreachable:
        return None


@pytest.mark.slow
@pytest.mark.requirement("E-2")
@pytest.mark.requirement("S-5")
async def test_what_was_acknowledged_before_a_kill_is_done_after_it_and_once(start_server, tmp_path):
    port = free_port()
    acknowledged = set()
    for enough in (10, 40, 80):
        with start_server(tmp_path, port=port) as server:
            async with EngineClient(server.url) as client:
                sending = [asyncio.create_task(send(client, number)) for number in range(NOTES)]
                await eventually_async(
                    "many notes are acknowledged",
                    lambda sending=sending: sum(each.done() for each in sending),
                    lambda count, enough=enough: count >= enough,
                )
                server.kill()
                jobs = await asyncio.gather(*sending)
        acknowledged |= {number for number, job in enumerate(jobs) if job is not None}
    assert len(acknowledged) >= enough
    with start_server(tmp_path, port=port) as server:
        async with EngineClient(server.url) as client:
            assert (await until_idle(client))["failed"] == 0
            documents = [document async for document in client.iter_documents()]
            paths = Counter(document["source_path"] for document in documents)
            assert set(paths.values()) == {1}
            assert {f"/notes/{number}" for number in acknowledged} <= paths.keys()
            for number in sorted(acknowledged)[::25]:
                [found] = (await client.search(query=f"number{number}", fts_only=True))["results"]
                assert found["source_path"] == f"/notes/{number}"
    assert Database(tmp_path).staged() == []


@pytest.mark.slow
async def test_a_file_that_waits_is_read_after_a_restart_and_leaves_nothing_staged(start_server, tmp_path):
    with start_server(tmp_path) as server:
        async with EngineClient(server.url) as client:
            filler = "Many words about ledgers keep the worker busy for a while. " * 400
            for number in range(8):
                await client.add_file(f"{number}.txt", io.BytesIO(f"{number} {filler}".encode()))
            accepted = await client.add_file("last.txt", io.BytesIO(b"The walrus waits."))
            server.kill()
    if TRIED[-1] == "sqlite":
        (tmp_path / "staging" / "left-over-of-an-upload-that-was-cut-off").write_bytes(b"x")
    with start_server(tmp_path) as server:
        async with EngineClient(server.url) as client:
            await until_idle(client)
            assert (await client.job(accepted["job_id"]))["status"] == "done"
            assert (await client.search(query="walrus", fts_only=True))["results"][0]["text"] == "The walrus waits."
    assert Database(tmp_path).staged() == []


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
                    deadly = (await client.add_file("deadly.txt", io.BytesIO(LONG.encode())))["job_id"]
                    files = [io.BytesIO(f"File {number}.".encode()) for number in range(BEHIND)]
                    jobs = [
                        (await client.add_file("a.txt", file, source_path=f"/{number}"))["job_id"]
                        for number, file in enumerate(files)
                    ]
                await running(client, deadly)
                server.kill()
    with start_server(tmp_path, port=port, KB_APPS="api,web") as server:
        async with EngineClient(server.url) as client:
            job = await client.job(deadly)
            assert (job["status"], job["error"]) == ("failed", "The engine ended 3 times during this job.")
            queue = await until_idle(client)
            assert (queue["done"], queue["failed"]) == (BEHIND, 1)
            page = html.fromstring(httpx2.get(f"{server.url}/jobs?status=failed").text)
            assert page.xpath("//ul[contains(@class, 'jobs')]//button/text()") == ["Try again", "Discard"]
            assert (await client.status())["documents"] == {"text": BEHIND}
            assert (await client.retry_job(deadly))["status"] == "queued"
            await running(client, deadly)
            assert await client.drop_job(deadly) == {"status": "dropped", "job_id": deadly, "was": "running"}
            with pytest.raises(NotFound):
                await client.job(deadly)
            with pytest.raises(JobDone, match="is done, and its document is "):
                await client.drop_job((await finished(client, {"job_id": jobs[0]}))["id"])
            assert (await client.status())["documents"] == {"text": BEHIND}


@pytest.mark.slow
@pytest.mark.requirement("E-2")
async def test_what_one_database_keeps_and_waits_for_survives_a_start_with_another(start_server, tmp_path):
    data = tmp_path / "data"
    with start_server(data) as server:
        async with EngineClient(server.url) as api:
            kept = await finished(api, await api.add_file("kept.txt", io.BytesIO(b"words that are kept")))
            await api.add_file("slow.xlsx", io.BytesIO(slow()))
            waiting = await api.add_file("waiting.txt", io.BytesIO(b"words that wait"))
            server.kill()
    other = {"KB_DATABASE_URL": f"sqlite:///{tmp_path / 'other.db'}"}
    with start_server(data, **other) as server:
        async with EngineClient(server.url) as api:
            assert (await api.documents())["documents"] == []
            elsewhere = await finished(api, await api.add_file("kept.txt", io.BytesIO(b"words that are kept")))
            await api.delete_document(elsewhere["document_id"])
    with start_server(data, KB_PARSE_SECONDS="1") as server:
        async with EngineClient(server.url) as api:
            assert await api.file(kept["document_id"]) == b"words that are kept"
            assert (await finished(api, waiting))["status"] == "done"
