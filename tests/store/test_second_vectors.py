"""A second set of vectors replaces the first one in one transaction, and the first one can be restored unchanged."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from functools import partial
from hashlib import sha256

import numpy as np
import pytest

from kb.api.errors import ModelChanged
from kb.documents.vectors_by_job import await_vectors
from kb.store.rows import NOBODY, ChunkPosition, Content, Filter, NewChunk
from kb.store.sqlite.store import SqliteStore
from kb.store.sqlite.verify import Verification
from tests.store.test_vectors import DIMENSIONS, LIMIT, assert_whole, coded, fill, found, unit, write
from tests.support.eventually import eventually
from tests.support.spaces import space
from tests.support.stores import TRIED

EVERY = Filter()
FIRST = space(DIMENSIONS)
WIDE = space(2 * DIMENSIONS, model="wide")
SAME_LENGTH = space(DIMENSIONS, passage_prefix="passage: ")
OTHERS = pytest.mark.parametrize("other", [WIDE, SAME_LENGTH], ids=["of another length", "of the same length"])


def sqlite(folder, of=FIRST):
    return closing(SqliteStore(folder / "kb.db", of, flat_limit=LIMIT))


def postgres(folder, of=FIRST):
    from kb.store.postgres.store import PostgresStore
    from tests.support.postgres import database_url

    return closing(PostgresStore(database_url(folder), of))


STORES = {"sqlite": sqlite, "postgres": postgres}


@pytest.fixture(params=TRIED)
def open_store(request, tmp_path):
    return partial(STORES[request.param], tmp_path)


@pytest.fixture
def by_index(monkeypatch):
    """PostgreSQL goes by its index, however few vectors there are."""
    if "postgres" in TRIED:
        monkeypatch.setattr("kb.store.postgres.vectors.EXACT", -1)


def made(text, of):
    """Another model's vector of a text, from another seed."""
    return unit(int(text.split()[-1]) + 1_000_000, of.dimensions)


def complete(store, of):
    """Compute the missing second vectors."""
    with store.write() as tx:
        if tx.second.get() is None:
            tx.second.begin(of)
        assert tx.second.take()
        while rows := tx.second.missing(0, 100):
            tx.second.add([row.chunk_id for row in rows], np.stack([made(row.text, of) for row in rows]))
        while tx.second.code():
            pass


def switch(store):
    with store.write() as tx:
        return tx.second.switch()


def switch_and_fail(store):
    with store.write() as tx:
        assert tx.second.switch()
        raise ZeroDivisionError


def nearest(store, text, of):
    """The first result of a search by the other model's vector of a text."""
    with store.read() as tx:
        assert tx.space == of
        near = tx.index.select(EVERY).nearest(made(text, of), 1)
        return tx.index.hits(near.ids.tolist())[0].text


def stored(store):
    """The vector in use of each chunk."""
    with store.read() as tx:
        documents = tx.documents.page(EVERY, sort="id", limit=1000, cursor=None)
        ids = np.array(sorted(chunk.id for document in documents for chunk in tx.documents.chunks(document.id)))
        vectors = tx.index.select(EVERY).vectors(ids)
        return {chunk_id: vector.tobytes() for chunk_id, vector in zip(ids.tolist(), vectors, strict=True)}


def assert_sound(folder):
    """SQLite's examination finds no fault in its file."""
    if (folder / "kb.db").exists():
        with closing(Verification(folder / "kb.db")) as database:
            assert [fault for check in database.checks for fault in check.find() if check.name != "note texts"] == []


def assert_coded(folder, count, dimensions=DIMENSIONS):
    """Check the number of codes and copies in SQLite."""
    if (folder / "kb.db").exists() and 10 * count > LIMIT:
        assert_whole(folder, dimensions)


@OTHERS
@pytest.mark.parametrize("count", [10, 45], ids=["few", "so many that an index finds them"])
@pytest.mark.usefixtures("by_index")
def test_they_are_searched_after_the_switch_and_the_first_come_back_as_they_were(open_store, tmp_path, other, count):
    with open_store() as store:
        fill(store, count)
        if (tmp_path / "kb.db").exists() and 10 * count > LIMIT:
            coded(store)
        before = stored(store)
    with open_store() as store:
        complete(store, other)
        assert found(store, 7) == ["text 7"]
        assert switch(store)
        assert [nearest(store, f"text {seed}", other) for seed in (0, 7, 99)] == ["text 0", "text 7", "text 99"]
        if 10 * count > LIMIT:
            assert store.memory.vectors < 10 * count * 4 * other.dimensions
    assert_sound(tmp_path)
    assert_coded(tmp_path, count, other.dimensions)
    with open_store(other) as store:
        assert nearest(store, "text 50", other) == "text 50"
        assert switch(store), "none of the first is missing"
        assert found(store, 50) == ["text 50"]
        with store.write() as tx:
            tx.second.discard()
        assert stored(store) == before
    assert_sound(tmp_path)
    assert_coded(tmp_path, count)


@OTHERS
def test_a_reader_sees_the_vectors_of_its_own_moment(open_store, other):
    with open_store() as store:
        fill(store, 10)
        complete(store, other)
        with store.read() as early:
            assert early.space == FIRST
            early.index  # noqa: B018 - it sees its moment from here on
            assert switch(store)
            assert early.space == FIRST
            near = early.index.select(EVERY).nearest(unit(7), 1)
            assert early.index.hits(near.ids.tolist())[0].text == "text 7"
        assert nearest(store, "text 7", other) == "text 7"


@OTHERS
def test_what_is_added_changed_and_deleted_meanwhile_is_in_both(open_store, other):
    with open_store() as store:
        documents = fill(store, 3)
        complete(store, other)
        with store.write() as tx:
            write(tx, [500])
            tx.history.keep(documents[1], NOBODY)
            tx.documents.delete(documents[0])
        assert not switch(store), "one is missing"
        assert found(store, 500) == ["text 500"]
        complete(store, other)
        assert switch(store)
        assert nearest(store, "text 500", other) == "text 500"
        assert nearest(store, "text 3", other) != "text 3"
        with store.read() as tx:
            assert tx.second.counts() == (21, 21)


def test_a_switch_that_fails_leaves_all_as_it_was(open_store, tmp_path):
    with open_store() as store:
        fill(store, 10)
        complete(store, WIDE)
        before = stored(store)
        with pytest.raises(ZeroDivisionError):
            switch_and_fail(store)
        assert stored(store) == before
        assert found(store, 7) == ["text 7"]
        fill(store, 1, start=900)
        assert found(store, 905) == ["text 905"]
        complete(store, WIDE)
        assert switch(store)
        assert nearest(store, "text 905", WIDE) == "text 905"
    assert_sound(tmp_path)


def test_what_the_former_model_made_is_not_written_after_the_switch(open_store):
    with open_store() as store:
        fill(store, 1)
        complete(store, SAME_LENGTH)
        switch(store)
        with pytest.raises(ModelChanged), store.write() as tx:
            tx.documents.replace(1, late_content(FIRST))
        with store.write() as tx:
            tx.documents.replace(1, late_content(SAME_LENGTH))
            assert [chunk.text for chunk in tx.documents.chunks(1)] == ["text 77"]


def test_what_waits_for_its_vector_during_a_switch_has_one_of_each_model_after_a_switch_back(open_store):
    with open_store() as store:
        with store.write() as tx:
            note = tx.documents.add(replace(late_content(FIRST), vectors=np.empty((0, 0), np.float32)), None, [])
            await_vectors(tx, note, NOBODY)
        complete(store, SAME_LENGTH)
        assert switch(store)
        with store.read() as tx:
            assert tx.documents.has_vectors(note)
            assert [row.text for row in tx.second.missing(0, 9)] == [late_content(FIRST).chunks[0].text]


def late_content(of):
    chunk = NewChunk("text 77", "", ChunkPosition(1, 1, 0, 7))
    return Content("note", "late", sha256(b"late").hexdigest(), [chunk], unit(77)[None], space=of)


def test_codes_that_are_being_made_for_the_first_are_not_taken_for_those_of_the_others(tmp_path):
    with sqlite(tmp_path) as store:
        fill(store, 39)
        complete(store, SAME_LENGTH)
        fill(store, 4, start=2000)  # which begins to make codes
        complete(store, SAME_LENGTH)
        assert switch(store)
        eventually("there are codes", partial(has_codes, store))
        assert nearest(store, "text 2001", SAME_LENGTH) == "text 2001"
    assert_whole(tmp_path)


def has_codes(store):
    with store.read() as tx:
        return store.memory.vectors < 4 * DIMENSIONS * tx.counts().chunks


def test_an_empty_database_of_another_length_takes_the_model_it_is_opened_with(open_store):
    with open_store():
        pass
    with open_store(WIDE) as store:
        with store.write() as tx:
            write(tx, [3], dimensions=2 * DIMENSIONS)
        assert len(stored(store)) == 1


def test_where_the_model_was_found_is_remembered(open_store):
    with open_store(replace(FIRST, folder="/models/first")) as store:
        fill(store, 1)
        complete(store, replace(WIDE, folder="/models/wide"))
        switch(store)
        with store.read() as tx:
            assert (tx.space.folder, tx.second.get().space.folder) == ("/models/wide", "/models/first")
