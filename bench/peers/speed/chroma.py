"""Chroma, which has only vectors: in HNSW with its own settings, and tags as metadata."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from bench.peers.speed.passages import TAGS, TOP

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from bench.peers.speed.passages import Passages, Question

chromadb = import_module("chromadb")
config = import_module("chromadb.config")

BATCH: Final = 5000


def connect(folder: Path) -> Any:  # noqa: ANN401 - a client
    """Return a client of the files in a folder."""
    return chromadb.PersistentClient(str(folder), config.Settings(anonymized_telemetry=False))


def build(passages: Passages, folder: Path) -> None:
    """Add the passages."""
    collection = connect(folder).create_collection(
        "passages", configuration={"hnsw": {"space": "cosine"}}, embedding_function=None
    )
    for start in range(0, len(passages.texts), BATCH):
        numbers = range(start, min(start + BATCH, len(passages.texts)))
        tags = [{tag: bool(passages.tags[tag][number]) for tag in TAGS} for number in numbers]
        part = slice(start, start + BATCH)
        collection.add(list(map(str, numbers)), passages.vectors[part], tags, passages.texts[part])


class Engine:
    """See `passages.Engine`."""

    def __init__(self, folder: Path) -> None:
        self._collection = connect(folder).get_collection("passages", embedding_function=None)

    def hybrid(self, question: Question) -> list[tuple[int, str]]:
        """Return the nearest: it has no words."""
        return self.nearest(question)

    def nearest(self, question: Question) -> list[tuple[int, str]]:
        """Return the nearest."""
        where = {question.tag: True} if question.tag else None
        found = self._collection.query(question.vector, n_results=TOP, where=where, include=["documents"])
        return list(zip(map(int, found["ids"][0]), found["documents"][0], strict=True))
