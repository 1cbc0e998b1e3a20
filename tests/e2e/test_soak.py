"""Many agents for a long time, while the engine dies again and again (in full: `make soak`)."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import pytest
from fastmcp import Client
from fastmcp.exceptions import ToolError

from kb.client.client import EngineClient
from tests.conftest import KEY, MCP_KEY, free_port
from tests.http.conftest import added, finished
from tests.mcp.conftest import ERAS, call
from tests.support.eventually import eventually_async

AGENTS = 32
NOTES = ["The walrus sleeps on the ice.", "The lighthouse was painted red.", "Ledgers are kept by patient clerks."]
MOST_MEMORY = 16 << 20


@dataclass
class Engine:
    """An engine that is killed and started again, always at the same address."""

    stack: ExitStack
    start: object
    folder: Path
    port: int = field(default_factory=free_port)
    server: object = None

    async def run(self):
        start = self.start(self.folder, port=self.port, KB_APPS="api", KB_API_KEY=KEY)
        self.server = await asyncio.to_thread(self.stack.enter_context, start)

    async def restart(self):
        await asyncio.to_thread(self.server.kill)
        await asyncio.sleep(0.5)
        await self.run()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"


@dataclass
class Soak:
    """What the agents were told, and the jobs that were acknowledged to them."""

    ids: list[int]
    outcomes: Counter = field(default_factory=Counter)
    jobs: list[int] = field(default_factory=list)

    async def ask(self, client, number):
        while True:
            try:
                await self.questions[number % len(self.questions)](self, client, number)
            except ToolError as error:
                if "unreachable" not in str(error):
                    raise
                self.outcomes["unreachable"] += 1
                await asyncio.sleep(1)
            else:
                self.outcomes["right"] += 1
                return

    async def search(self, client, number):
        text = NOTES[number % len(NOTES)]
        assert (await call(client, "kb_search", query=text, top=1))["results"][0]["text"] == text

    async def get(self, client, number):
        document = await call(client, "kb_get", document_id=self.ids[number % len(NOTES)])
        assert document["chunks"][0]["text"] == NOTES[number % len(NOTES)]

    async def status(self, client, number):
        assert (await call(client, "kb_status"))["documents"]["note"] >= len(NOTES)

    async def add(self, client, number):
        if number % 5 == 0:
            self.jobs.append((await call(client, "kb_addnote", text=f"Entry {number}."))["job_id"])
        else:
            assert (await call(client, "kb_jobs", limit=1))["jobs"]

    questions = (search, get, status, add)


async def agents_ask(gateway, soak, calls, engine, kills):
    """Ask that many questions; the engine is restarted that many times, evenly among them."""
    numbers = iter(range(calls))

    async def agent(client):
        for number in numbers:
            await soak.ask(client, number)

    async def killer():
        begun = soak.outcomes["right"]
        for kill in range(1, kills + 1):
            while soak.outcomes["right"] - begun < calls * kill / (kills + 1):
                await asyncio.sleep(0.01)
            await engine.restart()

    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(Client(f"{gateway.url}/mcp", auth=MCP_KEY, mode=ERAS[number % len(ERAS)]))
            for number in range(AGENTS)
        ]
        async with asyncio.TaskGroup() as group:
            group.create_task(killer())
            for client in clients:
                group.create_task(agent(client))
        for client in clients:
            await soak.status(client, 0)


@dataclass
class Use:
    """What a process holds."""

    descriptors: int
    tasks: int
    memory: int

    @classmethod
    async def of(cls, server):
        async with httpx2.AsyncClient() as http:
            tasks = (await http.get(f"{server.url}/tasks")).json()
        process = Path("/proc", str(server.process.pid))
        resident = re.search(r"VmRSS:\s+(\d+) kB", (process / "status").read_text())
        return cls(len(list((process / "fd").iterdir())), tasks, int(resident[1]) << 10)

    @classmethod
    async def at_rest(cls, server, most):
        """The use of a server that nobody asks any more; connections take a while to be given up."""
        return await eventually_async(
            f"a server at rest holds no more than {most}",
            lambda: cls.of(server),
            lambda use: use.descriptors <= most.descriptors and use.tasks <= most.tasks,
        )


@pytest.mark.slow
@pytest.mark.requirement("G-2")
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="what a process holds is read from /proc")
@pytest.mark.parametrize(
    ("calls", "kills"), [(400, 2), pytest.param(10_000, 5, marks=[pytest.mark.long, pytest.mark.timeout(1800)])]
)
async def test_agents_outlive_an_engine_that_is_killed_again_and_again_and_nothing_grows(
    start_server, tmp_path, calls, kills
):
    with ExitStack() as stack:
        engine = Engine(stack, start_server, tmp_path / "engine")
        await engine.run()
        gateway = stack.enter_context(
            start_server(
                tmp_path / "gateway",
                program=("tests.e2e.counted",),
                KB_APPS="mcp",
                KB_ENGINE_URL=engine.url,
                KB_API_KEY=KEY,
                KB_MCP_API_KEY=MCP_KEY,
            )
        )
        async with EngineClient(engine.url, KEY) as client:
            soak = Soak([await added(client, text) for text in NOTES])
        await agents_ask(gateway, soak, max(calls // 5, 200), engine, 1)
        before = await Use.of(gateway)
        soak.outcomes.clear()
        await agents_ask(gateway, soak, calls, engine, kills)
        after = await Use.at_rest(gateway, before)
        async with EngineClient(engine.url, KEY) as client:
            for job in soak.jobs:
                assert (await finished(client, {"job_id": job}))["status"] == "done"
    print(f"\n{dict(soak.outcomes)}, {len(soak.jobs)} notes added, {kills} restarts\nbefore {before}\nafter  {after}")
    assert soak.outcomes["right"] == calls
    assert soak.outcomes["unreachable"] > 0
    assert after.memory - before.memory < MOST_MEMORY
