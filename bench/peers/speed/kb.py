"""kb in process: its store and its search service, composed as in the engine, with prepared vectors of the queries."""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from bench.corpus import CHUNKS, write_documents
from bench.peers.speed.passages import TOP
from kb.core import MAX_SEARCHES
from kb.embed.onnx.session import available_cores
from kb.embed.protocol import Embedder, ModelSpec
from kb.search.query import Query
from kb.search.recall_monitor import RecallMonitor
from kb.search.service import SearchService
from kb.settings import Settings
from kb.store.default_space import DEFAULT_SPACE
from kb.store.open import open_store
from kb.store.rows import Filter
from kb.telemetry.instruments import FollowingPool, Instruments

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from numpy.typing import NDArray

    from bench.peers.speed.passages import Passages, Question
    from kb.store.protocol import Store

SPACE: Final = DEFAULT_SPACE
SPEC: Final = ModelSpec(SPACE.model, SPACE.digest, SPACE.precision, SPACE.dimensions, window=256)
TAGGED: Final = {"tenth": "share 10 %", "hundredth": "share 1 %"}
"""The names of the tags in the corpus."""


def build(passages: Passages, folder: Path) -> None:
    """Write the passages, so many to a document."""
    parts = (slice(start, start + CHUNKS) for start in range(0, len(passages.texts), CHUNKS))
    with opened(folder) as store:
        write_documents(store, ((passages.texts[part], passages.vectors[part]) for part in parts))


def opened(folder: Path) -> AbstractContextManager[Store]:
    """The store in a folder."""
    return open_store(Settings(data_dir=folder), SPACE)


class GivenVector:
    """In the place of the model: it answers the vector that was set, whatever the text."""

    spec = SPEC

    def __init__(self) -> None:
        self.vector = np.zeros(SPEC.dimensions, np.float32)

    @property
    def current(self) -> GivenVector:
        """Itself."""
        return self

    def embed_queries(self, texts: Sequence[str], *, alone: bool = True) -> NDArray[np.float32]:
        """Return the vector for each text."""
        return np.stack([self.vector] * len(texts))


class Engine:
    """See `passages.Engine`."""

    def __init__(self, folder: Path) -> None:
        self._stack = ExitStack()
        store = self._stack.enter_context(opened(folder))
        pool = self._stack.enter_context(FollowingPool(min(available_cores(), MAX_SEARCHES), "kb-search"))
        instruments = Instruments()
        recall = self._stack.enter_context(closing(RecallMonitor(store, instruments)))
        self._model = GivenVector()
        self._service = SearchService(store, cast("Embedder", self._model), pool, instruments, recall)

    def hybrid(self, question: Question) -> list[tuple[int, str]]:
        """Return the best of both."""
        return self._search(question, full_text=True)

    def nearest(self, question: Question) -> list[tuple[int, str]]:
        """Return the nearest."""
        return self._search(question, full_text=False)

    def _search(self, question: Question, *, full_text: bool) -> list[tuple[int, str]]:
        self._model.vector = question.vector
        where = Filter(tags=(TAGGED[question.tag],)) if question.tag else Filter()
        query = Query.parse(question.text, where, full_text=full_text)
        found = self._service.search(query, TOP).results
        # Chunks are numbered as they were written, from 1.
        return [(passage.chunk_id - 1, passage.text) for passage in found]
