"""Full text in memory gives the same answers as SQLite in the same transaction, after any changes of chunks."""

from __future__ import annotations

import random
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from threading import Event

import apsw
import numpy as np
import pytest

from kb.api.errors import StoreError
from kb.index import compaction
from kb.index.vectors.scores import ScoredChunks
from kb.index.words import index, snapshot
from kb.index.words.index import KEPT_SNAPSHOTS
from kb.index.words.matches import Matches
from kb.index.words.postings import Postings
from kb.store.rows import ChunkPosition, Content, Filter, NewChunk
from kb.store.sqlite.full_text_cache import read_snapshot
from kb.store.sqlite.index import MemoryLeg, TableLeg, admitted_chunk_ids
from kb.store.sqlite.store import SqliteStore
from kb.store.sqlite.upkeep import Upkeep
from tests.support.eventually import eventually
from tests.support.spaces import space

DIMENSIONS = 8
COMMON = ("the", "of", "and", "lamp", "harbour", "tide", "running", "runs")
RARE = tuple(f"word{number}" for number in range(300))
PHRASES = ("lamp-tide-of", "quay/mole", "tide-of-the", "lamp-tide")
"""Words that unicode61 parts at their signs: each is several tokens."""
ODD = ("Ünïté", "O'Brien", "c++", "naïve", "नमस्ते", "中文字", "中文教程", "Python教程", "กินข้าว")
TAGS = ("half", "tenth")
FILTERS = (
    Filter(),
    Filter(tags=("half",)),
    Filter(tags=("tenth",)),
    Filter(tag_not=("half",)),
    Filter(tags=("none",)),
    Filter(tags=("half", "tenth"), doc_type="note"),
    Filter(tag_any=("half", "tenth"), tag_not=("none",)),
    Filter(doc_type="pdf"),
    Filter(tag_not=("none",)),
    Filter(holding=("lamp-tide",)),
    Filter(holding=("tide of", "नमस्ते"), lacking=("quay/mole",)),
    Filter(lacking=("harbour", "字"), tags=("half",)),
)


class Writer:
    """Adds, replaces and deletes documents at random; a seed says which."""

    def __init__(self, store, seed, *, phrases=0.1):
        self.store = store
        self.random = random.Random(seed)
        self.phrases = phrases
        self.ids = []
        self.new = 0

    def text(self, length):
        return " ".join(self.word() for _ in range(length))

    def word(self):
        if self.random.random() < self.phrases:
            return self.random.choice(PHRASES)
        if self.random.random() < 0.02:
            self.new += 1
            return f"new{self.new}"
        return self.random.choice(self.random.choices((COMMON, RARE, ODD), (4, 5, 1))[0])

    def query(self):
        words = [self.word() for _ in range(self.random.randint(1, 6))]
        return tuple(words + self.random.choices(words, k=self.random.randint(0, 1)))

    def content(self, chunks):
        parts = [
            NewChunk(text, self.text(self.random.randint(0, 3)), ChunkPosition(1, 1, 0, len(text)))
            for text in (self.text(self.random.randint(0, 40)) for _ in range(chunks))
        ]
        vectors = np.ones((chunks, DIMENSIONS), np.float32) / np.sqrt(DIMENSIONS).astype(np.float32)
        return Content("note", "title", str(self.random.random()), parts, vectors)

    def add(self, documents=1):
        with self.store.write() as tx:
            for _ in range(documents):
                tags = [tag for tag, share in zip(TAGS, (0.5, 0.1), strict=True) if self.random.random() < share]
                self.ids.append(tx.documents.add(self.content(self.random.randint(1, 5)), None, tags))

    def change(self):
        """One change, or one that is taken back."""
        act = self.random.random()
        if act < 0.4 or len(self.ids) < 3:
            return self.add(self.random.randint(1, 3))
        chosen = self.random.choice(self.ids)
        if act < 0.6:
            with self.store.write() as tx:
                tx.documents.replace(chosen, self.content(self.random.randint(1, 4)))
        elif act < 0.8:
            with self.store.write() as tx:
                tx.documents.delete(chosen)
            self.ids.remove(chosen)
        else:
            self.fail(chosen)
        return None

    def fail(self, chosen):
        """What a commit that fails leaves behind: the moment was published already."""
        with pytest.raises(KeyError):
            self._fail(chosen)

    def _fail(self, chosen):
        with self.store.write() as tx:
            tx.documents.add(self.content(3), None, ())
            tx.documents.replace(chosen, self.content(2))
            self.store._publish(tx)
            raise KeyError


@pytest.fixture
def store(tmp_path):
    with closing(SqliteStore(tmp_path / "kb.db", space(DIMENSIONS))) as opened:
        yield opened


def assert_same(store, words, where=FILTERS[0], limit=10):
    with store.read() as tx:
        return assert_same_in(tx, words, where, limit)


def assert_same_in(tx, words, where, limit):
    """The list and the scores are SQLite's, in one transaction; returns how many there were."""
    selection = tx.index.select(where)
    assert isinstance(selection._leg, MemoryLeg)
    table = TableLeg(tx.connection.execute, admitted_chunk_ids(tx.connection.execute, where))
    for chunks in (selection._snapshot.ids, np.arange(3)):
        chosen, expected = selection._leg.among(chunks), table.among(chunks)
        assert (chosen is None) == (expected is None)
        if chosen is not None:
            assert (chunks[chosen] if chosen.dtype == np.bool_ else chosen).tolist() == expected.tolist()
    found, expected = selection.full_text(words, limit), table.best(words, limit)
    assert found.ids.tolist() == expected.ids.tolist(), (words, where)
    np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-12)
    others = np.array([row[0] for row in tx.connection.execute("SELECT id FROM chunks ORDER BY random() LIMIT 50")])
    ids = np.sort(others.astype(np.int64))
    np.testing.assert_allclose(
        selection.full_text_scores(words, ids), TableLeg(tx.connection.execute, None).scores(words, ids), rtol=1e-12
    )
    return found.ids.size


@pytest.mark.parametrize("seed", range(2))
def test_lists_and_scores_are_those_of_sqlite_after_every_change(store, seed):
    writer = Writer(store, seed)
    writer.add(60)
    assert compare_after_changes(writer, 40)


def test_rows_that_are_numbered_anew_hold_the_same(store, monkeypatch):
    monkeypatch.setattr(compaction, "MIN_DEAD", 10)
    monkeypatch.setattr(index, "MAX_PENDING", 20)
    writer = Writer(store, 9)
    writer.add(60)
    assert compare_after_changes(writer, 90)
    with store.read() as tx:
        assert tx.words.snapshot.epoch > 2
        assert tx.words.snapshot.dead.size <= max(10, 0.1 * tx.words.snapshot.size)


def compare_after_changes(writer, changes):
    found = 0
    for _ in range(changes):
        writer.change()
        where, limit = writer.random.choice(FILTERS), writer.random.choice((1, 10, 500))
        found += sum(assert_same(writer.store, writer.query(), where, limit) for _ in range(2))
    return found


def test_a_word_counts_however_often_it_stands_in_a_text_and_a_header(store):
    writer = Writer(store, 1)
    texts = ["tide " * 300, "tide " * 70_000, "lamp " * 20_000 + "tide", "lamp"]
    with store.write() as tx:
        for text in texts:
            chunk = NewChunk(text, "tide " * 100, ChunkPosition(1, 1, 0, len(text)))
            tx.documents.add(replace(writer.content(1), chunks=[chunk]), None, ())
    for words in (("tide",), ("lamp", "tide")):
        assert assert_same(store, words)
    store.words._index.reset(read_snapshot(store._writer))
    for words in (("tide",), ("lamp", "tide")):
        assert assert_same(store, words)


def test_a_store_that_is_opened_again_holds_the_same(make_store):
    with make_store(dimensions=DIMENSIONS) as store:
        writer = Writer(store, 3)
        writer.add(50)
        for _ in range(10):
            writer.change()
    with make_store(dimensions=DIMENSIONS) as store:
        writer.store = store
        assert compare_after_changes(writer, 5)


def test_an_empty_store_finds_nothing_and_one_that_was_emptied_neither(store):
    writer = Writer(store, 1)
    assert assert_same(store, ("lamp",)) == 0
    writer.add(3)
    assert assert_same(store, COMMON)
    for document_id in writer.ids:
        with store.write() as tx:
            tx.documents.delete(document_id)
    assert assert_same(store, COMMON) == 0


def test_words_that_were_never_written_before_are_found_at_once(store):
    writer = Writer(store, 2)
    writer.add(20)
    for number in range(60):
        words = (f"fresh{number}", f"नमस्ते{number}")
        assert assert_same(store, words) == 0
        text = f"{words[0]} {writer.text(3)} {words[1]}"
        chunk = NewChunk(text, words[0], ChunkPosition(1, 1, 0, len(text)))
        with store.write() as tx:
            tx.documents.add(replace(writer.content(1), chunks=[chunk]), None, ())
        assert assert_same(store, words) == 1
        assert assert_same(store, words[1:]) == 1


def test_the_nearest_words_are_the_same_once_every_token_was_read_and_so_are_those_of_new_chunks(store):
    zeppelin, _ = noted(store, "zeppelin harbour"), noted(store, "a lantern")
    before = unknown(store)
    Upkeep(store).learn_terms()
    assert unknown(store) == before == {"zepelin": ["zeppelin"], "lantrn": ["lantern"], "arship": []}
    noted(store, "an airship")
    assert unknown(store) == before | {"arship": ["airship"]}
    with store.write() as tx:
        tx.documents.delete(zeppelin)
    assert unknown(store)["zepelin"] == []


def noted(store, text):
    content = replace(
        Writer(store, 1).content(1), content_hash=text, chunks=[NewChunk(text, "", ChunkPosition(1, 1, 0, 9))]
    )
    with store.write() as tx:
        return tx.documents.add(content, None, ())


def unknown(store):
    with store.read() as tx:
        return tx.index.select(Filter()).unknown(["zepelin", "lantrn", "arship"])


def test_words_take_no_more_memory_than_they_may_and_those_in_use_stay(tmp_path):
    limit = 20_000
    with closing(SqliteStore(tmp_path / "kb.db", space(DIMENSIONS), limit)) as store:
        writer = Writer(store, 4)
        writer.add(60)
        for word in RARE:
            assert_same(store, ("lamp", word))
            assert store.memory.words <= limit
        kept = store.words._index._words
        assert ("lamp",) in kept
        assert 5 < len(kept) < len(RARE)
        assert store.memory.words == kept_size(kept) + pending_size(store)
        assert compare_after_changes(writer, 10)
        assert store.memory.words == kept_size(kept) + pending_size(store) <= limit


def kept_size(kept):
    return sum(word.postings.nbytes + sum(map(sys.getsizeof, key)) for key, word in kept.items())


def pending_size(store):
    return store.words._index._pending.nbytes


def test_a_word_larger_than_the_memory_takes_no_place_from_the_others():
    kept = kept_index(5, 10_000)
    large = Postings.of(np.arange(10_000, dtype=np.int32), np.ones(10_000, np.int64))
    assert kept.postings(kept.snapshot(0), ("large",), lambda: large).size == 10_000
    assert len(kept._words) == 5


def test_a_filter_takes_memory_for_the_documents_there_are_and_not_for_the_highest_id():
    ids = np.arange(1, 11, dtype=np.int32)
    documents = np.array([1, 2, 3, 4, 5, 6, 7, 8, 9, snapshot.MAX_ID], np.int32)
    wanted = [(True, np.array([2, 3, 4, snapshot.MAX_ID, 2**40])), (False, np.array([3, 77]))]
    tracemalloc.start()
    try:
        admitted = snapshot.LexicalSnapshot.of(1, ids, documents, ids).admit(wanted)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert admitted.rows.tolist() == [1, 3, 9]


def test_a_word_larger_than_the_memory_is_found_all_the_same(tmp_path):
    with closing(SqliteStore(tmp_path / "kb.db", space(DIMENSIONS), 1)) as store:
        Writer(store, 4).add(20)
        assert assert_same(store, COMMON)
        assert store.memory.words == 0


def test_a_word_of_many_tokens_is_left_to_sqlite(store):
    Writer(store, 4, phrases=0.5).add(20)
    words = ("lamp", "the-" * 400, "quay-" * 400)
    assert assert_same(store, words)
    assert assert_same(store, words, FILTERS[1])
    kept = store.words._index._words
    assert not [key for key in kept if len(key) > 8]


def test_phrases_count_as_often_as_sqlite_counts_them(store):
    writer = Writer(store, 4, phrases=0.5)
    writer.add(60)
    assert sum(assert_same(store, (phrase,), limit=500) for phrase in PHRASES)
    assert assert_same(store, PHRASES, FILTERS[1])
    vectors = np.eye(1, DIMENSIONS, dtype=np.float32)
    for times in (1, 2, 3, 7, 40, 700):
        chunk = NewChunk("the of " * times, "the of " * (times % 3), ChunkPosition(1, 1, 0, 7 * times))
        with store.write() as tx:
            tx.documents.add(Content("note", "title", str(times), [chunk], vectors), None, ())
    assert assert_same(store, ("the-of", "of-the"), limit=500)


def test_a_phrase_is_in_no_chunk_of_an_empty_database(store):
    with store.read() as tx:
        assert not tx.index.select(Filter()).full_text(("lamp-tide",), 10).ids.size


def test_a_phrase_is_looked_up_once_and_none_of_its_tokens_is_read(store):
    Writer(store, 4).add(20)

    def lookups(word):
        statements = []
        with store.read() as tx:
            tx.connection.exec_trace = lambda _, sql, __: statements.append(sql) or True
            try:
                tx.index.select(Filter()).full_text((word,), 10)
            finally:
                tx.connection.exec_trace = None
        assert not any("instances" in sql for sql in statements)
        return sum("MATCH" in sql for sql in statements)

    assert lookups("the-of-the-") == 1
    assert lookups("the-of-the-") == 0
    assert assert_same(store, ("the-" * 2, "the-of-the"), limit=500)


def test_the_memory_that_words_take_counts_the_words_themselves(store):
    Writer(store, 4).add(5)
    with store.read() as tx:
        tx.index.select(Filter()).full_text(("x" * 2000,), 10)
    assert store.memory.words > 2000


def test_a_word_is_read_once_for_all_who_ask_at_once(store):
    Writer(store, 1).add(3)
    begun, go, loads = Event(), Event(), []
    with store.read() as tx:
        reader = tx.words

    def load():
        loads.append(1)
        begun.set()
        go.wait()
        return Postings.of(np.array([0], np.int32), np.array([1]))

    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(store.words._index.postings, reader.snapshot, ("lamp",), load) for _ in range(4)]
        assert begun.wait(60)
        others = store.words._index.postings(
            reader.snapshot, ("tide",), lambda: Postings.of(*[np.empty(0, np.int32)] * 2)
        )
        assert others.size == 0, "who asks for another word does not wait"
        go.set()
        assert [each.result().size for each in asked] == [1] * 4
    assert len(loads) == 1


def test_a_reader_whose_moment_is_kept_no_more_is_answered_by_sqlite(store):
    writer = Writer(store, 1)
    writer.add(10)
    with store.read() as early:
        expected = TableLeg(early.connection.execute, None).best(("lamp",), 10)
        for _ in range(KEPT_SNAPSHOTS + 1):
            writer.add()
        selection = early.index.select(Filter())
        assert isinstance(selection._leg, TableLeg)
        assert selection.full_text(("lamp",), 10).ids.tolist() == expected.ids.tolist()
        assert early.index.select(Filter(tags=("half",))).full_text(("lamp",), 10).ids.size
    assert assert_same(store, ("lamp",))


def test_a_reader_that_later_changes_overtook_sees_its_own_moment(store, monkeypatch):
    monkeypatch.setattr(compaction, "MIN_DEAD", 5)
    monkeypatch.setattr(index, "MAX_PENDING", 5)
    writer = Writer(store, 6)
    writer.add(20)
    readers = []
    with ExitStack() as stack:
        for _ in range(6):
            readers.append(stack.enter_context(store.read()))
            assert isinstance(readers[-1].index.select(Filter())._leg, MemoryLeg)
            writer.change()
            writer.change()
        for words in [COMMON, PHRASES, *(writer.query() for _ in range(20))]:
            for tx in readers:
                assert_same_in(tx, tuple(words), Filter(), 10)


def test_a_reader_of_old_rows_takes_nothing_of_what_was_written_in_new_ones(monkeypatch):
    monkeypatch.setattr(compaction, "MIN_DEAD", 1)
    ids = np.arange(1, 11, dtype=np.int32)
    kept = index.LexicalIndex(snapshot.LexicalSnapshot.of(0, ids, ids, ids), 1 << 20)
    loaded = kept.postings(kept.snapshot(0), ("lamp",), lambda: Postings.of(np.array([3], np.int32), np.array([1])))
    kept.publish(1, [snapshot.IndexedChunk(id_, 1, ["tide"], []) for id_ in range(11, 31)], ())
    kept.publish(2, [snapshot.IndexedChunk(id_, 1, ["lamp"], []) for id_ in range(31, 41)], range(11, 21))
    assert (kept.snapshot(1).epoch, kept.snapshot(2).epoch) == (0, 1)
    for number, rows in ((1, [3]), (2, [3, *range(20, 30)]), (0, loaded.rows.tolist())):
        found = kept.postings(kept.snapshot(number), ("lamp",), lambda: loaded)
        assert found.rows.tolist() == rows


def kept_index(words, limit=1 << 24):
    """An index of ten chunks that keeps a limited number of words."""
    ids = np.arange(1, 11, dtype=np.int32)
    kept = index.LexicalIndex(snapshot.LexicalSnapshot.of(0, ids, ids, ids), limit)
    for number in range(words):
        kept.postings(kept.snapshot(0), (f"word{number}",), lambda: Postings.of(*[np.empty(0, np.int32)] * 2))
    return kept


def long_document(chunks, words, first=11):
    rng = random.Random(1)
    return [
        snapshot.IndexedChunk(id_, 1, [f"word{rng.randrange(words)}" for _ in range(20)], [])
        for id_ in range(first, first + chunks)
    ]


def test_a_change_after_a_long_document_does_not_look_through_it_for_each_word_that_is_kept():
    kept, added = kept_index(500), long_document(2000, 5000)
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        kept.publish(1, added, ())
        kept.publish(2, long_document(1, 5000, 3000), ())
    finally:
        sys.setprofile(None)
    assert calls < 100 * 500 + 10 * 2000
    expected = [row for row, chunk in enumerate(added, 10) if "word7" in chunk.text]
    assert kept.postings(kept.snapshot(1), ("word7",), pytest.fail).rows.tolist() == expected


def test_what_a_long_document_adds_takes_no_more_memory_than_words_may():
    limit = 1 << 20
    kept = kept_index(300, limit)
    kept.publish(1, long_document(2, 5000), ())
    grown = kept.size
    kept.publish(2, long_document(2, 5000, 100), ())
    assert kept.size > grown, "what is pending counts"
    kept.publish(3, long_document(3000, 5000, 200), ())
    assert kept.size <= limit
    kept.publish(4, long_document(1, 5000, 9000), ())
    assert kept.size <= limit


@pytest.mark.parametrize("removed", [(), range(2, 9)], ids=["same rows", "new rows"])
def test_a_long_document_that_is_taken_back_leaves_nothing_in_the_words_that_are_kept(monkeypatch, removed):
    monkeypatch.setattr(compaction, "MIN_DEAD", 5)
    kept = kept_index(500)
    kept.publish(1, long_document(3, 500), ())
    expected = kept.postings(kept.snapshot(1), ("word7",), pytest.fail).rows.tolist()
    kept.publish(2, long_document(1000, 500, 100), removed)
    kept.withdraw()

    def load():
        return Postings.of(np.array(expected, np.int32), np.ones(len(expected), np.int64))

    assert kept.postings(kept.snapshot(1), ("word7",), load).rows.tolist() == expected
    again = [snapshot.IndexedChunk(id_, 1, ["word7"] * (id_ % 2), []) for id_ in range(100, 110)]
    kept.publish(2, again, ())
    assert kept.postings(kept.snapshot(2), ("word7",), pytest.fail).rows.tolist() == [*expected, 14, 16, 18, 20, 22]


def test_a_write_sees_what_it_wrote_and_leaves_nothing_of_it_in_memory(store):
    writer = Writer(store, 1)
    writer.add(5)

    def fail():
        with store.write() as tx:
            tx.documents.add(replace(writer.content(1), chunks=[chunk]), None, ())
            assert tx.index.select(Filter()).full_text(("zebra",), 10).ids.size == 1
            raise KeyError

    chunk = NewChunk("zebra नमस्ते", "", ChunkPosition(1, 1, 0, 5))
    with pytest.raises(KeyError):
        fail()
    assert assert_same(store, ("zebra",)) == 0


def test_ids_that_are_too_high_for_memory_are_left_to_sqlite(store):
    writer = Writer(store, 1)
    writer.add(5)
    with store.write() as tx:
        tx.connection.execute("UPDATE last_ids SET id = ? WHERE name = 'chunks'", (snapshot.MAX_ID + 7,))
    writer.add(5)
    with store.read() as tx:
        assert tx.index.select(Filter(tag_not=("half",)))._leg.among(np.arange(3)).size
        selection = tx.index.select(Filter())
        assert isinstance(selection._leg, TableLeg)
        assert selection.full_text(COMMON, 50).ids.max() > snapshot.MAX_ID
    assert store.memory.words == 0


def test_memory_that_is_wrong_is_noticed_counted_and_read_again(store, caplog):
    writer = Writer(store, 1, phrases=0)
    writer.add(40)
    words = [(word,) for word in (*COMMON, *RARE)]
    for word in words:
        assert_same(store, word)
    upkeep = Upkeep(store)
    upkeep.learn_terms()
    for _ in range(10):
        upkeep.check()
    assert store.memory.faults == 0
    store.words._index.terms._state = np.empty(0, np.int64), set()
    kept = store.words._index._words
    for key, word in kept.items():
        kept[key] = replace(word, postings=word.postings.before(3))
    for _ in range(200):
        upkeep.check()
        if store.memory.faults:
            break
    assert store.memory.faults == 1
    assert "differed" in caplog.text
    with store.read() as tx:
        assert tx.words.possible(["harbour", "nowhere"]) == ["harbour"]
    for word in words:
        assert_same(store, word)
    assert compare_after_changes(writer, 5)


def test_a_check_looks_at_a_chunk_that_is_there(store):
    writer = Writer(store, 1, phrases=0)
    writer.add(40)
    for document_id in writer.ids[:36]:
        with store.write() as tx:
            tx.documents.delete(document_id)
    upkeep = Upkeep(store)
    for _ in range(20):
        upkeep.check()
    assert store.memory.faults == 0
    with store.read() as tx:
        assert len(upkeep._sample(tx.words, 1)) == 1
        assert len(upkeep._sample(tx.words, 1000)) == tx.words.snapshot.count


LENGTHS = {
    "one is missing": "UPDATE chunks_fts_docsize SET sz = x'03' WHERE id = 5",
    "none is there": "UPDATE chunks_fts_docsize SET sz = x'' WHERE id = 5",
    "a bit is flipped": "UPDATE chunks_fts_docsize SET sz = x'8300' WHERE id = 5",
    "one too few and one too many": "UPDATE chunks_fts_docsize SET sz = iif(id = 5, x'03', x'030000') WHERE id IN (5, 20)",
    "cut within a number": "UPDATE chunks_fts_docsize SET sz = x'030083' WHERE id = 5",
    "no number has so many bits": "UPDATE chunks_fts_docsize SET sz = x'ffffffff7f00' WHERE id = 5",
    "null": "UPDATE chunks_fts_docsize SET sz = NULL WHERE id = 5",
}
COUNTS = {
    "a row is gone": "DELETE FROM chunks_fts_docsize WHERE id = 5",
    "of no chunk": "INSERT INTO chunks_fts_docsize VALUES (9999, x'0300')",
}


def damage(folder, sql):
    with closing(apsw.Connection(str(folder / "kb.db"))) as connection:
        connection.set_busy_timeout(10_000)
        connection.execute(sql)


@pytest.mark.parametrize("block", [1, 3, 4, 20])
def test_lengths_are_the_same_however_many_are_read_at_a_time(tmp_path, monkeypatch, block):
    with closing(SqliteStore(tmp_path / "kb.db", space(DIMENSIONS))) as store:
        Writer(store, 1, phrases=0).add(20)
        with store.read() as tx:
            together = read_snapshot(tx.connection).lengths
            monkeypatch.setattr("kb.store.sqlite.full_text_cache.BLOCK", block)
            assert read_snapshot(tx.connection).lengths.tolist() == together.tolist()
    assert len(set(together.tolist())) > 1


@pytest.mark.parametrize("sql", LENGTHS.values(), ids=LENGTHS)
def test_damaged_lengths_leave_the_full_text_to_sqlite_and_say_so(tmp_path, caplog, sql):
    with closing(SqliteStore(tmp_path / "kb.db", space(DIMENSIONS))) as store:
        Writer(store, 1, phrases=0).add(20)
    damage(tmp_path, sql)
    with closing(SqliteStore(tmp_path / "kb.db", space(DIMENSIONS))) as store:
        with store.read() as tx:
            assert tx.words is None
        assert store.memory.faults == 1
        assert caplog.text.count("'kb doctor'") == 1
        Writer(store, 2).add(2)
        with Upkeep(store, seconds=0.01):
            assert store.memory.words == 0


@pytest.mark.parametrize("sql", COUNTS.values(), ids=COUNTS)
def test_lengths_of_other_chunks_refuse_the_start(tmp_path, sql):
    with closing(SqliteStore(tmp_path / "kb.db", space(DIMENSIONS))) as store:
        Writer(store, 1, phrases=0).add(20)
    damage(tmp_path, sql)
    with pytest.raises(StoreError, match="the keyword index does not match the passages"):
        SqliteStore(tmp_path / "kb.db", space(DIMENSIONS))


def test_memory_that_is_wrong_again_after_it_was_read_again_is_given_up(tmp_path, caplog):
    with closing(SqliteStore(tmp_path / "kb.db", space(DIMENSIONS))) as store:
        Writer(store, 1, phrases=0).add(20)
    damage(tmp_path, "UPDATE chunks_fts_data SET block = x'0a8080801f00' WHERE id = 1")
    with closing(SqliteStore(tmp_path / "kb.db", space(DIMENSIONS))) as store:
        upkeep = Upkeep(store)
        for _ in range(10):
            upkeep.check()
        with store.read() as tx:
            assert tx.words is None
            assert tx.index.select(Filter()).full_text(("lamp",), 10).ids.size
        assert store.memory.faults == 2
        assert caplog.text.count("'kb doctor'") == 1


def test_checks_go_on_after_one_that_failed_and_count_it(tmp_path):
    with closing(SqliteStore(tmp_path / "kb.db", space(DIMENSIONS))) as store:
        Writer(store, 1, phrases=0).add(2)
        upkeep = Upkeep(store, seconds=0.01)
        with upkeep:
            damage(tmp_path, "UPDATE chunks_fts_docsize SET sz = x''")
            eventually("faults are counted", lambda: store.memory.faults > 1)
            assert upkeep._thread.is_alive()


def test_tokens_that_cannot_be_read_are_not_read_again_and_again(tmp_path, caplog):
    with closing(SqliteStore(tmp_path / "kb.db", space(DIMENSIONS))) as store:
        Writer(store, 1, phrases=0).add(20)
    damage(tmp_path, "UPDATE chunks_fts_data SET block = zeroblob(9) WHERE id > 10")
    with closing(SqliteStore(tmp_path / "kb.db", space(DIMENSIONS))) as store:
        with Upkeep(store, seconds=0.01):
            eventually("checks fail", lambda: store.memory.faults > 5)
        assert sum("learn_terms" in (record.exc_text or "") for record in caplog.records) == 1


def test_common_words_are_read_in_the_background_and_stop_words_are_not(tmp_path):
    with closing(SqliteStore(tmp_path / "kb.db", space(DIMENSIONS))) as store:
        Writer(store, 1).add(40)
        with Upkeep(store, seconds=0.01):
            eventually("common words are in memory", lambda: ("lamp",) in store.words._index._words)
            eventually("checks run", lambda: len(store.words._index._words) > 30)
        assert not {("the",), ("of",), ("and",)} & store.words._index._words.keys()
        assert store.memory.faults == 0
    with closing(SqliteStore(tmp_path / "kb.db", space(DIMENSIONS), 20_000)) as store:
        Upkeep(store).warm()
        assert 10_000 < store.memory.words < 20_000


@pytest.mark.parametrize("seed", range(4))
def test_the_best_of_many_rows_are_among_the_candidates(seed):
    numbers = np.random.default_rng(seed)
    size = int(numbers.integers(2, 100_000))
    lengths = numbers.integers(1, 200, size).astype(np.int32)
    ids = np.arange(1, size + 1, dtype=np.int32)
    rows = snapshot.LexicalSnapshot.of(1, ids, ids, lengths).changed(2, set(numbers.integers(1, size + 1, 20).tolist()))
    words = [
        ((str(share),), Postings.of(found, numbers.integers(1, 9, found.size)))
        for share in (0.9, 0.3, 0.01, 0.001)
        for found in [np.flatnonzero(numbers.random(size) < share).astype(np.int32)]
    ]
    alive = np.setdiff1d(np.arange(size, dtype=np.int32), rows.dead)
    for share in (1, 0.3, 0.002):
        mask = (numbers.random(size) < share) & np.isin(np.arange(size), alive)
        admitted = None if share == 1 else snapshot.Admitted(rows, mask)
        among = alive if share == 1 else np.flatnonzero(mask).astype(np.int32)
        matches = Matches(rows, words)
        scores = matches.scores(among)
        expected = ScoredChunks(among[~np.isnan(scores)].astype(np.int64), scores[~np.isnan(scores)])
        for limit in (1, 7, 100, 1000, 200_000):
            found = ScoredChunks(*matches.best(limit, admitted)).best(limit)
            assert found.ids.tolist() == expected.best(limit).ids.tolist()
            assert found.scores.tolist() == expected.best(limit).scores.tolist()


@pytest.fixture
def switching():
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.slow
@pytest.mark.usefixtures("switching")
@pytest.mark.parametrize(
    "changes", [150, pytest.param(3000, marks=[pytest.mark.long, pytest.mark.timeout(1800)])], ids=["short", "long"]
)
@pytest.mark.parametrize("phrases", [0.1, 0.7], ids=["words", "phrases"])
def test_readers_see_what_sqlite_sees_while_a_writer_works(store, monkeypatch, changes, phrases):
    monkeypatch.setattr(compaction, "MIN_DEAD", 30)
    monkeypatch.setattr(index, "MAX_PENDING", 20)
    writer = Writer(store, 8, phrases=phrases)
    writer.add(100)
    done = Event()
    compared = []

    def read(seed):
        reader = Writer(store, seed, phrases=phrases)
        reader.new = 50
        while not done.is_set():
            assert_same(store, reader.query(), reader.random.choice(FILTERS))
            compared.append(1)

    def write():
        try:
            for _ in range(changes):
                writer.change()
                if writer.random.random() < 0.1:
                    with store.words._index._lock:
                        store.words._index._drop(list(store.words._index._words))
        finally:
            done.set()

    with ThreadPoolExecutor(4) as pool:
        for each in [pool.submit(write), *(pool.submit(read, seed) for seed in range(3))]:
            each.result()
    assert compared


def test_both_legs_number_their_rows_alike_so_that_a_filter_is_one_mask_for_both(store, monkeypatch):
    monkeypatch.setattr(compaction, "MIN_DEAD", 5)
    writer = Writer(store, 0)
    writer.add(20)
    for _ in range(60):
        writer.change()
        with store.read() as tx:
            selection = tx.index.select(Filter(tag_any=("half",)))
            assert selection._leg.among(selection._snapshot.ids).dtype == np.bool_
