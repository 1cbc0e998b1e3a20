"""The engine is killed while it reads an import and notes come in: an acknowledged note is there with its words, once."""

from __future__ import annotations

import asyncio
import io
import math
import os
import random

import pytest

from kb.api.errors import EngineUnreachable
from kb.client.client import EngineClient
from kb.repair.doctor import check_data
from kb.settings import Settings
from tests.conftest import ServerEnded, free_port
from tests.crash.serve import FAILPOINTS
from tests.crash.test_kills import SEED, SERVE
from tests.support.eventually import eventually_async

ROUNDS = int(os.environ.get("KB_CRASH_ROUNDS", "300"))
SECONDS = 2.0
LONG = "Patient clerks keep the ledgers of the counting house. " * 150


async def send_files(api, number):
    """Send files until the engine is gone."""
    for file in range(10_000):
        content = f"Import {number}, file {file}. {LONG[:1500]}".encode()
        await api.add_file(f"{number}-{file}.txt", io.BytesIO(content), source_path=f"import/{number}/{file}.txt")


async def send_notes(api, number, chance, known):
    """Send notes until the engine is gone; `known` has the document of each acknowledged one, by its word."""
    for note in range(10_000):
        word = f"w{number}x{note}"
        answer = await api.add_note(text=f"{word} {LONG if chance.random() < 0.2 else LONG[:54]}")
        known[word] = answer["document_id"]


async def until_killed(server, number, chance, known):
    async with EngineClient(server.url) as api:
        work = [send_files(api, number), send_notes(api, number, chance, known)]
        sending = asyncio.gather(*work, return_exceptions=True)
        while not (known or sending.done()):
            await asyncio.sleep(0.02)
        await asyncio.sleep(chance.uniform(0, SECONDS))
        server.kill()
        errors = await sending
    assert all(isinstance(error, EngineUnreachable) for error in errors), errors


async def until_worked_off(api):
    """The number of jobs of each status when none waits: hundreds of imports take long, but fewer must wait each time."""
    left = math.inf

    async def queue():
        return (await api.status())["queue"]

    while left:
        waiting = await eventually_async("fewer jobs wait", queue, lambda queue, before=left: _left(queue) < before)
        left = _left(waiting)
    return waiting


def _left(queue):
    return queue["queued"] + queue["running"]


async def losses(server, known):
    """The acknowledged notes that are not found by their word exactly once, as the document that was named."""
    async with EngineClient(server.url) as api:
        found = {word: await api.search(query=word, fts_only=True, top=5) for word in known}
    documents = {word: {result["document_id"] for result in reply["results"]} for word, reply in found.items()}
    return {word: (known[word], ids) for word, ids in documents.items() if ids != {known[word]}}


@pytest.mark.crash
@pytest.mark.timeout(7200)
async def test_no_acknowledged_note_is_lost_or_doubled_while_an_import_is_killed(start_server, tmp_path):
    chance, port, every = random.Random(SEED), free_port(), {}
    for number in range(ROUNDS):
        kill = f"{chance.choice(FAILPOINTS)}:{chance.randint(1, 400)}" if number % 2 else None
        known = {}
        try:
            with start_server(tmp_path, port=port, program=SERVE, **({"KB_TEST_KILL": kill} if kill else {})) as server:
                await until_killed(server, number, chance, known)
        except ServerEnded:
            assert kill
        with start_server(tmp_path, port=port, program=SERVE) as server:
            assert await losses(server, known) == {}
        every |= known
    with start_server(tmp_path, port=port, program=SERVE) as server:
        async with EngineClient(server.url) as api:
            assert (await until_worked_off(api))["failed"] == 0
        assert await losses(server, every) == {}
    faults = {name: faults for name, (faults, _) in check_data(Settings(data_dir=tmp_path)).items() if faults}
    assert faults.keys() <= {"clock", "dates"}
    print(f"{len(every)} notes acknowledged before {ROUNDS} kills, 0 lost")
