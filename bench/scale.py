"""Measure searches for growing numbers of passages, with a real server for each size, and the query's embedding.

    python -m bench.scale [--store postgres] [--folder FOLDER] [--json FILE] [--compared SEARCHES] [PASSAGES...]

The default sizes are 1,000, 10,000 and 100,000 passages. The given number of searches of each kind (100) is compared
with exact ones. If exact searches take seconds, use 0 and `bench.recall`, which compares in memory. Queries are real;
passages and their vectors come from `bench.corpus`. A folder keeps the databases for the next run, and with `--store
postgres` also has a PostgreSQL server of its own. A server starts once before its measured start, and SQLite's file
is locked in memory if the limits of the process allow that (`ulimit -l`).
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, HTTPResponse
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.corpus import SHARES, load_sentences, queries
from bench.databases import STORES
from bench.origin import Record
from bench.serving import Server, launched, open_model
from kb.store.sqlite.opening import START_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from bench.databases import Database
    from kb.embed.protocol import Embedder

    Figures = dict[str, float]

SIZES = (1_000, 10_000, 100_000)
WARM, ROUNDS, WRITES, COMPARED = 40, 200, 40, 100
CLIENTS, TOGETHER = 16, 800
EMBEDDING = "embedding of the query"
ACTS: dict[str, dict[str, Any]] = {
    "hybrid": {},
    "keyword": {"fts_only": True},
    "semantic": {"vec_only": True},
    **{f"filter of {share.replace(' ', '')}": {"tags": [f"share {share}"]} for share in SHARES},
    "grouped": {"group_by": "document"},
}
MEMORY = 1e6
IDLE = 0.02
"""Seconds of CPU time in a second that a server takes with nothing to do."""


class Client:
    """A connection to a server; each thread has its own."""

    def __init__(self, server: Server) -> None:
        self._address = server.url.removeprefix("http://")
        self._local = threading.local()

    def call(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401 - JSON
        """Return the server's answer."""
        content = json.dumps(body) if body is not None else None
        request = method, f"/api/v1/{path}", content, {"content-type": "application/json"}
        try:
            response, answer = self._send(*request)
        except ConnectionError:  # the server closes idle connections after some seconds
            self._connection().close()
            response, answer = self._send(*request)
        if response.status >= 300:
            raise RuntimeError(f"{response.status} {answer!r}")
        return json.loads(answer) if answer else None

    def search(self, query: str, **options: object) -> Any:  # noqa: ANN401 - JSON
        """Search."""
        return self.call("POST", "search", {"query": query, **options})

    def _send(self, *request: Any) -> tuple[HTTPResponse, bytes]:  # noqa: ANN401 - as `HTTPConnection.request`
        connection = self._connection()
        connection.request(*request)
        response = connection.getresponse()
        return response, response.read()

    def _connection(self) -> HTTPConnection:
        if not hasattr(self._local, "connection"):
            self._local.connection = HTTPConnection(self._address)
        connection: HTTPConnection = self._local.connection
        return connection


def timed(act: Callable[[], object]) -> float:
    """Return how many milliseconds it took."""
    begun = time.perf_counter()
    act()
    return (time.perf_counter() - begun) * 1000


def spread(name: str, times: Sequence[float]) -> Figures:
    """Return the median and the 99th percentile."""
    return {
        f"{name}, p50, ms": statistics.median(times),
        f"{name}, p99, ms": statistics.quantiles(times, n=100, method="inclusive")[98],
    }


def searches(client: Client, embedder: Embedder, texts: Sequence[str]) -> Figures:
    """Embed each query, and search for it in each way, in turn."""
    times: dict[str, list[float]] = {name: [] for name in (EMBEDDING, *ACTS)}
    for number, text in enumerate(islice(cycle(texts), WARM + ROUNDS)):
        taken = {EMBEDDING: timed(lambda text=text: embedder.embed_queries([text]))}  # type: ignore[misc]
        for name, options in ACTS.items():
            taken[name] = timed(lambda text=text, options=options: client.search(text, **options))  # type: ignore[misc]
        for name, milliseconds in taken.items():
            if number >= WARM:
                times[name].append(milliseconds)
    return {key: value for name, each in times.items() for key, value in spread(name, each).items()}


def processing(server: Server, client: Client, embedder: Embedder, texts: Sequence[str]) -> Figures:
    """Return the CPU time of a search and of the query's embedding, which neighbours disturb less than the wall's."""
    before = time.process_time()
    for text in texts:
        embedder.embed_queries([text])
    figures = {f"{EMBEDDING}, CPU, ms": 1000 * (time.process_time() - before) / len(texts)}
    for name, options in ACTS.items():
        begun = server.cpu()
        for text in texts:
            client.search(text, **options)
        figures[f"{name}, CPU, ms"] = 1000 * (server.cpu() - begun) / len(texts)
    return figures


def together(act: Callable[[str], object], texts: Sequence[str]) -> tuple[float, list[float]]:
    """Return how many a second `CLIENTS` clients get, and each one's milliseconds."""
    with ThreadPoolExecutor(CLIENTS) as pool:
        begun = time.perf_counter()
        times = list(pool.map(lambda text: timed(lambda: act(text)), islice(cycle(texts), TOGETHER)))
        return TOGETHER / (time.perf_counter() - begun), times


def concurrency(client: Client, embedder: Embedder, texts: Sequence[str]) -> Figures:
    """Search from many clients at once, and embed as many queries alone."""
    alone, _ = together(lambda text: embedder.embed_queries([text]), texts)
    rate, times = together(client.search, texts)
    return {"16 clients, embeddings alone per second": alone, "16 clients, searches per second": rate} | spread(
        "16 clients", times
    )


def accuracy(client: Client, texts: Sequence[str]) -> Figures:
    """Return how many of the ten best of an exact search are found, and how many answers are shorter than its."""
    figures: Figures = {}
    for name, options in ACTS.items() if texts else ():
        shares, short = [], 0
        for text in texts:
            found, exact = (
                {each["chunk_id"] for each in client.search(text, top=10, exact=exact, **options)["results"]}
                for exact in (False, True)
            )
            shares.append(len(found & exact) / max(1, len(exact)))
            short += len(found) < len(exact)
        figures |= {f"{name}, recall@10": statistics.fmean(shares), f"{name}, short answers": short}
    return figures


def writes(client: Client, texts: Sequence[str]) -> Figures:
    """Add notes until they are found, update and delete them."""
    times: dict[str, list[float]] = {"note until found": [], "update": [], "delete": []}
    for number, text in enumerate(texts[:WRITES]):
        begun = time.perf_counter()
        note = client.call("POST", "jobs?wait=9", {"text": f"{text} (noted {number})"})["document_id"]
        if client.search(text, top=1, tags=[])["pending"]:
            raise RuntimeError("a note is not found at once")
        times["note until found"].append((time.perf_counter() - begun) * 1000)
        change = {"text": f"{text} (noted again {number})"}
        times["update"].append(timed(lambda note=note, change=change: client.call("PATCH", f"notes/{note}", change)))  # type: ignore[misc]
        times["delete"].append(timed(lambda note=note: client.call("DELETE", f"documents/{note}")))  # type: ignore[misc]
    return {key: value for name, each in times.items() for key, value in spread(name, each).items()}


def settle(server: Server) -> None:
    """Wait until the server has read the words that it reads after its start."""
    before = -1.0
    time.sleep(START_SECONDS)
    while (now := server.cpu()) - before > IDLE:
        before = now
        time.sleep(1)


def measure(database: Database, size: int, embedder: Embedder, texts: Sequence[str], compared: int) -> Figures:
    """Return every figure of a database; so many searches are compared with exact ones."""
    disk = database.disk()
    command = [sys.executable, "-m", "kb_cli.main", "serve", "--data-dir", str(database.folder)]
    with launched(command, **database.environment):
        pass  # the first start makes the model ready
    with database.held(), launched(command, **database.environment) as server:
        client = Client(server)
        figures = {
            "start until ready, s": server.seconds,
            "start, CPU, s": server.cpu(),
            "memory when ready, MB": server.memory() / MEMORY,
            "highest memory at start, MB": server.memory("VmHWM") / MEMORY,
            "disk per passage, bytes": disk / size,
            "database on disk, MB": disk / MEMORY,
        }
        settle(server)
        figures |= searches(client, embedder, texts)
        figures |= processing(server, client, embedder, texts[:ROUNDS])
        figures |= concurrency(client, embedder, texts)
        figures |= accuracy(client, texts[:compared])
        figures |= writes(client, texts)
        figures["memory after the test, MB"] = server.memory() / MEMORY
    return figures


def table(found: dict[int, Figures]) -> str:
    """Return the figures in Markdown."""
    names = list(next(iter(found.values())))
    lines = [["", *(f"{size:,}" for size in found)], ["---"] * (len(found) + 1)]
    lines += [[name, *(f"{figures[name]:,.3g}" for figures in found.values())] for name in names]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def by_size(found: dict[int, Figures]) -> dict[str, Figures]:
    """Return each figure by the number of passages."""
    names = dict.fromkeys(name for figures in found.values() for name in figures)
    return {name: {f"{size:,}": figures[name] for size, figures in found.items() if name in figures} for name in names}


def run(folder: Path, sizes: Iterable[int], store: str, compared: int = COMPARED) -> dict[int, Figures]:
    """Measure each size, its database made first if it is not there."""
    embedder = open_model(folder)
    sentences, texts, found = load_sentences(embedder, folder / "sentences.npy"), queries(), {}
    with STORES[store](folder) as databases:
        for size in sizes:
            database = databases(size)
            if not database.is_there():
                database.fill(sentences, size)
            found[size] = measure(database, size, embedder, texts, compared)
            print(table({size: found[size]}), flush=True)
    return found


def main() -> None:
    """Print the table, and write the JSON if requested."""
    parser = argparse.ArgumentParser(description="Measure searches for growing numbers of passages.")
    parser.add_argument("sizes", metavar="PASSAGES", type=int, nargs="*", default=SIZES)
    parser.add_argument("--store", choices=STORES, default="sqlite")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--json", type=Record)
    parser.add_argument("--compared", metavar="SEARCHES", type=int, default=COMPARED)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        found = run(folder, arguments.sizes, arguments.store, arguments.compared)
    print(table(found))
    if arguments.json:
        arguments.json.save(by_size(found))


if __name__ == "__main__":
    main()
