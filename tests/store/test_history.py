"""Retention of earlier versions and of the bin."""

from __future__ import annotations

import os
import time
from dataclasses import replace

import pytest

from kb.blobs.folder import FolderBlobs
from kb.documents.diff import diff
from kb.documents.originals import Originals
from kb.documents.write_document import write_document
from kb.store.rows import NOBODY, Retention
from kb.store.sqlite.rebuild import rebuild
from tests.store.test_store import content
from tests.support.blobs import kept_at


def opened(database, **kept):
    return database(dimensions=8, retention=Retention(**kept))


def add(store, text, **options):
    with store.write() as tx:
        return write_document(tx, content(text, **options), None, ())[0]


def update(store, id_, text, author=NOBODY):
    with store.write() as tx:
        tx.history.keep(id_, author)
        tx.documents.replace(id_, content(text))


def discard(store, id_):
    with store.write() as tx:
        tx.history.discard(id_, NOBODY)


def numbers(store, id_):
    with store.read() as tx:
        return [version.number for version in tx.history.versions(id_, limit=1000)]


def counts(store):
    with store.read() as tx:
        return tx.history.counts()


def expire(store):
    with store.write() as tx:
        return tx.history.expire(1000)


def age(database, days, condition="TRUE"):
    """Let it have happened so many days ago."""
    database.execute(f"UPDATE bin SET deleted_at = {database.earlier('deleted_at', days)}")
    database.execute(f"UPDATE versions SET until = {database.earlier('until', days)} WHERE {condition}")


def test_versions_go_after_their_days_and_history_then_begins_later(make_store):
    with opened(make_store, history_days=10) as store:
        id_ = add(store, "one")
        update(store, id_, "two")
        update(store, id_, "three")
        age(make_store, 11, "number = 1")
        assert expire(store) == 1
        assert numbers(store, id_) == [3, 2]
        before = counts(store)
        assert before.begins is not None
        assert (before.versions, before.size > 0) == (1, True)
        age(make_store, 11)
        assert expire(store) == 1
        assert counts(store).size == 0


def test_what_is_in_the_bin_stays_for_its_days_whatever_becomes_of_history(make_store):
    with opened(make_store, history_days=1, history_size=0, bin_days=30) as store:
        id_ = add(store, "one")
        update(store, id_, "two")
        discard(store, id_)
        age(make_store, 20)
        assert expire(store) == 1
        assert numbers(store, id_) == [2]
        with store.write() as tx:
            tx.history.restore(id_, content("two"), NOBODY)
            tx.history.discard(id_, NOBODY)
        age(make_store, 31)
        expire(store)
        assert numbers(store, id_) == []
        assert counts(store).binned == 0


def test_the_oldest_versions_give_way_when_all_take_too_much(make_store):
    with opened(make_store) as store:
        id_ = add(store, "one")
        for number in range(10):
            update(store, id_, f"text {number}")
            time.sleep(0.002)
        size = counts(store).size
    with opened(make_store, history_size=size // 2) as store:
        expire(store)
        kept = counts(store)
        assert 0 < kept.size <= size // 2
        assert numbers(store, id_) == list(range(11, 11 - kept.versions - 1, -1))


def test_a_retag_keeps_no_text_twice(make_store):
    with opened(make_store) as store:
        id_ = add(store, "one")
        for number in range(5):
            with store.write() as tx:
                tx.history.keep(id_, NOBODY)
                tx.documents.change_tags(id_, add=[f"t{number}"], remove=[])
        assert (counts(store).versions, counts(store).size) == (5, 0)
        update(store, id_, "two")
        assert make_store.execute("SELECT count(*) FROM former_contents") == [(1,)]
        with store.read() as tx:
            texts = {tx.history.chunks(version)[0].text for version in tx.history.versions(id_, limit=10)}
        assert texts == {"one", "two"}


def test_a_clock_that_goes_back_leaves_no_version_that_never_was(make_store, monkeypatch):
    with opened(make_store) as store:
        id_ = add(store, "one")
        make_store.execute("UPDATE documents SET created_at = '2999-01-01 00:00:00.000'")
        update(store, id_, "two")
        with store.read() as tx:
            newest, first = tx.history.versions(id_, limit=10)
        assert first.at <= first.until == newest.at


def test_a_rolled_back_change_leaves_no_version(make_store):
    with opened(make_store) as store:
        id_ = add(store, "one")

        def fail():
            with store.write() as tx:
                tx.history.keep(id_, NOBODY)
                tx.documents.replace(id_, content("two"))
                tx.history.discard(id_, NOBODY)
                raise KeyError

        with pytest.raises(KeyError):
            fail()
        assert numbers(store, id_) == [1]
        assert counts(store).versions == counts(store).binned == 0


def test_files_of_versions_and_of_the_bin_stay_until_these_go(make_store, tmp_path):
    originals = Originals(FolderBlobs(tmp_path), keep=True)
    hashes = ["a" * 64, "b" * 64]
    for hash_ in hashes:
        kept_at(originals, hash_).parent.mkdir(parents=True)
        kept_at(originals, hash_).write_text("x")
    first, second = (replace(content(hash_, doc_type="text"), content_hash=hash_) for hash_ in hashes)

    def kept():
        originals.sweep(store)
        originals.sweep_strays(store)
        return [kept_at(originals, hash_).exists() for hash_ in hashes]

    with opened(make_store) as store:
        add(store, "another, so that the database is not empty")
        with store.write() as tx:
            id_, _ = write_document(tx, first, "/x", ())
            assert write_document(tx, second, "/x", ())[0] == id_
        assert kept() == [True, True]
        discard(store, id_)
        assert kept() == [True, True]
        age(make_store, 100, "number = 1")
        expire(store)
        assert kept() == [False, True] or counts(store).binned == 0
        with store.write() as tx:
            tx.documents.delete(id_)
        assert kept() == [False, False]


@pytest.mark.sqlite
def test_a_database_that_is_made_anew_keeps_versions_and_bin(make_store, tmp_path):
    with opened(make_store) as store:
        id_, other = add(store, "one"), add(store, "other")
        update(store, id_, "two")
        discard(store, other)
        before = counts(store)
    assert not rebuild(tmp_path / "kb.db", lambda *_: None)  # no vector is missing
    with opened(make_store) as store:
        assert counts(store) == before
        assert numbers(store, id_) == [2, 1]
        with store.read() as tx:
            assert tx.history.binned(other).document.title == "A title"


def test_texts_that_have_little_in_common_are_compared_in_bounded_time():
    one, other = (" ".join(f"{start}{number}" for number in range(20_000)) for start in "ab")
    changes = diff(f"same {one} end", f"same {other} end")
    assert [change.kind for change in changes] == ["equal", "delete", "insert", "equal"]


def test_a_large_bin_takes_no_room_of_former_versions(make_store):
    with opened(make_store, history_size=3000) as store:
        small = add(store, "small")
        update(store, small, "changed")
        for _ in range(5):
            discard(store, add(store, os.urandom(1000).hex()))
        assert expire(store) == 0
        assert numbers(store, small) == [2, 1]


def test_a_moment_is_refused_at_which_something_stood_that_left_the_bin(make_store):
    with opened(make_store) as store:
        discard(store, add(store, "gone"))
        assert counts(store).begins is None
        age(make_store, 31)
        with store.read() as tx:
            [binned] = tx.history.bin(limit=9)
        assert expire(store) == 1
        assert counts(store).begins == binned.deleted_at
