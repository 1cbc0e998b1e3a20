"""Measure search quality: nDCG@10 and recall@100 of POST /search over public collections, computed as in 'kb eval'.

    python -m bench.quality [--store sqlite|postgres|both] [--json FILE] [COLLECTION...]      default: scifact in SQLite

Documents are added through the API as notes, in their order. A document ranks by its best chunk. Fail if a collection
is below its floor, or if the figures of the two stores differ by more than `APART`.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.collection import Collection, collection
from bench.origin import Record
from bench.serving import add_all, serving
from kb.client.client import EngineClient
from kb_cli.evaluation import Mean, ask, mean

if TYPE_CHECKING:
    from collections.abc import Iterator

    Scores = dict[str, tuple[Mean, Mean]]
    """Mean nDCG@10 and recall@100 in each mode."""

FLOORS: Final = {"scifact": 0.72}
"""The lowest accepted nDCG@10 of a collection."""

APART: Final = 0.01
"""So far apart may the same collection's figures be over two stores."""

MODES: Final = {"words": "Keyword", "meaning": "Semantic", "both": "Hybrid"}
"""The columns of the docs, by mode."""

TITLES: Final = {
    "scifact": "SciFact",
    "cranfield": "Cranfield",
    "locomo_sessions": "LoCoMo sessions",
    "locomo_turns": "LoCoMo turns",
}
"""The rows of the docs, by collection."""

STORES: Final = {"sqlite": ["sqlite"], "postgres": ["postgres"], "both": ["sqlite", "postgres"]}


async def scores(client: EngineClient, wanted: Collection, mode: str) -> tuple[Mean, Mean]:
    """Mean nDCG@10 and recall@100."""
    outcomes = [(await ask(client, question, mode)).measures for question in wanted.questions]
    return mean([each.ndcg for each in outcomes]), mean([each.recall for each in outcomes])


async def measure(url: str, wanted: Collection) -> Scores:
    """Add a collection to an engine that is empty, print its figures, and return them."""
    async with EngineClient(url) as client:
        begun = time.perf_counter()
        await add_all(client, wanted.documents.items(), connections=1)
        status = await client.status()
        seconds = time.perf_counter() - begun
        print(f"{wanted.name}: {len(wanted.documents)} documents, {status['chunks']} chunks, in after {seconds:.0f} s")
        found: Scores = {}
        for mode in MODES:
            found[mode] = ndcg, recall = await scores(client, wanted, mode)
            interval = f"({ndcg.low:.3f} to {ndcg.high:.3f})"
            print(f"  {mode:8}  nDCG@10 {ndcg.value:.4f} {interval}  recall@100 {recall.value:.4f}", flush=True)
    return found


@contextmanager
def serving_over(store: str) -> Iterator[str]:
    """The URL of a server over an empty store of this kind."""
    if store == "sqlite":
        with serving() as url:
            yield url
    else:
        from bench.engines import database

        with (
            tempfile.TemporaryDirectory() as folder,
            database(Path(folder), "quality") as there,
            serving(KB_DATABASE_URL=there.url) as url,
        ):
            yield url


def apart(one: Scores, other: Scores) -> float:
    """Return the largest difference between two figures of the same name."""
    pairs = ((a.value, b.value) for mode in one for a, b in zip(one[mode], other[mode], strict=True))
    return max(abs(a - b) for a, b in pairs)


def published(found: dict[str, Scores]) -> dict[str, dict[str, float]]:
    """Return the figures by row and column of the docs."""
    rows: dict[str, dict[str, float]] = {}
    for name, measured in found.items():
        wanted, both = collection(name), measured["both"]
        rows[TITLES.get(name, name)] = {
            "Documents": len(wanted.documents),
            "Questions": len(wanted.questions),
            **{column: measured[mode][0].value for mode, column in MODES.items()},
            "kb": both[0].value,
            "recall@100": both[1].value,
        }
    rows["Mean"] = {"kb": statistics.fmean(measured["both"][0].value for measured in found.values())}
    return rows


def is_well(name: str, stores: list[str], kept: dict[str, Scores]) -> bool:
    """Measure a collection over each store, and keep the first scores; return whether all are as they must be."""
    found = []
    for store in stores:
        print(f"over {store}", end=", ")
        with serving_over(store) as url:
            found.append(asyncio.run(measure(url, collection(name))))
    kept[name] = found[0]
    difference = max(apart(found[0], each) for each in found)
    if len(stores) > 1:
        print(f"  {name}: at most {difference:.4f} apart", flush=True)
    return difference <= APART and all(each["both"][0].value >= FLOORS.get(name, 0) for each in found)


def main() -> int:
    """Measure each collection; 1 if one is below its floor, or differs between stores."""
    parser = argparse.ArgumentParser(description="Search quality.")
    parser.add_argument("--store", choices=STORES, default="sqlite")
    parser.add_argument("collections", nargs="*", default=["scifact"])
    parser.add_argument("--json", type=Record)
    options = parser.parse_args()
    found: dict[str, Scores] = {}
    verdicts = [is_well(name, STORES[options.store], found) for name in options.collections]
    if options.json:
        options.json.save(published(found))
    return int(not all(verdicts))


if __name__ == "__main__":
    sys.exit(main())
