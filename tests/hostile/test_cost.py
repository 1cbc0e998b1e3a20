"""The size of a file bounds its cost, whatever its content. Searches continue during it."""

from __future__ import annotations

import asyncio
import io
import os
import sys
import time
from pathlib import Path
from statistics import quantiles

import apsw
import pytest

from kb.client.client import EngineClient
from kb.parser.sandbox import resident
from tests.hostile.files import FILES
from tests.http.conftest import finished, until_idle
from tests.support.eventually import eventually
from tests.support.hostile import processor_seconds
from tests.support.rare_cases import mostly_rare
from tests.support.stores import TRIED, Database

pytestmark = [
    pytest.mark.requirement("E-10"),
    pytest.mark.skipif(sys.platform != "linux", reason="what a process takes is read from /proc"),
]

MEMORY, SECONDS = 300 << 20, 10
PARSE_SECONDS = 20
PAGE = 64 << 10
"""What a database takes in pages that it did not fill, however small a document is."""

VECTOR = 4 * 384

SHORT = (
    "a word of base64",
    "headings of letters",
    "headings below long ones",
    "front tags",
    "a page title",
    "nested lists",
    "marks that unpack",
    "headings of a document",
    "one text in all cells",
    "400 nested headings",
    "a chapter many times",
    "attached words",
)
WORST = ("a word of base64", "marks", "headings of letters", "one text in all cells", "400 nested headings")


def room(size):
    """How much a file of this size may take on the disk."""
    return 20 * size + (1 << 20)


@pytest.fixture(scope="module")
def engine(start_server, tmp_path_factory):
    data = tmp_path_factory.mktemp("hostile")
    with start_server(data, KB_PARSE_SECONDS=str(PARSE_SECONDS)) as server:
        yield server


def taken(server):
    """How many bytes an engine's data take on the disk; pages and places for vectors that are free are for others."""
    data = server.log.parent
    beside = -free_in_file(data) if TRIED[-1] == "sqlite" else size_in_postgres(data)
    return beside + sum(file.stat().st_size for file in data.rglob("*") if file.is_file() and file.suffix != ".log")


def size_in_postgres(data):
    Database(data).execute("VACUUM")
    [(size,)] = Database(data).execute("SELECT pg_database_size(current_database())")
    return size


def free_in_file(data):
    with apsw.Connection(str(data / "kb.db")) as database:
        database.execute("PRAGMA busy_timeout = 10000").fetchall()
        eventually(
            "nobody reads, and the log is empty",
            lambda: database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone(),
            until=lambda ended: ended[0] == 0,
        )
        places = sum(size for (size,) in database.execute("SELECT size FROM chunks_vec_chunks"))
        free = VECTOR * (places - database.execute("SELECT count(*) FROM chunks").get)
        return free + database.pragma("freelist_count") * database.pragma("page_size")


async def peak(pid, until):
    """The most memory that a process has, looked at again and again."""
    most = 0
    while not until.is_set():
        most = max(most, resident(pid))
        await asyncio.sleep(0.02)
    return most


async def cost(server, filename, data):
    """What a file takes: bytes on the disk, bytes of memory, seconds of the processor; and how its job ended."""
    pid, over = server.process.pid, asyncio.Event()
    async with EngineClient(server.url) as client:
        disk, memory, seconds = taken(server), resident(pid), processor_seconds(pid)
        watching = asyncio.create_task(peak(pid, over))
        job = await finished(client, await client.add_file(filename, io.BytesIO(data)))
        await until_idle(client)
        over.set()
        return taken(server) - disk, await watching - memory, processor_seconds(pid) - seconds, job


async def assert_bounded(server, name):
    filename, make = FILES[name]
    data = make()
    disk, memory, seconds, job = await cost(server, filename, data)
    print(
        f"\n{name}: {len(data):,} bytes, {disk / len(data):.1f}x on disk ({disk:,}), {memory >> 20} MiB,"
        f" {seconds:.1f} s; {job['status']} {job['error'] or ''}"
    )
    assert disk <= room(len(data)) + PAGE
    assert memory <= MEMORY
    assert seconds <= SECONDS
    assert "seconds" not in (job["error"] or "")


@pytest.mark.slow
@pytest.mark.parametrize("name", mostly_rare(SHORT, 3))
async def test_a_file_takes_no_more_than_its_size_allows(engine, name):
    await assert_bounded(engine, name)


@pytest.mark.hostile
@pytest.mark.parametrize("name", [name for name in FILES if name not in SHORT])
async def test_no_file_takes_more_than_its_size_allows(engine, name):
    await assert_bounded(engine, name)


async def searching(client, until):
    """Search all the time; answers how long each search took."""
    times = []
    while not until():
        begun = time.perf_counter()
        await client.search(query="words of the lighthouse")
        times.append(time.perf_counter() - begun)
        await asyncio.sleep(0.02)
    return times


def p95(times):
    return quantiles(times, n=20)[-1]


async def slowdown(server):
    """How much longer than idle a search takes while hostile files are read: the ratio of the 95th percentiles."""
    async with EngineClient(server.url) as client:
        await until_idle(client)
        end = time.monotonic() + 3
        idle = await searching(client, lambda: time.monotonic() > end)
        files = [FILES[name] for name in WORST]
        accepted = [await client.add_file(f"{os.urandom(4).hex()}-{name}", io.BytesIO(make())) for name, make in files]
        ends = asyncio.gather(*(finished(client, job) for job in accepted))
        busy = await searching(client, ends.done)
        await ends
    print(f"\np95 of a search: {1000 * p95(idle):.0f} ms idle, {1000 * p95(busy):.0f} ms amid hostile files")
    return p95(busy) / p95(idle)


@pytest.mark.rare
@pytest.mark.slow
async def test_searches_are_answered_while_hostile_files_are_read(engine):
    assert await slowdown(engine) > 0


@pytest.mark.hostile
async def test_a_search_takes_at_most_thrice_as_long_while_hostile_files_are_read(engine):
    ratios = []
    for _ in range(3):
        ratios.append(await slowdown(engine))
        if ratios[-1] <= 3:
            return
    pytest.fail(f"slower by {ratios}")


def test_there_are_sixty_files_of_fifteen_formats():
    assert len(FILES) >= 60
    assert len({Path(filename).suffix for filename, _ in FILES.values()}) >= 15
