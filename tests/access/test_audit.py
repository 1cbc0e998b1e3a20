"""Who did what: a line for each change, in its transaction, and nothing of what documents hold."""

from __future__ import annotations

import json
from contextlib import closing
from uuid import uuid4

import pytest

from kb.access import restricted_store as access
from kb.access.restricted_store import CallerStore
from kb.api.errors import Forbidden, NotInBin
from kb.api.rights import Caller, Limit
from kb.store import protocol
from kb.store.rows import NOBODY, AuditEvent, Author, Retention
from kb.store.sqlite.store import SqliteStore
from tests.support.documents import content
from tests.support.spaces import space


def lines_of(api, **query):
    return api.ok("GET", "audit", params={"limit": 500, **query})["lines"]


def test_each_change_has_a_line_with_the_key_and_the_client_and_no_content(admin, writer):
    word = f"w{uuid4().hex}"
    document_id = writer.note(word, title=f"{word} title", tags=[word], source_path=f"/{word}")
    path = f"documents/{document_id}"
    writer.ok("PATCH", f"notes/{document_id}", json={"append": word}, headers={"User-Agent": "script/1.0"})
    writer.ok("PATCH", f"{path}/tags", json={"add": ["x"]})
    writer.ok("PATCH", f"{path}/tags", json={"add": ["x"]})
    writer.ok("PATCH", path, json={"source_path": f"/{word}/moved"})
    writer.ok("POST", f"{path}/revert?why={word}", json={"version": 1})
    writer.ok("DELETE", path)
    writer.ok("POST", f"{path}/restore")
    writer("PATCH", f"notes/{document_id}", json={"old": "not there", "new": ""})
    admin.ok("DELETE", f"{path}?purge=true")
    lines = lines_of(admin, document_id=document_id)
    actions = ["purge", "restore", "delete", "update", "move", "retag", "update", "add"]
    assert [line["action"] for line in lines] == actions
    assert {line["by"] for line in lines[1:]} == {"writer"}
    assert lines[-2]["client"] == "script/1.0"
    assert word not in json.dumps(lines_of(admin))
    [submitted] = [line for line in lines_of(admin, by="writer") if line["id"] == lines[-1]["id"] - 1]
    assert (submitted["action"], submitted["document_id"]) == ("submit", None)
    assert submitted["job_id"]


def test_keys_that_are_made_rotated_and_revoked_are_written_down(admin, make_key):
    make_key("short-lived", right="read")
    admin.ok("POST", "keys/short-lived/rotate", json={})
    admin.ok("DELETE", "keys/short-lived")
    assert admin("POST", "keys", json={"name": "0123abcd"}).status_code == 422
    assert admin("DELETE", "keys/nobody").status_code == 404
    lines = [(line["action"], line["key"]) for line in lines_of(admin) if line["key"]]
    assert lines[:3] == [(f"key-{action}", "short-lived") for action in ("revoke", "rotate", "make")]
    assert not {"nobody", "0123abcd"} & {key for _, key in lines}


def test_pages_of_lines_follow_one_another(admin):
    admin.note(f"w{uuid4().hex}")
    first = admin.ok("GET", "audit?limit=1")
    second = admin.ok("GET", "audit", params={"limit": 1, "cursor": first["next_cursor"]})
    assert second["lines"][0]["id"] < first["lines"][0]["id"]


def test_a_line_and_its_change_are_there_together_or_not_at_all(make_store):
    with make_store(dimensions=8) as store:
        mine = CallerStore(store, Caller("ada", "write"), "a test")
        with mine.write() as tx:
            document_id = tx.documents.add(content("one"), None, ["work"])
        with pytest.raises(NotInBin), mine.write() as tx:
            discard_and_fail(tx, document_id)
        with store.read() as tx:
            [line] = tx.audit.page(limit=10, before=None, document_id=None, by=None)
            assert (line.by, line.client, line.action, line.document_id) == ("ada", "a test", "add", document_id)
            assert tx.documents.get(document_id)


def test_what_is_refused_leaves_neither_a_change_nor_a_line(make_store):
    with make_store(dimensions=8) as store:
        limited = CallerStore(store, Caller("ada", "write", Limit(("work",))))
        with pytest.raises(Forbidden), limited.write() as tx:
            tx.documents.add(content("one"), None, ["home"])
        with store.read() as tx:
            assert not tx.audit.page(limit=10, before=None, document_id=None, by=None)
            assert not tx.counts().documents


def test_the_log_is_bounded_by_lines(tmp_path):
    with closing(SqliteStore(tmp_path / "kb.db", space(), retention=Retention(audit_lines=10))) as store:
        with store.write() as tx:
            tx.audit.add([AuditEvent("add", number) for number in range(1, 31)], Author("ada"))
        with store.write() as tx:
            assert tx.audit.expire(5) == 5
            assert tx.audit.expire(100) == 15
            assert tx.audit.expire(100) == 0
        with store.read() as tx:
            kept = [line.document_id for line in tx.audit.page(limit=100, before=None, document_id=None, by=None)]
    assert kept == list(range(30, 20, -1))


ONLY_WORKERS = {
    "claim", "claim_short", "heartbeat", "set_progress", "set_started", "take_up", "release_stalled", "release",
    "fail", "expire", "beginning_with", "link_older", "try_vectors_again",
}  # fmt: skip


@pytest.mark.parametrize("kind", ["Documents", "Links", "History", "Jobs", "Operations", "Folders"])
def test_each_method_of_a_store_has_a_guard(kind):
    part = getattr(access, f"Caller{kind}")
    methods = {name for name in vars(getattr(protocol, kind)) if not name.startswith("_")}
    guarded = part.guards.keys() | vars(part).keys() & methods
    assert guarded == methods - ONLY_WORKERS


def test_a_method_without_a_guard_is_refused(make_store):
    with make_store(dimensions=8) as store, CallerStore(store, Caller("ada", "write")).write() as tx:
        with pytest.raises(AttributeError, match="no guard for 'expire'"):
            tx.history.expire(1)
        with pytest.raises(AttributeError):
            tx.note_files("").all()


def discard_and_fail(tx, document_id):
    tx.history.discard(document_id, NOBODY)
    raise NotInBin
