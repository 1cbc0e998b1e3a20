"""A full disk is said as such, and loses nothing."""

from __future__ import annotations

import re
from functools import partial

import httpx2
import pytest

from kb.api.errors import DiskFull
from kb.client.client import EngineClient
from kb.worker.job import MAX_ATTEMPTS
from tests.http.conftest import added, finished
from tests.support.disks import filled, small_disk
from tests.support.eventually import eventually_async

LONG = "The keeper counts ships. " * 10_000


@pytest.fixture
async def on_a_small_disk(start_server, tmp_path):
    with small_disk(tmp_path / "disk", 16) as disk, start_server(disk) as server:
        async with EngineClient(server.url) as client:
            yield client, disk, server


async def found(api, words):
    return [result["document_id"] for result in (await api.search(query=words, fts_only=True))["results"]]


@pytest.mark.requirement("N-2")
@pytest.mark.requirement("E-2")
async def test_what_does_not_fit_is_refused_and_what_was_there_stays(on_a_small_disk, tmp_path):
    api, disk, server = on_a_small_disk
    note = await added(api, "The old lighthouse")
    with filled(disk):
        for attempt in (
            api.update_note(note, LONG),
            api.add_note(text=LONG),
            api.add_file("ships.txt", LONG.encode()),
        ):
            with pytest.raises(DiskFull, match="Make room"):
                await attempt
        assert await found(api, "lighthouse") == [note]
        assert not [file for file in (disk / "staging").iterdir() if file.stat().st_size]
    updated = await api.update_note(note, "The new lighthouse")
    assert updated["chunks"][0]["text"] == "The new lighthouse"
    assert httpx2.get(f"{server.url}/readyz").status_code == 200


async def test_a_delete_that_does_not_fit_leaves_the_document_and_its_file(on_a_small_disk):
    api, disk, _ = on_a_small_disk
    many = "\n\n".join(f"# Part {number}\n\nThe keeper counts ship {number}." for number in range(600))
    job = await finished(api, await api.add_file("ships.md", many.encode()))
    with filled(disk):
        with pytest.raises(DiskFull):
            await api.delete_document(job["document_id"])
        assert await api.file(job["document_id"]) == many.encode()
    await api.delete_document(job["document_id"])
    assert len(list((disk / "files").glob("*/*"))) == 1
    await api.delete_document(job["document_id"], purge=True)
    assert not list((disk / "files").glob("*/*"))


def failures_of_the_worker(server):
    metrics = httpx2.get(f"{server.url}/metrics").text
    return float(re.search(r"^kb_worker_errors_total (\S+)$", metrics, re.MULTILINE)[1])


@pytest.mark.requirement("S-5")
async def test_a_full_disk_fails_no_job(start_server, tmp_path):
    with small_disk(tmp_path / "disk", 16) as disk:
        with start_server(disk) as server:
            async with EngineClient(server.url) as api:
                accepted = await api.add_note(text=LONG[:100_000])
                with filled(disk):
                    await eventually_async(
                        "the worker has failed more often than a job may",
                        partial(failures_of_the_worker, server),
                        lambda failures: failures > MAX_ATTEMPTS,
                    )
                    assert (await api.job(accepted["job_id"]))["status"] in ("queued", "running")
        with start_server(disk) as server:
            async with EngineClient(server.url) as api:
                assert (await finished(api, accepted))["status"] == "done"
                assert await found(api, "keeper ships")
