"""32 clients write and search for half an hour, and the engine stays as large as it was (`make steady`; CI: three
minutes).

What it holds is measured all the while, and drawn: build/soak.svg.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
from dataclasses import astuple, dataclass
from pathlib import Path
from statistics import median
from time import monotonic

import pytest

from kb.client.client import EngineClient
from tests.conftest import ALL_APPS, ROOT
from tests.crash.clients import Client, documents_by_path

CLIENTS = 32
SECONDS = float(os.environ.get("KB_STEADY_SECONDS", "1800"))
SAMPLES = 120
WARM = 0.3
"""After this share of the time every cache is full."""

MOST_MEMORY, MOST_DESCRIPTORS, MOST_LOG = 64 << 20, 8, 128 << 20
"""By how much memory and descriptors may exceed what they were when it was warm; the log's limit."""


@dataclass
class Sample:
    """What the engine holds: bytes of memory, open files, and bytes of the database's log."""

    memory: int
    descriptors: int
    log: int

    @classmethod
    def of(cls, server, data):
        process = Path("/proc", str(server.process.pid))
        resident = re.search(r"VmRSS:\s+(\d+) kB", (process / "status").read_text())
        log = data / "kb.db-wal"
        descriptors = len(list((process / "fd").iterdir()))
        return cls(int(resident[1]) << 10, descriptors, log.stat().st_size if log.exists() else 0)


async def work(url, client, until, counts):
    """Write to paths of one's own, and search."""
    async with EngineClient(url) as api:
        while monotonic() < until:
            await client.step(api, f"/{client.name}/{client.random.randrange(5)}")
            counts["writes"] += 1
            await api.search(query=f"Who keeps the ledgers of {client.name}?", top=5)
            counts["searches"] += 1


def drawn(samples):
    """The samples as lines over time, each from 0 to its highest."""
    names, width, height = ("memory", "descriptors", "log"), 900, 160
    rows = list(zip(*map(astuple, samples), strict=True))
    shapes = []
    for row, (name, values) in enumerate(zip(names, rows, strict=True)):
        top, base = max(1, *values), (row + 1) * height
        points = " ".join(
            f"{20 + x * (width - 40) / max(1, len(values) - 1):.0f},{base - 20 - (height - 50) * value / top:.0f}"
            for x, value in enumerate(values)
        )
        shapes.append(f'<text x="20" y="{base - height + 20}">{name}, at most {top:,}</text>')
        shapes.append(f'<polyline fill="none" stroke="#258" points="{points}"/>')
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{3 * height}">{"".join(shapes)}</svg>\n'


@pytest.mark.long
@pytest.mark.timeout(SECONDS + 900)
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="what a process holds is read from /proc")
async def test_an_engine_under_32_clients_stays_as_large_as_it_was(start_server, tmp_path):
    samples, counts = [], {"writes": 0, "searches": 0}
    clients = [Client(f"c{number}", random.Random(number)) for number in range(CLIENTS)]
    with start_server(tmp_path / "data", KB_HISTORY_MB="4", KB_APPS=ALL_APPS) as server:
        until = monotonic() + SECONDS
        tasks = [asyncio.create_task(work(server.url, client, until, counts)) for client in clients]
        while monotonic() < until and not any(task.done() for task in tasks):
            await asyncio.sleep(SECONDS / SAMPLES)
            samples.append(Sample.of(server, tmp_path / "data"))
        await asyncio.gather(*tasks)
        async with EngineClient(server.url) as api:
            found = await documents_by_path(api)
    (ROOT / "build").mkdir(exist_ok=True)
    (ROOT / "build" / "soak.svg").write_text(drawn(samples))
    warm = samples[int(WARM * len(samples)) :]
    first, last = warm[: len(warm) // 4], warm[-(len(warm) // 4) :]
    print(f"\n{SECONDS:.0f} s, {CLIENTS} clients, {counts}\nwarm {first[0]}\nlast {last[-1]}")
    assert [loss for client in clients for loss in client.compare(found)] == []
    assert median(each.memory for each in last) - median(each.memory for each in first) < MOST_MEMORY
    assert median(each.descriptors for each in last) - median(each.descriptors for each in first) <= MOST_DESCRIPTORS
    assert max(each.log for each in samples) < MOST_LOG
