"""The links in documents, as a store keeps them: after an upgrade, for limited keys, and to popular names."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kb.api.rights import Limit
from kb.store import backfill
from kb.store.backfill import Backfill
from kb.store.rows import NOBODY, Backlink, SyncedFolder
from tests.support.documents import DIMENSIONS, content
from tests.support.eventually import eventually

VAULT = "/home/ada/vault"


@pytest.fixture
def store(make_store):
    with make_store(dimensions=DIMENSIONS) as opened:
        yield opened


def added(store, path, text, tags=(), doc_type="markdown", title=None):
    with store.write() as tx:
        name = title or (path or "").rpartition("/")[2].removesuffix(".md")
        return tx.documents.add(content(text, doc_type, name), path, tags)


def leads(store, document_id, limit=None):
    with store.read() as tx:
        links = tx.links.outgoing(tx.documents.get(document_id), limit)
    return {link.target: link.document_id for link in links}


def linking(store, document_id, limit=None, most=200):
    with store.read() as tx:
        return tx.links.incoming(tx.documents.get(document_id), most, limit)


@pytest.fixture
def forget_links(make_store):
    """Leaves the database as an upgrade leaves it."""

    def forget():
        for table in ("links", "link_names", "links_backfill"):
            make_store.execute(f"DELETE FROM {table}")
        make_store.execute("INSERT INTO links_backfill SELECT max(id) + 1 FROM documents")

    return forget


def is_complete(store):
    with store.read() as tx:
        return tx.links.is_complete


def test_the_links_of_documents_from_before_an_upgrade_are_read_in_the_background(store, forget_links, monkeypatch):
    monkeypatch.setattr(backfill, "DOCUMENTS", 2)
    first = added(store, f"{VAULT}/Kiln.md", "to [[Keys]]")
    keys = added(store, f"{VAULT}/Keys.md", "to [[Kiln]]")
    others = [added(store, f"{VAULT}/{number}.md", f"{number} to [[Kiln]]") for number in range(5)]
    forget_links()
    later = added(store, f"{VAULT}/Later.md", "later to [[Kiln]]")
    assert (leads(store, first), is_complete(store)) == ({}, False)
    assert leads(store, later) == {"Kiln": None}
    with Backfill(store):
        eventually("all links are read", lambda: is_complete(store))
    assert leads(store, first) == {"Keys": keys}
    assert [each.document_id for each in linking(store, first)[0]] == [keys, *others, later]


def test_a_new_database_has_read_all_links(store):
    assert is_complete(store)
    with store.write() as tx:
        assert not tx.documents.link_older(10)


def test_an_interrupted_backfill_goes_on_where_it_ended(store, forget_links):
    ids = [added(store, f"{VAULT}/{number}.md", f"to [[{number + 1}]]") for number in range(5)]
    forget_links()
    with store.write() as tx:
        assert tx.documents.link_older(2)
    with pytest.raises(ZeroDivisionError), store.write() as tx:
        assert tx.documents.link_older(2) / 0
    assert [bool(leads(store, each)) for each in ids] == [False, False, False, True, True]
    with store.write() as tx:
        while tx.documents.link_older(2):
            pass
    assert all(leads(store, each) for each in ids)


def test_a_document_that_is_deleted_before_its_links_are_read_is_no_obstacle(store, forget_links):
    kiln, gone = added(store, f"{VAULT}/Kiln.md", "the kiln"), added(store, f"{VAULT}/x.md", "to [[Kiln]]")
    forget_links()
    with store.write() as tx:
        tx.history.keep(gone, NOBODY)
        tx.documents.delete(gone)
    with store.write() as tx:
        while tx.documents.link_older(10):
            pass
    assert linking(store, kiln) == ([], 0)


def test_of_very_many_documents_with_a_link_the_first_are_listed_and_all_are_counted(store):
    kiln = added(store, f"{VAULT}/Kiln.md", "the kiln")
    with store.write() as tx:
        ids = [
            tx.documents.add(content(f"{number}: [[Kiln]], [[Kiln#Heat]] and [[vault/Kiln]]", "markdown"), path, ())
            for number in range(30)
            for path in [f"{VAULT}/{number % 7}/{number}.md"]
        ]
        while tx.documents.write_names(100):
            pass
    found, count = linking(store, kiln, most=10)
    assert ([each.document_id for each in found], count) == (ids[:10], 30)
    assert found[0] == Backlink(ids[0], "A title", "0: [[Kiln]], [[Kiln#Heat]] and [[vault/Kiln]]")
    assert linking(store, kiln, most=30)[1] == linking(store, kiln, most=31)[1] == 30


def test_each_document_of_a_name_has_the_links_of_its_own_folder(store):
    with store.write() as tx:
        tx.folders.put(SyncedFolder(f"{VAULT}/", "m", "host", VAULT, "", "2026-01-01T00:00:00.000Z"))
    indexes = [added(store, f"{VAULT}/{number}/Index.md", f"index {number}") for number in range(5)]
    notes = [added(store, f"{VAULT}/{number}/x/Note.md", f"{number} to [[Index]]") for number in range(5)]
    by_path = added(store, f"{VAULT}/3/Path.md", "to [[4/Index]] and [[../2/Index.md]]")
    assert [leads(store, note)["Index"] for note in notes] == indexes
    expected = [[notes[0]], [notes[1]], [notes[2], by_path], [notes[3]], [notes[4], by_path]]
    assert [[each.document_id for each in linking(store, index)[0]] for index in indexes] == expected


@pytest.mark.parametrize("limit", [Limit(tags=("mine",)), Limit(folder="/mine/")], ids=["by tag", "by folder"])
def test_for_a_limited_key_links_lead_as_if_other_documents_did_not_exist(store, limit):
    mine = {"tags": ["mine"]}
    secret = added(store, "/secret/Plan.md", "to [[Log]]")
    secret_note = added(store, None, "the note", doc_type="note", title="Plan B")
    plan = added(store, "/mine/deep/Plan.md", "mine", **mine)
    log = added(
        store,
        "/mine/Log.md",
        f"to [[Plan]], [[Plan B]], [[/secret/Plan]], kb://documents/{secret} and [[None]]",
        **mine,
    )
    assert leads(store, log) == {
        "Plan": plan, "Plan B": secret_note, "/secret/Plan": secret, f"kb://documents/{secret}": secret, "None": None,
    }  # fmt: skip
    seen = leads(store, log, limit)
    assert seen == {"Plan": plan} | dict.fromkeys(["Plan B", "/secret/Plan", f"kb://documents/{secret}", "None"])
    assert [each.document_id for each in linking(store, log)[0]] == [secret]
    assert linking(store, log, limit) == ([], 0)
    assert linking(store, log, limit, most=1) == ([], 0)


def test_for_a_limited_key_a_nearer_document_beyond_its_limit_does_not_hide_a_link(store):
    target = added(store, "/b/Keys.md", "mine", ["mine"])
    source = added(store, "/a/Log.md", "to [[Keys]]", ["mine"])
    nearer = added(store, "/a/Keys.md", "not mine")
    limit = Limit(tags=("mine",))
    assert (leads(store, source)["Keys"], leads(store, source, limit)["Keys"]) == (nearer, target)
    assert [each.document_id for each in linking(store, target, limit)[0]] == [source]
    assert linking(store, target) == ([], 0)


def test_a_note_cannot_take_the_links_to_another_documents_id(store):
    target = added(store, "/a.md", "the target")
    added(store, None, "a note", doc_type="note", title=f"kb://documents/{target}")
    source = added(store, "/b.md", f"to kb://documents/{target} and [[kb://documents/{target}]]")
    assert leads(store, source)[f"kb://documents/{target}"] == target


def test_a_note_with_a_slash_in_its_title_is_found_by_it(store):
    band = added(store, None, "the band", doc_type="note", title="AC/DC")
    source = added(store, "/b.md", "to [[ac/dc]]")
    assert leads(store, source) == {"ac/dc": band}


def mail(store, own, *answered, path=None):
    with store.write() as tx:
        ids = (f"{own}@x", *(f"{other}@x" for other in answered))
        return tx.documents.add(replace(content(f"mail {own}", "eml", own), message_ids=ids), path or f"/{own}.eml", ())


def test_the_links_of_a_mail_come_back_with_it_and_are_forgotten_with_its_last_version(store, make_store):
    first, second = mail(store, "a"), mail(store, "b", "a")
    assert leads(store, second) == {"<a@x>": first}
    with store.write() as tx:
        tx.documents.replace(second, content("another text", "eml", "b"))
    assert leads(store, second) == {}
    with store.write() as tx:
        tx.documents.delete(second)
    assert make_store.execute("SELECT ids FROM message_ids") == [('["a@x"]',)]
    with store.write() as tx:
        tx.documents.delete(first)
    assert make_store.execute("SELECT ids FROM message_ids") == []


def test_mails_with_the_same_id_are_one_target(store):
    first, _ = mail(store, "a", path="/one/a.eml"), mail(store, "a", path="/two/longer/a.eml")
    assert leads(store, mail(store, "b", "a")) == {"<a@x>": first}


def test_a_note_cannot_take_the_links_to_a_mail(store):
    added(store, None, "a note", doc_type="note", title="mid:a@x")
    assert leads(store, mail(store, "b", "a")) == {}
