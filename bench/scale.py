"""What 100,000 documents cost that 1,000 do not: both in one run, written through the store, in turn.

    python -m bench.scale [DOCUMENTS]      100,000 when not given

Vectors are synthetic unit vectors of the model's length. Each act is done on the small and on the large store in
turns, so that both see the same machine.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from kb.store.base import Content, Filter, NewChunk, Place
from kb.store.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from kb.store.base import Document

    Act = Callable[["Filled"], object]

DIMENSIONS = 384
SMALL, LARGE = 1_000, 100_000
BATCH = 500
ROUNDS = 60
PAGE = 50
MOST = 1.5
RARE, COMMON = "rare", "common"


class Filled:
    """A store with so many documents of one chunk; one in two is common, ten are rare."""

    def __init__(self, path: Path, size: int) -> None:
        self.size = size
        self.store = SqliteStore(path, DIMENSIONS)
        self.random = random.Random(size)
        self.numbers = np.random.default_rng(size)
        self.ids: list[int] = []
        self.words = [f"word{number}" for number in range(20_000)]
        begun = time.perf_counter()
        for start in range(0, size, BATCH):
            with self.store.write() as tx:
                for number in range(start, start + BATCH):
                    tags = [COMMON] * (number % 2) + [RARE] * (number % (size // 10) == 0)
                    self.ids.append(tx.documents.add(self.content(), f"/{number}", tags))
        print(f"{size:,} documents written in {time.perf_counter() - begun:.0f} s")

    def content(self) -> Content:
        """A note of 40 words."""
        text = " ".join(self.random.choices(self.words, k=40))
        vector = self.numbers.normal(size=(1, DIMENSIONS)).astype(np.float32)
        chunk = NewChunk(text, text[:20], Place(1, 1, 0, len(text)))
        return Content("note", text[:20], text, [chunk], vector / np.linalg.norm(vector))

    def page(self, *, where: Filter | None = None, sort: str = "id", at: float = 0.0) -> list[Document]:
        """A page that begins at so large a share of the documents."""
        with self.store.read() as tx:
            return tx.documents.page(
                where or Filter(),
                sort=sort,
                limit=PAGE,
                cursor=self.cursors.get((sort, at)),  # type: ignore[arg-type]
            )

    def remember_cursors(self) -> None:
        """Where the middle and the last page begin."""
        self.cursors = {}
        with self.store.read() as tx:
            for at in (0.5, 1.0):
                document = tx.documents.get(self.ids[max(int(at * self.size) - PAGE - 1, 0)])
                assert document is not None
                self.cursors["id", at] = tx.documents.cursor_after(document, "id")
                document = tx.documents.get(self.ids[max(int((1 - at) * self.size), PAGE + 1)])
                assert document is not None
                self.cursors["recent", at] = tx.documents.cursor_after(document, "recent")


def _get(filled: Filled) -> object:
    with filled.store.read() as tx:
        document_id = filled.random.choice(filled.ids)
        return tx.documents.get(document_id), tx.documents.chunks(document_id)


def _delete(filled: Filled) -> None:
    place = filled.random.randrange(len(filled.ids))
    document_id = filled.ids.pop(place)
    with filled.store.write() as tx:
        tx.documents.delete(document_id)


def _update(filled: Filled) -> None:
    content = filled.content()
    with filled.store.write() as tx:
        tx.documents.replace(filled.random.choice(filled.ids), content)


def _add(filled: Filled) -> None:
    content = filled.content()
    with filled.store.write() as tx:
        filled.ids.append(tx.documents.add(content, None, [COMMON]))


def _retag(filled: Filled) -> None:
    with filled.store.write() as tx:
        tx.documents.change_tags(filled.random.choice(filled.ids), add=[RARE], remove=[COMMON])


ACTS: dict[str, Act] = {
    "first page": lambda filled: filled.page(),
    "middle page": lambda filled: filled.page(at=0.5),
    "last page": lambda filled: filled.page(at=1.0),
    "first page, recent": lambda filled: filled.page(sort="recent"),
    "middle page, recent": lambda filled: filled.page(sort="recent", at=0.5),
    "last page, recent": lambda filled: filled.page(sort="recent", at=1.0),
    "rare tag": lambda filled: filled.page(where=Filter((RARE,))),
    "rare tag, recent": lambda filled: filled.page(where=Filter((RARE,)), sort="recent"),
    "common tag": lambda filled: filled.page(where=Filter((COMMON,))),
    "common tag, recent": lambda filled: filled.page(where=Filter((COMMON,)), sort="recent"),
    "common tag, middle": lambda filled: filled.page(where=Filter((COMMON,)), at=0.5),
    "both tags": lambda filled: filled.page(where=Filter((COMMON, RARE))),
    "type": lambda filled: filled.page(where=Filter(doc_type="note")),
    "type, recent": lambda filled: filled.page(where=Filter(doc_type="note"), sort="recent"),
    "path": lambda filled: filled.page(where=Filter(source_path="/77")),
    "one document": _get,
    "delete one": _delete,
    "update a note": _update,
    "add a note": _add,
    "change tags": _retag,
}


def measure(act: Act, small: Filled, large: Filled) -> tuple[float, float]:
    """The medians in milliseconds."""
    times: dict[Filled, list[float]] = {small: [], large: []}
    for _ in range(ROUNDS):
        for filled, taken in times.items():
            begun = time.perf_counter()
            act(filled)
            taken.append((time.perf_counter() - begun) * 1000)
    return statistics.median(times[small]), statistics.median(times[large])


def main() -> int:
    """0 if every ratio is within its limit."""
    size = int(sys.argv[1]) if len(sys.argv) > 1 else LARGE
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        small, large = Filled(Path(folder, "small.db"), SMALL), Filled(Path(folder, "large.db"), size)
        for filled in (small, large):
            filled.remember_cursors()
        print(f"{'p50 in ms':24}{SMALL:>12,}{size:>12,}   ratio")
        for name, act in ACTS.items():
            few, many = measure(act, small, large)
            worst = max(worst, many / few)
            print(f"{name:24}{few:12.3f}{many:12.3f}{many / few:8.2f}", flush=True)
    print(f"worst ratio {worst:.2f} (at most {MOST})")
    return int(worst > MOST)


if __name__ == "__main__":
    sys.exit(main())
