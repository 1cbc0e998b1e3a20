"""Measure searches of 16 clients during ingestion, and ingestion during searches.

    python -m bench.beside [--json FILE] [PASSAGES]      default: 100,000

Over a database of `bench.corpus`, only abstracts are added, then only queries are searched, then both at once, in
turn and several times.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, cycle, islice, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.collection import collection
from bench.corpus import load_sentences, queries
from bench.databases import SqliteDatabase
from bench.origin import Record
from bench.scale import CLIENTS, Client, settle, timed
from bench.serving import add_all, launched, open_model
from kb.client.client import EngineClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Documents = list[tuple[str, dict[str, str]]]

PASSAGES: Final = 100_000
PORTIONS, PORTION = 7, 200
"""The number of abstracts in a portion. The first portion only warms up."""

SECONDS: Final = 20
"""How long is searched at a time without ingestion."""

MOST_WAITING, LEAST_KEPT = 3.0, 0.6
"""The limits of the factor on the 95th percentile of searches, and of the rate that ingestion keeps."""


def searched(client: Client, texts: Sequence[str], is_over: Callable[[], bool]) -> list[float]:
    """Search from every client without a pause until it is over; return each search's milliseconds."""

    def ask(number: int) -> list[float]:
        asked = takewhile(lambda _: not is_over(), cycle([*texts[number:], *texts[:number]]))
        return [timed(lambda text=text: client.search(text)) for text in asked]  # type: ignore[misc]

    with ThreadPoolExecutor(CLIENTS) as pool:
        return list(chain.from_iterable(pool.map(ask, range(0, len(texts), -(-len(texts) // CLIENTS)))))


def measure(url: str, client: Client, portions: Iterator[Documents], texts: Sequence[str]) -> dict[str, list[float]]:
    """Return the abstracts per second and the milliseconds of searches, separately and at the same time."""

    async def added(documents: Documents) -> None:
        async with EngineClient(url) as engine:
            await add_all(engine, documents)

    def add() -> float:
        documents = next(portions)
        return 1000 * len(documents) / timed(lambda: asyncio.run(added(documents)))

    found: dict[str, list[float]] = {name: [] for name in ("alone", "both", "searches", "searches during ingestion")}
    with ThreadPoolExecutor(1) as thread:
        add()
        for _ in range((PORTIONS - 1) // 2):
            found["alone"].append(add())
            waiting = thread.submit(time.sleep, SECONDS)
            found["searches"] += searched(client, texts, waiting.done)
            adding = thread.submit(add)
            found["searches during ingestion"] += searched(client, texts, adding.done)
            found["both"].append(adding.result())
    return found


def report(found: dict[str, list[float]], record: Record | None) -> bool:
    """Print both and their ratios, and write the JSON if requested; return whether they are within the limits."""
    idle, busy = (statistics.quantiles(found[name], n=20)[18] for name in ("searches", "searches during ingestion"))
    rates = [statistics.median(found[name]) for name in ("alone", "both")]
    print(f"searches, p95: {idle:.0f} ms, during ingestion {busy:.0f} ms")
    print(f"  ratio {busy / idle:.2f} (at most {MOST_WAITING})")
    print(f"abstracts per second: {rates[0]:.1f}, during searches {rates[1]:.1f}")
    print(f"  ratio {rates[1] / rates[0]:.2f} (at least {LEAST_KEPT})")
    if record:
        waits = {"without ingestion": idle, "during ingestion": busy}
        kept = {"during searches": rates[1] / rates[0]}
        record.save({"searches, p95, ms": waits, "rate that ingestion keeps": kept})
    return busy <= MOST_WAITING * idle and rates[1] >= LEAST_KEPT * rates[0]


def main() -> int:
    """Return 0 if both are within their limits."""
    parser = argparse.ArgumentParser(description="Measure searches during ingestion.")
    parser.add_argument("passages", metavar="PASSAGES", type=int, nargs="?", default=PASSAGES)
    parser.add_argument("--json", type=Record)
    arguments = parser.parse_args()
    size = arguments.passages
    documents = iter(collection("scifact").documents.items())
    portions = (list(islice(documents, PORTION)) for _ in range(PORTIONS))
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        embedder = open_model(folder)
        database = SqliteDatabase(folder, size)
        database.fill(load_sentences(embedder, folder / "sentences.npy"), size)
        command = [sys.executable, "-m", "kb_cli.main", "serve", "--data-dir", str(database.folder)]
        with launched(command) as server:
            client = Client(server)
            settle(server)
            return int(not report(measure(server.url, client, portions, queries()), arguments.json))


if __name__ == "__main__":
    sys.exit(main())
