"""A key that reads everything and writes only within its limit."""

from __future__ import annotations

from itertools import count
from uuid import uuid4

import pytest
from fastmcp import Client
from fastmcp.exceptions import ToolError

from kb.access.keyring import KeyFile, Keyring
from kb.api.errors import Invalid
from kb.api.rights import Limit
from tests.access.test_limits import READS, WRITES

NUMBER = count()
LIMITS = {"tagged": {"tags": ["work"]}, "foldered": {"path": "/plan"}, "both": {"tags": ["work"], "path": "/plan"}}


@pytest.fixture(scope="module")
def word():
    return f"w{uuid4().hex[:10]}"


@pytest.fixture(scope="module", params=LIMITS)
def wide(make_key, request):
    return make_key(f"wide-{request.param}", right="write", reads_all=True, **LIMITS[request.param])


@pytest.fixture
def others(writer, word):
    """A document that it may not write."""
    number = next(NUMBER)
    path = f"/home/{uuid4().hex}.md"
    return writer.note(f"{word} of others {number}", tags=["home", f"theirs{number}"], source_path=path)


def own(key, word):
    path = {"source_path": f"/plan/{uuid4().hex}.md"} if key.ok("GET", "key")["path"] else {}
    return key.note(f"{word} its own {next(NUMBER)}", tags=["work"], **path)


def test_it_reads_what_a_key_without_a_limit_reads(wide, reader, others, word):
    for part in READS:
        answers = [key("GET", f"documents/{others}{part}") for key in (wide, reader)]
        assert answers[0].status_code == answers[1].status_code, part
        assert answers[0].content == answers[1].content, part
    assert others in wide.found(word) & wide.ids("documents?limit=500&tag=home") & wide.ids("documents?limit=500")
    for path in ("tags", "paths?prefix=/", "documents?total=true", "documents/duplicates", "bin"):
        assert wide("GET", path).content == reader("GET", path).content, path
    for part in ("documents", "top_tags"):
        assert wide.ok("GET", "status?top_tags=100")[part] == reader.ok("GET", "status?top_tags=100")[part]
    assert wide.ok("GET", f"documents/{others}/similar") == reader.ok("GET", f"documents/{others}/similar")


@pytest.mark.parametrize(("method", "path", "body"), WRITES)
def test_it_changes_nothing_beyond_its_limit(wide, admin, others, method, path, body):
    if "restore" in path:
        admin.ok("DELETE", f"documents/{others}")
    before = admin("GET", f"documents/{others}").json(), admin.ok("GET", f"documents/{others}/history")
    answer = wide(method, path.format(others), json=body)
    assert answer.status_code in (403, 404), answer.text
    if answer.status_code == 404:
        assert "this key may not change it: it writes only" in answer.json()["detail"]
    assert (admin("GET", f"documents/{others}").json(), admin.ok("GET", f"documents/{others}/history")) == before


def test_it_names_nothing_of_others_as_replaced_dismissed_retagged_or_undone(wide, admin, others, word):
    mine, others_tag = own(wide, word), admin.ok("GET", f"documents/{others}")["tags"][1]
    replaced = wide("POST", "jobs?wait=60", json={"text": f"{word} in its place", "tags": ["work"], "replaces": others})
    assert replaced.status_code in (403, 404), replaced.text
    assert wide("PUT", "duplicates/dismissed", json={"document_ids": [mine, others]}).status_code == 404
    assert wide("POST", "tags/rename", json={"old": others_tag, "new": "work"}).status_code == 404
    assert wide("POST", "tags/delete", json={"name": others_tag}).status_code == 404
    [theirs] = [each["number"] for each in admin.ok("GET", "operations")["operations"] if each["by"] == "writer"][:1]
    assert wide("POST", "undo", json={"operation": theirs}).status_code == 404
    document = admin.ok("GET", f"documents/{others}")
    assert "work" not in document["tags"]
    assert (len(document["tags"]), len(admin.ok("GET", f"documents/{others}/history")["versions"])) == (2, 1)


def test_what_it_adds_is_within_its_limit_and_stays_there(wide, admin, word):
    mine = own(wide, word)
    assert admin.ok("GET", f"documents/{mine}")["tags"] == ["work"]
    assert wide("PATCH", f"notes/{mine}", json={"text": f"{word} changed"}).status_code == 200
    limit = wide.ok("GET", "key")
    assert (limit["reads_all"], limit["right"]) == (True, "write")
    out = {"source_path": "/home/out.md"} if limit["path"] else None
    if out:
        assert wide("PATCH", f"documents/{mine}", json=out).status_code == 403
    if limit["tags"]:
        answer = wide("PATCH", f"documents/{mine}/tags", json={"add": ["home"], "remove": ["work"]})
        assert answer.status_code == 403
    stolen = wide("POST", "jobs?wait=60", json={"text": "x", "tags": ["work"], "source_path": "/home/eve.md"})
    assert stolen.status_code == 403


def test_it_takes_no_path_of_others(wide, admin, word):
    path = f"/plan/{uuid4().hex}.md"
    theirs = admin.note(f"{word} at a path", tags=["home"], source_path=path)
    if not wide.ok("GET", "key")["tags"]:
        return  # the path is within its limit
    assert wide("POST", "jobs?wait=60", json={"text": "mine", "tags": ["work"], "source_path": path}).status_code == 403
    assert admin.ok("GET", f"documents/{theirs}")["tags"] == ["home"]


def test_it_manages_nothing(wide, admin):
    for method, path, body in [
        ("GET", "keys", None),
        ("POST", "keys", {"name": "more", "right": "write"}),
        ("GET", "audit", None),
        ("POST", "maintenance", {"action": "check"}),
    ]:
        assert wide(method, path, json=body).status_code == 403, path
    assert wide("GET", "keys", headers={"KB-On-Behalf-Of": "admin"}).status_code == 403
    assert wide.ok("GET", "storage")["database"] is None


async def test_over_mcp_it_reads_all_and_writes_its_own(wide, guarded, others, word):
    async with Client(f"{guarded.url}/mcp", auth=wide.token) as client:
        assert word in str(await client.call_tool("kb_get", {"document_ids": [others]}))
        with pytest.raises(ToolError, match="this key may not change it"):
            await client.call_tool("kb_update_note", {"document_id": others, "text": "mine"})


def test_only_a_key_that_writes_within_a_limit_can_read_more_than_it_writes(tmp_path):
    keyring = Keyring(KeyFile(tmp_path / "keys.json"))
    for right, limit in [("write", Limit()), ("read", Limit(("work",))), ("admin", Limit())]:
        with pytest.raises(Invalid, match="reads_all"):
            keyring.make("a", right, limit, reads_all=True)
    keyring.make("a", "write", Limit(("work",)), reads_all=True)
    [key] = KeyFile(tmp_path / "keys.json").all()
    assert key.caller.reads_all
    assert key.caller.seen is None


def test_a_rotated_key_keeps_what_it_reads(admin, make_key):
    make_key("turned", right="write", tags=["work"], reads_all=True)
    assert admin.ok("POST", "keys/turned/rotate", json={})["reads_all"]


def test_it_sees_only_its_own_jobs(wide, admin, word):
    theirs = admin.ok("POST", "jobs?wait=60", json={"text": f"{word} of a job {next(NUMBER)}"})["job_id"]
    assert wide("GET", f"jobs/{theirs}").status_code == 404
    assert theirs not in {job["id"] for job in wide.ok("GET", "jobs")["jobs"]}
