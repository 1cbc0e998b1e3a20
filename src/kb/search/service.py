"""A search, from the query to the passages that answer it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from kb.api.document_day import has_ended
from kb.api.errors import ModelChanged
from kb.api.search_models import CopyOf, UnknownWord, UnreadableFile
from kb.embed.protocol import Embedder
from kb.processor_time import at_most
from kb.search.copied_passages import Deduplicated
from kb.search.fusion import Ranking
from kb.search.highlights import Highlighter
from kb.search.name_match import unreadable
from kb.search.operators import Operator
from kb.search.other_languages import other_languages
from kb.search.passages import PASSAGES, FoundPassage, TokenBudget, count, fit, group
from kb.search.query import Query
from kb.search.recall_monitor import RecallMonitor
from kb.search.retrieve import Retriever, SuccessorsOf
from kb.search.unknown_words import unknown_words
from kb.store.protocol import Store, Transaction
from kb.store.rows import Filter, VectorSpace
from kb.telemetry.instruments import Instruments

CANDIDATES = 100
"""The number of candidate chunks from each leg."""

MOST_SECONDS = 5.0
"""The maximum processor time of a search, in its own thread. The worst known query takes a hundredth of it."""

MAX_CHUNKS = 1000
"""The maximum number of chunks of a document that its mean vector covers."""

MOST_UNREADABLE = 3
"""The maximum number of unreadable files that an answer names; the rest are only counted."""

NOT_LOADED = (
    "The vectors are now of {space}, and this engine is loading that model. Try again in a few seconds, or search only"
    " by words. If the error persists, see the engine's log."
)


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """The results of a search, best first.

    `omitted` counts the passages that did not fit into the budget, `pending` the unfinished jobs.
    `unknown` are the words that no document contains, each with the nearest known words, of which the search used the
    first; an identifier or a name has at most its parts. `unreadable` lists some of the `unreadable_count` files that
    the query names. `weak` is true if the subject of the query is probably not in kb; then, or if its rarest word is
    nowhere, `other_languages` lists languages, other than the query's, of documents within its filter. `operators` are
    the operators of the query, and `as_typed` the query that searches for the words of `unknown` as they were typed.
    """

    results: list[FoundPassage]
    omitted: int
    pending: int
    unknown: list[UnknownWord] = field(default_factory=list)
    unreadable: list[UnreadableFile] = field(default_factory=list)
    unreadable_count: int = 0
    weak: bool = False
    other_languages: list[str] = field(default_factory=list)
    operators: list[Operator] = field(default_factory=list)
    as_typed: str | None = None


class SearchService:
    """Answers searches.

    Args:
        store: the store.
        embedder: the model that embeds queries.
        pool: runs the model while the full-text leg is running.
        instruments: the instruments.
        recall: the monitor of the vector leg.
        is_alone: returns whether the model's cores are otherwise idle.
    """

    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        pool: Executor,
        instruments: Instruments,
        recall: RecallMonitor,
        is_alone: Callable[[], bool] = lambda: True,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._pool = pool
        self._instruments = instruments
        self._recall = recall
        self._is_alone = is_alone

    def over(self, store: Store) -> SearchService:
        """Return the same service over another store, such as the view of one caller."""
        return SearchService(store, self._embedder, self._pool, self._instruments, self._recall, self._is_alone)

    def search(
        self,
        query: Query,
        top: int,
        *,
        grouped: bool = False,
        max_tokens: int | None = None,
        explain: bool = False,
    ) -> SearchAnswer:
        """Return the `top` best passages; when `grouped`, the `top` best documents, each by its best passage.

        For a query of only filters, these are the beginnings of the newest documents.

        Args:
            query: the query.
            top: the number of results.
            grouped: whether a result also contains the document's next best passages.
            max_tokens: the maximum number of tokens of text in all of them.
            explain: whether each passage explains its score.

        Raises:
            TooLong: it takes more processor time than `MOST_SECONDS`.
        """
        begun = perf_counter()
        try:
            if query.only_filters:
                return self._newest(query.where, top, max_tokens)
            with at_most(MOST_SECONDS):
                return self._answer(query, top, grouped=grouped, max_tokens=max_tokens, explain=explain)
        finally:
            self._instruments.searches.add(perf_counter() - begun)

    def _answer(self, query: Query, top: int, *, grouped: bool, max_tokens: int | None, explain: bool) -> SearchAnswer:
        find = best_documents if grouped else best_passages
        embedder = self._embedder.current
        with self._store.view() as tx:
            if query.text is not None and tx.space != VectorSpace.of(embedder.spec):
                embedder = self._model_of(tx.space)
            index = tx.index
            query = query.with_related(index.related(query.single_words()))
            unknown = unknown_words(tx, query)
            instead = {word.lower(): nearest[0] for word, nearest in unknown.items() if nearest}
            if instead:
                query = query.respelled(instead)
            query = query.stemmed(index.languages)
            vector = None if query.text is None else self._vector(embedder, query.text)
            successors, named = successors_in(tx), tx.documents.named
            for asked in dict.fromkeys((query, query.without_phrases)):
                retriever = Retriever(
                    index,
                    asked,
                    vector,
                    self._instruments,
                    successors,
                    named,
                    explain=explain,
                    likeness=embedder.spec.likeness,
                )
                if passages := find(retriever, top):
                    break
            if vector and not query.exact:
                self._recall.observe(vector.result(), query.where, tx.space)
            if query.words and not unknown:
                retriever.mark_exact(passages)
            if any(passage.valid_until for passage in passages):
                today = datetime.now(UTC).date().isoformat()
                passages.sort(key=lambda passage: has_ended(passage.valid_until, today))
            failed = unreadable(tx, query, index.analyzer)
            total = count(passages)
            budget = TokenBudget(max_tokens, partial(_count_tokens, embedder))
            results = list(fit(passages, budget, Highlighter(index.analyzer, query.shown)))
            weak = retriever.is_weak(results)
            return SearchAnswer(
                results,
                total - count(results),
                tx.jobs.pending(),
                [UnknownWord(word=word, nearest=nearest) for word, nearest in unknown.items()],
                failed[:MOST_UNREADABLE],
                len(failed),
                weak,
                other_languages(tx, query, index.languages) if weak or retriever.lacks_rarest else [],
            )

    def _newest(self, where: Filter, top: int, max_tokens: int | None) -> SearchAnswer:
        """Return the first passages of the newest documents within a filter."""
        with self._store.view() as tx:
            newest = [document.id for document in tx.documents.page(where, sort="date", limit=top, cursor=None)]
            first = dict(tx.documents.chunk_ids(newest, 1))
            hits = tx.index.hits([first[document_id] for document_id in newest if document_id in first])
            scores = {"score": 0.0, "fts_score": None, "vec_score": None, "context_score": None}
            passages = [FoundPassage.of(hit, **scores, exact=True) for hit in hits]
            budget = TokenBudget(max_tokens, partial(_count_tokens, self._embedder.current))
            results = list(fit(passages, budget, Highlighter(tx.index.analyzer, ())))
            return SearchAnswer(results, len(passages) - len(results), tx.jobs.pending())

    def similar(self, tx: Transaction, document_id: int, top: int) -> SearchAnswer:
        """Return the `top` documents nearest in meaning to an existing one, each by its nearest passages."""
        vector = Future[NDArray[np.float32]]()
        vector.set_result(mean_vector(tx, document_id))
        query = Query(text="", words=(), where=Filter())
        retriever = Retriever(tx.index, query, vector, self._instruments, successors_in(tx))
        passages = best_documents(retriever, top + 1, folds=False)
        others = [passage for passage in passages if passage.document_id != document_id]
        return SearchAnswer(others[:top], 0, tx.jobs.pending())

    def _model_of(self, space: VectorSpace) -> Embedder:
        """Return the model of vectors that came into use a moment ago."""
        for embedder in self._embedder.models:
            if VectorSpace.of(embedder.spec) == space:
                return embedder
        raise ModelChanged(NOT_LOADED.format(space=space))

    def _vector(self, embedder: Embedder, text: str) -> Future[NDArray[np.float32]]:
        """Return the vector of a text: computed in another thread, or right away if no cores are free for that."""
        if self._is_alone():
            return self._pool.submit(self._embed, embedder, text)
        vector = Future[NDArray[np.float32]]()
        vector.set_result(self._embed(embedder, text, alone=False))
        return vector

    def _embed(self, embedder: Embedder, text: str, *, alone: bool = True) -> NDArray[np.float32]:
        with self._instruments.search("embed"):
            vector: NDArray[np.float32] = embedder.embed_queries([text], alone=alone)[0]
            return vector


def _count_tokens(embedder: Embedder, text: str) -> int:
    return embedder.count_tokens(text) - embedder.spec.special_tokens


def successors_in(tx: Transaction) -> SuccessorsOf | None:
    """Return the lookup of replacements; None if nothing was ever replaced."""
    return tx.documents.successors if tx.documents.has_successors() else None


def mean_vector(tx: Transaction, document_id: int) -> NDArray[np.float32]:
    """Return the normalized mean vector of a document's chunks."""
    ids = np.array([chunk.id for chunk in tx.documents.chunk_places(document_id)[:MAX_CHUNKS]], np.int64)
    total: NDArray[np.float32] = tx.index.select(Filter()).vectors(np.sort(ids)).sum(axis=0)
    length = max(float(np.linalg.norm(total)), float(np.finfo(np.float32).tiny))
    return total / np.float32(length)


def best_passages(retriever: Retriever, top: int) -> list[FoundPassage]:
    """Return the `top` best passages, each with the passages that repeat it."""
    for ranking in retriever.rankings(max(CANDIDATES, top), top):
        folded = retriever.without_copies(ranking, ranking.order.tolist(), top)
        if len(folded.kept) >= top or not folded.copies:
            break
    return _with_copies(retriever, ranking, folded, folded.kept)


def _with_copies(
    retriever: Retriever, ranking: Ranking, folded: Deduplicated, places: Sequence[int]
) -> list[FoundPassage]:
    """Return candidates as passages, each with the documents that repeat it."""
    if not places:
        return []
    repeated = [place for place in places if place in folded.copies]
    copies = {place: retriever.copies_of(ranking, place, folded.copies[place]) for place in repeated}
    ranked_passages = retriever.passages(
        ranking, [*places, *(other for shown, _ in copies.values() for other in shown)]
    )
    passages, others = ranked_passages[: len(places)], iter(ranked_passages[len(places) :])
    for place, passage in zip(places, passages, strict=True):
        if place in copies:
            shown, passage.copy_count = copies[place]
            passage.copies = [CopyOf.model_validate(other) for other in islice(others, len(shown))]
    return passages


def best_documents(retriever: Retriever, top: int, *, folds: bool = True) -> list[FoundPassage]:
    """Return the `top` best documents. If one long document fills a list, a longer list is requested.

    Documents from a longer list follow the earlier ones, so that the order does not depend on `top`. Unless `folds`,
    a document whose best passage repeats another document's is a result of its own.
    """
    passages: list[FoundPassage] = []
    seen = set[int]()
    for ranking in retriever.rankings(CANDIDATES * PASSAGES, max(CANDIDATES, top)):
        documents = by_document(ranking.order.tolist(), retriever.documents(ranking))
        first = {places[0]: document_id for document_id, places in documents.items()}
        folded = retriever.without_copies(ranking, [*first], top) if folds else Deduplicated([*first], {})
        leaders = [first[place] for place in folded.kept if first[place] not in seen]
        added = leaders[: top - len({passage.document_id for passage in passages})]
        chosen = [place for document_id in added for place in documents[document_id]]
        passages += _with_copies(retriever, ranking, folded, chosen)
        seen.update(added, (first[copy] for place in folded.copies for copy in folded.copies[place]))
        if len({passage.document_id for passage in passages}) >= top:
            break
    return group(passages)


def by_document(order: Sequence[int], documents: Sequence[int]) -> dict[int, list[int]]:
    """Return the best candidates of each document, best document first; both arguments are in score order."""
    places: dict[int, list[int]] = {}
    for place, document_id in zip(order, documents, strict=True):
        if len(passages := places.setdefault(document_id, [])) < PASSAGES:
            passages.append(place)
    return places
