"""Measure recall for growing numbers of passages, against a comparison with all vectors in memory.

    python -m bench.recall --folder FOLDER [--store postgres] [--json FILE] PASSAGES...

The databases are in the folder of `bench.scale`. A search is semantic, or hybrid with the store's nearest passages or
with the exact nearest ones. Both run without HTTP and with the query's vector at hand.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from bench.corpus import CHUNKS, SHARES, drawn, load_sentences, queries
from bench.databases import STORES
from bench.origin import Record
from bench.scale import by_size, table
from bench.serving import open_model
from kb.index.vectors.scores import ScoredChunks
from kb.search.query import Query
from kb.search.retrieve import Retriever
from kb.search.service import CANDIDATES, best_passages
from kb.settings import Settings
from kb.store.default_space import DEFAULT_SPACE
from kb.store.open import open_store
from kb.store.rows import Filter
from kb.telemetry.instruments import Instruments

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from bench.databases import Database
    from bench.scale import Figures
    from kb.store.protocol import Index, Selection, Store

    Search = Callable[[Index, "Asked"], set[int]]

QUERIES: Final = 200
TOP: Final = 10
AT_ONCE: Final = 20
FILTERS: Final = {"all": 1, **SHARES}


@dataclass(frozen=True, slots=True)
class Asked:
    """A query, its vector, and the chunks that are nearest to it under a filter."""

    query: Query
    vector: NDArray[np.float32]
    nearest: ScoredChunks


class ExactSelection:
    """A selection that knows the nearest."""

    def __init__(self, selection: Selection, nearest: ScoredChunks) -> None:
        self._selection = selection
        self._nearest = nearest

    def nearest(self, vector: NDArray[np.float32], limit: int, *, exact: bool = False) -> ScoredChunks:
        """Return them, whatever is asked."""
        return self._nearest

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - all else is the selection's
        return getattr(self._selection, name)


class ExactIndex:
    """An index whose selections know the nearest."""

    def __init__(self, index: Index, nearest: ScoredChunks) -> None:
        self._index = index
        self._nearest = nearest

    def select(self, where: Filter) -> ExactSelection:
        """Return what `where` admits."""
        return ExactSelection(self._index.select(where), self._nearest)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - all else is the index's
        return getattr(self._index, name)


def nearest(vectors: NDArray[np.float32], asked: NDArray[np.float32], every: int) -> Iterator[ScoredChunks]:
    """Yield for each query the nearest chunks of one document in so many, after comparing with each."""
    admitted = vectors.reshape(-1, CHUNKS, vectors.shape[1])[::every].reshape(-1, vectors.shape[1])
    rows = np.arange(len(vectors)).reshape(-1, CHUNKS)[::every].ravel()
    for start in range(0, len(asked), AT_ONCE):
        for scores in asked[start : start + AT_ONCE] @ admitted.T:
            best = np.sort(np.argpartition(-scores, min(CANDIDATES, scores.size) - 1)[:CANDIDATES])
            yield ScoredChunks(rows[best] + 1, scores[best].astype(np.float64))


def by_vectors(index: Index, asked: Asked) -> set[int]:
    """Return the best that the vector leg finds."""
    found = index.select(asked.query.where).nearest(asked.vector, CANDIDATES)
    return set(found.best(TOP).ids.tolist())


def hybrid(index: Index, asked: Asked) -> set[int]:
    """Return the best of both legs."""
    vector = Future[Any]()
    vector.set_result(asked.vector)
    return {each.chunk_id for each in best_passages(Retriever(index, asked.query, vector, Instruments()), TOP)}


SEARCHES: Final[dict[str, Search]] = {"vectors": by_vectors, "hybrid": hybrid}


def compared(store: Store, search: Search, known: Sequence[Asked]) -> Figures:
    """Return how many of the best are found, how many answers are short, and how long a search takes."""
    shares, short, times = [], 0, []
    for each in known:
        with store.read() as tx:
            begun = time.perf_counter()
            found = search(tx.index, each)
            times.append((time.perf_counter() - begun) * 1000)
            best = search(cast("Index", ExactIndex(tx.index, each.nearest)), each)
        shares.append(len(found & best) / len(best))
        short += len(found) < len(best)
    return {"recall": fmean(shares), "short": short, "p50, ms": median(times)}


def measure(
    database: Database, vectors: NDArray[np.float32], texts: Sequence[str], asked: NDArray[np.float32]
) -> Figures:
    """Return for each filter what both kinds of search find."""
    figures: Figures = {}
    settings = Settings(data_dir=database.folder, database_url=database.environment.get("KB_DATABASE_URL"))
    with open_store(settings, DEFAULT_SPACE) as store:
        for name, every in FILTERS.items():
            where = Filter(tags=(f"share {name}",)) if every > 1 else Filter()
            found = zip(texts, asked, nearest(vectors, asked, every), strict=True)
            known = [Asked(Query.parse(text, where), vector, chunks) for text, vector, chunks in found]
            for kind, search in SEARCHES.items():
                new = {f"{kind}, {name}, {key}": value for key, value in compared(store, search, known).items()}
                print(new, flush=True)
                figures |= new
    return figures


def plain() -> Iterator[str]:
    """Yield the queries without a condition of their own, such as words in quotes."""
    return (text for text in queries() if Query.parse(text, Filter()).where == Filter())


def run(folder: Path, sizes: Sequence[int], store: str) -> dict[int, Figures]:
    """Measure each size."""
    embedder = open_model(folder)
    sentences, texts, found = load_sentences(embedder, folder / "sentences.npy"), list(islice(plain(), QUERIES)), {}
    asked = np.concatenate([embedder.embed_queries([text]) for text in texts])
    vectors = np.empty((max(sizes), asked.shape[1]), np.float32)
    for number, document in enumerate(drawn(sentences, max(sizes) // CHUNKS)):
        vectors[number * CHUNKS : (number + 1) * CHUNKS] = document.vectors
    with STORES[store](folder) as databases:
        for size in sizes:
            found[size] = measure(databases(size), vectors[:size], texts, asked)
    return found


def main() -> None:
    """Print the table, and write the JSON if requested."""
    parser = argparse.ArgumentParser(description="Measure the recall of the nearest passages.")
    parser.add_argument("sizes", metavar="PASSAGES", type=int, nargs="+")
    parser.add_argument("--store", choices=STORES, default="sqlite")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--json", type=Record)
    arguments = parser.parse_args()
    if any(size % CHUNKS for size in arguments.sizes):
        parser.error(f"PASSAGES: {CHUNKS} are in a document")
    found = run(arguments.folder, arguments.sizes, arguments.store)
    print(table(found))
    if arguments.json:
        arguments.json.save(by_size(found))


if __name__ == "__main__":
    main()
