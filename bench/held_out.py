"""Test the weights of the ranking on a collection that did not influence them.

    python -m bench.held_out [COLLECTION...]      default: the given collections

Each collection is searched with the present weights and with others. Then each collection is left out in turn, together
with the collections of the same source: the weight with the best mean on the rest is measured on it.
"""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.ablation import asked, filled
from bench.collection import collection
from bench.serving import running, serving
from bench.without import WEIGHTS
from kb_cli.evaluation import mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    Found = dict[str, float]
    """nDCG@10 by value of a weight."""

GIVEN: Final = ("scifact", "cranfield", "locomo_sessions", "locomo_turns")
IN_USE: Final = "in use"


def measure(name: str, folder: str) -> Found:
    """Return nDCG@10 with each value; the folder's database has the collection."""
    serve = ["serve", "--data-dir", folder]
    commands = {IN_USE: [sys.executable, "-m", "kb_cli.main", *serve]}
    for values in WEIGHTS.values():
        commands |= {value: [sys.executable, "-m", "bench.without", value, *serve] for value in values}
    found = {}
    for value, command in commands.items():
        with running(command) as url:
            found[value] = mean([each.ndcg for each in asyncio.run(asked(url, collection(name), "both"))]).value
        print(f"{name}, {value}: {found[value]:.4f}", flush=True)
    return found


def source(name: str) -> str:
    """Return which documents a collection is made of."""
    return re.split("[_-]", name)[0]


def chosen(left_out: str, values: Iterable[str], found: Mapping[str, Found]) -> str:
    """Return the best value on the others, or the present value if none is better."""
    others = [each for name, each in found.items() if source(name) != source(left_out)]
    return max([IN_USE, *values], key=lambda value: sum(each[value] for each in others))


def main() -> None:
    """Print a line for each collection."""
    found: dict[str, Found] = {}
    for name in sys.argv[1:] or GIVEN:
        with tempfile.TemporaryDirectory() as folder:
            with serving(Path(folder)) as url:
                asyncio.run(filled(url, collection(name)))
            found[name] = measure(name, folder)
    print(*report(found), sep="\n")


def report(found: Mapping[str, Found]) -> list[str]:
    """Return the table."""
    lines = [f"| left out | in use | {' | '.join(WEIGHTS)} |", f"|---|---|{'---|' * len(WEIGHTS)}"]
    for name, values in found.items():
        taken = [chosen(name, each, found) for each in WEIGHTS.values()]
        cells = [f"{values[value]:.3f} ({value})" for value in taken]
        lines.append(f"| {name} | {values[IN_USE]:.3f} | {' | '.join(cells)} |")
    return lines


if __name__ == "__main__":
    main()
