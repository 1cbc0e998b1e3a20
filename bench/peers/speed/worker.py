"""One library in a process and an environment of its own.

    PEER/bin/python -m bench.peers.speed.worker build|serve PEER INPUT FOLDER

INPUT has the passages and queries, FOLDER the library's files. `build` prints its seconds and its CPU seconds. `serve`
answers each line `[act, query, tag]` with `[milliseconds, numbers of passages]`.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.peers.speed.passages import Passages, Queries

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.peers.speed.passages import Engine


def build(module: Any, source: Path, folder: Path) -> Iterator[tuple[float, float]]:  # noqa: ANN401 - a module
    """Yield the seconds and the CPU seconds of the build."""
    passages = Passages.read(source)
    begun, cpu = time.perf_counter(), time.process_time()
    module.build(passages, folder)
    yield time.perf_counter() - begun, time.process_time() - cpu


def serve(module: Any, source: Path, folder: Path) -> Iterator[tuple[float, list[int]]]:  # noqa: ANN401 - a module
    """Yield the milliseconds of each search, and its results."""
    queries = Queries.read(source)
    engine: Engine = module.Engine(folder)
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        act, number, tag = json.loads(line)
        question, search = queries.question(number, tag), getattr(engine, act)
        begun = time.perf_counter()
        found = search(question)
        yield (time.perf_counter() - begun) * 1000, [each for each, _ in found]


def main() -> None:
    """Print a line for each reply."""
    replies, sys.stdout = sys.stdout, sys.stderr  # a library may print
    act, peer, source, folder = sys.argv[1:]
    module = import_module(f"bench.peers.speed.{peer}")
    for reply in {"build": build, "serve": serve}[act](module, Path(source), Path(folder)):
        print(json.dumps(reply), file=replies, flush=True)


if __name__ == "__main__":
    main()
