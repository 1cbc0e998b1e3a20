"""Notes that agents add while kb reads a large import: how late each is answered, and whether it is found at once.

    python -m bench.remembering [FILES] [NOTES]      10,000 and 300 when not given

The same engine first gets notes while it is idle, then the files, and notes in between. As soon as a note has
its answer, the bench searches for a word that only this note contains.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import os
import statistics
import sys
import tempfile
import time
from itertools import cycle
from typing import TYPE_CHECKING, Any, Final

from bench.collection import collection
from bench.serving import launched
from kb.client.client import EngineClient

if TYPE_CHECKING:
    from collections.abc import Iterator

FILES: Final = 10_000
NOTES: Final = 300
SENDERS: Final = 8
"""How many files are sent at a time."""

MOST_MS: Final = 300
"""How long 95 of 100 notes may take."""


def p95(seconds: list[float]) -> float:
    """Return the 95th percentile in milliseconds."""
    return 1000 * statistics.quantiles(seconds, n=20)[18]


async def add_notes(engine: EngineClient, notes: Iterator[str], count: int, name: str) -> dict[str, Any]:
    """Add notes one after the other; return the seconds of each, and how many were found, and had vectors, at once."""
    seconds, found, complete, began = [], 0, 0, time.perf_counter()
    for number in range(count):
        word = f"{name}{number}x"
        before = time.perf_counter()
        answer = await engine.add_note(text=f"{word}: {next(notes)}")
        seconds.append(time.perf_counter() - before)
        results = (await engine.search(query=word, top=1))["results"]
        found += [result["document_id"] for result in results] == [answer["document_id"]]
        complete += answer["status"] == "done"
    return {"seconds": seconds, "found": found, "complete": complete, "rate": count / (time.perf_counter() - began)}


async def send_files(engine: EngineClient, files: int, texts: Iterator[str]) -> None:
    """Send small files, some at a time."""
    numbers = iter(range(files))

    async def send() -> None:
        for number in numbers:
            content = f"File {number}. {next(texts)}".encode()
            await engine.add_file(f"{number}.txt", io.BytesIO(content), source_path=f"import/{number}.txt")

    await asyncio.gather(*(send() for _ in range(SENDERS)))


async def measure(url: str, files: int, count: int) -> bool:
    """Print how late notes are answered without and during an import; return whether they are in time."""
    texts = [document["text"] for document in collection("scifact").documents.values()]
    sentences = cycle(text.split(". ")[0][:200] for text in texts)
    async with EngineClient(url) as engine:
        await add_notes(engine, sentences, 5, "warm")
        idle = await add_notes(engine, sentences, count, "idle")
        sending = asyncio.create_task(send_files(engine, files, cycle(texts)))
        await asyncio.sleep(5)
        beside = await add_notes(engine, sentences, count, "beside")
        queue = (await engine.status())["queue"]
        sending.cancel()
    for name, notes in (("idle", idle), ("during an import", beside)):
        middle = 1000 * statistics.median(notes["seconds"])
        print(f"{name}: median {middle:.0f} ms, p95 {p95(notes['seconds']):.0f} ms, found at once {notes['found']} of")
        print(f"  {count}, with vectors {notes['complete']}; {notes['rate']:.1f} notes and searches per second")
    print(f"p95 during an import: {p95(beside['seconds']) / p95(idle['seconds']):.1f} times as long as without")
    print(f"queued or running at the end: {queue['queued'] + queue['running']}; load {os.getloadavg()[0]:.1f}")
    return p95(beside["seconds"]) <= MOST_MS and beside["found"] == count


def main() -> int:
    """Return 0 if notes are answered in time and found at once."""
    parser = argparse.ArgumentParser(description="Measure how late notes are during an import.")
    parser.add_argument("files", metavar="FILES", type=int, nargs="?", default=FILES)
    parser.add_argument("notes", metavar="NOTES", type=int, nargs="?", default=NOTES)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "kb_cli.main", "serve", "--data-dir", folder]
        with launched(command) as server:
            return int(not asyncio.run(measure(server.url, arguments.files, arguments.notes)))


if __name__ == "__main__":
    sys.exit(main())
