"""Many vectors in SQLite: codes and copies of them come, go and are mended while searches and writes go on."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from contextlib import closing, contextmanager
from functools import partial

import apsw
import numpy as np
import pytest
import sqlite_vec
from hypothesis import settings

from kb.search.query import Query
from kb.search.recall import RecallMonitor
from kb.search.retrieve import Retriever
from kb.store.rows import Content, Filter, NewChunk, Place
from kb.store.sqlite.rebuild import rebuild
from kb.store.sqlite.store import SqliteStore
from kb.store.sqlite.vector_codes import read_codes, read_copies, read_quantizer
from kb.telemetry.instruments import Instruments
from tests.store.test_in_step import Documents
from tests.support.eventually import eventually
from tests.support.spaces import space

DIMENSIONS = 64
LIMIT = 400
EVERY = Filter()
CODED = 8 + 8 * (DIMENSIONS // 64 + 1)
FLAT = 4 * DIMENSIONS
"""How many bytes a vector takes in memory."""


def unit(seed, dimensions=DIMENSIONS):
    vector = np.random.default_rng(seed).normal(size=dimensions).astype(np.float32)
    return vector / np.linalg.norm(vector)


@pytest.fixture
def open_store(tmp_path):
    """Opens the store, or the same one again."""
    return lambda limit=LIMIT, dimensions=DIMENSIONS: closing(
        SqliteStore(tmp_path / "kb.db", space(dimensions), flat_limit=limit)
    )


@contextmanager
def database(tmp_path):
    """The database without the store."""
    with closing(apsw.Connection(str(tmp_path / "kb.db"))) as connection, connection:
        connection.set_busy_timeout(10_000)
        connection.enable_load_extension(True)  # noqa: FBT003 - it has no keyword
        connection.load_extension(sqlite_vec.loadable_path())
        yield connection


def write(tx, seeds, tags=(), dimensions=DIMENSIONS):
    """A document with a chunk for each seed, whose vector it makes."""
    chunks = [NewChunk(f"text {seed}", "", Place(1, 1, 0, 9)) for seed in seeds]
    vectors = np.stack([unit(seed, dimensions) for seed in seeds])
    return tx.documents.add(Content("note", "title", str(seeds), chunks, vectors), None, tags)


def fill(store, count, start=0, dimensions=DIMENSIONS):
    """So many documents of ten chunks."""
    with store.write() as tx:
        return [
            write(tx, range(first, first + 10), ["even"] * (first % 20 == 0), dimensions)
            for first in range(start, start + 10 * count, 10)
        ]


def found(store, seed, limit=1, where=EVERY, **options):
    """The texts nearest to a vector, best first."""
    with store.read() as tx:
        near = tx.index.select(where).nearest(unit(seed), limit, **options)
        order = np.argsort(-near.scores, kind="stable")
        return [hit.text for hit in tx.index.hits(near.ids[order].tolist())]


def in_memory(store, width):
    """Whether each vector takes so many bytes."""
    with store.read() as tx:
        return store.vectors_size == width * tx.counts().chunks


def coded(store):
    eventually("there are codes", partial(in_memory, store, CODED))


def assert_whole(tmp_path, dimensions=DIMENSIONS):
    """Every vector has its code and its copy, and nothing else has one."""
    with database(tmp_path) as connection:
        quantizer = read_quantizer(connection, dimensions)
        rows = read_codes(connection, quantizer)
        truth = connection.execute("SELECT embedding FROM chunks_vec ORDER BY chunk_id").fetchall()
        vectors = np.frombuffer(b"".join(blob for (blob,) in truth), np.float32).reshape(-1, dimensions)
        assert rows.count == len(truth)
        assert (rows.data == quantizer.encode(rows.ids, vectors)).all()
        found, copies = read_copies(connection, rows.ids, dimensions)
        assert (found == rows.ids).all()
        assert (copies == vectors).all()
        chunks = connection.execute("SELECT id FROM chunks ORDER BY id").fetchall()
        for table in ("vector_codes", "vector_copies"):
            assert connection.execute(f"SELECT chunk_id FROM {table} ORDER BY chunk_id").fetchall() == chunks


def test_when_there_are_too_many_vectors_codes_take_their_place(open_store, tmp_path):
    with open_store() as store:
        fill(store, 40)
        assert in_memory(store, FLAT)
        fill(store, 1, start=400)
        assert found(store, 405) == ["text 405"]
        coded(store)
        assert [found(store, seed) for seed in (0, 200, 409)] == [["text 0"], ["text 200"], ["text 409"]]
    assert_whole(tmp_path)


def test_when_few_are_left_all_are_in_memory_again_and_no_code_is_kept(open_store, tmp_path):
    with open_store() as store:
        documents = fill(store, 45)
        coded(store)
        for document in documents[:24]:
            with store.write() as tx:
                tx.documents.delete(document)
        assert found(store, 5, limit=200) == found(store, 5, limit=200, exact=True)
        with store.write() as tx:
            tx.documents.delete(documents[24])
        eventually("the vectors are in memory", partial(in_memory, store, FLAT))
        assert [found(store, seed) for seed in (300, 449)] == [["text 300"], ["text 449"]]
    with database(tmp_path) as connection:
        tables = ("vector_mean", "vector_codes", "vector_copies")
        assert [connection.execute(f"SELECT count(*) FROM {table}").get for table in tables] == [0, 0, 0]
    with open_store() as store:
        fill(store, 30, start=1000)
        coded(store)
    assert_whole(tmp_path)


def test_codes_are_there_at_once_after_a_start(open_store):
    with open_store() as store:
        fill(store, 50)
        coded(store)
    with open_store() as store:
        assert in_memory(store, CODED)
        assert found(store, 123) == ["text 123"]


def test_a_database_without_codes_answers_at_once_and_gets_them(open_store, tmp_path):
    with open_store(limit=10_000) as store:
        fill(store, 60)
    with open_store() as store:
        assert found(store, 123, limit=5) == found(store, 123, limit=5, exact=True)
        coded(store)
    assert_whole(tmp_path)


def write_and_fail(store, seed, document):
    with store.write() as tx:
        write(tx, [seed])
        tx.documents.delete(document)
        raise KeyError


def test_what_is_written_is_seen_by_the_next_search_and_what_is_rolled_back_never(open_store, tmp_path):
    with open_store() as store:
        fill(store, 50)
        coded(store)
        for seed in range(1000, 1050):
            with store.write() as tx:
                document = write(tx, [seed])
            assert found(store, seed) == [f"text {seed}"]
            with store.write() as tx:
                tx.documents.replace(
                    document, Content("note", "", "", [NewChunk("new", "", Place(1, 1, 0, 3))], unit(seed + 500)[None])
                )
            assert found(store, seed + 500) == ["new"]
            with pytest.raises(KeyError):
                write_and_fail(store, seed + 2000, document)
            assert found(store, seed + 2000) != [f"text {seed + 2000}"]
            assert found(store, seed + 500) == ["new"]
            with store.write() as tx:
                tx.documents.delete(document)
            assert found(store, seed + 500) != ["new"]
        fill(store, 1, start=5000)
    assert_whole(tmp_path)


def test_a_search_sees_its_own_moment_while_codes_are_made(open_store):
    with open_store() as store:
        fill(store, 40)
        with store.read() as tx:
            selection = tx.index.select(Filter())
            before = selection.nearest(unit(7), 50).ids.tolist()
            fill(store, 20, start=400)
            coded(store)
            fill(store, 1, start=600)
            assert selection.nearest(unit(7), 50).ids.tolist() == before
            assert tx.index.select(Filter()).nearest(unit(7), 50).ids.tolist() == before


def test_a_reader_of_a_moment_long_gone_still_sees_it(open_store):
    with open_store() as store:
        fill(store, 50)
        coded(store)
        with store.read() as tx:
            tx.counts()  # the moment is this one
            for seed in range(1000, 1040):
                with store.write() as other:
                    write(other, [seed])
            near = tx.index.select(Filter()).nearest(unit(1020), 500)
            assert near.ids.size == 500
            assert near.ids.max() == 500


@pytest.mark.parametrize("where", [Filter(), Filter(tags=("even",)), Filter(tags=("none",))])
def test_exact_compares_every_vector(open_store, where):
    with open_store() as store:
        fill(store, 600)
        coded(store)
        with store.read() as tx:
            selection = tx.index.select(where)
            for limit in (10, 100, 5000):
                near = selection.nearest(unit(99), limit, exact=True)
                everything = {chunk: unit(chunk - 1) @ unit(99) for chunk in range(1, 6001)}
                allowed = [
                    chunk
                    for chunk in everything
                    if not where.tags or (where.tags == ("even",) and (chunk - 1) // 10 % 2 == 0)
                ]
                best = sorted(sorted(allowed, key=everything.get)[-limit:])
                assert near.ids.tolist() == best
                assert near.scores == pytest.approx([everything[chunk] for chunk in best], abs=1e-6)


def test_a_search_is_exact_when_asked_to_be(open_store):
    with open_store() as store:
        fill(store, 600)
        coded(store)
        with store.read() as tx:
            every = tx.index.select(EVERY).nearest(unit(99), 6000)
            for exact in (True, False):
                vector = Future()
                vector.set_result(unit(99))
                query = Query("", (), EVERY, exact=exact)
                candidates = Retriever(tx.index, query, vector, Instruments()).candidates(100)
                assert (candidates.ids.tolist() == every.best(100).ids.tolist()) is exact


DAMAGE = {
    "codes are gone": "DELETE FROM vector_codes",
    "some codes are gone": "DELETE FROM vector_codes WHERE chunk_id % 7 = 0",
    "codes are cut": "UPDATE vector_codes SET code = substr(code, 1, 9) WHERE chunk_id % 5 = 0",
    "codes are empty": "UPDATE vector_codes SET code = x''",
    "codes are exchanged": "UPDATE vector_codes SET code = (SELECT code FROM vector_codes WHERE chunk_id = 1) WHERE chunk_id = 2",
    "codes of no chunk": "INSERT INTO vector_codes SELECT 9999, code FROM vector_codes LIMIT 1",
    "copies are gone": "DELETE FROM vector_copies",
    "the mean is gone": "DELETE FROM vector_mean",
    "the mean is cut": "UPDATE vector_mean SET mean = substr(mean, 1, 9)",
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_damage_is_noticed_at_the_start_and_mended_while_searches_are_answered(open_store, tmp_path, damage):
    with open_store() as store:
        fill(store, 60)
        coded(store)
        expected = found(store, 77, limit=5, exact=True)
    with database(tmp_path) as connection:
        connection.execute(damage).fetchall()
    with open_store() as store:
        assert found(store, 77, limit=5) == expected
        coded(store)
        assert found(store, 77, limit=5) == expected
    with database(tmp_path) as connection:
        connection.execute("DELETE FROM vector_codes WHERE chunk_id = 9999")
    assert_whole(tmp_path)


@pytest.mark.parametrize(
    ("table", "column"), [("vector_codes", "code"), ("vector_copies", "vector"), ("vector_mean", "mean")]
)
@pytest.mark.parametrize("bit", [0, 37, 127])
def test_a_flipped_bit_is_noticed_and_mended(open_store, tmp_path, table, column, bit):
    with open_store() as store:
        fill(store, 60)
        coded(store)
        expected = found(store, 77, limit=5, exact=True)
    with database(tmp_path) as connection:
        key, blob = connection.execute(
            f"SELECT rowid, {column} FROM {table} ORDER BY rowid LIMIT 1 OFFSET ?", (77 * (table != "vector_mean"),)
        ).get
        damaged = bytearray(blob)
        damaged[bit // 8] ^= 1 << bit % 8
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (bytes(damaged), key))
    with open_store() as store:
        assert found(store, 77, limit=5) == expected
        coded(store)
        assert found(store, 77, limit=5) == expected
        eventually("it is mended", lambda: intact(tmp_path))
    assert_whole(tmp_path)


def intact(tmp_path):
    with database(tmp_path) as connection:
        ids = read_codes(connection, read_quantizer(connection, DIMENSIONS)).ids
        return read_copies(connection, ids, DIMENSIONS)[0].size == ids.size


def test_copies_that_go_missing_while_it_runs_are_read_from_the_truth_and_made_anew(open_store, tmp_path):
    with open_store() as store:
        fill(store, 60)
        coded(store)
        expected = found(store, 77, limit=5)
        with database(tmp_path) as connection:
            connection.execute("DELETE FROM vector_copies WHERE chunk_id % 2")
        assert found(store, 77, limit=5) == expected
        eventually("copies are there again", lambda: read_again(store, tmp_path))
        assert found(store, 77, limit=5) == expected


def read_again(store, tmp_path):
    found(store, 77, limit=200)
    with database(tmp_path) as connection:
        return connection.execute("SELECT count(*) FROM vector_copies").get > 500


def test_codes_go_with_their_chunks_whoever_deletes_them(open_store, tmp_path):
    with open_store() as store:
        fill(store, 60)
        coded(store)
    with database(tmp_path) as connection:
        connection.execute("DELETE FROM chunks_vec WHERE chunk_id <= 50")
        connection.execute("DELETE FROM chunks WHERE id <= 50")
    assert_whole(tmp_path)


@pytest.mark.parametrize("dimensions", [8, 100, 768])
def test_vectors_of_other_lengths_are_coded(open_store, tmp_path, dimensions):
    with open_store(dimensions=dimensions) as store:
        fill(store, 50, dimensions=dimensions)
        eventually("there are codes", lambda: not in_memory(store, 4 * dimensions))
        with store.read() as tx:
            assert tx.index.select(Filter()).nearest(unit(123, dimensions), 1).ids.tolist() == [124]
    assert_whole(tmp_path, dimensions)


def test_writers_and_searches_go_on_while_codes_are_made(open_store, tmp_path):
    with open_store() as store:
        stop, errors = threading.Event(), []

        def search():
            while not stop.is_set():
                if found(store, 5) != ["text 5"]:
                    errors.append("not found")

        fill(store, 1)
        threads = [threading.Thread(target=search) for _ in range(2)]
        for thread in threads:
            thread.start()
        for start in range(10, 2000, 10):
            fill(store, 1, start=start)
        stop.set()
        for thread in threads:
            thread.join()
        assert not errors
        coded(store)
    assert_whole(tmp_path)


def test_the_recall_is_measured_on_what_is_searched(open_store):
    instruments = Instruments()
    with open_store() as store:
        fill(store, 60)
        coded(store)
        with closing(RecallMonitor(store, instruments, interval=0)) as monitor:
            for seed in range(5):
                monitor.observe(unit(seed), Filter())
                eventually("it is measured", lambda: recall(instruments.registry, "count") > seed)  # noqa: B023 - called here
    assert recall(instruments.registry, "count") == 5
    assert 4 < recall(instruments.registry, "sum") <= 5


def recall(registry, kind):
    return registry.get_sample_value(f"kb_vector_recall_{kind}")


class CodedDocuments(Documents):
    """The same with codes from the third vector on, and without below."""

    def open_store(self):
        return SqliteStore(self.path, space(8), flat_limit=3)


TestCodedDocuments = pytest.mark.requirement("D-1")(CodedDocuments.TestCase)
TestCodedDocuments.settings = settings(max_examples=20, stateful_step_count=25)


def test_a_database_made_anew_with_other_vectors_keeps_no_codes_of_the_old_ones(open_store, tmp_path):
    with open_store() as store:
        fill(store, 50)
        coded(store)
    others = iter(range(10_000, 20_000))

    def embed(chunks):
        return np.stack([unit(next(others)) for _ in chunks])

    rebuild(tmp_path / "kb.db", space(DIMENSIONS), embed, lambda *_: None, anew=True)
    with open_store() as store:
        assert found(store, 10_077) == ["text 77"]
        coded(store)
        assert found(store, 10_077) == ["text 77"]
    assert_whole(tmp_path)
