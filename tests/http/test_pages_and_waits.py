"""The client goes through all pages, and lets the engine say when a job has ended."""

from __future__ import annotations

import io
from contextlib import nullcontext
from uuid import uuid4

import pytest

from kb.client.client import PAGE, EngineClient
from tests.conftest import KEY
from tests.http.conftest import added


async def test_a_note_and_a_file_can_be_waited_for_in_the_call_that_adds_them(api):
    word = uuid4().hex
    assert (await api.add_note(text=word, wait=60))["status"] == "done"
    assert (await api.add_file(f"{word}.txt", io.BytesIO(b"Words of it."), wait=60))["status"] == "done"


async def test_a_job_is_waited_for_until_it_is_done_or_has_failed(api):
    done = await api.wait_for_job((await api.add_note(text=uuid4().hex))["job_id"])
    assert (done["status"], done["progress"]) == ("done", 1)
    failed = await api.wait_for_job((await api.add_file("x.bin", io.BytesIO(bytes(range(256)) * 9)))["job_id"])
    assert failed["status"] == "failed"
    assert failed["error"]


async def test_waiting_asks_once_where_polling_would_ask_again_and_again(server):
    paths = []

    def count(_, path):
        paths.append(path)
        return nullcontext({})

    async with EngineClient(server.url, KEY, around=count) as client:
        text = f"{uuid4().hex} " + "Ledgers were kept by patient clerks. " * 1500
        job_id = (await client.add_note(text=text))["job_id"]
        assert (await client.wait_for_job(job_id))["status"] == "done"
    assert 1 <= paths.count(f"jobs/{job_id}") <= 4


async def test_all_pages_of_jobs_and_as_many_documents_as_wanted(api):
    word = uuid4().hex
    ids = [await added(api, f"{word} {number}", tags=[word]) for number in range(5)]
    assert [document["id"] async for document in api.iter_documents(tag=word)] == ids
    pages = [page async for page in api.document_pages(3, tag=word)]
    assert [document["id"] for page in pages for document in page["documents"]] == ids[:3]
    assert pages[-1]["next_cursor"]


@pytest.mark.slow
async def test_more_jobs_than_a_page_holds_on_an_engine_that_lets_nobody_wait(start_server, tmp_path):
    with start_server(tmp_path, KB_APPS="api", KB_MAX_WAIT_SECONDS="0") as server:
        async with EngineClient(server.url) as client:
            accepted = [(await client.add_note(text=f"Note {number}."))["job_id"] for number in range(PAGE + 1)]
            assert [job["id"] async for job in client.iter_jobs()] == accepted[::-1]
            with pytest.raises(TimeoutError):
                await client.wait_for_job((await client.add_note(text="The last one."))["job_id"], timeout=0)
            assert (await client.wait_for_job(accepted[0]))["status"] == "done"
