"""Measure a start: CPU time and memory until the engine is ready, and until all apps answer.

    python -m bench.start [--json FILE] [DATA_DIR]      default: an empty one

The figures are medians of `STARTS` starts, after one that only counts for the highest memory: in a new data folder it
prepares the model. CPU time depends less on other programs than elapsed time.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile

import httpx2

from bench.origin import Record
from bench.serving import launched

STARTS = 9
MEBI = 1 << 20
MEGA = 1e6


def start(folder: str) -> tuple[float, ...]:
    """Return seconds of CPU time and MiB, of the engine and then of all apps, and the most MB ever."""
    with launched([sys.executable, "-m", "kb_cli.main", "serve", "--data-dir", folder]) as server:
        engine = server.cpu(), server.memory() / MEBI
        httpx2.get(server.url, timeout=60)  # the web interface starts last
        return *engine, server.cpu(), server.memory() / MEBI, server.memory("VmHWM") / MEGA


def main() -> None:
    """Print the medians, and write the JSON if requested."""
    parser = argparse.ArgumentParser(description="Measure a start.")
    parser.add_argument("folder", metavar="DATA_DIR", nargs="?")
    parser.add_argument("--json", type=Record)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        first, *found = [start(arguments.folder or scratch) for _ in range(1 + STARTS)]
    columns = [statistics.median(each) for each in zip(*found, strict=True)]
    figures = {
        name: {"CPU, s": cpu, "memory, MiB": memory}
        for name, cpu, memory in (("engine ready", *columns[:2]), ("all apps", *columns[2:4]))
    } | {"first start": {"highest memory, MB": first[-1]}}
    for name, each in figures.items():
        print(name, *(f"{what} {figure:.2f}" for what, figure in each.items()), sep="  ")
    if arguments.json:
        arguments.json.save(figures)


if __name__ == "__main__":
    main()
