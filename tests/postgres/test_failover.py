"""A primary is killed under load, and its replica promoted: the engine continues, and lost writes are counted."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass, field
from itertools import pairwise

import httpx2
import pytest

from tests.conftest import free_port
from tests.support.eventually import eventually, eventually_async
from tests.support.postgres_cluster import Node, url_of

pytestmark = pytest.mark.postgres
CLIENTS = 8
LOAD_SECONDS = float(os.environ.get("KB_FAILOVER_SECONDS", "2"))
"""How long is written before the kill, and after what was written first afterwards."""

STREAMING = "SELECT sync_state FROM pg_stat_replication WHERE state = 'streaming'"


@dataclass
class Load:
    """Notes that are sent until each is acknowledged, and when that was."""

    http: object
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    acknowledged: dict = field(default_factory=dict)
    answers: dict = field(default_factory=dict)
    refused_reads: int = 0
    reads: int = 0

    async def write(self, client):
        number = 0
        while not self.stopped.is_set():
            number += 1
            await self.send(f"/{client}/{number}")

    async def send(self, path):
        note = {"text": f"The note of {path}.", "source_path": path}
        while True:
            answer = await self.http.post("/jobs", json=note, headers={"Idempotency-Key": path})
            self.answers[answer.status_code] = self.answers.get(answer.status_code, 0) + 1
            if answer.status_code != 503:
                assert answer.status_code in (200, 202), answer.text
                self.acknowledged[path] = time.monotonic()
                return
            assert int(answer.headers["Retry-After"]) > 0
            await asyncio.sleep(0.05)

    async def read(self):
        while not self.stopped.is_set():
            answer = await self.http.post("/search", json={"query": "the note"})
            assert answer.status_code in (200, 503), answer.text
            self.reads += 1
            self.refused_reads += answer.status_code == 503
            await asyncio.sleep(0.02)


async def paths(http):
    found, cursor = [], {}
    while cursor is not None:
        page = (await http.get("/documents", params={"limit": 500, **cursor})).json()
        found += [each["source_path"] for each in page["documents"]]
        cursor = {"cursor": page["next_cursor"]} if page["next_cursor"] else None
    return found


async def idle(http):
    queue = (await http.get("/status")).json()["queue"]
    return not queue["queued"] + queue["running"]


@pytest.fixture(params=["synchronous", "asynchronous", "lagging"])
def replication(request):
    """How a replica follows: what is acknowledged is there, or soon will be, or not for a second."""
    return request.param


@pytest.fixture
def pair(replication):
    """A primary and its streaming replica."""
    nodes = [Node(free_port())]
    try:
        nodes[0].start()
        nodes[0].ask("CREATE DATABASE kb ENCODING 'UTF8'")
        nodes.append(Node(free_port(), of=nodes[0]))
        nodes[1].start()
        eventually("the replica follows", lambda: nodes[0].ask(STREAMING))
        if replication == "synchronous":
            nodes[0].ask("ALTER SYSTEM SET synchronous_standby_names = '*'")
            nodes[0].ask("SELECT pg_reload_conf()")
            eventually("it is waited for", lambda: nodes[0].ask(STREAMING), lambda rows: rows == [("sync",)])
        yield nodes
    finally:
        for node in nodes:
            node.remove()


async def fail_over(primary, replica, *, lags):
    """Kill the one and promote the other, which may not have heard of the last second; return the moment between."""
    if lags:
        primary.fall_silent()
        await asyncio.sleep(1)
    await asyncio.to_thread(primary.kill)
    killed = time.monotonic()
    await asyncio.to_thread(replica.promote)
    return killed


async def test_an_engine_goes_on_with_the_promoted_replica(start_server, tmp_path, pair, replication):
    url = f"{url_of(*pair)}?target_session_attrs=read-write"
    with start_server(tmp_path, KB_DATABASE_URL=url) as server:
        async with httpx2.AsyncClient(base_url=f"{server.url}/api/v1") as http:
            load = Load(http)
            working = [asyncio.create_task(load.write(client)) for client in range(CLIENTS)]
            working.append(asyncio.create_task(load.read()))
            await eventually_async("notes are acknowledged", lambda: load.acknowledged)
            await asyncio.sleep(LOAD_SECONDS)
            killed = await fail_over(*pair, lags=replication == "lagging")
            promoted = time.monotonic()
            await eventually_async("writes go on", lambda: max(load.acknowledged.values()) > promoted)
            await asyncio.sleep(LOAD_SECONDS)
            load.stopped.set()
            await asyncio.gather(*working)
            await eventually_async("no job waits", lambda: idle(http))
            found = await paths(http)
    lost = {path: moment for path, moment in load.acknowledged.items() if path not in found}
    window = max((killed - moment for moment in lost.values()), default=0.0)
    moments = sorted(load.acknowledged.values())
    pause = max(after - before for before, after in pairwise(moments))
    print(
        f"\n{replication} replica: {len(load.acknowledged)} writes acknowledged, {len(lost)} lost (of the last"
        f" {window:.2f} s before the kill), none for {pause:.2f} s; answers {load.answers};"
        f" {load.refused_reads} of {load.reads} searches refused; promoted {promoted - killed:.2f} s after the kill"
    )
    assert len(found) == len(set(found)), "something is there twice"
    assert all(moment < promoted for moment in lost.values())
    assert not (replication == "synchronous" and lost)
    assert lost or replication != "lagging", "the replica has not lagged"
