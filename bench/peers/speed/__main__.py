"""Compare the speed of kb and of libraries for search, with the same passages, vectors and queries.

    KB_PEERS=DIR python -m bench.peers.speed [--passages N] [--rounds N] [--folder FOLDER] [--json FILE] [PEER...]

DIR has a virtual environment for each installed peer, under its name: `sqlite_vec` (with apsw), `lancedb`, `chroma`,
`tantivy`; all with numpy. Passages come from `bench.corpus`, and the queries' vectors are prepared. Each peer runs in
a process of its own, kb through its store and its search service, and each query goes to all of them in turn, so that
all use the same machine. A real server of kb, which also embeds the query, runs along with them. A folder keeps the
files for the next run.
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
from collections import defaultdict
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bench.corpus import CHUNKS, drawn, load_sentences, queries, texts_of
from bench.origin import Record
from bench.peers.speed.kb import TAGGED
from bench.peers.speed.passages import TAGS, TOP, Passages, Queries
from bench.scale import MEMORY, Client, settle, timed
from bench.serving import Server, launched, open_model
from kb.search.query import Query, keywords
from kb.store.rows import Filter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from kb.embed.onnx.embedder import OnnxEmbedder

    Figures = dict[str, float]

OVER_HTTP: Final = "kb_http"
NAMES: Final = {
    "kb": "kb",
    "sqlite_vec": "sqlite-vec and FTS5",
    "lancedb": "LanceDB",
    "chroma": "Chroma, semantic only",
    "tantivy": "tantivy and numpy",
    OVER_HTTP: "kb over HTTP",
}
PEERS: Final = tuple(name for name in NAMES if name != OVER_HTTP)
ROWS: Final = {
    "hybrid, p50, ms": "hybrid all p50",
    "hybrid, p95, ms": "hybrid all p95",
    "hybrid, filter of 10%, p50, ms": "hybrid tenth p50",
    "hybrid, filter of 10%, p95, ms": "hybrid tenth p95",
    "hybrid, filter of 1%, p50, ms": "hybrid hundredth p50",
    "hybrid, filter of 1%, p95, ms": "hybrid hundredth p95",
    "semantic, p50, ms": "nearest all p50",
    "semantic, p95, ms": "nearest all p95",
    "semantic, filter of 10%, p50, ms": "nearest tenth p50",
    "semantic, filter of 10%, p95, ms": "nearest tenth p95",
    "semantic, filter of 1%, p50, ms": "nearest hundredth p50",
    "semantic, filter of 1%, p95, ms": "nearest hundredth p95",
    "recall@10 of the vectors": "recall all",
    "recall@10, filter of 10%": "recall tenth",
    "recall@10, filter of 1%": "recall hundredth",
    "build, s": "build s",
    "build, s of CPU": "build cpu s",
    "on disk, MB": "disk MB",
    "memory, MB": "resident MB",
}
"""The key of the figure in each row, by the row's name."""

KEPT: Final = 500
"""How many queries have vectors."""

PASSAGES, WARM, ROUNDS = 100_000, 20, 100
ACTS: Final = ("hybrid", "nearest")
CHOICES: Final = (None, *TAGS)


@dataclass(frozen=True)
class Worker:
    """An engine in a process of its own."""

    process: subprocess.Popen[str]

    @property
    def server(self) -> Server:
        """Its process."""
        return Server("", self.process.pid, 0)

    def ask(self, *request: object) -> tuple[float, list[int]]:
        """Return the milliseconds of a search, and its results."""
        assert self.process.stdin
        assert self.process.stdout
        print(json.dumps(request), file=self.process.stdin, flush=True)
        reply: tuple[float, list[int]] = json.loads(self.process.stdout.readline())
        return reply


@dataclass(frozen=True)
class Remote:
    """A server of kb."""

    server: Server
    client: Client
    texts: Sequence[str]

    def ask(self, act: str, number: int, tag: str | None) -> tuple[float, list[int]]:
        """Return the milliseconds of a request, and its results."""
        options = {"top": TOP, "tags": [TAGGED[tag]] if tag else [], "vec_only": act == "nearest"}
        found: list[Any] = []
        taken = timed(lambda: found.extend(self.client.search(self.texts[number], **options)["results"]))
        return taken, [each["chunk_id"] - 1 for each in found]


def command(act: str, peer: str, folder: Path) -> list[str]:
    """Return what builds a peer's files, or serves from them."""
    python = sys.executable if peer == "kb" else environment(peer)
    return [str(python), "-m", "bench.peers.speed.worker", act, peer, str(folder), str(folder / peer)]


def environment(peer: str) -> Path:
    """Return a peer's own Python."""
    return Path(os.environ.get("KB_PEERS", "peers")).absolute() / peer / "bin" / "python"


def prepare_input(folder: Path, sentences: Path, embedder: OnnxEmbedder, count: int) -> None:
    """Write the passages and the queries, unless they are there."""
    if not (folder / "queries.json").exists():
        source = load_sentences(embedder, sentences)
        documents = list(drawn(source, count // CHUNKS))
        texts = list(chain.from_iterable(texts_of(source, each) for each in documents))
        tags = {tag: np.arange(len(texts)) // CHUNKS % every == 0 for tag, every in TAGS.items()}
        Passages(texts, np.concatenate([each.vectors for each in documents]), tags).write(folder)
        # Quoted words must be in kb's results, but not in the results of others.
        asked = [text for text in queries() if Query.parse(text, Filter()).where == Filter()][:KEPT]
        words = [[word.rstrip("*") for word in keywords(text)] for text in asked]
        Queries(asked, words, embedder.embed_queries(asked)).write(folder)


def build(peer: str, folder: Path) -> Figures:
    """Return the size of a peer's files, and build them if necessary."""
    record = folder / f"{peer}.built"
    if not record.exists():
        shutil.rmtree(folder / peer, ignore_errors=True)
        (folder / peer).mkdir()
        built = subprocess.run(command("build", peer, folder), check=True, stdout=subprocess.PIPE)
        seconds, cpu = json.loads(built.stdout)
        disk = sum(file.stat().st_size for file in (folder / peer).rglob("*") if file.is_file())
        record.write_text(json.dumps({"build s": seconds, "build cpu s": cpu, "disk MB": disk / MEMORY}))
    figures: Figures = json.loads(record.read_text())
    return figures


@contextmanager
def working(peer: str, folder: Path) -> Iterator[Worker]:
    """A peer that answers."""
    with subprocess.Popen(
        command("serve", peer, folder), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield Worker(process)
        process.terminate()


@contextmanager
def remote(folder: Path, texts: Sequence[str]) -> Iterator[Remote]:
    """A server of kb over a copy of its database."""
    if not (folder / OVER_HTTP).exists():
        shutil.copytree(folder / "kb", folder / OVER_HTTP)
    serve = [sys.executable, "-m", "kb_cli.main", "serve", "--data-dir", str(folder / OVER_HTTP)]
    with launched(serve) as server:
        yield Remote(server, Client(server), texts)


def nearest(passages: Passages, vector: NDArray[np.float32], tag: str | None) -> set[int]:
    """Return the nearest passages, every vector compared."""
    scores = passages.vectors @ vector
    if tag:
        scores[~passages.tags[tag]] = -np.inf
    return set(np.argpartition(-scores, TOP)[:TOP].tolist())


def measure(engines: dict[str, Worker | Remote], folder: Path, rounds: int) -> dict[str, Figures]:
    """Ask each query of all engines in turn, and return their figures."""
    times: dict[tuple[str, str], list[float]] = defaultdict(list)
    passages, vectors = Passages.read(folder), Queries.read(folder).vectors
    names = list(engines)
    for number in range(WARM + rounds):
        names.append(names.pop(0))
        for act in ACTS:
            for tag in CHOICES:
                exact = nearest(passages, vectors[number], tag) if act == "nearest" else set()
                for name in names:
                    taken, found = engines[name].ask(act, number, tag)
                    if number >= WARM:
                        times[name, _label(act, tag)].append(taken)
                    if number >= WARM and act == "nearest":
                        times[name, f"recall {tag or 'all'}"].append(len(exact & set(found)) / len(exact))
    return {name: _figures({key: each for (owner, key), each in times.items() if owner == name}) for name in engines}


def _label(act: str, tag: str | None) -> str:
    return f"{act} {tag or 'all'}"


def _figures(times: dict[str, list[float]]) -> Figures:
    """Return the mean recall, and the median and the 95th percentile of milliseconds."""
    figures: Figures = {}
    for key, each in times.items():
        if key.startswith("recall"):
            figures[key] = statistics.fmean(each)
        else:
            figures |= {f"{key} p50": statistics.median(each), f"{key} p95": statistics.quantiles(each, n=20)[18]}
    return figures


def by_row(found: dict[str, Figures]) -> dict[str, Figures]:
    """Return the figures by row and column of the docs."""
    return {
        row: {NAMES[name]: figures[key] for name, figures in found.items() if key in figures}
        for row, key in ROWS.items()
    }


def table(found: dict[str, Figures]) -> str:
    """Return the figures in Markdown, a column for each engine."""
    lines = [["Figure", *(NAMES[name] for name in found)], ["---"] * (len(found) + 1)]
    lines += [[name, *(_cell(figures, name, key) for figures in found.values())] for name, key in ROWS.items()]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def rounded(number: float, name: str = "") -> str:
    """Return a number with three digits, all digits before the point, or three decimals of a recall."""
    if name.startswith("recall"):
        return f"{number:.3f}"
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _cell(figures: Figures, name: str, key: str) -> str:
    return rounded(figures[key], name) if key in figures else ""


def run(home: Path, count: int, rounds: int, peers: Sequence[str]) -> dict[str, Figures]:
    """Build the missing files, one after another. Then measure all."""
    folder = home / str(count)
    folder.mkdir(parents=True, exist_ok=True)
    prepare_input(folder, home / "sentences.npy", open_model(home), count)
    files = {peer: build(peer, folder) for peer in peers}
    if not rounds:
        return {}
    with ExitStack() as stack:
        engines: dict[str, Worker | Remote] = {peer: stack.enter_context(working(peer, folder)) for peer in peers}
        if "kb" in peers:
            engines[OVER_HTTP] = stack.enter_context(remote(folder, Queries.read(folder).texts))
        for name in ("kb", OVER_HTTP):
            if name in engines:
                engines[name].ask(ACTS[0], 0, None)
                settle(engines[name].server)
        found = measure(engines, folder, rounds)
        for name, engine in engines.items():
            found[name] |= files[name if name in files else "kb"] | {"resident MB": engine.server.memory() / MEMORY}
    return found


def main() -> None:
    """Print the table, and write the JSON if requested."""
    parser = argparse.ArgumentParser(description="Compare kb with libraries for search.")
    parser.add_argument("peers", metavar="PEER", nargs="*", default=PEERS)
    parser.add_argument("--passages", type=int, default=PASSAGES)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="queries that are measured; 0 only builds")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--json", type=Record)
    arguments = parser.parse_args()
    peers = [peer for peer in arguments.peers if peer == "kb" or environment(peer).exists()]
    with tempfile.TemporaryDirectory() as scratch:
        found = run(arguments.folder or Path(scratch), arguments.passages, arguments.rounds, peers)
    if found:
        print(table(found))
    if arguments.json:
        arguments.json.save(by_row(found))


if __name__ == "__main__":
    main()
