"""What leaves the bin takes nothing with it that was restored, and comes back whole."""

from __future__ import annotations

import pytest

from kb.documents.save import save
from kb.store.rows import NOBODY, Retention
from kb.store.sqlite.store import SqliteStore
from tests.store.test_store import content
from tests.support.spaces import space


@pytest.fixture
def store(tmp_path):
    store = SqliteStore(tmp_path / "kb.db", space(8), retention=Retention())
    yield store
    store.close()


def add(store, text, part_of=None):
    with store.write() as tx:
        return save(tx, content(text), f"/{text}", (), part_of=part_of)[0]


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
def test_an_attachment_that_was_restored_alone_stays_when_its_mail_leaves_the_bin(store, before):
    mail = add(store, "mail")
    part = add(store, "part", mail)
    discard(store, mail)
    restore(store, part, "part")
    if before:  # as it was written by versions that kept what it came in
        with store.write() as tx:
            tx.documents._execute("UPDATE documents SET part_of = ? WHERE id = ?", (mail, part))
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
