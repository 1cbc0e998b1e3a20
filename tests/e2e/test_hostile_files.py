"""No file ends the engine: its job fails with a reason, and searches continue during it."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import sys
import time

import pytest

from kb.client.client import EngineClient
from tests.http.conftest import finished
from tests.support.hostile import document, parser_at_work, sheet, slow
from tests.support.pdf import pdf

pytestmark = [
    pytest.mark.requirement("E-10"),
    pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux alone"),
]

FILES = {
    "bomb.docx": (document(b"<p/>" * (20 << 20)), "more than 256 MiB of memory"),
    "everything.xlsx": (sheet("XFD"), "more than 256 MiB of memory"),
    "hangs.xlsx": (slow(shown=1000), "more than 10 seconds"),
    "many.pdf": (pdf(*(f"page {number}" for number in range(10_000))), "the limit"),
    "broken.pdf": (pdf("words")[:200], "the PDF is damaged"),
}
LIMITS = {"KB_PARSE_SECONDS": "10", "KB_PARSE_MEMORY_MB": "256"}


async def searching(client, until):
    """Search all the time; answers how long each search took, in seconds."""
    times = []
    while not until.is_set():
        begun = time.perf_counter()
        assert (await client.search(query="lighthouse"))["results"]
        times.append(time.perf_counter() - begun)
        await asyncio.sleep(0.02)
    return times


@pytest.mark.slow
async def test_hostile_files_fail_with_their_reasons_while_searches_go_on(start_server, tmp_path):
    with start_server(tmp_path, **LIMITS) as server:
        async with EngineClient(server.url) as client:
            await finished(client, await client.add_note(text="The lighthouse stands."))
            over = asyncio.Event()
            searches = asyncio.create_task(searching(client, over))
            accepted = {name: await client.add_file(name, io.BytesIO(data)) for name, (data, _) in FILES.items()}
            after = await client.add_file("after.txt", io.BytesIO(b"The walrus waits."))
            failed = {name: await finished(client, job) for name, job in accepted.items()}
            assert (await finished(client, after))["status"] == "done"
            over.set()
            assert len(await searches) > 20
    assert {name: job["status"] for name, job in failed.items()} == dict.fromkeys(FILES, "failed")
    for name, (_, reason) in FILES.items():
        assert reason in failed[name]["error"]
    assert {job["attempts"] for job in failed.values() if "attempts" in job} <= {1}


@pytest.mark.slow
async def test_a_parser_killed_in_the_middle_of_a_file_fails_that_file_alone(start_server, tmp_path):
    with start_server(tmp_path) as server:
        async with EngineClient(server.url) as client:
            await finished(client, await client.add_file("first.txt", io.BytesIO(b"words")))
            accepted = await client.add_file("hangs.xlsx", io.BytesIO(slow()))
            os.kill(await asyncio.to_thread(parser_at_work, server.process.pid), signal.SIGKILL)
            job = await finished(client, accepted)
            assert (job["status"], job["error"]) == ("failed", "the parser crashed on it (SIGKILL)")
            assert (await finished(client, await client.add_file("a.txt", io.BytesIO(b"more"))))["status"] == "done"


@pytest.mark.slow
async def test_an_engine_stops_at_once_in_the_middle_of_a_file_and_reads_it_after_the_restart(start_server, tmp_path):
    with start_server(tmp_path) as server:
        async with EngineClient(server.url) as client:
            accepted = await client.add_file("hangs.xlsx", io.BytesIO(slow()))
            await asyncio.to_thread(parser_at_work, server.process.pid)
        server.stop()
    with start_server(tmp_path, KB_PARSE_SECONDS="1") as server:
        async with EngineClient(server.url) as client:
            job = await finished(client, accepted)
            assert "more than 1 seconds" in job["error"]
