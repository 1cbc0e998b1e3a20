"""A search from its query to the passages that answer it."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from threading import BoundedSemaphore
from typing import TYPE_CHECKING

from kb.search.fusion import rank
from kb.search.passages import PASSAGES, Highlighter, Passage, count, fit, group
from kb.search.retrieve import Retriever
from kb.search.token_budget import TokenBudget

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from concurrent.futures import Executor, Future

    import numpy as np
    from numpy.typing import NDArray

    from kb.embed.protocol import Embedder
    from kb.search.fusion import Ranked
    from kb.search.query import Query
    from kb.search.recall import RecallMonitor
    from kb.store.protocol import Store
    from kb.telemetry.instruments import Instruments

CANDIDATES = 100
"""How many chunks each leg offers."""

WIDER = 8
"""How much longer a list is asked for when one had too few documents in it."""

MOST_CANDIDATES = 20_000
"""How long a list may become then: documents that one document's passages keep out of it are not found."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a search found, best first.

    `omitted` counts the passages that the budget had no room for, `pending` the jobs that are not searchable yet.
    """

    results: list[Passage]
    omitted: int
    pending: int


class SearchService:
    """Answers searches.

    Args:
        store: where the documents are.
        embedder: the model that reads queries.
        pool: where the model works while the full-text leg does.
        instruments: the instruments.
        limit: how many searches may use the model at once, the others wait. Fewer than the store has connections for
            readers: what does not ask the model need not wait for it.
        cores: how many searches may compute at once: more would only take the interpreter's lock from each other.
    """

    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        pool: Executor,
        instruments: Instruments,
        recall: RecallMonitor,
        limit: int,
        cores: int = 1,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._pool = pool
        self._instruments = instruments
        self._recall = recall
        self._with_model = BoundedSemaphore(limit)
        self._cores = BoundedSemaphore(cores)

    def search(self, query: Query, top: int, *, grouped: bool = False, max_tokens: int | None = None) -> Answer:
        """Return the `top` best passages; when `grouped`, the `top` best documents, each by its best passage.

        Args:
            query: what to look for.
            top: how many.
            grouped: whether a document's next best passages come with its best one.
            max_tokens: the most tokens of text in all of them.
        """
        best = best_documents if grouped else best_passages
        budget = TokenBudget(max_tokens, self._count_tokens)
        with self._vector(query.text) as vector, self._store.read() as tx:
            found = best(Retriever(tx.index, query, vector, self._instruments, self._cores), top)
            if vector and not query.exact:
                self._recall.observe(vector.result(), query.where)
            total = count(found)
            results = list(fit(found, budget, Highlighter(tx.index.analyzer, query.words)))
            return Answer(results, total - count(results), tx.jobs.pending())

    @contextmanager
    def _vector(self, text: str | None) -> Iterator[Future[NDArray[np.float32]] | None]:
        if text is None:
            yield None
        else:
            with self._with_model:
                yield self._pool.submit(self._embed, text)

    def _embed(self, text: str) -> NDArray[np.float32]:
        with self._instruments.search("embed"):
            vector: NDArray[np.float32] = self._embedder.embed_queries([text])[0]
            return vector

    def _count_tokens(self, text: str) -> int:
        return self._embedder.count_tokens(text) - self._embedder.spec.special_tokens


def best_passages(retriever: Retriever, top: int) -> list[Passage]:
    """Return the `top` best passages."""
    return retriever.passages(rank(retriever.candidates(max(CANDIDATES, top)), top))


def best_documents(retriever: Retriever, top: int) -> list[Passage]:
    """Return the `top` best documents. A long one may fill every place of a list: then a longer list is asked for."""
    limit = max(CANDIDATES, top) * PASSAGES
    while True:
        candidates = retriever.candidates(limit)
        ranked = rank(candidates, candidates.ids.size)
        documents = by_document(ranked, retriever.documents_of(ranked))
        if len(documents) >= top or candidates.ids.size < limit or limit >= MOST_CANDIDATES:
            return group(retriever.passages([each for best in documents[:top] for each in best]))
        limit = min(limit * WIDER, MOST_CANDIDATES)


def by_document(ranked: Sequence[Ranked], documents: Sequence[int]) -> list[list[Ranked]]:
    """Return the best passages of each document, the best document first."""
    best: dict[int, list[Ranked]] = {}
    for each, document_id in zip(ranked, documents, strict=True):
        if len(passages := best.setdefault(document_id, [])) < PASSAGES:
            passages.append(each)
    return list(best.values())
