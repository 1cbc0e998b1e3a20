"""A search through the service: the real store and the real model, which waits where a test says so."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
import pytest

from kb.api.errors import ModelChanged
from kb.core import MAX_SEARCHES
from kb.embed.artifact import load_model
from kb.embed.onnx.embedder import OnnxEmbedder
from kb.ingest.draft import draft_note, embed_draft
from kb.ingest.models import ActiveModel
from kb.search.query import Query
from kb.search.recall import RecallMonitor
from kb.search.service import SearchService
from kb.store.rows import Content, Filter, NewChunk, Place, VectorSpace
from kb.telemetry.instruments import FollowingPool, Instruments


class Model:
    """The model, which works once `go` is set; `begun` counts what it was asked for. A `broken` one fails."""

    def __init__(self, embedder):
        self._embedder = embedder
        self.begun = threading.Semaphore(0)
        self.go = threading.Event()
        self.broken = False
        self.asked = []

    def __getattr__(self, name):
        return getattr(self._embedder, name)

    @property
    def current(self):
        return self

    @property
    def models(self):
        return [self]

    def embed_queries(self, texts, *, alone=True):
        self.asked.append((alone, threading.current_thread() is threading.main_thread()))
        self.begun.release()
        self.go.wait()
        if self.broken:
            raise MemoryError
        return self._embedder.embed_queries(texts, alone=alone)


@pytest.fixture
def model(embedder):
    return Model(embedder)


@pytest.fixture
def store(make_store):
    with make_store() as opened:
        yield opened


@pytest.fixture
def service(store, model):
    with FollowingPool(MAX_SEARCHES) as pool:
        with closing(RecallMonitor(store, Instruments())) as recall:
            yield SearchService(store, model, pool, Instruments(), recall)
        model.go.set()


def add(store, texts, vector):
    """A document with a chunk for each text, all with the same vector."""
    chunks = [NewChunk(text, "", Place(1, 1, 0, len(text))) for text in texts]
    content = Content("note", texts[0], texts[0], chunks, np.tile(vector, (len(texts), 1)))
    with store.write() as tx:
        return tx.documents.add(content, None, ())


@pytest.mark.requirement("E-9")
def test_as_many_searches_as_may_run_leave_connections_to_what_does_not_ask_the_model(store, service, model, embedder):
    add(store, ["The lamp is lit at dusk."], embedder.embed_queries(["lamp"])[0])
    with ThreadPoolExecutor(MAX_SEARCHES) as clients:
        searches = [clients.submit(service.search, Query.parse("lamp", Filter()), 1) for _ in range(MAX_SEARCHES)]
        try:
            for _ in range(MAX_SEARCHES):
                assert model.begun.acquire(timeout=60)
            with ThreadPoolExecutor(2) as others:
                words_only = others.submit(service.search, Query.parse("lamps", Filter(), vectors=False), 1)
                others.submit(store.check).result(60)
                assert [passage.highlights for passage in words_only.result(60).results] == [[(4, 8)]]
        finally:
            model.go.set()
        assert {search.result().results[0].text for search in searches} == {"The lamp is lit at dusk."}


def test_a_model_that_fails_fails_its_search_and_no_later_one(store, service, model, embedder):
    add(store, ["The lamp is lit at dusk."], embedder.embed_queries(["lamp"])[0])
    model.go.set()
    model.broken = True
    for _ in range(MAX_SEARCHES + 1):
        with pytest.raises(MemoryError):
            service.search(Query.parse("lamp", Filter()), 1)
    model.broken = False
    assert len(service.search(Query.parse("lamp", Filter()), 1).results) == 1


def test_a_query_among_others_is_embedded_by_its_own_thread_on_one_core_and_answered_alike(store, model, embedder):
    add(store, ["The lamp is lit at dusk."], embedder.embed_queries(["lamp"])[0])
    model.go.set()
    are_alone = [True, False]
    with FollowingPool(1) as pool, closing(RecallMonitor(store, Instruments())) as recall:
        service = SearchService(store, model, pool, Instruments(), recall, is_alone=lambda: are_alone[0])
        alone = service.search(Query.parse("a lamp", Filter()), 1)
        del are_alone[0]
        assert service.search(Query.parse("a lamp", Filter()), 1) == alone
        model.broken = True
        with pytest.raises(MemoryError):
            service.search(Query.parse("a lamp", Filter()), 1)
    assert model.asked == [(True, False), (False, True), (False, True)]


def test_a_query_is_embedded_once_however_long_a_list_its_documents_take(store, service, model, embedder):
    vector = embedder.embed_queries(["lamp"])[0]
    documents = [add(store, [f"Lamp {number}." for number in range(700)], vector)]
    documents += [add(store, [text], -vector) for text in ("Snow.", "Ice.")]
    model.go.set()
    found = service.search(Query.parse("lamp", Filter()), 3, grouped=True).results
    assert [(passage.document_id, len(passage.more)) for passage in found] == list(
        zip(documents, (2, 0, 0), strict=True)
    )
    assert model.begun.acquire(blocking=False)
    assert not model.begun.acquire(blocking=False)


def test_the_best_documents_are_the_same_however_many_are_asked_for(store, service, model, monkeypatch):
    monkeypatch.setattr("kb.search.service.CANDIDATES", 3)
    model.go.set()
    random = np.random.default_rng(4)
    for number in range(14):
        texts = ["lamp " * random.integers(0, 5) + f"snow {number} {each}" for each in range(random.integers(1, 9))]
        chunks = [NewChunk(text, "", Place(1, 1, 0, len(text))) for text in texts]
        vectors = random.normal(size=(len(texts), 384)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        with store.write() as tx:
            tx.documents.add(Content("note", texts[0], str(number), chunks, vectors), None, ())

    def found(top):
        passages = service.search(Query.parse("lamp", Filter()), top, grouped=True, explain=True).results
        for passage in (each for first in passages for each in (first, *first.more)):
            legs = passage.explanation
            assert legs.words.share + legs.meaning.share + legs.typed == pytest.approx(passage.score)
        return [(each.document_id, each.score, [more.chunk_id for more in each.more]) for each in passages]

    every = found(14)
    assert len(every) == 14
    for top in range(1, 14):
        assert found(top) == every[:top]


def test_a_lone_match_scores_no_less_than_what_is_only_near(store, service, model, embedder):
    model.go.set()
    text = "Ticket E1042 waits for an answer."
    add(store, [text], embedder.embed_passages([text])[0])
    near = service.search(Query.parse("a question that nobody responded to", Filter()), 1, explain=True).results[0]
    match = service.search(Query.parse("E1042", Filter()), 1, explain=True).results[0]
    assert (near.score, near.fts_score) == (near.vec_score, None)
    legs = match.explanation
    assert match.score == pytest.approx(1 + match.vec_score + legs.typed)
    assert match.score > near.score
    assert (legs.words.share, legs.meaning.share) == pytest.approx((1, match.vec_score))


def test_a_document_of_very_many_passages_is_not_read_whole_for_a_grouped_search(store, service, model, monkeypatch):
    monkeypatch.setattr("kb.search.service.CANDIDATES", 5)
    monkeypatch.setattr("kb.search.retrieve.MOST_CANDIDATES", 40)
    model.go.set()
    near = np.eye(384, dtype=np.float32)[0]
    add(store, [f"apple {number}" for number in range(300)], near)
    fetched = []
    with store.read() as tx:
        kind = type(tx.index)
    monkeypatch.setattr(kind, "hits", lambda index, ids, hits=kind.hits: fetched.append(len(ids)) or hits(index, ids))
    answer = service.search(Query(None, ("apple",), Filter()), 5, grouped=True)
    assert [len(passage.more) for passage in answer.results] == [2]
    assert fetched == [3]


def test_a_query_is_embedded_anew_for_vectors_that_came_into_use_a_moment_ago(store, embedder, other_model):
    """The database changes a moment before the engine takes the other model for the one in use."""
    text, other, active = (
        "The key is under the mat.",
        OnnxEmbedder(load_model(other_model), "cpu"),
        ActiveModel(embedder),
    )
    with store.write() as tx:
        tx.documents.add(embed_draft(draft_note(text, None, embedder), embedder), None, ())
        tx.second.begin(VectorSpace.of(other.spec))
        tx.second.add([1], other.embed_passages([text]))
    with store.write() as tx:
        assert tx.second.switch()
    with FollowingPool(1) as pool, closing(RecallMonitor(store, Instruments())) as recall:
        service = SearchService(store, active, pool, Instruments(), recall)
        query = Query.parse("Where is the key?", Filter(), full_text=False)
        with pytest.raises(ModelChanged):
            service.search(query, 1)
        active.announce(other)
        [passage] = service.search(query, 1).results
    [expected] = other.embed_queries(["Where is the key?"]) @ other.embed_passages([text])[0]
    assert passage.vec_score == pytest.approx(float(expected), abs=1e-4)


def replacing(store, earlier, texts, vector):
    """A note in the place of another one, with a chunk for each text, all with the same vector."""
    document_id = add(store, texts, vector)
    with store.write() as tx:
        chunks = [NewChunk(text, "", Place(1, 1, 0, len(text))) for text in texts]
        content = Content("note", texts[0], texts[0], chunks, np.tile(vector, (len(texts), 1)), replaces=earlier)
        tx.documents.replace(document_id, content)
    return document_id


def test_what_replaced_a_document_comes_before_it_though_one_document_has_all_of_the_best_passages(
    store, service, model, embedder, monkeypatch
):
    monkeypatch.setattr("kb.search.service.CANDIDATES", 2)
    model.go.set()
    vector = embedder.embed_queries(["lamp"])[0]
    long = add(store, [f"Lamp {number}." for number in range(5)], vector)
    earlier = add(store, ["A lamp that is lit at dusk by the keeper and by nobody else."], vector * 0.5)
    add(store, [f"Snow {number}." for number in range(20)], vector * 0.4)
    later = replacing(store, earlier, ["Ice."], -vector)
    found = service.search(Query.parse("lamp", Filter()), 2, grouped=True).results
    assert [passage.document_id for passage in found] == [long, later]


def test_a_long_note_that_replaced_one_hides_none_that_replaced_another(store, service, model, embedder, monkeypatch):
    monkeypatch.setattr("kb.search.service.CANDIDATES", 2)
    model.go.set()
    vector = embedder.embed_queries(["lamp"])[0]
    earlier = [add(store, [text], vector) for text in ("Lamp one.", "Lamp two.")]
    add(store, ["Hail.", "Frost."], vector * 0.5)
    long = replacing(store, earlier[0], [f"Snow {number}." for number in range(60)], vector * 0.1)
    short = replacing(store, earlier[1], ["Ice."], -vector)
    found = service.search(Query.parse("lamp", Filter()), 4).results
    assert [passage.document_id for passage in found] == [long, earlier[0], short, earlier[1]]
