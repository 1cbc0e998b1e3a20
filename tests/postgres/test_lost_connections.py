"""An engine survives the end of its database's server and of connections, with every acknowledged change."""

from __future__ import annotations

import asyncio
from collections import Counter

import httpx2
import psycopg
import pytest

from tests.support.eventually import eventually_async
from tests.support.postgres import crash, database_url

pytestmark = pytest.mark.postgres
NOTES = 120
CUT = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()"


def cut(url):
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(CUT)


async def answer(http, answers, method, path, **request):
    """The answer of an engine that may have to be asked again, as it says itself."""
    while True:
        response = await http.request(method, path, **request)
        answers[response.status_code] += 1
        if response.status_code != 503:
            return response
        assert response.json()["type"].endswith("unavailable")
        assert int(response.headers["Retry-After"]) > 0
        await asyncio.sleep(0.2)


@pytest.mark.parametrize("fault", [cut, crash])
async def test_what_is_sent_while_the_database_breaks_off_is_written_once(start_server, tmp_path, fault):
    url, answers, stopped = database_url(tmp_path), Counter(), asyncio.Event()

    async def send(http, number):
        note = {"text": f"Note {number} of many.", "source_path": f"/notes/{number}"}
        accepted = await answer(http, answers, "POST", "/jobs", json=note, headers={"Idempotency-Key": str(number)})
        assert accepted.status_code in (200, 201, 202), accepted.text

    async def look(http):
        while not stopped.is_set():
            found = await answer(http, answers, "POST", "/search", json={"query": "note"})
            assert found.status_code == 200, found.text

    async def queue(http):
        return (await answer(http, answers, "GET", "/status")).json()["queue"]

    with start_server(tmp_path, KB_DATABASE_URL=url) as server:
        async with httpx2.AsyncClient(base_url=f"{server.url}/api/v1") as http:
            looking = [asyncio.create_task(look(http)) for _ in range(2)]
            for begin in range(0, NOTES, NOTES // 3):
                sending = [asyncio.create_task(send(http, number)) for number in range(begin, begin + NOTES // 3)]
                await eventually_async("some are sent", lambda s=sending: any(each.done() for each in s))
                await asyncio.to_thread(fault, url)
                await asyncio.gather(*sending)
            ended = await eventually_async(
                "no job waits", lambda: queue(http), lambda counts: not counts["queued"] + counts["running"]
            )
            stopped.set()
            await asyncio.gather(*looking)
            page = (await answer(http, answers, "GET", "/documents?limit=500")).json()
    assert sorted(each["source_path"] for each in page["documents"]) == sorted(f"/notes/{n}" for n in range(NOTES))
    assert (ended["done"], ended["failed"]) == (NOTES, 0)
    assert set(answers) <= {200, 202, 503}
