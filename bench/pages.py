"""Compare the web interface with 100,000 and with 1,000 documents: two real servers in one run, called in turn.

    python -m bench.pages [DOCUMENTS]      default: 100,000

The documents are notes of one chunk with synthetic vectors, written through the store before the servers start.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2
import numpy as np

from bench.serving import serving
from kb.store.default_space import DEFAULT_SPACE
from kb.store.row_mapping import cursor_after
from kb.store.rows import ChunkPosition, Content, NewChunk
from kb.store.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from collections.abc import Callable

    Act = Callable[["Engine"], httpx2.Response]

DIMENSIONS = 384
SMALL, LARGE = 1_000, 100_000
BATCH = 500
ROUNDS = 100
PAGE = 50
MOST = 1.5
RARE, COMMON = "rare", "common"
WORDS = [f"word{number}" for number in range(20_000)]


class Engine:
    """A server over so many documents; one in two is common, ten are rare."""

    def __init__(self, folder: Path, size: int, stack: ExitStack) -> None:
        self.size = size
        self.random = random.Random(size)
        folder.mkdir()
        begun = time.perf_counter()
        self._fill(folder / "kb.db")
        print(f"{size:,} documents written in {time.perf_counter() - begun:.0f} s")
        url = stack.enter_context(serving(folder))
        self.http = stack.enter_context(httpx2.Client(base_url=f"{url}/api/v1/"))

    def _fill(self, database: Path) -> None:
        store = SqliteStore(database, DEFAULT_SPACE)
        numbers = np.random.default_rng(self.size)
        self.ids: list[int] = []
        for start in range(0, self.size, BATCH):
            with store.write() as tx:
                for number in range(start, start + BATCH):
                    tags = [COMMON] * (number % 2) + [RARE] * (number % (self.size // 10) == 0)
                    content = _content(self.text(), numbers.normal(size=(1, DIMENSIONS)))
                    self.ids.append(tx.documents.add(content, f"/{number}", tags))
        with store.read() as tx:

            def after(place: int) -> str:
                return cursor_after(tx.documents.get(self.ids[place]))

            self.cursors = {at: after(self._place(at)) for at in (0.5, 1.0)}
            self.recent_cursors = {at: after(-1 - self._place(at)) for at in (0.5, 1.0)}
        store.close()

    def _place(self, at: float) -> int:
        return int(at * self.size) - PAGE - 1

    def text(self) -> str:
        """A note of 40 words."""
        return " ".join(self.random.choices(WORDS, k=40))

    def page(self, at: float = 0.0, *, recent: bool = False, **query: object) -> httpx2.Response:
        """A page that begins at so large a share of the documents."""
        cursors = self.recent_cursors if recent else self.cursors
        sort = "recent" if recent else "id"
        cursor = {"cursor": cursors[at]} if at else {}
        return self.http.get("documents", params={"sort": sort, "limit": PAGE, **cursor, **query})  # type: ignore[dict-item]

    def some(self) -> int:
        """Any document."""
        return self.random.choice(self.ids)


def _content(text: str, vector: np.ndarray) -> Content:
    unit = (vector / np.linalg.norm(vector)).astype(np.float32)
    return Content("note", text[:20], text, [NewChunk(text, "", ChunkPosition(1, 1, 0, len(text)))], unit)


def _delete(engine: Engine) -> httpx2.Response:
    return engine.http.delete(f"documents/{engine.ids.pop(engine.random.randrange(len(engine.ids)))}")


def _retag(engine: Engine) -> httpx2.Response:
    return engine.http.patch(f"documents/{engine.some()}/tags", json={"add": [RARE], "remove": [COMMON]})


ACTS: dict[str, Act] = {
    "first page": lambda engine: engine.page(),
    "middle page": lambda engine: engine.page(0.5),
    "last page": lambda engine: engine.page(1.0),
    "first page, recent": lambda engine: engine.page(recent=True),
    "middle page, recent": lambda engine: engine.page(0.5, recent=True),
    "last page, recent": lambda engine: engine.page(1.0, recent=True),
    "rare tag": lambda engine: engine.page(tag=RARE),
    "rare tag, recent": lambda engine: engine.page(tag=RARE, recent=True),
    "common tag": lambda engine: engine.page(tag=COMMON),
    "common tag, recent": lambda engine: engine.page(tag=COMMON, recent=True),
    "common tag, middle": lambda engine: engine.page(0.5, tag=COMMON),
    "both tags": lambda engine: engine.page(tag=[COMMON, RARE]),
    "either tag": lambda engine: engine.page(tag_any=[COMMON, RARE]),
    "either tag, recent": lambda engine: engine.page(tag_any=[COMMON, RARE], recent=True),
    "without a common tag": lambda engine: engine.page(tag_not=COMMON),
    "without a rare tag": lambda engine: engine.page(tag_not=RARE, recent=True),
    "type": lambda engine: engine.page(doc_type="note"),
    "type, recent": lambda engine: engine.page(doc_type="note", recent=True),
    "path": lambda engine: engine.page(source_path="/77"),
    "one document": lambda engine: engine.http.get(f"documents/{engine.some()}"),
    "delete one": _delete,
    "update a note": lambda engine: engine.http.patch(f"notes/{engine.some()}", json={"text": engine.text()}),
    "add a note": lambda engine: engine.http.post("jobs?wait=9", json={"text": engine.text(), "tags": [COMMON]}),
    "change tags": _retag,
}


def measure(act: Act, engines: tuple[Engine, Engine]) -> tuple[float, float]:
    """The medians in milliseconds."""
    times: dict[Engine, list[float]] = {engine: [] for engine in engines}
    for _ in range(ROUNDS):
        for engine, taken in times.items():
            begun = time.perf_counter()
            act(engine).raise_for_status()
            taken.append((time.perf_counter() - begun) * 1000)
    few, many = map(statistics.median, times.values())
    return few, many


def main() -> int:
    """0 if every ratio is within its limit."""
    size = int(sys.argv[1]) if len(sys.argv) > 1 else LARGE
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        engines = Engine(Path(folder, "small"), SMALL, stack), Engine(Path(folder, "large"), size, stack)
        print(f"{'p50 in ms':24}{SMALL:>12,}{size:>12,}   ratio")
        for name, act in ACTS.items():
            few, many = measure(act, engines)
            worst = max(worst, many / few)
            print(f"{name:24}{few:12.2f}{many:12.2f}{many / few:8.2f}", flush=True)
    print(f"worst ratio {worst:.2f} (at most {MOST})")
    return int(worst > MOST)


if __name__ == "__main__":
    sys.exit(main())
