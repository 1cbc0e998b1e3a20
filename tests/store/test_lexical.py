"""Full text from memory is what SQLite would answer in the same transaction, whatever was done to the chunks."""

from __future__ import annotations

import random
from contextlib import closing
from threading import Barrier, Event, Thread

import numpy as np
import pytest

from kb.lexical import index, moment
from kb.store.rows import Content, Filter, NewChunk, Place
from kb.store.sqlite.index import MemoryLeg, TableLeg
from kb.store.sqlite.store import SqliteStore
from tests.support.spaces import space

DIMENSIONS = 8
COMMON = ("the", "of", "and", "lamp", "harbour", "tide", "running", "runs")
RARE = tuple(f"word{number}" for number in range(300))
PHRASES = ("नमस्ते", "दुनिया", "हिन्दी", "नमस्त")
"""Words that unicode61 parts at their vowel signs: each is several tokens."""
ODD = ("Ünïté", "O'Brien", "c++", "naïve", "12.5", "\u4e2d\u6587\u5b57")
TAGS = ("half", "tenth")
FILTERS = (Filter(), Filter(tags=("half",)), Filter(tags=("tenth",)), Filter(tag_not=("half",)), Filter(tags=("none",)))


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
            NewChunk(text, self.text(self.random.randint(0, 3)), Place(1, 1, 0, len(text)))
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
        store = self.store
        with pytest.raises(KeyError), store.write() as tx:
            tx.documents.add(self.content(3), None, ())
            tx.documents.replace(chosen, self.content(2))
            store._publish(tx.documents)
            raise KeyError


@pytest.fixture
def store(tmp_path):
    with closing(SqliteStore(tmp_path / "kb.db", space(DIMENSIONS))) as opened:
        yield opened


def assert_same(store, words, where=FILTERS[0], limit=10):
    """The list and the scores are SQLite's, in one transaction; returns how many there were."""
    with store.read() as tx:
        selection = tx.index.select(where)
        assert isinstance(selection._leg, MemoryLeg)
        table = TableLeg(tx.connection.execute, selection._chunk_ids())
        assert (table.ids is None) == (selection._leg.ids is None)
        if table.ids is not None:
            assert selection._leg.ids.tolist() == table.ids.tolist()
        found, expected = selection.full_text(words, limit), table.best(words, limit)
        assert found.ids.tolist() == expected.ids.tolist(), (words, where)
        np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-12)
        others = np.array([row[0] for row in tx.connection.execute("SELECT id FROM chunks ORDER BY random() LIMIT 50")])
        ids = np.sort(others.astype(np.int64))
        np.testing.assert_allclose(selection.full_text_scores(words, ids), TableLeg(tx.connection.execute, None).scores(words, ids), rtol=1e-12)
        return found.ids.size


@pytest.mark.parametrize("seed", range(3))
def test_lists_and_scores_are_those_of_sqlite_after_every_change(store, seed):
    writer = Writer(store, seed)
    writer.add(100)
    found = 0
    for _ in range(60):
        writer.change()
        for _ in range(3):
            found += assert_same(store, writer.query(), writer.random.choice(FILTERS), writer.random.choice((1, 10, 500)))
    assert found
