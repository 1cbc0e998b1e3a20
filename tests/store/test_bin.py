"""A document that leaves the bin is complete, and takes no restored document with it."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from kb import clock
from kb.blobs.folder import FolderBlobs
from kb.documents.originals import Originals
from kb.documents.restore_document import revert
from kb.documents.write_document import write_document
from kb.store.rows import NOBODY
from tests.store.test_store import content
from tests.support.undo import undo


@pytest.fixture
def store(make_store):
    with make_store(dimensions=8) as opened:
        yield opened


def add(store, text, part_of=None):
    with store.write() as tx:
        return write_document(tx, content(text), f"/{text}", (), part_of=part_of)[0]


def discard(store, id_):
    with store.write() as tx:
        tx.history.discard(id_, NOBODY)


def restore(store, id_, text):
    with store.write() as tx:
        tx.history.restore(id_, content(text), NOBODY)


def is_there(store, id_):
    with store.read() as tx:
        return tx.documents.get(id_) is not None


@pytest.mark.parametrize("before", [True, False])
def test_an_attachment_that_was_restored_alone_stays_when_its_mail_leaves_the_bin(make_store, store, before):
    mail = add(store, "mail")
    part = add(store, "part", mail)
    discard(store, mail)
    restore(store, part, "part")
    if before:  # as it was written by versions that kept what it came in
        make_store.execute(f"UPDATE documents SET part_of = {mail} WHERE id = {part}")
    with store.write() as tx:
        tx.documents.delete(mail)
    with store.read() as tx:
        assert tx.history.binned(mail) is None
        assert tx.documents.get(part) is not None
        assert tx.documents.parts(mail) == []


def test_attachments_that_come_back_with_their_mail_are_its_again(store):
    mail = add(store, "mail")
    part = add(store, "part", mail)
    discard(store, mail)
    restore(store, mail, "mail")
    restore(store, part, "part")
    with store.read() as tx:
        assert [id_ for id_, _ in tx.documents.parts(mail)] == [part]


def test_attachments_that_were_stamped_in_the_future_went_with_their_mail(store):
    """A clock that was put back gives them other last moments, and the bin one moment all the same."""
    mail = add(store, "mail")
    part = add(store, "part", mail)
    with store.write() as tx:
        tx.documents.stamp(part, "2999-01-01T00:00:00.000Z")
    discard(store, mail)
    with store.read() as tx:
        assert tx.history.binned(part).deleted_at == tx.history.binned(mail).deleted_at


@pytest.fixture
def originals(tmp_path):
    return Originals(FolderBlobs(tmp_path), keep=True)


def test_undo_leaves_in_the_bin_what_came_in_a_document_that_stays_there(store, originals):
    add(store, "other")
    mail = add(store, "mail")
    add(store, "part", mail)
    time.sleep(0.002)
    since = clock.own.now()
    time.sleep(0.002)
    discard(store, mail)
    with store.write() as tx:
        tx.documents.move(1, "/mail")
    steps = undo(store, originals, since)
    assert [step.skipped is not None for step in steps] == [True, True]
    assert not is_there(store, mail + 1)


def test_undo_skips_what_is_changed_while_it_goes_on(store, originals, monkeypatch):
    first, second = add(store, "first"), add(store, "second")
    time.sleep(0.002)
    since = clock.own.now()
    time.sleep(0.002)

    def update(id_, text):
        with store.write() as tx:
            tx.history.keep(id_, NOBODY)
            tx.documents.replace(id_, content(text))

    for id_ in (first, second):
        update(id_, f"changed {id_}")
    late = iter([lambda: update(second, "changed by another")])
    monkeypatch.setattr(originals, "sweep", lambda _: next(late, lambda: None)())  # the end of each step
    steps = undo(store, originals, since)
    assert [step.skipped is None for step in steps] == [True, False]
    with store.read() as tx:
        assert [chunk.text for chunk in tx.documents.chunks(second)] == ["changed by another"]


def test_undo_skips_what_was_stamped_in_the_future(store, originals):
    id_ = add(store, "first")
    with store.write() as tx:
        tx.documents.stamp(id_, "2999-01-01T00:00:00.000Z")
    time.sleep(0.002)
    [step] = undo(store, originals, datetime.now(UTC))
    assert "future" in step.skipped
    assert is_there(store, id_)


def test_an_attachment_that_becomes_what_it_was_stays_where_its_mail_has_moved(make_store, originals, embedder):
    with make_store(dimensions=384) as store, store.write() as tx:
        mail = tx.documents.add(replace(content("mail"), chunks=(), vectors=()), "/old", [])
        part = tx.documents.add(replace(content("part"), chunks=(), vectors=()), "/old#part", ["kept"], mail)
        tx.history.keep(part, NOBODY)
        tx.documents.change_tags(part, add=(), remove=["kept"])
        tx.history.keep(mail, NOBODY)
        tx.documents.move(mail, "/new")
    with make_store(dimensions=384) as store:
        reverted = [revert(store, originals, part, 1) for _ in range(2)][-1]
        with store.read() as tx:
            assert len(tx.history.versions(part, limit=9)) == 3
    assert (reverted.source_path, reverted.tags) == ("/new#part", ("kept",))
