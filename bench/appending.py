"""Notes of several sizes that get a line: how late each call is answered, and when searches find the line.

    python -m bench.appending [--json FILE] [--lines LINES] [--files FILES]      20 lines and 2,000 files when not given

The same engine is idle first, and then reads an import. As soon as a call is answered, the bench searches for a word
that only this line contains, and then by meaning until the line's passage has its vector.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bench.collection import collection
from bench.remembering import p95, send_files
from bench.serving import launched, open_model, until_done
from kb.client.client import EngineClient

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.serving import Server

SIZES: Final = {"1 kB": 1000, "50 kB": 50_000, "1 MB": 990_000}
LINES: Final = 20
FILES: Final = 2000
MOST_SECONDS: Final = 120
"""How long to wait for a vector."""


def text_of(size: int, texts: Iterator[str]) -> str:
    """Return paragraphs with this number of characters."""
    return "\n\n".join(islice(texts, 1 + size // 500))[:size]


class Append(NamedTuple):
    """A call: seconds until the answer, of the engine's CPU in that time, and until its meaning was found; its word."""

    seconds: float
    cpu: float
    is_found: bool
    later: float


async def append(engine: EngineClient, process: Server, note: int, word: str, others: Iterator[str]) -> Append:
    line = f"The {word} was seen: {next(others)}"
    before, cpu = time.perf_counter(), process.cpu()
    await engine.update_note(note, append=line)
    answered, cpu = time.perf_counter(), process.cpu() - cpu
    by_word = (await engine.search(query=word, top=1, fts_only=True))["results"]
    while time.perf_counter() - answered < MOST_SECONDS:
        near = (await engine.search(query=line, top=50, vec_only=True, document_id=note))["results"]
        if any(word in result["text"] and result["score"] > 0 for result in near):
            break
        await asyncio.sleep(0.05)
    is_found = [result["document_id"] for result in by_word] == [note]
    return Append(answered - before, cpu, is_found, time.perf_counter() - answered)


async def measure(
    engine: EngineClient, process: Server, notes: dict[str, int], lines: int, state: str
) -> dict[str, dict[str, Any]]:
    """Append lines to each note in turn; return and print the figures by size."""
    others = cycle(text.split(". ")[0][:120] for text in abstracts())
    calls: dict[str, list[Append]] = {size: [] for size in notes}
    for number in range(lines):
        for place, (size, note) in enumerate(notes.items()):
            calls[size].append(await append(engine, process, note, f"{state}{number}z{place}", others))
    figures = {}
    for size, made in calls.items():
        seconds, later = [call.seconds for call in made], [call.later for call in made]
        figures[size] = {
            "p50_ms": round(1000 * statistics.median(seconds)),
            "p95_ms": round(p95(seconds)),
            "cpu_ms": round(1000 * statistics.mean(call.cpu for call in made)),
            "found_at_once": sum(call.is_found for call in made),
            "by_meaning_p50_ms": round(1000 * statistics.median(later)),
            "by_meaning_p95_ms": round(p95(later)),
        }
        print(f"{state}, {size}: {figures[size]}", flush=True)
    return figures


def abstracts() -> list[str]:
    """Return the texts of which notes and files are made."""
    return [document["text"] for document in collection("scifact").documents.values()]


async def both(url: str, process: Server, lines: int, files: int) -> dict[str, Any]:
    """Return the figures of the idle engine, and of the engine during an import."""
    async with EngineClient(url) as engine:
        texts = cycle(abstracts())
        added = {size: await engine.add_note(text=text_of(number, texts)) for size, number in SIZES.items()}
        notes = {size: answer["document_id"] for size, answer in added.items()}
        await until_done(engine)
        await measure(engine, process, notes, 2, "warm")
        found = {"idle": await measure(engine, process, notes, lines, "idle")}
        sending = asyncio.create_task(send_files(engine, files, texts))
        await asyncio.sleep(2)
        found["importing"] = await measure(engine, process, notes, lines, "importing")
        left = (await engine.status())["queue"]
        sending.cancel()
    return {"queue_at_end": left["queued"] + left["running"], **found}


def main() -> None:
    """Print the figures, and write them with their circumstances."""
    parser = argparse.ArgumentParser(description="Measure how late a line is appended to notes.")
    parser.add_argument("--lines", type=int, default=LINES)
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        open_model(Path(folder))
        with launched([sys.executable, "-m", "kb_cli.main", "serve", "--data-dir", folder]) as server:
            found = asyncio.run(both(server.url, server, arguments.lines, arguments.files))
    about = {
        "commit": subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"],
            capture_output=True,
            text=True,
            check=False,
        ).stdout.strip(),
        "date": datetime.now(UTC).date().isoformat(),
        "command": f"python -m bench.appending --lines {arguments.lines} --files {arguments.files}",
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
    }
    print(about)
    if arguments.json:
        arguments.json.write_text(json.dumps(about | found, indent=1) + "\n")


if __name__ == "__main__":
    main()
