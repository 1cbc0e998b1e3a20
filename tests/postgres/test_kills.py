"""Engines, workers and the server itself are killed under load (100 rounds: `make test-crash-postgres`).

Every write that was acknowledged is there, nothing twice, and each job is done once.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from dataclasses import dataclass, field
from itertools import cycle
from typing import TYPE_CHECKING

import pytest

from kb.api.errors import EngineUnreachable, Unavailable
from kb.blobs.protocol import KEPT
from kb.client.client import EngineClient
from kb.documents.blob_place import blobs_apart
from kb.settings import Settings
from tests.conftest import Server, free_port, launch
from tests.crash.clients import Client, documents_by_path
from tests.http.conftest import until_idle
from tests.support.eventually import eventually_async
from tests.support.postgres_cluster import Node

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.postgres, pytest.mark.timeout(7200)]
ROUNDS = int(os.environ.get("KB_CRASH_ROUNDS", "6"))
KILLS = int(os.environ.get("KB_WORKER_KILLS", "10"))
SEED = int(os.environ.get("KB_CRASH_SEED", "0"))
ENGINES, WORKERS, CLIENTS = 2, 1, 6
LOAD_SECONDS = 1.5
BACKLOG = 300
"""How many jobs wait while workers are killed."""
COUNT_ENDS = """
CREATE TABLE ends (job_id bigint);
CREATE FUNCTION count_end() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN INSERT INTO public.ends VALUES (NEW.id); RETURN NULL; END $$;
CREATE TRIGGER count_end AFTER UPDATE OF status ON kb.jobs
  FOR EACH ROW WHEN (NEW.status = 'done') EXECUTE FUNCTION count_end()
"""
TWICE = "SELECT job_id, count(*) FROM ends GROUP BY job_id HAVING count(*) > 1"


@dataclass
class PatientClient(Client):
    """One who goes on at other paths where an answer did not come, and tries again what an engine gave up."""

    retried: int = 0
    stopped: bool = False

    async def write(self, api):
        while not self.stopped and (paths := self.known_paths()):
            try:
                await self.step(api, self.random.choice(paths))
            except Unavailable:
                await asyncio.sleep(0.05)
            except EngineUnreachable:
                return

    def known_paths(self):
        paths = [f"/{self.name}/{number}" for number in range(20)]
        return [path for path in paths if len(self.possible.get(path, {None})) == 1]

    async def finish(self, api, path, job):
        number = job.get("job_id") or job["id"]
        while (found := await patiently(api.job, number, wait=5))["status"] != "done":
            if found["status"] == "failed":
                assert "three times" in found["error"] or "3 times" in found["error"], found
                self.retried += 1
                await patiently(api.retry_job, number)
        self.ids[path] = found["document_id"]
        self.binned.pop(path, None)


async def patiently(ask, *arguments, **options):
    """The answer of an engine that may have to be asked again."""
    while True:
        try:
            return await ask(*arguments, **options)
        except Unavailable:
            await asyncio.sleep(0.1)


@dataclass
class Member:
    """An engine or a worker, which is killed and started again with its own folder."""

    command: str
    folder: Path
    environment: dict
    port: int = field(default_factory=free_port)
    server: Server | None = None

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def begin(self):
        self.server = launch(self.folder, self.port, ("kb_cli.main", self.command), self.environment)

    def start(self):
        self.begin()
        self.server.await_ready()

    def kill(self):
        self.server.kill()


@pytest.fixture
def member(model_files, tmp_path, node):
    """Makes engines and workers over one database: `member("worker", 1, KB_API_KEY="…")`."""
    environment = {"KB_DATABASE_URL": node.url, "KB_MODEL_DIR": str(model_files.onnx.parent), "KB_APPS": "api"}
    made = []

    def make(command, number, **more):
        made.append(Member(command, tmp_path / f"{command}-{number}", environment | more))
        return made[-1]

    yield make
    for each in made:
        if each.server:
            each.kill()


@pytest.fixture
def node():
    made = Node(free_port())
    try:
        made.start()
        made.ask("CREATE DATABASE kb ENCODING 'UTF8'")
        yield made
    finally:
        made.remove()


@dataclass
class Trial:
    """Processes with one database, their writing clients, and the lost writes."""

    node: Node
    engines: list
    workers: list
    clients: list
    chance: random.Random
    killed: Counter = field(default_factory=Counter)

    async def round(self):
        """Kill something under load. Return the lost writes at the end, and the number of abandoned jobs."""
        victim = self.chance.choice([*self.engines, *self.workers, self.node])
        writing = [
            asyncio.create_task(self.write(*each)) for each in zip(self.clients, cycle(self.engines), strict=False)
        ]
        await asyncio.sleep(self.chance.uniform(0, LOAD_SECONDS))
        await asyncio.to_thread(victim.kill)
        await asyncio.sleep(self.chance.uniform(0, LOAD_SECONDS))
        await asyncio.to_thread(victim.start)
        self.killed["server" if victim is self.node else victim.command] += 1
        for client in self.clients:
            client.stopped = True
        await asyncio.gather(*writing)
        return await self.losses()

    async def write(self, client, engine):
        client.stopped = False
        async with EngineClient(engine.url) as api:
            await client.write(api)

    async def losses(self):
        async with EngineClient(self.engines[0].url) as api:
            queue = await patiently(until_idle, api)
            found = await patiently(documents_by_path, api)
        losses = [loss for client in self.clients for loss in client.compare(found)]
        with blobs_apart(Settings(data_dir=self.engines[0].folder, database_url=self.node.url)) as blobs:
            files = {blob.name.rpartition("/")[2] for blob in blobs.list(KEPT)}
        kept = [state for documents in found.values() for state, _ in documents if not state.is_note]
        losses += [f"the file {state.content_hash} is not there" for state in kept if state.content_hash not in files]
        losses += [f"job {job} was done {times} times" for job, times in self.node.ask(TWICE, "kb")]
        return losses, queue["failed"]


async def test_nothing_is_lost_whatever_is_killed(member, node):
    engines = [member("serve", number) for number in range(ENGINES)]
    workers = [member("worker", number) for number in range(WORKERS)]
    for each in (*engines, *workers):
        each.start()
    node.ask(COUNT_ENDS, "kb")
    clients = [PatientClient(f"c{number}", random.Random(f"{SEED}/{number}")) for number in range(CLIENTS)]
    trial = Trial(node, engines, workers, clients, random.Random(SEED))
    for number in range(ROUNDS):
        losses, failed = await trial.round()
        acknowledged = sum(client.acknowledged for client in clients)
        print(f"round {number + 1}: {acknowledged} acknowledged, {len(losses)} lost, {failed} given up", flush=True)
        assert losses == []
    print(
        f"\n{ROUNDS} rounds, {acknowledged} acknowledged writes, none lost, no job done twice; killed {dict(trial.killed)};"
        f" tried again after three deaths: {sum(client.retried for client in clients)}"
    )
    assert acknowledged


async def feed(api, accepted, stopped):
    """Keep so many jobs waiting."""
    while not stopped.is_set():
        queue = (await api.status())["queue"]
        for _ in range(BACKLOG - queue["queued"] - queue["running"]):
            job = await api.add_note(text=f"Note {len(accepted)} of the clerks of the counting house.")
            accepted.append(job["job_id"])
        await asyncio.sleep(0.05)


async def test_each_job_is_done_once_however_often_workers_are_killed(member, node):
    chance, accepted, stopped, retried = random.Random(SEED), [], asyncio.Event(), 0

    def count_ends():
        return node.ask("SELECT count(*) FROM ends", "kb")[0][0]

    engine, workers = member("serve", 0, KB_WORKERS="0"), [member("worker", number) for number in range(3)]
    for each in (engine, *workers):
        each.start()
    node.ask(COUNT_ENDS, "kb")
    async with EngineClient(engine.url) as api:
        feeding = asyncio.create_task(feed(api, accepted, stopped))
        done = 0
        for number in range(KILLS):
            done = await eventually_async("jobs are done", count_ends, lambda ends, before=done: ends > before)
            await asyncio.sleep(chance.uniform(0, 0.3))
            victim = chance.choice(workers)
            await asyncio.to_thread(victim.kill)
            await asyncio.to_thread(victim.begin)
            if number % 50 == 49:
                print(f"{number + 1} kills, {len(accepted)} jobs accepted, {done} done", flush=True)
        stopped.set()
        await feeding
        while (await until_idle(api))["failed"]:
            async for job in api.iter_jobs(status="failed"):
                retried += 1
                await api.retry_job(job["id"])
        documents = await api.count_documents()
    [(again,)] = node.ask("SELECT count(*) FROM kb.jobs WHERE attempts > 1", "kb")
    ends = Counter(job for (job,) in node.ask("SELECT job_id FROM ends", "kb"))
    lost, twice = [job for job in accepted if job not in ends], [job for job, times in ends.items() if times > 1]
    print(
        f"\n{KILLS} kills, {len(accepted)} jobs accepted, {len(lost)} lost, {len(twice)} done twice, {again} begun again,"
        f" {retried} tried again after three deaths; {documents} documents"
    )
    assert (lost, twice, documents) == ([], [], len(accepted))
