"""A full disk is reported as such, and nothing is lost."""

from __future__ import annotations

import re
import shutil
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from functools import partial

import httpx2
import pytest

from kb.api.errors import DiskFull, NotFound, NotInBin, StoreError
from kb.backup.make import back_up
from kb.client.client import EngineClient
from kb.repair.doctor import check_data
from kb.settings import Settings
from kb.store.rows import NewJob
from kb.store.sqlite.store import SqliteStore
from kb.worker.job import MAX_ATTEMPTS
from tests.conftest import ALL_APPS, KEY
from tests.http.conftest import added, finished, until_idle
from tests.support.disks import filled, small_disk
from tests.support.eventually import eventually_async
from tests.support.spaces import space

pytestmark = pytest.mark.sqlite

LONG = "The keeper counts ships. " * 2_000
SHIPS = "\n\n".join(f"# Part {number}\n\nThe keeper counts ship {number}." for number in range(600)).encode()


@pytest.fixture
async def on_a_small_disk(start_server, tmp_path):
    with small_disk(tmp_path / "disk", 16) as disk, start_server(disk, KB_APPS=ALL_APPS) as server:
        async with EngineClient(server.url) as client:
            yield client, disk, server


async def settled(api, disk):
    """Wait until the worker has emptied the log, else it would give that room back on the full disk."""
    await until_idle(api)
    log = disk / "kb.db-wal"
    await eventually_async("the log is empty", lambda: log.stat().st_size, lambda size: not size)


async def found(api, words):
    return [result["document_id"] for result in (await api.search(query=words, fts_only=True))["results"]]


@pytest.mark.slow
@pytest.mark.requirement("N-2")
@pytest.mark.requirement("E-2")
async def test_what_does_not_fit_is_refused_and_what_was_there_stays(on_a_small_disk, tmp_path):
    api, disk, server = on_a_small_disk
    note = await added(api, "The old lighthouse")
    await settled(api, disk)
    with filled(disk):
        for attempt in (
            api.update_note(note, LONG),
            api.add_note(text=LONG),
            api.add_file("ships.txt", LONG.encode()),
        ):
            with pytest.raises(DiskFull, match="Free some space"):
                await attempt
        assert await found(api, "lighthouse") == [note]
        assert not [file for file in (disk / "staging").iterdir() if file.stat().st_size]
    updated = await api.update_note(note, "The new lighthouse")
    assert updated["chunks"][0]["text"] == "The new lighthouse"
    assert httpx2.get(f"{server.url}/readyz").status_code == 200


@pytest.mark.slow
async def test_a_delete_that_does_not_fit_leaves_the_document_and_its_file(on_a_small_disk):
    api, disk, _ = on_a_small_disk
    many = "\n\n".join(f"# Part {number}\n\nThe keeper counts ship {number}." for number in range(600))
    job = await finished(api, await api.add_file("ships.md", many.encode()))
    await settled(api, disk)
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


@pytest.mark.slow
@pytest.mark.requirement("S-5")
async def test_a_full_disk_fails_no_job(start_server, tmp_path):
    with small_disk(tmp_path / "disk", 16) as disk:
        with start_server(disk, KB_APPS=ALL_APPS) as server:
            async with EngineClient(server.url) as api:
                accepted = await api.add_note(text=LONG)
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


async def note(api, number):
    await api.add_note(text=f"Note {number}.")


async def upload(api, number):
    await api.add_file(f"{number}.txt", f"File {number}.".encode() * 300)


async def update(api, number):
    await api.update_note(1, f"The old lighthouse, seen {number} times.")


async def tag(api, number):
    await api.change_tags(1, add=[f"tag{number}"])


async def delete(api, number):
    await api.delete_document(number + 2)


async def revert(api, number):
    await api.revert(1, 1 + number % 2)


async def restore(api, number):
    """Take the first of those that were deleted out of the bin, and delete it again."""
    with suppress(NotFound, NotInBin):
        await api.restore(2)
    await api.delete_document(2)


@pytest.mark.slow
async def test_each_kind_of_write_is_refused_when_there_is_no_room_and_what_was_acknowledged_stays(on_a_small_disk):
    api, disk, _ = on_a_small_disk
    for number in range(30):
        await api.add_note(text=f"The old lighthouse and ship {number}.")
    await until_idle(api)
    for write in (note, upload, update, tag, delete, revert, restore):
        before = await documents(api)
        with filled(disk) as fill:
            done = await until_refused(api, write)
            after = await documents(api)
            assert before.keys() - after.keys() == (
                {number + 2 for number in range(done)} if write is delete else set()
            )
            assert {id_ for id_ in before.keys() & after.keys() if after[id_] != before[id_]} <= {1}
            assert await found(api, "lighthouse")
            fill()  # the worker may have emptied the log
            with pytest.raises(StoreError, match="cannot write"):
                back_up(Settings(data_dir=disk), disk / "backups", keep=1)
        await write(api, done)
        await until_idle(api)
        assert faults_of(disk) == []
    back_up(Settings(data_dir=disk), disk / "backups", keep=1)


async def documents(api):
    return {each["id"]: each async for each in api.iter_documents()}


async def until_refused(api, write):
    """How many writes were acknowledged: the log beside the database may have room for a few."""
    for number in range(1000):
        try:
            await write(api, number)
        except DiskFull:
            return number
    return pytest.fail("the disk is full, and everything was taken")


def faults_of(folder):
    """What the doctor finds but that the disk is small."""
    checked = check_data(Settings(data_dir=folder))
    return [fault for name, (faults, _) in checked.items() for fault in faults if name != "disk space"]


@contextmanager
def with_failed_job(folder):
    """A small disk with a note that was given up, and its job."""
    with small_disk(folder / "disk", 16) as disk:
        with closing(SqliteStore(disk / "kb.db", space())) as store, store.write() as tx:
            tx.jobs.add(NewJob("note", text="It was given up."))
            tx.jobs.claim(1)
            [job] = tx.jobs.take_up(0, "The engine ended.")
        yield disk, job


@pytest.mark.slow
async def test_purging_keys_and_jobs_are_done_or_refused_whole(start_server, tmp_path):
    with with_failed_job(tmp_path) as (disk, failed), start_server(disk, KB_API_KEY=KEY) as server:
        async with EngineClient(server.url, KEY) as api:
            kept = (await finished(api, await api.add_file("ships.md", SHIPS)))["document_id"]
            note = await added(api, "The old lighthouse")
            dropped = await finished(api, await api.add_file("torn.pdf", b"%PDF-1.4 torn"))
            assert dropped["status"] == "failed"
            await settled(api, disk)
            tries = {
                "purge": lambda: api.delete_document(kept, purge=True),
                "key": lambda: api.make_key("reader", right="read"),
                "retry": lambda: api.retry_job(failed),
                "drop": lambda: api.drop_job(dropped["id"]),
            }
            before = await documents(api)
            with filled(disk):
                refused = []
                for name, attempt in tries.items():
                    try:
                        await attempt()
                    except DiskFull:
                        refused.append(name)
                assert "purge" in refused
                after = await documents(api)
                assert after | before == after, "what was there is as it was, beside the note if its job was taken"
                assert await api.file(kept) == SHIPS
                assert await found(api, "lighthouse") == [note]
                assert bool((await api.keys())["keys"]) is ("key" not in refused)
                assert {each["id"] async for each in api.iter_jobs()} >= {failed}
            for name in refused:
                await tries[name]()
            await until_idle(api)
            assert len(await found(api, "given up")) == 1
            assert kept not in await documents(api)
            assert [each["name"] for each in (await api.keys())["keys"]] == ["reader"]
            assert faults_of(disk) == []


@pytest.mark.slow
async def test_undoing_takes_each_document_back_whole_or_says_why_not(on_a_small_disk):
    api, disk, _ = on_a_small_disk
    since = datetime.now(UTC).isoformat()
    kept = (await finished(api, await api.add_file("ships.md", SHIPS)))["document_id"]
    note = await added(api, "The old lighthouse")
    await api.update_note(note, "The new lighthouse")
    await settled(api, disk)
    before = await documents(api)
    with filled(disk):
        steps = (await api.undo(since))["steps"]
        skipped = {step["document_id"]: step["skipped"] for step in steps if step["skipped"]}
        assert "disk is full" in skipped[kept]
        assert await documents(api) == {id_: before[id_] for id_ in skipped}
        assert await api.file(kept) == SHIPS
    await api.undo(since)
    assert await documents(api) == {}
    assert faults_of(disk) == []


@pytest.mark.slow
async def test_purging_makes_room_where_there_is_a_little(on_a_small_disk):
    api, disk, _ = on_a_small_disk
    many = "\n\n".join(f"# Part {number}\n\nThe keeper counts ship {number}." for number in range(3_000))
    job = await finished(api, await api.add_file("ships.md", many.encode()))
    await settled(api, disk)
    with filled(disk, but=5 << 20):
        await api.delete_document(job["document_id"], purge=True)
        # The log is on this disk too, and the database keeps its free pages, so the file's size is not free to the byte.
        await eventually_async(
            "most of the file's room is free",
            partial(free_bytes, disk),
            lambda free: free > (5 << 20) + len(many) // 2,
        )


async def free_bytes(folder):
    return shutil.disk_usage(folder).free
