"""Measure the gain of each ingredient of the ranking: nDCG@10 with all of them and without one, over many collections.

    python -m bench.ablation [--legs] [--markdown FILE] [COLLECTION...]      default: all collections

Each collection is added once, in its order. Then a server starts over it without each ingredient in turn (with
`--legs`, without none). Print a table. Fail if hybrid search is more than `LOST` below the better of keyword and
semantic search on a given collection, or more than `LOST_DERIVED` on a derived one.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.collection import COLLECTIONS, MADE_BY, Collection, collection
from bench.serving import add_all, running, serving
from bench.without import INGREDIENTS
from kb.client.client import EngineClient
from kb_cli.evaluation import MODES, Measures, ask, mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Column = dict[str, list[Measures]]
    """The measures of each row of the table, by question."""

LOST: Final = 0.015
LOST_DERIVED: Final = 0.02


async def asked(url: str, wanted: Collection, mode: str) -> list[Measures]:
    """Ask all questions, one after the other."""
    async with EngineClient(url) as client:
        return [(await ask(client, question, mode)).measures for question in wanted.questions]


async def filled(url: str, wanted: Collection) -> None:
    """Add the documents in their order, so that threads have theirs."""
    async with EngineClient(url) as client:
        await add_all(client, wanted.documents.items(), connections=1)


def measure(name: str, ingredients: Iterable[str]) -> Column:
    """Return the measures of each mode, and of hybrid search without each ingredient."""
    wanted = collection(name)
    column: Column = {}
    with tempfile.TemporaryDirectory() as folder:
        with serving(Path(folder)) as url:
            asyncio.run(filled(url, wanted))
            for mode in MODES:
                column[mode] = asyncio.run(asked(url, wanted, mode))
        for ingredient in ingredients:
            command = [sys.executable, "-m", "bench.without", ingredient, "serve", "--data-dir", folder]
            with running(command) as url:
                column[ingredient] = asyncio.run(asked(url, wanted, "both"))
    return column


def whole(measures: Sequence[Measures]) -> str:
    """Return nDCG@10 with its interval, and recall@100."""
    ndcg = mean([each.ndcg for each in measures])
    recall = mean([each.recall for each in measures])
    return f"{ndcg.value:.3f} ({ndcg.low:.3f} to {ndcg.high:.3f}), {recall.value:.3f}"


def gained(measures: Sequence[Measures], others: Sequence[Measures]) -> str:
    """Return the gain of the first measures, with a star if 95% of the resamples agree on the sign."""
    gain = mean([one.ndcg - other.ndcg for one, other in zip(measures, others, strict=True)])
    return f"{gain.value:+.4f}{'*' if gain.low > 0 or gain.high < 0 else ''}"


def lines(name: str, column: Column) -> list[str]:
    """Return a collection's part of the report."""
    both = column["both"]
    heads = [f"| {mode} | {whole(column[mode])} |" for mode in MODES]
    rows = [f"| {each} | {gained(both, column[each])} |" for each in column if each not in MODES]
    return [
        f"**{name}**, {len(both)} questions",
        "",
        "| Mode or ingredient | nDCG@10, recall@100, or gain |",
        "|---|---|",
        *heads,
        *rows,
        "",
    ]


def is_lost(name: str, column: Column) -> bool:
    """Return whether both legs together lose too much to the better one."""
    ndcg = {mode: mean([each.ndcg for each in column[mode]]).value for mode in MODES}
    most = LOST_DERIVED if name.partition("-")[2] in MADE_BY else LOST
    return ndcg["both"] < max(ndcg["words"], ndcg["meaning"]) - most


def main() -> int:
    """Measure each collection; 1 if both legs together lose too much on one."""
    parser = argparse.ArgumentParser(description="Measure the gain of each ingredient of the ranking.")
    parser.add_argument(
        "--legs", action="store_true", help="measure keyword, semantic and hybrid search with all ingredients"
    )
    parser.add_argument("--markdown", type=Path, help="also write the tables to this file")
    parser.add_argument("collections", nargs="*", default=COLLECTIONS)
    options = parser.parse_args()
    lost = False
    written: list[str] = []
    for name in options.collections:
        column = measure(name, () if options.legs else INGREDIENTS)
        written += lines(name, column)
        print("\n".join(lines(name, column)), flush=True)
        lost |= is_lost(name, column)
        if options.markdown:
            options.markdown.write_text("\n".join(written))
    return int(lost)


if __name__ == "__main__":
    sys.exit(main())
