"""Neighbours help to find a chunk: the rest of its document, or the other notes of its thread."""

from __future__ import annotations

import random
from concurrent.futures import Future

import apsw
import numpy as np
import pytest

from kb.index.vectors.neighbours import NOBODY, windows
from kb.search.query import Query
from kb.search.retrieve import Retriever
from kb.search.service import best_passages
from kb.store.rows import ChunkPosition, Content, Filter, NewChunk
from kb.store.sqlite.context import ContextReader
from kb.telemetry.instruments import Instruments
from tests.support.stores import Database

DIMENSIONS = 384
WORDS = [f"word{number}" for number in range(40)]
THREADS = (None, "thread:red", "thread:blue")
PATHS = (None, "/alone", "/letters/{}", "/letters/old/{}", "notes/{}", "/{}")


def vector_of(text):
    """The sum of a vector for each word, which only the word decides."""
    parts = [np.random.default_rng(sum(map(ord, word)) + len(word)).normal(size=DIMENSIONS) for word in text.split()]
    total = np.sum(parts, axis=0)
    return (total / np.linalg.norm(total)).astype(np.float32)


def content(*texts):
    chunks = [NewChunk(text, "", ChunkPosition(1, 1, 0, len(text))) for text in texts]
    return Content("note", texts[0], " ".join(texts), chunks, np.array([vector_of(text) for text in texts]))


def add(store, *texts, path=None, tags=()):
    with store.write() as tx:
        return tx.documents.add(content(*texts), path, tags)


EVERY = Filter()
MOST = 40
"""How many documents there are at most: all of their chunks are candidates, whichever of equals is older."""


def found(store, text, where=EVERY, **legs):
    """The documents in order, each with its score and what its neighbours gave it."""
    vector = Future()
    vector.set_result(vector_of(text))
    query = Query.parse(text, where, **legs)
    with store.read() as tx:
        retriever = Retriever(tx.index, query, vector if query.text else None, Instruments())
        passages = best_passages(retriever, 100)
    return {passage.document_id: passage for passage in passages}


@pytest.fixture
def store(make_store):
    with make_store() as opened:
        yield opened


@pytest.fixture
def filled(store):
    """A store with documents that answer nothing."""
    for number in range(30):
        add(store, f"other{number} filler{number} text{number}")
    return store


@pytest.mark.parametrize("where", [{"tags": ["thread:trip"]}, {"path": "/chat/{}"}])
def test_an_answer_is_found_by_the_question_before_it(filled, where):
    def said(number, text):
        return add(filled, text, path=where.get("path", "{}").format(number), tags=where.get("tags", ()))

    alone = add(filled, "tuesday probably")
    said(1, "hello there")
    said(2, "when does the ferry leave")
    answer = said(3, "tuesday certainly")
    results = found(filled, "ferry tuesday")
    assert list(results).index(answer) < list(results).index(alone)
    assert results[answer].context_score > 0
    assert results[alone].context_score is None


def test_notes_that_are_in_no_folder_and_no_thread_stand_alone(filled):
    places = [("tuesday", "a"), ("monday", "b"), ("friday", None), ("sunday", None)]
    notes = [add(filled, f"ferry {day}", path=path) for day, path in places]
    assert {found(filled, "ferry")[note].context_score for note in notes} == {None}


def test_a_thread_goes_before_the_folder(filled):
    one = add(filled, "ferry tuesday", path="/chat/1", tags=["thread:trip"])
    for number in range(2, 4):
        add(filled, "ferry monday", path=f"/chat/{number}")
    assert found(filled, "ferry")[one].context_score is None


def test_a_folder_below_is_another_one(filled):
    one = add(filled, "ferry tuesday", path="/chat/1")
    add(filled, "ferry monday", path="/chat/old/2")
    assert found(filled, "ferry")[one].context_score is None


def test_long_notes_neither_take_nor_lend(filled):
    long = " ".join(["ferry", *(f"mooring{number}" for number in range(120))])
    short = add(filled, "ferry tuesday", path="/chat/1")
    add(filled, long, path="/chat/2")
    assert found(filled, "ferry")[short].context_score is None


def test_a_neighbour_that_the_filter_does_not_admit_lends_nothing(filled):
    add(filled, "when does the ferry leave", path="/chat/1", tags=["secret"])
    answer = add(filled, "tuesday certainly", path="/chat/2", tags=["open"])
    assert found(filled, "ferry tuesday")[answer].context_score is not None
    assert found(filled, "ferry tuesday", Filter(tags=("open",)))[answer].context_score is None
    assert found(filled, "ferry tuesday", Filter(tag_not=("secret",)))[answer].context_score is None


def test_a_chunk_is_found_by_the_others_of_its_document(filled):
    whole = add(filled, "the ferry leaves from the harbour", "on tuesday at noon")
    other = add(filled, "the mayor speaks in the hall", "on tuesday at noon")
    results = found(filled, "ferry tuesday noon")
    assert next(iter(results)) == whole
    assert results[whole].context_score is not None
    assert results[other].score < results[whole].score


@pytest.mark.parametrize("legs", [{"vectors": False}, {"full_text": False}])
def test_one_leg_finds_what_it_finds_by_itself(filled, legs):
    for number in range(3):
        add(filled, f"ferry tuesday {number}", path=f"/chat/{number}")
    results = found(filled, "ferry", **legs)
    assert {passage.context_score for passage in results.values()} == {None}


@pytest.mark.sqlite
def test_without_words_in_memory_nothing_lends_and_no_length_is_read(filled, monkeypatch):
    first = add(filled, "ferry tuesday", path="/chat/1")
    add(filled, "ferry monday", path="/chat/2")
    assert found(filled, "ferry tuesday")[first].context_score is not None
    filled.words.give_up("it is damaged")
    monkeypatch.setattr("kb.store.sqlite.full_text_cache.read_snapshot", None)
    results = found(filled, "ferry tuesday")
    assert next(iter(results)) == first
    assert {passage.context_score for passage in results.values()} == {None}


def lines_of(tx, *documents):
    """The documents before and after some documents in their threads, as the store reads them."""
    ids = sorted(documents)
    if isinstance(tx.connection, apsw.Connection):
        index = tx.index
        reader = ContextReader(tx.connection.execute, index._words, None, index._snapshot)
        return reader._lines(np.array(ids, np.int64))
    from kb.store.postgres.context import ContextReader as PostgresReader

    return PostgresReader(tx.connection.execute, None, None, None)._lines(ids)


@pytest.mark.rare
def test_of_a_folder_full_of_threads_the_nearest_thousand_are_looked_through(filled):
    one, other = (add(filled, f"ferry {day}", path=f"/chat/{day}") for day in ("tuesday", "monday"))
    far = add(filled, "ferry sunday", path="/far/0")
    for number in range(1001):
        add(filled, f"moored {number}", path=f"/far/{number + 1}", tags=["thread:boats"])
    last = add(filled, "ferry friday", path="/far/last")
    with filled.read() as tx:
        assert sorted(lines_of(tx, one, far, last)) == [(one, [], [other]), (far, [], []), (last, [], [])]


@pytest.mark.parametrize("tags", [("thread:a", "thread:b"), ("thread:b", "thread:a")])
def test_of_two_threads_the_first_by_its_name_is_a_notes_own_whoever_else_is_looked_at(filled, tags):
    def said(text, *tags):
        return add(filled, text, tags=tags)

    before, after = said("ferry", tags[0]), said("tuesday", tags[1])
    both = said("noon", "thread:a", "thread:b")
    own = {tags[0]: before, tags[1]: after}["thread:a"]
    with filled.read() as tx:
        for documents in ([both], [before, both], [both, after], [before, after, both]):
            window = windows(lines_of(tx, *documents))[both]
            assert set(window) - {NOBODY} == {own}


class Machine:
    """Adds, updates, moves, retags and deletes documents at random; a seed says which."""

    def __init__(self, store, seed):
        self.store = store
        self.random = random.Random(seed)
        self.documents = {}
        self.number = 0

    def step(self):
        acts = [self.add, self.add, self.add, self.update, self.update, self.move, self.retag, self.delete]
        if len(self.documents) >= MOST:
            self.delete()
        self.random.choice(acts if self.documents else acts[:1])()

    def texts(self):
        """Return texts of which no two are alike: which of equals comes first depends on the ids of chunks."""
        return tuple(self.text() for _ in range(self.random.choice((1, 1, 1, 1, 4))))

    def text(self):
        self.number += 1
        return " ".join([f"own{self.number}", *self.random.choices(WORDS, k=self.random.randint(1, 9))])

    def path(self):
        self.number += 1
        path = self.random.choice(PATHS)
        return path and path.format(self.number)

    def one(self):
        return self.random.choice(list(self.documents))

    def add(self):
        state = self.texts(), self.path(), self.random.choice(THREADS)
        self.documents[self.write(self.store, *state)] = state

    def write(self, store, texts, path, thread):
        return add(store, *texts, path=path, tags=[thread] if thread else [])

    def update(self):
        one = self.one()
        self.documents[one] = (self.texts(), *self.documents[one][1:])
        with self.store.write() as tx:
            tx.documents.replace(one, content(*self.documents[one][0]))

    def move(self):
        one, path = self.one(), self.path() or "/letters/moved"
        texts, _, thread = self.documents[one]
        self.documents[one] = texts, path, thread
        with self.store.write() as tx:
            tx.documents.move(one, path)

    def retag(self):
        one, after = self.one(), self.random.choice(THREADS)
        texts, path, before = self.documents[one]
        self.documents[one] = texts, path, after
        with self.store.write() as tx:
            tx.documents.change_tags(one, add=[after] if after else [], remove=[before] if before else [])

    def delete(self):
        one = self.one()
        del self.documents[one]
        with self.store.write() as tx:
            tx.documents.delete(one)

    def check(self, database):
        """Compare the results of searches with the results in a newly built store."""
        with database() as rebuilt:
            new = {self.write(rebuilt, *state): old for old, state in sorted(self.documents.items())}
            for _ in range(5):
                text = " ".join(self.random.sample(WORDS, self.random.randint(1, 3)))
                where = Filter(tags=self.random.choice([(), (), ("thread:red",)]))
                here, there = found(self.store, text, where), found(rebuilt, text, where)
                assert facts(here) == facts({new[id_]: passage for id_, passage in there.items()})


def facts(passages):
    """The results, without the order of equal scores."""
    return sorted(
        (id_, round(passage.score, 5), None if passage.context_score is None else round(passage.context_score, 5))
        for id_, passage in passages.items()
    )


@pytest.mark.parametrize("steps", [200, pytest.param(2000, marks=pytest.mark.long)])
def test_whatever_is_done_to_a_thread_searches_find_what_they_would_find_in_a_new_database(make_store, store, steps):
    machine = Machine(store, steps)
    for step in range(1, steps + 1):
        machine.step()
        if step % 50 == 0:
            (make_store.folder / str(step)).mkdir()
            machine.check(Database(make_store.folder / str(step), make_store.kind))
