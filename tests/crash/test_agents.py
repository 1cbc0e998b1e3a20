"""Agents write over MCP and repeat each call that was not answered, while the engine, the gateway, or both are killed."""

from __future__ import annotations

import asyncio
import os
import random
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field

import httpx2
import pytest

from kb.client.client import EngineClient
from kb.repair.doctor import check_data
from kb.settings import Settings
from tests.conftest import KB_SERVE, SECONDS, Server, ServerEnded, free_port, launch, without_settings
from tests.crash.serve import FAILPOINTS
from tests.crash.test_kills import MOST, SEED, SERVE
from tests.http.conftest import until_idle
from tests.support.fork_server import open_process

AGENTS = 12
KILLS = int(os.environ.get("KB_CRASH_ROUNDS", "300"))
MOST_CALLS = 10
"""How many calls at most are acknowledged between two kills."""

FILLER = "Patient clerks keep the ledgers of the counting house. "
HEADERS = {"Accept": "application/json, text/event-stream"}
UNANSWERED = ("is unreachable", "Try once more", "try again")
"""What an agent is told when it cannot know whether its call was carried out."""


@dataclass
class Agent:
    """One who writes notes, and repeats each call until it is acknowledged.

    `texts` has the note that each acknowledged id is, `lines` what was added to it, and `gone` the deleted ones.
    """

    name: str
    url: str
    random: random.Random
    texts: dict = field(default_factory=dict)
    lines: dict = field(default_factory=dict)
    replaced: dict = field(default_factory=dict)
    gone: set = field(default_factory=set)
    number: int = 0
    repeated: Counter = field(default_factory=Counter)
    acknowledged: Counter = field(default_factory=Counter)

    async def write(self, http, stop):
        while not stop.is_set():
            notes = [each for each in self.texts if each not in self.gone and each not in self.replaced]
            acts = (self.add,) * 4 + ((self.append, self.append, self.edit, self.replace, self.delete) if notes else ())
            act = self.random.choice(acts)
            await (act(http) if act == self.add else act(http, self.random.choice(notes)))

    def sentence(self):
        self.number += 1
        return f"{self.name}n{self.number}e is kept. {FILLER * self.random.choice((0, 0, 1, 1, 1, 30))}".strip()

    async def add(self, http, **more):
        text = self.sentence()
        receipt, refused = await self.call(http, "kb_addnote", text=text, tags=[self.name], **more)
        assert not refused, refused
        while "document_id" not in receipt:  # it waits until the engine has loaded its model
            answer, refused = await self.call(http, "kb_jobs", job_id=receipt["job_id"])
            assert not refused, refused
            (receipt,) = answer["jobs"]
            assert receipt["status"] != "failed", receipt
        self.texts[receipt["document_id"]] = text
        self.lines[receipt["document_id"]] = []
        return receipt["document_id"]

    async def append(self, http, note):
        line = self.sentence()
        _, refused = await self.call(http, "kb_update_note", document_id=note, append=line)
        assert "already has this change" in refused or not refused, refused
        self.lines[note].append(line)

    async def edit(self, http, note):
        former, line = f"n{self.texts[note].partition(' ')[0].rpartition('n')[2]}", self.sentence()
        old = f"{self.name}{former} is kept."
        if old not in self.texts[note]:  # it was edited before
            return await self.append(http, note)
        _, refused = await self.call(http, "kb_update_note", document_id=note, old=old, new=line)
        assert "already has this change" in refused or not refused, refused
        self.texts[note] = self.texts[note].replace(old, line)
        return None

    async def replace(self, http, note):
        self.replaced[note] = await self.add(http, replaces=note)

    def latest(self, note):
        """The note that replaces one now: what was deleted replaces nothing."""
        latest = None
        while (note := self.replaced.get(note)) is not None and note not in self.gone:
            latest = note
        return latest

    async def delete(self, http, note):
        _, refused = await self.call(http, "kb_delete", document_id=note)
        assert "has been in the bin since" in refused or not refused, refused
        self.gone.add(note)

    async def call(self, http, tool, **arguments):
        """The receipt of a call, or why it was refused when it was repeated."""
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
        for attempt in range(10_000):
            answer = None
            with suppress(httpx2.TransportError):
                answer = await http.post(self.url, json=message, headers=HEADERS)
            if answer is not None and answer.status_code == 200:
                result = answer.json()["result"]
                said = result["content"][0]["text"]
                if not result.get("isError"):
                    self.acknowledged[tool] += 1
                    return result["structuredContent"], ""
                if not any(sign in said for sign in UNANSWERED):
                    assert attempt, f"{tool} {arguments}: {said}"
                    self.acknowledged[tool] += 1
                    return {}, said
            self.repeated[tool] += 1
            await asyncio.sleep(0.2 + self.random.random())
        raise TimeoutError


@dataclass
class Place:
    """An engine and a gateway on a data folder."""

    folder: object
    model: str
    chance: random.Random
    engine_port: int = field(default_factory=free_port)
    gateway_port: int = field(default_factory=free_port)
    running: dict = field(default_factory=dict)

    def start(self, name, kill=None):
        self.running[name] = self.start_engine(kill) if name == "engine" else self.start_gateway()

    def start_engine(self, kill):
        environment = {"KB_APPS": "api", "KB_MODEL_DIR": self.model} | ({"KB_TEST_KILL": kill} if kill else {})
        return launch(self.folder, self.engine_port, SERVE if kill else KB_SERVE, environment)

    def start_gateway(self):
        command = ["-m", "uvicorn", "kb_mcp.app:create_app", "--factory", "--port", str(self.gateway_port)]
        environment = without_settings() | {"KB_ENGINE_URL": f"http://127.0.0.1:{self.engine_port}"}
        log = self.folder / "gateway.log"
        with log.open("ab") as output:
            process = open_process([sys.executable, *command], env=environment, stdout=output, stderr=output)
        return Server(self.gateway_port, process, log)

    async def await_ready(self):
        """Wait until both are ready, or until a failpoint has ended the engine, without which no gateway gets ready."""
        for server in self.running.values():
            with suppress(ServerEnded):
                while not (self.ended or await asyncio.to_thread(server._is_ready)):
                    await asyncio.sleep(0.05)

    @property
    def ended(self):
        """Those that a failpoint has ended."""
        return [name for name, server in self.running.items() if server.process.poll() is not None]

    async def kill(self, names, number):
        """Kill some of them, and start them again: in every third round with a failpoint."""
        for name in names:
            self.running[name].kill()
        failpoint = FAILPOINTS[number // 3 % len(FAILPOINTS)]
        kill = f"{failpoint}:{self.chance.randint(1, MOST.get(failpoint, 100))}" if number % 3 == 1 else None
        for name in names:
            self.start(name, kill)
        await self.await_ready()


def acknowledged(agents):
    return sum(agent.acknowledged.total() for agent in agents)


async def found_wrong(api, agents):
    """What differs from what the agents were told."""
    documents = {each["id"]: each async for each in api.iter_documents()}
    there = {note for agent in agents for note in agent.texts if note not in agent.gone}
    wrong = [f"note {note} is lost" for note in there - documents.keys()]
    wrong += [f"document {note} is there, which nobody knows" for note in documents.keys() - there]
    for agent in agents:
        for note in there & agent.texts.keys() & documents.keys():
            text = "".join(chunk["text"] for chunk in (await api.document(note, chunks=500))["chunks"])
            parts = [agent.texts[note], *agent.lines[note]]
            wrong += [
                f"note {note} has {part[:30]!r} {text.count(part)} times" for part in parts if text.count(part) != 1
            ]
            if sum(map(len, parts)) + 4 * len(parts) < len(text):
                wrong.append(f"note {note} has more than was written: {text[:80]!r}")
            if documents[note]["replaced_by"] != agent.latest(note):
                wrong.append(f"note {note} is replaced by {documents[note]['replaced_by']}, not {agent.latest(note)}")
    return wrong


@pytest.mark.crash
@pytest.mark.timeout(14400)
async def test_what_agents_repeat_until_it_is_acknowledged_is_there_once_however_often_kb_is_killed(
    model_files, tmp_path
):
    chance, stop = random.Random(SEED), asyncio.Event()
    place = Place(tmp_path, str(model_files.onnx.parent), chance)
    url, killed = f"http://127.0.0.1:{place.gateway_port}/mcp", Counter()
    agents = [Agent(f"a{number}", url, random.Random(f"{SEED}/{number}")) for number in range(AGENTS)]
    place.start("engine")
    place.start("gateway")
    try:
        await place.await_ready()
        async with httpx2.AsyncClient(timeout=SECONDS) as http, asyncio.TaskGroup() as writing:
            for agent in agents:
                writing.create_task(agent.write(http, stop))
            for number in range(KILLS):
                enough = acknowledged(agents) + chance.randint(1, MOST_CALLS)
                while acknowledged(agents) < enough and not place.ended:
                    await asyncio.sleep(0.01)
                names = place.ended or chance.choice((["engine"], ["gateway"], ["gateway"], ["engine", "gateway"]))
                killed[" and ".join(names) + (" by a failpoint" if place.ended else "")] += 1
                await place.kill(names, number)
                print(f"{number + 1} kills, {acknowledged(agents)} calls", flush=True)
            for name, server in place.running.items():
                server.kill()
                place.start(name)
            await place.await_ready()
            stop.set()
        async with EngineClient(f"http://127.0.0.1:{place.engine_port}") as api:
            assert (await until_idle(api))["failed"] == 0
            wrong = await found_wrong(api, agents)
        assert wrong == [], "\n".join(wrong)
    finally:
        for server in place.running.values():
            if server.process.poll() is None:
                server.stop()
    assert not [name for name, (faults, _) in check_data(Settings(data_dir=tmp_path)).items() if faults]
    counts = {name: sum((getattr(agent, name) for agent in agents), Counter()) for name in ("acknowledged", "repeated")}
    print(
        f"\nkilled {dict(killed)}; { ({name: dict(each) for name, each in counts.items()}) }; nothing lost or doubled"
    )
