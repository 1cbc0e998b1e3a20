"""The engine is killed again and again while clients write and take back, while its clock jumps, and while backups and vectors are made (in full: `make
test-crash`).

So is the power: what was not synced to the disk is lost then. Every write that was acknowledged is there, nothing is half done, nothing twice, and the doctor finds nothing.
"""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
from collections import Counter
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from kb.api.errors import EngineUnreachable
from kb.backup.restore import verify_backups
from kb.backup.storage import backup_folders
from kb.client.client import EngineClient
from kb.embed.artifact import load_model
from kb.embed.onnx.embedder import OnnxEmbedder
from kb.repair.doctor import check_data, is_well
from kb.settings import Settings
from kb.store.sqlite.vector_space import recorded_space
from tests.conftest import ServerEnded, free_port, without_settings
from tests.crash.clients import Client, documents_by_path, ids_in_bin, reembed_until_gone, write_until_gone
from tests.crash.serve import FAILPOINTS
from tests.crash.unsynced import PowerLoss
from tests.e2e.test_reembed import assert_same_vectors
from tests.http.conftest import until_idle

if TYPE_CHECKING:
    from pathlib import Path

CLIENTS = 8
ROUNDS = int(os.environ.get("KB_CRASH_ROUNDS", "300"))
SEED = int(os.environ.get("KB_CRASH_SEED", "0"))
MOST = {"statement": 2000, "rename": 2, "unlink": 20, "link": 20}
"""At which time at most something ends the process that is done often; the others at their hundredth."""

LOAD_SECONDS = float(os.environ.get("KB_CRASH_SECONDS", "1.5"))
JUMPS = (0, 3000, -3000, 20 * 86_400, 400 * 86_400, -400 * 86_400)
"""By how many seconds the machine's clock is elsewhere from some moment on, until the engine ends."""

SERVE = ("tests.crash.serve", "serve")


def failpoint_of(number, chance):
    """Each failpoint in turn, and between them none: then the kill comes at a random moment."""
    if number % 2:
        return None
    name = FAILPOINTS[number // 2 % len(FAILPOINTS)]
    return f"{name}:{chance.randint(1, MOST.get(name, 100))}"


@asynccontextmanager
async def a_backup(settings, backups, chance):
    """Make a backup during the block. Kill half of the backups at its end."""
    command = (sys.executable, "-m", "kb_cli.main", "backup", str(backups))
    environment = without_settings() | {"KB_DATA_DIR": str(settings.data_dir)}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    backup = await asyncio.create_subprocess_exec(*command, env=environment, **quiet)
    yield
    if chance.random() < 0.5 and backup.returncode is None:
        backup.kill()
    await backup.wait()


async def under_load(server, clients, chance, settings):
    """Let clients write until the engine is dead. Return whether the doctor found no fault in the meantime."""
    async with EngineClient(server.url) as api:
        writing = asyncio.gather(write_until_gone(server.url, clients), reembed_until_gone(api, chance))
        looking = asyncio.create_task(asyncio.to_thread(check_data, settings))
        await asyncio.sleep(chance.uniform(0, LOAD_SECONDS))
        await looking
        server.kill()
        await writing
    return is_well(looking.result())


async def losses_of(server, clients, settings):
    """The differences to the acknowledged state, after the engine has finished its work."""
    async with EngineClient(server.url) as api:
        queue = await until_idle(api)
        found, in_bin = await documents_by_path(api), await ids_in_bin(api)
    losses = [loss for client in clients for loss in client.compare(found, in_bin)]
    for documents in found.values():
        for state, _ in documents:
            if not state.is_note and not (settings.files_dir / state.content_hash[:2] / state.content_hash).exists():
                losses.append(f"the file {state.content_hash} is not there")
    return losses + ["a job failed"] * queue["failed"]


def faults_of(settings):
    found = check_data(settings).items()
    return [f"{name}: {fault}" for name, (faults, _) in found if name != "dates" for fault in faults]


@dataclass
class Trial:
    """A data folder, its writing clients, and the lost writes."""

    start_server: object
    settings: Settings
    chance: random.Random
    models: tuple
    backups: Path | None = None
    power: PowerLoss | None = None
    port: int = field(default_factory=free_port)
    clients: list = field(default_factory=list)
    losses: list = field(default_factory=list)
    killed: Counter = field(default_factory=Counter)
    undone: Counter = field(default_factory=Counter)
    reembedded: Counter = field(default_factory=Counter)

    def start(self, **environment):
        environment |= self.power.environment if self.power else {}
        environment["KB_MODEL_DIR"] = str(self.chance.choice(self.models))
        environment |= {"KB_BIN_DAYS": "5", "KB_HISTORY_DAYS": "5", "KB_KEEP_JOBS_DAYS": "5"}
        environment["KB_TEST_CLOCK"] = f"{self.chance.uniform(0, 2)}:{self.chance.choice(JUMPS)}"
        return self.start_server(self.settings.data_dir, port=self.port, program=SERVE, **environment)

    async def round(self, number):
        """Start the engine, compare its data, and kill it under load or at its failpoint."""
        kill = failpoint_of(number, self.chance)
        environment = {"KB_TEST_KILL": kill} if kill else {}
        try:
            with self.start(**environment) as server:
                await self.compare(server)
                beside = a_backup(self.settings, self.backups, self.chance) if self.backups else nullcontext()
                async with beside:
                    if not await under_load(server, self.clients, self.chance, self.settings):
                        self.losses.append("the doctor found something amid the load")
        except (EngineUnreachable, ServerEnded):
            assert kill, "the engine ended by itself"
        if self.power:
            self.undone.update(dict(zip(("writes", "names"), self.power.strike(), strict=True)))
        self.killed[kill.partition(":")[0] if kill else "at random"] += 1
        self.reembedded.update([recorded_space(self.settings.data_dir / "kb.db").model])
        writes = sum(client.acknowledged for client in self.clients)
        print(f"round {number + 1}: {writes} writes acknowledged, {len(self.losses)} lost", flush=True)
        assert self.losses == [], f"round {number}, {kill}"

    async def compare(self, server):
        self.losses += await losses_of(server, self.clients, self.settings) + faults_of(self.settings)

    async def run(self, rounds):
        """Rounds of writes and kills; at the end everything that was acknowledged is there."""
        self.clients += [Client(f"c{number}", random.Random(f"{SEED}/{number}")) for number in range(CLIENTS)]
        for number in range(rounds):
            await self.round(number)
        with self.start() as server:
            await self.compare(server)
        database = self.settings.data_dir / "kb.db"
        embedders = [OnnxEmbedder(load_model(folder), "cpu") for folder in self.models]
        [embedder] = [each for each in embedders if each.spec.name == recorded_space(database).model]
        assert_same_vectors(self.settings.data_dir, embedder)
        writes = sum(client.acknowledged for client in self.clients)
        print(f"\n{rounds} rounds, {writes} acknowledged writes, {len(self.losses)} losses; killed {dict(self.killed)}")
        print(f"{sum(client.undone for client in self.clients)} taken back")
        print(f"rounds that ended with vectors of each model: {dict(self.reembedded)}")
        assert self.losses == []
        assert writes


@pytest.fixture
def models(model_files, other_model):
    """The folders of two models, of which each start has one in its settings."""
    return model_files.onnx.parent, other_model


@pytest.mark.crash
@pytest.mark.timeout(7200)
async def test_nothing_that_was_acknowledged_is_lost_however_often_the_engine_is_killed(start_server, tmp_path, models):
    backups = tmp_path / "backups"
    trial = Trial(start_server, Settings(data_dir=tmp_path / "data"), random.Random(SEED), models, backups)
    await trial.run(ROUNDS)
    print(f"{len(backup_folders(backups))} backups kept")
    assert list(verify_backups(backups)) == []


@pytest.mark.crash
@pytest.mark.timeout(7200)
async def test_nothing_that_was_acknowledged_is_lost_with_what_was_not_synced(start_server, tmp_path, shim, models):
    power = PowerLoss(shim, tmp_path / "data", tmp_path / "log")
    power.logs.mkdir()
    trial = Trial(start_server, Settings(data_dir=power.root), random.Random(SEED), models, power=power)
    await trial.run(max(ROUNDS // 4, 2))
    print(f"undone: {dict(trial.undone)}")
    assert trial.undone["writes"]
