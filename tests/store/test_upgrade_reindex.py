"""An upgrade indexes older documents again in steps that let others write, also after a full disk."""

from __future__ import annotations

from contextlib import closing, contextmanager
from dataclasses import replace
from importlib.resources import files

import apsw
import numpy as np
import pytest

from kb.api.errors import DiskFull
from kb.index.words.stems import stemmed
from kb.store import backfill
from kb.store.backfill import Backfill
from kb.store.rows import ChunkPosition, Filter, NewChunk
from kb.store.sqlite import upgrade_reindex
from kb.store.sqlite.full_text_cache import read_snapshot
from kb.store.sqlite.store import SqliteStore
from kb.store.sqlite.upkeep import agree
from kb.store.sqlite.verify import Verification
from tests.support.documents import DIMENSIONS, content
from tests.support.eventually import eventually
from tests.support.spaces import space
from tests.support.store_v2 import connect

WORDS = ("Łódź tram", "getUserById", "Größe and Höhe", "plain harbour")


def book(chunks):
    one = content("x")
    texts = [NewChunk(f"{WORDS[number % 4]} {number}", "Müller", ChunkPosition(1, 1, 0, 9)) for number in range(chunks)]
    return replace(one, chunks=texts, vectors=np.repeat(one.vectors, chunks, axis=0), content_hash=f"{chunks:064}")


def make_old(path):
    """Remove the parts that a database of an older kb lacks."""
    connection = connect(path)
    connection.execute("UPDATE chunks SET segmented = NULL, variants = NULL")
    connection.execute("UPDATE sections SET segmented = NULL, variants = NULL")
    connection.execute("UPDATE documents SET language = NULL")
    connection.execute("INSERT INTO reanalysis VALUES (1, 0)")
    connection.execute("INSERT INTO chunks_fts (chunks_fts) VALUES ('rebuild')")
    connection.close()


@pytest.fixture
def old(tmp_path):
    """The path of a database that an older kb filled."""
    path = tmp_path / "kb.db"
    with closing(SqliteStore(path, space(dimensions=DIMENSIONS))) as store, store.write() as tx:
        for chunks in (3, 260, 2, 1):
            tx.documents.add(book(chunks), f"{chunks}.md", ())
    make_old(path)
    return path


def found(store, word):
    with store.read() as tx:
        return tx.index.select(Filter()).full_text((word,), 1000).ids.size


def test_each_step_writes_some_chunks_and_memory_is_what_is_written(old, monkeypatch):
    monkeypatch.setattr(upgrade_reindex, "CHUNKS", 50)
    with closing(SqliteStore(old, space(dimensions=DIMENSIONS))) as store:
        steps, before = [], found(store, "lodz")
        while store.renew_words(50):
            steps.append(found(store, "lodz"))
            with store.read() as tx:
                assert agree(tx, tx.words, ("tram", "harbour", "lodz"))
                kept, read = tx.words.snapshot, read_snapshot(tx.connection)
            assert kept.lengths[: kept.size].tolist() == read.lengths.tolist()
            assert kept.tokens == read.tokens
        assert max(np.diff([before, *steps])) <= 50
        assert steps == sorted(steps)
        assert len(steps) > 4
        assert found(store, "lodz") == found(store, "tram")
        assert found(store, "mueller") == 266
        assert not store.memory.faults


def test_what_somebody_changed_meanwhile_is_left_as_it_is_now(old):
    with closing(SqliteStore(old, space(dimensions=DIMENSIONS))) as store:
        with store.read() as tx:
            changes = upgrade_reindex.next_changes(tx.connection.execute, 50)
        with store.write() as tx:
            for document in tx.documents.page(Filter(), sort="id", limit=9, cursor=None):
                tx.documents.delete(document.id)
            tx.documents.add(content("Other words"), "new.md", ())
        with store.write() as tx:
            tx.reanalysed = upgrade_reindex.write_changes(tx.connection, changes)
        assert found(store, "words") == 1
        assert found(store, "lodz") == 0
        with store.read() as tx:
            assert agree(tx, tx.words, ("other", "words"))


@pytest.mark.parametrize("fault", [DiskFull(), apsw.BusyError("locked")])
def test_a_full_or_a_busy_disk_ends_nothing_and_it_is_tried_again(old, monkeypatch, fault):
    with closing(SqliteStore(old, space(dimensions=DIMENSIONS))) as store:
        write, faults = store.write, [fault, fault]

        @contextmanager
        def failing(*args):
            if faults:
                raise faults.pop()
            with write(*args) as tx:
                yield tx

        monkeypatch.setattr(store, "write", failing)
        monkeypatch.setattr(backfill, "RETRY_SECONDS", 0.01)
        with Backfill(store):
            eventually("all documents are indexed again", lambda: found(store, "mueller") == 266)
        assert not faults
        assert not store.memory.faults


def test_documents_of_before_get_their_language_and_are_found_by_the_stems_of_their_words(tmp_path):
    path = tmp_path / "kb.db"
    with closing(SqliteStore(path, space(dimensions=DIMENSIONS))) as store, store.write() as tx:
        german = tx.documents.add(content("Die Häuser am Hafen stehen seit vielen Jahren leer."), "a.md", ())
        english = tx.documents.add(content("The boats are in the harbour, and nobody is on deck."), "b.md", ())
    make_old(path)
    with closing(SqliteStore(path, space(dimensions=DIMENSIONS))) as store:
        assert not any(found(store, stem) for stem in stemmed(["haus"], ["de"]))
        while store.renew_words(50):
            pass
        with store.read() as tx:
            assert [tx.documents.get(each).language for each in (german, english)] == ["de", "en"]
        assert [found(store, stem) for stem in stemmed(["haus"], ["de"])] == [1]
    with closing(Verification(path)) as database:
        assert [fault for check in database.checks for fault in check.find() if check.name == "full text"] == []


def test_words_in_a_database_of_before_get_their_one_form_without_a_command(tmp_path):
    path = tmp_path / "kb.db"
    with closing(SqliteStore(path, space(dimensions=DIMENSIONS))) as store, store.write() as tx:
        tx.documents.add(content("کتاب, e-mail, ١٢٣٤", title="مدرسة"), "O'Reilly.md", ())
    connection = connect(path)
    connection.execute("UPDATE chunks SET segmented = NULL, variants = NULL")
    connection.execute("UPDATE sections SET segmented = NULL, variants = NULL")
    connection.execute("INSERT INTO chunks_fts (chunks_fts) VALUES ('rebuild')")
    connection.execute("DELETE FROM names")
    connection.execute(files("kb.store.sqlite.migrations").joinpath("0039_one_form.sql").read_text())
    connection.close()
    with closing(SqliteStore(path, space(dimensions=DIMENSIONS))) as store:
        assert not any(found(store, word) for word in ("كتاب", "email", "1234"))
        with Backfill(store):
            eventually("all documents are indexed again", lambda: found(store, "email"))
        assert all(found(store, word) for word in ("كتاب", "email", "1234", "مدرسه"))
        with store.read() as tx:
            assert tx.documents.named(tx.index.analyzer.indexed("oreilly"), 9, 9)
            assert agree(tx, tx.words, ("email",))
