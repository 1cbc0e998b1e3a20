"""Compare the engine with its model: ingestion and search, and only embedding, in one run.

    python -m bench.engine [--json FILE] [NUMBER_OF_DOCUMENTS]      default: all of SciFact

Documents are added through the API in several portions. Before each portion, the embedder embeds the same chunks, so
that both use the same machine. Then each query is embedded and searched, in turn.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bench.collection import collection
from bench.origin import Record
from bench.serving import add_all, open_model, serving
from kb.client.client import EngineClient
from kb.ingest.draft import draft_note

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kb.embed.protocol import Embedder

    Documents = Sequence[tuple[str, dict[str, str]]]

PORTIONS = 5
MOST_INGESTION = 1.15
MOST_SEARCH = 3.0


def portions(documents: Documents) -> Iterator[Documents]:
    """The documents in `PORTIONS` parts."""
    size = -(-len(documents) // PORTIONS)
    return (documents[start : start + size] for start in range(0, len(documents), size))


def embed_alone(documents: Documents, embedder: Embedder) -> tuple[float, int]:
    """Return the seconds to embed the chunks of the documents, and the number of chunks."""
    drafts = [draft_note(document["text"], document["title"], embedder) for _, document in documents]
    inputs = list(itertools.chain.from_iterable(draft.inputs for draft in drafts))
    begun = time.perf_counter()
    embedder.embed_passages(inputs)
    return time.perf_counter() - begun, len(inputs)


async def ingestion(client: EngineClient, documents: Documents, embedder: Embedder) -> float:
    """The ratio of the two; prints both."""
    alone = engine = 0.0
    chunks = 0
    for portion in portions(documents):
        seconds, count = embed_alone(portion, embedder)
        alone, chunks = alone + seconds, chunks + count
        begun = time.perf_counter()
        await add_all(client, portion)
        engine += time.perf_counter() - begun
    print(
        f"ingestion of {len(documents)} documents, {chunks} chunks: embedder alone {alone:.1f} s, engine {engine:.1f} s"
    )
    return engine / alone


async def search(client: EngineClient, queries: Sequence[str], embedder: Embedder) -> float:
    """The ratio of the two medians; prints both."""
    alone, engine = [], []
    for query in queries:
        begun = time.perf_counter()
        embedder.embed_queries([query])
        embedded = time.perf_counter()
        await client.search(query=query)
        alone.append(embedded - begun)
        engine.append(time.perf_counter() - embedded)
    p50_alone, p50_engine = (statistics.median(times) * 1000 for times in (alone, engine))
    print(f"{len(queries)} queries: embedding alone p50 {p50_alone:.2f} ms, POST /search p50 {p50_engine:.2f} ms")
    return p50_engine / p50_alone


async def measure(documents: Documents, queries: Sequence[str], record: Record | None) -> bool:
    """Print both ratios, and write the JSON if requested; whether they are within their limits."""
    with tempfile.TemporaryDirectory() as folder:
        embedder = open_model(Path(folder))
        with serving() as url:
            async with EngineClient(url) as client:
                ingested = await ingestion(client, documents, embedder)
                print(f"  ratio {ingested:.2f} (at most {MOST_INGESTION})")
                await search(client, queries[:20], embedder)
                searched = await search(client, queries, embedder)
                print(f"  ratio {searched:.2f} (at most {MOST_SEARCH})")
    if record:
        record.save({"abstracts": {"share of the model's rate": 1 / ingested}, "search": {"times the model": searched}})
    return ingested <= MOST_INGESTION and searched <= MOST_SEARCH


def main() -> int:
    """0 if both ratios are within their limits."""
    parser = argparse.ArgumentParser(description="Compare the engine with its model.")
    parser.add_argument("documents", metavar="NUMBER_OF_DOCUMENTS", type=int, nargs="?")
    parser.add_argument("--json", type=Record)
    arguments = parser.parse_args()
    scifact = collection("scifact")
    documents = list(scifact.documents.items())[: arguments.documents]
    queries = [query["text"] for query in scifact.queries.values()]
    return int(not asyncio.run(measure(documents, queries, arguments.json)))


if __name__ == "__main__":
    sys.exit(main())
