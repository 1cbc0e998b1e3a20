"""Measure the cost of history: an update with and without it, a search among many versions, and the bytes of a version.

Updates are compared by CPU time and in pairs, because the machine may be busy. Searches also run in turns.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from kb.documents.note_edit import Edit, NoteChange
from kb.documents.write_document import write_document
from kb.documents.write_updated_note import update_note
from kb.embed.open import open_embedder
from kb.ingest.draft import draft_note, embed_draft
from kb.ingest.vectors_at_once import NoteVectors
from kb.search.query import Query
from kb.search.recall_monitor import RecallMonitor
from kb.search.service import SearchService
from kb.settings import Settings
from kb.store.rows import NOBODY, Filter, Retention, VectorSpace
from kb.store.sqlite.store import SqliteStore
from kb.telemetry.instruments import FollowingPool, Instruments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kb.embed.protocol import Embedder

KINDS = {"with": Retention(), "without": Retention(history_days=0)}
UPDATES, NOTES, VERSIONS, ROUNDS = 300, 30, 100, 40


def main() -> None:
    """Print the three."""
    settings = Settings.read()
    embedder = open_embedder(settings.model_dir, settings.data_dir, settings.device, settings.precision)
    words = Path(sys.argv[1]).read_text(errors="replace").split()
    with tempfile.TemporaryDirectory() as folder:
        for length in (80, 400, 4000):
            compare_updates(Path(folder), embedder, words, length)
        compare_searches(Path(folder), embedder, words)


def compare_updates(folder: Path, embedder: Embedder, words: Sequence[str], length: int) -> None:
    """Print the CPU time of an update with and without history, and the size of a version."""
    stores = [open_store(folder / f"{name}{length}.db", embedder, kept) for name, kept in KINDS.items()]
    vectors = NoteVectors(embedder, ThreadPoolExecutor(1))
    chooser = random.Random(length)
    spent: list[list[float]] = [[], []]
    text = passage(words, chooser, length)
    ids = [add(store, embedder, text) for store in stores]
    plain = 0
    for number in range(max(20, UPDATES * 80 // length)):
        plain += len(zlib.compress(text.encode()))
        text = edited(text, words, chooser)
        for turn in (0, 1) if number % 2 else (1, 0):
            begun = time.process_time()
            update_note(stores[turn], vectors, ids[turn], NoteChange(Edit(text=text)))
            spent[turn].append(time.process_time() - begun)
    with stores[0].read() as tx:
        counts, chunks = tx.history.counts(), tx.documents.extent(ids[0]).chunks
    with_, without = (statistics.mean(each) * 1000 for each in spent)
    print(
        f"{length} words, {chunks} chunks: update {with_:.2f} ms CPU with history, {without:.2f} without"
        f" ({with_ / without:.3f}); {len(text.encode())} bytes of text,"
        f" a version {counts.size / counts.versions:.0f} ({plain / counts.versions:.0f} as bare text)"
    )
    for store in stores:
        store.close()


def compare_searches(folder: Path, embedder: Embedder, words: Sequence[str]) -> None:
    """Print the CPU time of a search over notes with many versions, and over the same without any."""
    chooser = random.Random(7)
    stores = [open_store(folder / f"{name}.db", embedder, kept) for name, kept in KINDS.items()]
    texts = [passage(words, chooser, 120) for _ in range(NOTES)]
    for text in texts:
        content = embed_draft(draft_note(text, None, embedder), embedder)
        for store in stores:
            with store.write() as tx:
                id_, _ = write_document(tx, content, None, ())
            for number in range(VERSIONS):
                with store.write() as tx:
                    tx.history.keep(id_, NOBODY)
                    tx.documents.replace(id_, replace(content, content_hash=f"{number}"))
    queries = [passage(words, chooser, 4) for _ in range(ROUNDS)]
    spent: list[list[float]] = [[], []]
    with FollowingPool(1) as pool:
        recalls = [RecallMonitor(store, Instruments()) for store in stores]
        services = [
            SearchService(store, embedder, pool, Instruments(), recall)
            for store, recall in zip(stores, recalls, strict=True)
        ]
        for number, query in enumerate(queries * 10):
            for turn in (0, 1) if number % 2 else (1, 0):
                begun = time.process_time()
                services[turn].search(Query.parse(query, Filter(), vectors=False), 10)
                spent[turn].append(time.process_time() - begun)
    for recall in recalls:
        recall.close()
    with_, without = (statistics.median(each[2 * ROUNDS :]) * 1000 for each in spent)
    with stores[0].read() as tx:
        versions = tx.history.counts().versions
    print(f"search among {versions} versions: {with_:.3f} ms CPU, {without:.3f} without ({with_ / without:.3f})")


def open_store(path: Path, embedder: Embedder, retention: Retention) -> SqliteStore:
    """Return an empty store."""
    return SqliteStore(path, VectorSpace.of(embedder.spec), retention=retention)


def add(store: SqliteStore, embedder: Embedder, text: str) -> int:
    """Add a note; return its id."""
    with store.write() as tx:
        return write_document(tx, embed_draft(draft_note(text, None, embedder), embedder), None, ())[0]


def passage(words: Sequence[str], chooser: random.Random, length: int) -> str:
    """Return so many words that follow each other."""
    start = chooser.randrange(len(words) - length)
    return " ".join(words[start : start + length])


def edited(text: str, words: Sequence[str], chooser: random.Random) -> str:
    """Return the text with a few words of it replaced by others."""
    parts = text.split()
    start = chooser.randrange(len(parts))
    parts[start : start + 5] = passage(words, chooser, 5).split()
    return " ".join(parts)


if __name__ == "__main__":
    main()
