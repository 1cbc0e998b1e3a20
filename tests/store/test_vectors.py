"""Many vectors in SQLite: codes of them come, go and are repaired while searches and writes go on."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from contextlib import closing, contextmanager, nullcontext
from functools import partial
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace

import apsw
import numpy as np
import pytest
import sqlite_vec
from hypothesis import settings

from kb.index.vectors.coded_index import CodedIndex
from kb.index.vectors.scores import ScoredChunks
from kb.search.query import Query
from kb.search.recall_monitor import RecallMonitor
from kb.search.retrieve import Retriever
from kb.search.service import best_passages
from kb.store.rows import ChunkPosition, Content, Filter, NewChunk
from kb.store.sqlite.index import SqliteIndex
from kb.store.sqlite.rebuild import rebuild
from kb.store.sqlite.schema import VectorSchema
from kb.store.sqlite.store import SqliteStore
from kb.store.sqlite.vector_codes import read_codes, read_quantizer
from kb.store.sqlite.vector_reader import SqliteVectorReader
from kb.telemetry.instruments import Instruments
from tests.store.test_in_step import DocumentsInFile
from tests.support.eventually import eventually
from tests.support.examples import examples
from tests.support.rare_cases import mostly_rare
from tests.support.spaces import space

DIMENSIONS = 64
LIMIT = 400
EVERY = Filter()
CODED = 8 + 8 * (2 * DIMENSIONS // 64 + 1)
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
    chunks = [NewChunk(f"text {seed}", "", ChunkPosition(1, 1, 0, 9)) for seed in seeds]
    vectors = np.stack([unit(seed, dimensions) for seed in seeds])
    return tx.documents.add(
        Content("note", "title", sha256(str(seeds).encode()).hexdigest(), chunks, vectors), None, tags
    )


def fill(store, count, start=0, dimensions=DIMENSIONS):
    """Documents of ten chunks."""
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
    """Whether each vector takes so many bytes, beside those that were read."""
    with store.read() as tx:
        index = store._vectors.index
        read = index.cache.size if isinstance(index, CodedIndex) else 0
        return store.memory.vectors - read == width * tx.counts().chunks


def coded(store):
    eventually("there are codes", partial(in_memory, store, CODED))


def assert_whole(tmp_path, dimensions=DIMENSIONS):
    """Every vector has its code, and nothing else has one."""
    with database(tmp_path) as connection:
        quantizer = read_quantizer(connection, dimensions)
        rows = read_codes(connection, quantizer)
        truth = connection.execute("SELECT embedding FROM chunks_vec ORDER BY chunk_id").fetchall()
        vectors = np.frombuffer(b"".join(blob for (blob,) in truth), np.float32).reshape(-1, dimensions)
        assert rows.count == len(truth)
        assert (rows.data == quantizer.encode(rows.ids, vectors)).all()
        chunks = connection.execute("SELECT id FROM chunks ORDER BY id").fetchall()
        assert connection.execute("SELECT chunk_id FROM vector_codes ORDER BY chunk_id").fetchall() == chunks


def has_no_codes(tmp_path):
    with database(tmp_path) as connection:
        tables = ("vector_mean", "vector_codes")
        return not any(connection.execute(f"SELECT count(*) FROM {table}").get for table in tables)


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
        eventually("no code is kept", partial(has_no_codes, tmp_path))
    with open_store() as store:
        fill(store, 30, start=1000)
        coded(store)
    assert_whole(tmp_path)


def test_codes_that_a_stopped_engine_had_no_time_to_drop_are_dropped_later(open_store, tmp_path, monkeypatch):
    monkeypatch.setattr("kb.store.sqlite.vector_keeper.BATCH", 70)
    with open_store() as store:
        fill(store, 50)
        coded(store)
    with database(tmp_path) as connection:
        connection.execute("DELETE FROM vector_mean")
    with open_store(limit=10_000) as store:
        assert found(store, 123) == ["text 123"]
        eventually("no code is kept", partial(has_no_codes, tmp_path))
        fill(store, 1, start=1000)
        assert found(store, 1003) == ["text 1003"]


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
                    document,
                    Content("note", "", "", [NewChunk("new", "", ChunkPosition(1, 1, 0, 3))], unit(seed + 500)[None]),
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
            again = SqliteIndex(tx.connection, store._vectors, tx.words)
            assert again.select(Filter()).nearest(unit(7), 50).ids.tolist() == before


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


@pytest.mark.parametrize("where", mostly_rare([Filter(), Filter(tags=("even",)), Filter(tags=("none",))]))
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
                candidates = next(Retriever(tx.index, query, vector, Instruments()).rankings(100)).candidates
                assert (candidates.ids.tolist() == every.best(100).ids.tolist()) is exact


DAMAGE = {
    "codes are gone": "DELETE FROM vector_codes",
    "some codes are gone": "DELETE FROM vector_codes WHERE chunk_id % 7 = 0",
    "codes are cut": "UPDATE vector_codes SET code = substr(code, 1, 9) WHERE chunk_id % 5 = 0",
    "codes have one bit a dimension, as they had once": "UPDATE vector_codes SET code = substr(code, 1, 16)",
    "codes are empty": "UPDATE vector_codes SET code = x''",
    "codes are exchanged": "UPDATE vector_codes SET code = (SELECT code FROM vector_codes WHERE chunk_id = 1) WHERE chunk_id = 2",
    "codes of no chunk": "INSERT INTO vector_codes SELECT 9999, code FROM vector_codes LIMIT 1",
    "the mean is gone": "DELETE FROM vector_mean",
    "the mean is cut": "UPDATE vector_mean SET mean = substr(mean, 1, 9)",
}


@pytest.mark.parametrize("damage", mostly_rare(DAMAGE.values(), 4), ids=DAMAGE)
def test_damage_is_noticed_at_the_start_and_repaired_while_searches_are_answered(open_store, tmp_path, damage):
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


@pytest.mark.parametrize(("table", "column"), [("vector_codes", "code"), ("vector_mean", "mean")])
@pytest.mark.parametrize("bit", [0, 37, 127])
def test_a_flipped_bit_is_noticed_and_repaired(open_store, tmp_path, table, column, bit):
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
    assert_whole(tmp_path)


@pytest.mark.parametrize("dimensions", [8, 100, 384])
def test_vectors_are_read_as_sqlite_vec_gives_them(open_store, tmp_path, dimensions):
    with open_store(dimensions=dimensions) as store:
        documents = fill(store, 20, dimensions=dimensions)
        for document in documents[::3]:
            with store.write() as tx:
                tx.documents.delete(document)
        fill(store, 1, start=500, dimensions=dimensions)
    with database(tmp_path) as connection:
        stored = dict(connection.execute("SELECT chunk_id, embedding FROM chunks_vec").fetchall())
        ids = np.arange(1, 212)[::-1].copy()
        vectors = SqliteVectorReader(connection, VectorSchema.of(connection), dimensions).vectors(ids)
    assert len(stored) == 140
    for chunk_id, vector in zip(ids.tolist(), vectors, strict=True):
        assert vector.tobytes() == stored.get(chunk_id, bytes(4 * dimensions))


UNREADABLE = {
    "a block is missing": "DELETE FROM chunks_vec_vector_chunks00 WHERE _rowid_ = 3",
    "a block is short": "UPDATE chunks_vec_vector_chunks00 SET vectors = x'00' WHERE _rowid_ = 3",
}


@pytest.mark.parametrize("damage", UNREADABLE.values(), ids=UNREADABLE)
def test_a_vector_that_cannot_be_read_counts_as_none_and_spoils_no_other(open_store, tmp_path, caplog, damage):
    with open_store() as store:
        fill(store, 60)
        coded(store)
    with database(tmp_path) as connection:
        connection.execute(damage)
    with open_store() as store:
        assert found(store, 15) == ["text 15"]
        assert found(store, 24) == ["text 24"]
        assert found(store, 16) != ["text 16"]
        assert found(store, 23) != ["text 23"]
    assert caplog.text.count("'kb doctor'") == 1


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
        eventually("there are codes", lambda: isinstance(store._vectors.index, CodedIndex))
        with store.read() as tx:
            assert tx.index.select(Filter()).nearest(unit(123, dimensions), 1).ids.tolist() == [124]
    assert_whole(tmp_path, dimensions)


@pytest.mark.slow
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


@contextmanager
def first_change_of_the_keeper(store, before_commit=lambda: None, after_commit=lambda: None):
    """Calls something before and after the commit of the transaction in which codes begin."""
    real, first = store.write, iter([True])

    @contextmanager
    def write(*arguments):
        is_first = threading.current_thread().name.startswith("kb-vectors") and next(first, False)
        with real(*arguments) as tx:
            yield tx
            if is_first:
                before_commit()
        if is_first:
            after_commit()

    store.write = write
    yield
    store.write = real


def test_a_chunk_that_is_written_while_codes_begin_is_found(open_store, tmp_path, monkeypatch):
    began, published, looked = (threading.Event() for _ in range(3))

    def read(*arguments):
        rows = read_codes(*arguments)
        looked.set()
        return rows

    def write_late(store):
        began.wait(60)
        with store.write() as tx:
            write(tx, [9999])
            publish(tx, store)

    def publish(tx, store):
        real = store.words.publish

        def slow(*arguments):
            real(*arguments)
            published.set()
            looked.wait(5)

        monkeypatch.setattr(store.words, "publish", slow)

    monkeypatch.setattr("kb.store.sqlite.vector_keeper.read_codes", read)
    with open_store() as store:

        def wait():
            began.set()
            published.wait(5)

        with first_change_of_the_keeper(store, after_commit=wait):
            late = threading.Thread(target=write_late, args=(store,))
            late.start()
            fill(store, 41)
            late.join()
            coded(store)
        assert found(store, 9999) == found(store, 9999, exact=True) == ["text 9999"]
    assert_whole(tmp_path)


def test_codes_whose_beginning_could_not_be_committed_begin_again(open_store, tmp_path, caplog):
    def fail():
        raise apsw.FullError

    with open_store() as store:
        with first_change_of_the_keeper(store, before_commit=fail):
            fill(store, 41)
            eventually("it failed", lambda: "could not compute the codes" in caplog.text)
        fill(store, 1, start=500)
        coded(store)
        assert found(store, 505) == ["text 505"]
    assert_whole(tmp_path)


def test_a_code_that_goes_missing_while_the_others_are_made_is_made_too(open_store, tmp_path, monkeypatch):
    reads = iter(range(100))

    def read(connection, quantizer):
        rows = read_codes(connection, quantizer)
        if not next(reads):
            with database(tmp_path) as other:
                other.execute("DELETE FROM vector_codes WHERE chunk_id = 7")
        return rows

    with open_store() as store:
        fill(store, 41)
        coded(store)
    with database(tmp_path) as connection:
        connection.execute("DELETE FROM vector_codes WHERE chunk_id = 8")
    monkeypatch.setattr("kb.store.sqlite.vector_keeper.read_codes", read)
    with open_store() as store:
        coded(store)
        assert found(store, 6) == ["text 6"]
    assert_whole(tmp_path)


def overwrite_vector(tmp_path, chunk_id, number):
    damaged = unit(0)
    damaged[3] = number
    with database(tmp_path) as connection:
        connection.execute("UPDATE chunks_vec SET embedding = ? WHERE chunk_id = ?", (damaged.tobytes(), chunk_id))


@pytest.mark.parametrize("number", [3e38, 1e18, np.nan, np.inf])
def test_a_vector_of_damaged_bytes_counts_as_none_and_spoils_no_other(open_store, tmp_path, number):
    with open_store() as store:
        fill(store, 30)
    overwrite_vector(tmp_path, 5, number)
    with open_store() as store:
        assert fused(store) == [101]
        fill(store, 20, start=300)
        coded(store)
        assert fused(store) == [101]
        assert np.abs(store._vectors.quantizer.mean).max() < 1


def fused(store):
    with store.read() as tx:
        vector = Future()
        vector.set_result(unit(100))
        query = Query("text", ("text",), EVERY)
        passages = best_passages(Retriever(tx.index, query, vector, Instruments()), 1)
        assert all(np.isfinite(each.score) for each in passages)
        return [each.chunk_id for each in passages]


@pytest.mark.parametrize("table", ["vector_codes", "vector_mean"])
def test_a_page_that_cannot_be_read_stops_no_start_no_search_and_no_new_document(open_store, tmp_path, caplog, table):
    with open_store() as store:
        fill(store, 60)
        coded(store)
        expected = found(store, 77, limit=5, exact=True)
    with database(tmp_path) as connection:
        pages = connection.execute(
            "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf'", (table,)
        ).fetchall()
    with (tmp_path / "kb.db").open("r+b") as file:
        for (page,) in pages:
            file.seek(4096 * (page - 1))
            file.write(b"\xff" * 4096)
    with open_store() as store:
        assert found(store, 77, limit=5) == expected
        eventually("it is said", lambda: "'kb doctor'" in caplog.text)
        fill(store, 1, start=5000)
        assert found(store, 5005, limit=1) == ["text 5005"]
        assert found(store, 77, limit=5, exact=True) == expected


def test_vectors_on_a_page_that_cannot_be_read_count_as_none(open_store, tmp_path, caplog):
    with open_store() as store:
        fill(store, 60)
        coded(store)
    with database(tmp_path) as connection:
        pages = connection.execute(
            "SELECT pageno FROM dbstat WHERE name = 'chunks_vec_vector_chunks00' AND pagetype = 'leaf' ORDER BY path"
        ).fetchall()
    with (tmp_path / "kb.db").open("r+b") as file:
        file.seek(4096 * (pages[0][0] - 1))
        file.write(b"\xff" * 4096)
    with open_store() as store:
        assert found(store, 0) != ["text 0"]
        assert found(store, 599) == ["text 599"]
    assert "'kb doctor'" in caplog.text


def test_of_equal_vectors_the_oldest_are_found(open_store):
    with open_store() as store:
        with store.write() as tx:
            write(tx, [1000 + number for number in range(100)])
            write(tx, [7] * 300)
        oldest = list(range(101, 106))
        assert near(store, 7, 5) == oldest
        with store.write() as tx:
            write(tx, [7] * 600)
        coded(store)
        assert near(store, 7, 5) == oldest
        assert near(store, 7, 5, exact=True) == oldest


def near(store, seed, limit, **options):
    with store.read() as tx:
        return tx.index.select(EVERY).nearest(unit(seed), limit, **options).ids.tolist()


def test_the_recall_is_measured_on_what_is_searched(open_store):
    instruments = Instruments()
    with open_store() as store:
        fill(store, 60)
        coded(store)
        with closing(RecallMonitor(store, instruments, interval=0)) as monitor:
            for seed in range(5):
                monitor.observe(unit(seed), Filter(), space(DIMENSIONS))
                eventually("it is measured", lambda: recall(instruments.registry, "count") > seed)  # noqa: B023 - called here
    assert recall(instruments.registry, "count") == 5
    assert 4 < recall(instruments.registry, "sum") <= 5


def recall(registry, kind):
    return registry.get_sample_value(f"kb_vector_recall_{kind}")


def test_of_equal_chunks_any_counts_for_the_recall():
    chosen = {True: np.arange(10), False: np.arange(10, 20)}

    class Equals:
        """All chunks are equally near."""

        def read(self):
            return nullcontext(SimpleNamespace(index=self, space=space(8)))

        def select(self, where):
            return self

        def nearest(self, vector, limit, *, exact):
            return ScoredChunks(chosen[exact], np.full(10, 0.5))

    instruments = Instruments()
    with closing(RecallMonitor(Equals(), instruments, interval=0)) as monitor:
        monitor.observe(unit(7), Filter(), space(8))
    assert recall(instruments.registry, "sum") == 1


def test_a_query_that_comes_after_the_end_is_not_measured(open_store):
    with open_store() as store:
        monitor = RecallMonitor(store, Instruments(), interval=0)
        monitor.close()
        for _ in range(2):
            monitor.observe(unit(7), Filter(), space(8))


class CodedDocuments(DocumentsInFile):
    """The same with codes from the third vector on, and without below."""

    def open_store(self):
        self.opened = self.store = SqliteStore(Path(self.folder.name, "kb.db"), space(8), flat_limit=3)


TestCodedDocuments = pytest.mark.requirement("D-1")(CodedDocuments.TestCase)
TestCodedDocuments.settings = settings(max_examples=examples(20, fast=3), stateful_step_count=25)


def test_a_database_made_anew_with_other_vectors_keeps_no_codes_of_the_old_ones(open_store, tmp_path):
    with open_store() as store:
        fill(store, 50)
        coded(store)
    with database(tmp_path) as connection:
        for chunk_id, text in connection.execute("SELECT id, text FROM chunks").fetchall():
            other = unit(10_000 + int(text.removeprefix("text "))).tobytes()
            connection.execute("UPDATE chunks_vec SET embedding = ? WHERE chunk_id = ?", (other, chunk_id))
    assert not rebuild(tmp_path / "kb.db", lambda *_: None)
    with open_store() as store:
        assert found(store, 10_077) == ["text 77"]
        coded(store)
        assert found(store, 10_077) == ["text 77"]
    assert_whole(tmp_path)
