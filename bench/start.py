"""Measure a start: CPU time and memory until the engine is ready, and until all apps answer.

    python -m bench.start [DATA_DIR]      default: an empty one

The figures are medians of `STARTS` starts, after one that does not count. CPU time depends less on other programs than
elapsed time.
"""

from __future__ import annotations

import statistics
import sys
import tempfile

import httpx2

from bench.serving import launched

STARTS = 9
MEBI = 1 << 20


def start(folder: str) -> tuple[float, ...]:
    """Return seconds of CPU time and MiB, of the engine and then of all apps."""
    with launched([sys.executable, "-m", "kb_cli.main", "serve", "--data-dir", folder]) as server:
        engine = server.cpu(), server.memory() / MEBI
        httpx2.get(server.url, timeout=60)  # the web interface starts last
        return *engine, server.cpu(), server.memory() / MEBI


def main() -> None:
    """Print the medians."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = sys.argv[1] if len(sys.argv) > 1 else scratch
        _, *found = [start(folder) for _ in range(1 + STARTS)]
    columns = list(zip(*found, strict=True))
    for name, cpu, memory in (("engine ready", *columns[:2]), ("all apps", *columns[2:])):
        print(f"{name}: {statistics.median(cpu):.2f} s of CPU, {statistics.median(memory):.0f} MiB resident")


if __name__ == "__main__":
    main()
