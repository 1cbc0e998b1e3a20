"""Measure the time until a short note is found while many files are added, and the cost for the files.

    python -m bench.fairness [FILES] [NOTES]      default: 1,500 and 60

Two fresh engines in turn add the same files. The second one also adds the notes, spread evenly over the time of the
first one. A note is found when a search for its own word returns it.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import time
from itertools import islice
from typing import TYPE_CHECKING, Final

from bench.mixed import documents, made
from bench.serving import CONNECTIONS, serving, until_done
from kb.client.client import EngineClient

if TYPE_CHECKING:
    from collections.abc import Sequence

    Files = Sequence[tuple[str, bytes]]

LOOK_SECONDS: Final = 0.1
"""How long to wait between two searches for a note: each search also takes time from the files."""


def files(count: int) -> Files:
    """Return files of mixed kinds, each with a name."""
    found = (made(number, document) for number, document in enumerate(documents()))
    return list(islice(((name, content) for name, _, content in found if isinstance(content, bytes)), count))


async def add_files(client: EngineClient, given: Files) -> float:
    """Add files from several connections; return the seconds until all can be found."""
    todo, started = iter(given), time.perf_counter()

    async def send() -> None:
        for name, content in todo:
            await client.add_file(name, io.BytesIO(content), source_path=name)

    await asyncio.gather(*(send() for _ in range(CONNECTIONS)))
    await until_done(client)
    return time.perf_counter() - started


async def add_note(client: EngineClient, number: int) -> float:
    """Add a note; return the seconds until a search finds it."""
    word, started = f"quillon{number}x", time.perf_counter()
    await client.add_note(text=f"Remember the {word} by the door.", source_path=f"/notes/{number}")
    while not (await client.search(query=word, fts_only=True))["results"]:
        await asyncio.sleep(LOOK_SECONDS)
    return time.perf_counter() - started


async def add_notes(client: EngineClient, count: int, seconds: float) -> list[float]:
    """Add notes spread over a time; return how long each took to be found."""

    async def later(number: int) -> float:
        await asyncio.sleep(seconds * number / count)
        return await add_note(client, number)

    return list(await asyncio.gather(*map(later, range(count))))


def percentile(values: Sequence[float], percent: int) -> float:
    """Return the value that so many percent of all are not above."""
    return sorted(values)[max(0, -(-len(values) * percent // 100) - 1)]


async def measure(given: Files, notes: int) -> None:
    """Add only the files, then files and notes, and print both."""
    with serving() as url:
        async with EngineClient(url) as client:
            alone = await add_files(client, given)
    print(f"{len(given):,} files without notes: {alone:.1f} s, {len(given) / alone:.1f} files per second", flush=True)
    with serving() as url:
        async with EngineClient(url) as client, EngineClient(url) as other:
            beside, latencies = await asyncio.gather(add_files(client, given), add_notes(other, notes, 0.8 * alone))
    rate = len(given) / beside
    print(f"with {notes} notes: {beside:.1f} s, {rate:.1f} files per second ({alone / beside:.0%} of the rate)")
    figures = ", ".join(f"p{percent} {percentile(latencies, percent):.2f} s" for percent in (50, 99))
    print(f"a note is found after: {figures}, at most {max(latencies):.2f} s")


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="?", type=int, default=1500)
    parser.add_argument("notes", nargs="?", type=int, default=60)
    wanted = parser.parse_args()
    asyncio.run(measure(files(wanted.files), wanted.notes))


if __name__ == "__main__":
    main()
