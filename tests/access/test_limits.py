"""A key limited to tags or a folder: documents beyond its limit do not exist for it, and it cannot write there."""

from __future__ import annotations

import re
import unicodedata
from datetime import datetime, timedelta
from email.message import EmailMessage
from hashlib import sha256
from uuid import uuid4

import httpx2
import pytest
from fastmcp import Client

from kb.access import keyring
from kb.access.keyring import KeyFile, Keyring, token_digest
from kb.api.errors import KeyRotated, NotFound, SettingError
from kb.api.rights import Limit
from kb.asgi.bearer import GUESSES_PER_MINUTE, Guesses, address_network
from kb.asgi.rate_limit import MAX_CALLERS
from kb.store.rows import NamedKey
from tests.access.conftest import Api
from tests.conftest import ALL_APPS, KEY, MCP_KEY
from tests.support.eventually import eventually
from tests.support.rare_cases import mostly_rare
from tests.support.stores import Database
from tests.watching.conftest import lines


@pytest.fixture(scope="module")
def word():
    """A word that stands in every document of this module."""
    return f"w{uuid4().hex[:10]}"


@pytest.fixture(scope="module")
def seen(admin, word):
    """A document within both limits."""
    return admin.note(f"{word} seen", tags=["work", "shared"], source_path="/plan/seen.md")


HIDDEN = {
    "no tag, no path": {},
    "another tag": {"tags": ["home"], "source_path": "/home/hidden.md"},
    "the tag by another case": {"tags": ["Work"], "source_path": "/Plan/hidden.md"},
    "a folder that begins alike": {"tags": ["workshop"], "source_path": "/planet/hidden.md"},
    "a path that leads out again": {"tags": ["work2"], "source_path": "/plan/../home/hidden.md"},
    "a tag that is like one below its own": {"tags": ["work-old", "works/x"], "source_path": "/plan-old/hidden.md"},
    "a path that ends with the way out": {"tags": ["worker"], "source_path": "/plan/.."},
}


@pytest.fixture(scope="module")
def hidden(admin, word):
    """The ids of documents beyond both limits."""
    return {admin.note(f"{word} hidden {why}", **fields): why for why, fields in HIDDEN.items()}


@pytest.fixture(params=["tagged", "foldered"])
def limited(request):
    return request.getfixturevalue(request.param)


def mail(subject, text, **files):
    """A message with files of plain text."""
    message = EmailMessage()
    message["Subject"], message["From"] = subject, "ada@example.org"
    message.set_content(text)
    for name, content in files.items():
        message.add_attachment(content.encode(), maintype="text", subtype="plain", filename=f"{name}.txt")
    return message


def without_id(answer, document_id):
    """What an answer says, but for the id that it was asked for."""
    return answer.status_code, answer.json()["type"], answer.json()["detail"].replace(str(document_id), "ID")


READS = ["", "/text", "/links", "/file", "/pages", "/history", "/history/1", "/history/1/diff", "?version=1"]
WRITES = [
    ("DELETE", "documents/{}", None),
    ("PATCH", "documents/{}", {"source_path": "/plan/moved.md"}),
    ("PATCH", "documents/{}/tags", {"add": ["work"]}),
    ("PATCH", "notes/{}", {"text": "mine"}),
    ("POST", "documents/{}/revert", {"version": 1}),
    ("POST", "documents/{}/restore", None),
]


def test_lists_searches_tags_and_counts_hold_its_documents_alone(limited, seen, hidden, word):
    assert seen in limited.ids()
    assert not limited.ids() & hidden.keys()
    for mode in ({}, {"fts_only": True}, {"vec_only": True}, {"group_by": "document"}, {"exact": True}):
        found = limited.found(word, **mode)
        assert seen in found
        assert not found & hidden.keys(), mode
    for where in ({"tags": ["home"]}, {"tag_any": ["home", "Work"]}, {"source_prefix": "/"}, {"tag_not": ["x"]}):
        assert not limited.found(word, **where) & hidden.keys(), where
    for query in ("tag:home", "#home", "path:hidden", "-tag:x", "type:note", "after:2020 -path:zz"):
        assert not limited.found(query) & hidden.keys(), query
    for query in ("tag_any=home", "source_prefix=/", "source_path=/home/hidden.md", "sort=recent", "sort=oldest"):
        assert not limited.ids(f"documents?limit=500&{query}") & hidden.keys(), query
    assert {each["tag"] for each in limited.ok("GET", "tags")["tags"]} & {"home", "Work", "workshop"} == set()
    counted = sum(limited.ok("GET", "status")["documents"].values())
    assert counted == len(limited.ids()) == limited.ok("GET", "documents?total=true")["total"]


def test_a_key_sees_and_changes_what_is_tagged_below_its_tag(admin, tagged, word):
    below = admin.note(f"{word} below", tags=["work/kiln"], source_path="/elsewhere/below.md")
    assert below in tagged.found(word) & tagged.ids() & tagged.ids("documents?tag=work&limit=500")
    assert below not in tagged.ids("documents?tag=work&tag_exact=true&limit=500")
    assert {"tag": "work/kiln", "documents": 1, "branch": 1} in tagged.ok("GET", "tags")["tags"]
    own = tagged.note(f"{word} of its own", tags=["work/taxes"])
    assert admin.ok("GET", f"documents/{own}")["tags"] == ["work/taxes"]
    assert tagged("PATCH", f"documents/{own}/tags", json={"add": ["home"], "remove": ["work/taxes"]}).status_code == 403
    assert tagged.ok("POST", "tags/rename", json={"old": "work/taxes", "new": "work/tax"})["documents"] == 1
    for document_id in (below, own):
        admin.ok("DELETE", f"documents/{document_id}")


def test_a_link_to_a_document_beyond_the_limit_leads_nowhere_and_names_nobody(admin, tagged, word):
    secret = admin.note(f"{word} secret [[Plan {word}]]", tags=["home"], title=f"Secret {word}")
    plan = admin.note(f"{word} plan [[Secret {word}]] kb://documents/{secret}", tags=["work"], title=f"Plan {word}")
    whole, seen = (api.ok("GET", f"documents/{plan}/links") for api in (admin, tagged))
    assert {link["document_id"] for link in whole["links"]} == {secret}
    assert [each["document_id"] for each in whole["linked_from"]] == [secret]
    nowhere = [{"target": link["target"], "document_id": None, "title": None} for link in whole["links"]]
    expected = {"document_id": plan, "links": nowhere, "linked_from": [], "linked_from_count": 0, "complete": True}
    assert seen == expected
    assert tagged("GET", f"documents/{secret}/links").status_code == 404
    text = {"text": f"[[Secret {word}]] kb://documents/{secret}"}
    assert tagged.ok("POST", "links", json=text) == {"links": nowhere}
    assert tagged("POST", "links", json=text | {"document_id": secret}).status_code == 404
    nearer = admin.note("nearer", tags=["home"], title=f"Plan {word}")
    assert tagged.ok("GET", f"documents/{plan}/links") == seen
    for document_id in (secret, plan, nearer):
        admin.ok("DELETE", f"documents/{document_id}")


def test_a_key_renames_a_tag_in_the_front_matter_of_its_own_notes_only(admin, tagged, word):
    matter = f"---\ntags: [{word}/a]\n---\n"
    own = tagged.note(f"{matter}{word} of its own", tags=["work"])
    other = admin.note(f"{matter}{word} of others", tags=["home"])
    renamed = tagged.ok("POST", "tags/rename", json={"old": f"{word}/a", "new": f"{word}/b"})
    assert renamed == {"documents": 1, "from_text": 0}
    after, untouched = (admin.ok("GET", f"documents/{document_id}") for document_id in (own, other))
    assert after["chunks"][0]["text"].startswith(f"---\ntags: [{word}/b]\n---\n")
    assert after["tags"] == sorted([f"{word}/b", "work"])
    assert untouched["chunks"][0]["text"].startswith(matter)
    for document_id in (own, other):
        admin.ok("DELETE", f"documents/{document_id}")


def test_a_key_renames_a_tag_only_in_its_own_documents_and_only_if_all_of_them_stay_its_own(admin, tagged, word):
    own = tagged.note(f"{word} of its own", tags=["work", f"{word}/a"])
    other = admin.note(f"{word} of others", tags=["home", f"{word}/a"])
    assert tagged.ok("POST", "tags/rename", json={"old": f"{word}/a", "new": f"{word}/b"})["documents"] == 1
    assert admin.ok("GET", f"documents/{own}")["tags"] == [f"{word}/b", "work"]
    assert admin.ok("GET", f"documents/{other}")["tags"] == ["home", f"{word}/a"]
    before = admin.ok("GET", "tags")
    assert tagged("POST", "tags/rename", json={"old": "work", "new": "play"}).status_code == 403
    assert tagged("POST", "tags/rename", json={"old": "home", "new": "work"}).status_code == 404
    assert admin.ok("GET", "tags") == before
    for document_id in (own, other):
        admin.ok("DELETE", f"documents/{document_id}")


def test_a_word_is_named_and_corrected_by_its_documents_alone(admin, limited):
    admin.note("Harmonicaw and a quillwort.", tags=["work"], source_path="/plan/words.md")
    for letter in "abcdefghjklmnp":  # each is as near as the word that it may see, and comes before it
        admin.note(f"harmonica{letter} onlyhidden", tags=["home"])
    for query, nearest in (
        ("harmonicaq", ["harmonicaw"]),
        ("onlyhiden", []),
        ("onlyhidden", []),
        ("quilwort", ["quillwort"]),
    ):
        reply = limited.ok("POST", "search", json={"query": query})
        assert reply["unknown"] == [{"word": query, "nearest": nearest}]


def test_a_document_beyond_the_limit_is_told_from_none_by_no_answer(limited, hidden):
    none = 10**9
    for document_id in hidden:
        for path in READS:
            there, not_there = (limited("GET", f"documents/{each}{path}") for each in (document_id, none))
            assert without_id(there, document_id) == without_id(not_there, none), path
            assert there.status_code in (404, 422), path
        for method, path, body in WRITES:
            there, not_there = (limited(method, path.format(each), json=body) for each in (document_id, none))
            assert without_id(there, document_id) == without_id(not_there, none), path
            assert there.status_code == 404, path
    assert not limited.found("hidden", document_id=next(iter(hidden)))


def test_what_it_adds_gets_its_tag_or_needs_its_path(admin, tagged, foldered, word):
    added = tagged.note(f"{word} added by the tagged key")
    assert admin.ok("GET", f"documents/{added}")["tags"] == ["work"]
    for path in (
        None,
        "/home/x",
        "/planet/x",
        "/Plan/x",
        "/plan",
        "/plan/../home/x",
        "/plan/..",
        "work/x",
        "/plan\\..\\x",
    ):
        fields = {} if path is None else {"source_path": path}
        refused = foldered("POST", "jobs", json={"text": f"{word} {path}", **fields})
        assert refused.status_code == 403, path
        assert "/plan/" in refused.json()["detail"]
    assert foldered.note(f"{word} under it", source_path="/plan/deep/er.md")


def test_a_change_may_not_leave_the_limit(admin, tagged, foldered, word):
    document_id = admin.note(f"{word} stays", tags=["work", "other"], source_path="/plan/stays.md")
    refused = [
        tagged("PATCH", f"documents/{document_id}/tags", json={"remove": ["work"]}),
        tagged("PATCH", f"notes/{document_id}", json={"text": "new", "tags_remove": ["work"]}),
        foldered("PATCH", f"documents/{document_id}", json={"source_path": "/home/stays.md"}),
        foldered("PATCH", f"documents/{document_id}", json={"source_path": "/plan/../stays.md"}),
    ]
    assert [answer.status_code for answer in refused] == [403] * 4
    now = admin.ok("GET", f"documents/{document_id}")
    assert (now["tags"], now["source_path"], now["updated_at"]) == (["other", "work"], "/plan/stays.md", None)
    assert len(admin.ok("GET", f"documents/{document_id}/history")["versions"]) == 1


def test_the_same_content_elsewhere_is_not_told_of_and_not_touched(admin, tagged, word):
    text = f"{word} twice"
    other = admin.note(text, tags=["home"])
    own = tagged.note(text)
    assert own != other
    assert tagged.note(text) == own
    assert admin.ok("GET", f"documents/{other}")["tags"] == ["home"]


def test_a_path_that_another_document_has_is_not_written_to(admin, make_key, word):
    both = make_key(f"both-{word}", right="write", tags=["work"], path="/both")
    other = admin.note(f"{word} theirs", tags=["home"], source_path="/both/taken.md")
    own = both.note(f"{word} mine", source_path="/both/free.md")
    for refused in (
        both("POST", "jobs", json={"text": f"{word} more", "source_path": "/both/taken.md"}),
        both("PATCH", f"documents/{own}", json={"source_path": "/both/taken.md"}),
    ):
        assert refused.status_code == 403
        assert f" {other} " not in refused.text
    assert admin.ok("GET", f"documents/{other}")["updated_at"] is None
    both.ok("DELETE", f"documents/{own}")
    admin.note(f"{word} in its place", tags=["home"], source_path="/both/free.md")
    assert both("POST", f"documents/{own}/restore").status_code == 403


@pytest.mark.parametrize("tags", [[], ["work"]], ids=["folder", "tags and folder"])
def test_a_key_with_a_folder_cannot_learn_whether_a_path_outside_of_it_is_taken(admin, make_key, word, tags):
    caller = make_key(f"outside-{uuid4().hex}", right="write", tags=tags, path="/pub")
    own = caller.note(f"{word} mine", source_path=f"/pub/{uuid4().hex}.md")
    admin.note(f"{word} hidden", tags=["home"], source_path=f"/home/{word}.md")
    answers = [
        [
            caller("POST", "jobs", json={"text": f"{word} try", "source_path": path}),
            caller("POST", "jobs", json={"text": f"{word} try", "source_path": path, "if_new": True}),
            caller("POST", "jobs", files={"file": ("a.txt", b"try")}, data={"source_path": path}),
            caller("PATCH", f"documents/{own}", json={"source_path": path}),
        ]
        for path in (f"/home/{word}.md", f"/home/{word}-free.md")
    ]
    said = [[(each.status_code, each.json()["detail"]) for each in several] for several in answers]
    assert said[0] == said[1]
    assert {status for status, _ in said[0]} == {403}
    assert len({detail for _, detail in said[0]}) == 1


def test_a_key_without_a_folder_takes_no_path_where_others_may_save_later(admin, tagged, word):
    own, path = tagged.note(f"{word} own"), f"/{word}/tomorrow.md"
    admin.note(f"{word} theirs", tags=["home"], source_path=f"/{word}/taken.md")
    for taken in (path, f"/{word}/taken.md"):
        answers = [
            tagged("POST", "jobs", json={"text": f"{word} early", "source_path": taken}),
            tagged("POST", "jobs", files={"file": ("a.txt", b"early")}, data={"source_path": taken}),
            tagged("PATCH", f"documents/{own}", json={"source_path": taken}),
        ]
        assert [each.status_code for each in answers] == [403] * 3
        assert {each.json()["detail"] for each in answers} == {
            "source_path: this key is limited to tags, so it can only use paths of documents within its limit. "
            "A key limited to a folder can use all paths in it."
        }
    later = admin.note(f"{word} private diary", tags=["private"], source_path=path)
    assert tagged("GET", f"documents/{later}").status_code == 404
    admin.ok("PATCH", f"documents/{later}/tags", json={"add": ["work"]})
    assert tagged.note(f"{word} diary, shared", source_path=path) == later


def test_no_limited_key_takes_a_path_that_an_attachment_of_others_may_come_to(admin, limited, make_key, word):
    own = admin.note(f"{word} to move", tags=["work"], source_path="/plan/to-move.md")
    of_jobs = make_key(f"of-jobs-{uuid4().hex}", right="write", path="job:7#a")
    for caller in (limited, of_jobs):
        taken = {"source_path": "job:7#a/invoice.txt"}
        assert caller("POST", "jobs", json={"text": f"{word} invoice", **taken}).status_code == 403
    assert limited("PATCH", f"documents/{own}", json=taken).status_code == 403


def test_jobs_and_idempotency_keys_of_others_are_not_its_own(admin, tagged, foldered, word):
    key = {"Idempotency-Key": f"same-{word}"}
    note = {"text": f"{word} once", "tags": ["work"], "source_path": "/plan/once.md"}
    theirs = admin.ok("POST", "jobs?wait=60", json=note, headers=key)
    own = tagged.ok("POST", "jobs?wait=60", json=note, headers=key)
    assert own["job_id"] != theirs["job_id"]
    assert tagged.ok("POST", "jobs", json=note, headers=key)["job_id"] == own["job_id"]
    for caller in (tagged, foldered):
        listed = {each["id"] for each in caller.ok("GET", "jobs?limit=500")["jobs"]}
        assert theirs["job_id"] not in listed
        assert (own["job_id"] in listed) == (caller is tagged)
        for method, path in (("GET", "jobs/{}"), ("POST", "jobs/{}/retry"), ("DELETE", "jobs/{}")):
            there, none = (caller(method, path.format(each)) for each in (theirs["job_id"], 10**9))
            assert without_id(there, theirs["job_id"]) == without_id(none, 10**9)
    counts = tagged.ok("GET", "status")["queue"]
    assert counts["done"] == sum(each["status"] == "done" for each in tagged.ok("GET", "jobs?limit=500")["jobs"])


def test_a_key_made_again_with_another_limit_has_idempotency_keys_of_its_own(admin, make_key, word):
    name, sent = f"again-{word}", {"json": {"text": f"{word} sent twice"}, "headers": {"Idempotency-Key": "k"}}
    jobs = {admin.ok("POST", "jobs", json=sent["json"], headers={"Idempotency-Key": f"{name}:k"})["job_id"]}
    for tag in ("one", "two"):
        caller = make_key(name, right="write", tags=[tag])
        jobs |= {caller.ok("POST", "jobs", **sent)["job_id"] for _ in range(2)}
        admin.ok("DELETE", f"keys/{name}")
    assert len(jobs) == 3


def test_versions_from_before_it_was_within_the_limit_stay_hidden(admin, tagged, word):
    document_id = admin.note(f"{word} secret draft", tags=["home"])
    admin.ok("PATCH", f"notes/{document_id}", json={"text": f"{word} for all"})
    admin.ok("PATCH", f"documents/{document_id}/tags", json={"add": ["work"]})
    assert [each["number"] for each in tagged.ok("GET", f"documents/{document_id}/history")["versions"]] == [3]
    for path in ("/history/1", "/history/2", "/history/1/diff", "/history/3/diff?to=1", "?version=1", "?version=2"):
        assert tagged("GET", f"documents/{document_id}{path}").status_code == 404, path
    assert tagged("POST", f"documents/{document_id}/revert", json={"version": 1}).status_code == 404


def test_what_left_the_limit_is_gone_for_it_in_the_past_too(admin, tagged, word):
    document_id = admin.note(f"{word} was theirs once", tags=["work"])
    assert tagged.ok("GET", f"documents/{document_id}?version=1")["tags"] == ["work"]
    admin.ok("PATCH", f"documents/{document_id}/tags", json={"remove": ["work"]})
    assert admin.ok("GET", f"documents/{document_id}?version=1")["tags"] == ["work"]
    assert tagged("GET", f"documents/{document_id}?version=1").status_code == 404


def test_the_bin_and_undo_are_of_its_documents_alone(admin, tagged, word):
    own, other = (admin.note(f"{word} binned {tag}", tags=[tag]) for tag in ("work", "home"))
    since = admin.ok("GET", f"documents/{other}")["created_at"]
    for document_id in (own, other):
        admin.ok("DELETE", f"documents/{document_id}")
    binned = tagged.ids("bin?limit=500")
    assert own in binned
    assert other not in binned
    assert tagged.ok("GET", "status")["history"]["bin"] == 0
    assert tagged("POST", f"documents/{other}/restore").status_code == 404
    steps = tagged.ok("POST", "undo", json={"since": since, "dry_run": True})["steps"]
    assert other not in {step["document_id"] for step in steps}
    assert tagged.ok("POST", f"documents/{own}/restore")["id"] == own


def test_an_undo_takes_back_no_more_than_the_changes_that_the_key_sees(admin, make_key, word):
    team, text = make_key(f"team-{word}", right="write", tags=[f"team-{word}"]), "documents/{}/text"
    ids = [admin.note(f"{word} first {number}", tags=[f"team-{word}"]) for number in range(2)]
    changed = admin.ok("PATCH", f"notes/{ids[0]}", json={"text": f"{word} second 0"})["updated_at"]
    since = (datetime.fromisoformat(changed) + timedelta(milliseconds=1)).isoformat()
    for number, document_id in enumerate(ids):
        hidden = {"tags_add": ["private"], "tags_remove": [f"team-{word}"]}
        shown = {"tags_add": [f"team-{word}"], "tags_remove": ["private"]}
        for tags in [{}] if number == 0 else [{}, hidden, shown]:
            admin.ok("PATCH", f"notes/{document_id}", json={"text": f"{word} later {number}", **tags})
    admin.ok("DELETE", f"documents/{ids[0]}")
    steps = {step["document_id"]: step for step in team.ok("POST", "undo", json={"since": since})["steps"]}
    assert steps.keys() == set(ids)
    assert steps[ids[0]]["skipped"] is None
    assert admin.ok("GET", text.format(ids[0]))["text"] == f"{word} second 0"
    assert steps[ids[1]]["skipped"] == "It has later changes that this key may not see."
    assert "later" in admin.ok("GET", text.format(ids[1]))["text"]


def test_an_attachment_that_it_may_not_see_does_not_go_with_its_message(admin, tagged, word):
    message = mail(f"{word} with a file", f"{word} body", inside=f"{word} attached")
    job = admin.file(f"{word}.eml", bytes(message), tags="work", source_path="/mails/one.eml")
    where = {"params": {"source_path": "/mails/one.eml#inside.txt"}}
    [inside] = eventually("the attachment is there", lambda: admin.ids("documents", **where))
    admin.ok("PATCH", f"documents/{inside}/tags", json={"remove": ["work"]})
    assert tagged("GET", f"documents/{inside}").status_code == 404
    for answer in (
        tagged("DELETE", f"documents/{job['document_id']}"),
        tagged("PATCH", f"documents/{job['document_id']}", json={"source_path": "/mails/two.eml"}),
    ):
        assert answer.status_code == 403
        assert str(inside) not in answer.json()["detail"].replace(str(job["document_id"]), "")
    assert admin.ok("GET", f"documents/{inside}")["source_path"] == "/mails/one.eml#inside.txt"


def test_a_message_that_it_may_not_see_is_not_told_of_by_what_came_in_it(admin, tagged, word):
    sent = mail(f"{word} in parts", f"{word} parts", part=f"{word} part")
    message = admin.file(f"{word} parts.eml", bytes(sent), tags="home")["document_id"]
    [part] = eventually("the attachment is there", lambda: admin.ids(f"documents?part_of={message}"))
    assert admin.ok("GET", f"documents/{part}")["part_of"] == message
    assert tagged.ids(f"documents?part_of={message}") == set()
    admin.ok("PATCH", f"documents/{part}/tags", json={"add": ["work"]})
    assert tagged.ok("GET", f"documents/{part}")["part_of"] is None
    assert tagged.ids(f"documents?part_of={message}") == set()
    assert tagged.ok("GET", "storage") == {"database": None, "originals": None, "backups": None}


def test_a_message_sent_again_takes_no_attachment_away_that_the_sender_may_not_see(admin, tagged, word):
    outer, middle, deepest = (mail(name, f"{word} body of {name}") for name in ("outer", "middle", "deepest"))
    middle.add_attachment(deepest)
    outer.add_attachment(middle)
    path = "/mails/nested.eml"
    admin.file("nested.eml", bytes(outer), tags="work", source_path=path)
    where = {"params": {"source_prefix": f"{path}#", "limit": 500}}
    inside = eventually("both are there", lambda: admin.ids("documents", **where), lambda ids: len(ids) == 2)
    hidden = max(inside)
    admin.ok("PATCH", f"documents/{hidden}/tags", json={"remove": ["work"]})
    job = tagged.file("nested.eml", bytes(mail("outer, again", f"{word} again")), source_path=path)
    assert job["status"] == "done", job
    assert admin.ids("documents", **where) == inside


def test_a_cursor_of_another_key_leads_nowhere_new(admin, limited, hidden):
    cursor = admin.ok("GET", "documents?limit=1")["next_cursor"]
    assert not limited.ids("documents", params={"cursor": cursor, "limit": 500}) & hidden.keys()
    cursor = admin.ok("GET", "jobs?limit=1")["next_cursor"]
    every = {each["id"] for each in limited.ok("GET", "jobs", params={"cursor": cursor, "limit": 500})["jobs"]}
    assert every <= {each["id"] for each in limited.ok("GET", "jobs?limit=500")["jobs"]}


def test_none_but_admins_purge_make_keys_or_read_who_did_what(admin, writer, limited, seen):
    for caller in (writer, limited):
        assert caller("DELETE", f"documents/{seen}?purge=true").status_code == 403
        for method, path in (("GET", "keys"), ("POST", "keys"), ("GET", "audit"), ("POST", "keys/writer/rotate")):
            assert caller(method, path, json={"name": "x"}).status_code == 403
        headers = {"KB-On-Behalf-Of": "writer"}
        assert caller("GET", "documents", headers=headers).status_code == 403
    assert admin("GET", f"documents/{seen}").status_code == 200


def test_asking_on_behalf_of_a_key_is_asking_with_it(admin, tagged, hidden):
    headers = {"KB-On-Behalf-Of": "tagged"}
    assert admin.ids("documents?limit=500", headers=headers) == tagged.ids("documents?limit=500")
    assert admin("GET", "keys", headers=headers).status_code == 403
    for name in ("nobody", "", "TAGGED", "tagged,reader"):
        assert admin("GET", "documents", headers={"KB-On-Behalf-Of": name}).status_code == 403, name
    both = [("KB-On-Behalf-Of", "tagged"), ("KB-On-Behalf-Of", "writer"), ("Authorization", f"Bearer {admin.token}")]
    listed = httpx2.get(f"{admin.url}/api/v1/documents", headers=both, params={"limit": 500})
    assert not {each["id"] for each in listed.json()["documents"]} & hidden.keys()


def test_a_key_is_not_limited_and_admin_at_once(admin):
    for limit in ({"tags": ["work"]}, {"path": "/plan"}):
        assert admin("POST", "keys", json={"name": "both", "right": "admin", **limit}).status_code == 422
    for path in ("/plan/../home", "..", "a/..", "a\\..\\b"):
        assert admin("POST", "keys", json={"name": "both", "path": path}).status_code == 422, path
    assert admin("POST", "keys", json={"name": "0123abcd"}).status_code == 422
    assert "both" not in {each["name"] for each in admin.ok("GET", "keys")["keys"]}


def test_a_rotated_key_is_good_for_a_while_and_a_revoked_one_is_not(admin, make_key):
    first = make_key("turning", right="read")
    second = Api(admin.url, admin.ok("POST", "keys/turning/rotate", json={"grace_minutes": 5})["key"])
    assert [each("GET", "documents").status_code for each in (first, second)] == [200, 200]
    third = Api(admin.url, admin.ok("POST", "keys/turning/rotate", json={})["key"])
    assert [each("GET", "documents").status_code for each in (first, second, third)] == [401, 401, 200]
    assert admin.ok("DELETE", "keys/turning")["used_at"]
    assert third("GET", "documents").status_code == 401
    assert admin("DELETE", "keys/turning").status_code == 404


@pytest.mark.sqlite
def test_only_digests_are_on_disk_for_their_owner_alone(guarded, reader):
    folder = guarded.log.parent
    file = folder / "keys.json"
    assert file.stat().st_mode & 0o077 == 0
    assert sha256(reader.token.encode()).hexdigest() in file.read_text()
    for each in folder.rglob("*"):
        assert not each.is_file() or reader.token.encode() not in each.read_bytes(), each


@pytest.mark.postgres
def test_only_digests_are_in_the_database(guarded, reader):
    kept = Database(guarded.log.parent).execute("SELECT digest, keys::text FROM keys WHERE name = 'reader'")
    assert [digest for digest, _ in kept] == [sha256(reader.token.encode()).hexdigest()]
    assert reader.token not in str(kept)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"keys": [{}]}', '{"keys": [7]}', '{"keys": null}'])
def test_a_file_of_keys_that_cannot_be_read_is_named(tmp_path, text):
    file = tmp_path / "keys.json"
    file.write_text(text)
    with pytest.raises(SettingError, match=re.escape(f"{file}, the key file, cannot be read: ")):
        KeyFile(file)


@pytest.mark.slow
def test_keys_with_rights_outlive_a_restart_and_need_a_key_of_the_settings(start_server, tmp_path):
    with start_server(tmp_path, KB_API_KEY="of-the-settings-1234", KB_MCP_API_KEY="of-the-agents-123456") as server:
        admin = Api(server.url, "of-the-settings-1234")
        kept = Api(server.url, admin.ok("POST", "keys", json={"name": "kept"})["key"])
    with start_server(tmp_path, port=server.port, KB_API_KEY="of-the-settings-1234", KB_MCP_API_KEY="x" * 20):
        expected = {"name": "kept", "right": "read", "tags": [], "path": None, "reads_all": False}
        assert kept.ok("GET", "key") == expected
    with start_server(tmp_path, port=server.port):
        refused = Api(server.url, None)("POST", "keys", json={"name": "useless"})
        assert refused.status_code == 409
        assert "KB_API_KEY" in refused.json()["detail"]


def test_a_note_replaces_none_that_it_may_not_see_and_tells_of_none(admin, tagged, word):
    own, other = admin.note(f"{word} own", tags=["work"]), admin.note(f"{word} of others", tags=["home"])
    none = 10**15
    there, not_there = (
        tagged("POST", "jobs", json={"text": f"{word} new", "replaces": each}) for each in (other, none)
    )
    assert there.status_code == 404
    assert without_id(there, other) == without_id(not_there, none)
    later = admin.note(f"{word} later", tags=["home"], replaces=own)
    back = admin.note(f"{word} back at work", tags=["work"], replaces=other)
    seen = tagged.ok("POST", "search", json={"query": word, "fts_only": True, "top": 100})["results"]
    by = {each["document_id"]: each["replaced_by"] for each in seen}
    assert (by[own], by[back]) == (None, None)
    for caller, links in ((tagged, {own: (None, None), back: (None, None)}), (admin, {own: (None, later)})):
        for document_id, (replaces, replaced_by) in links.items():
            document = caller.ok("GET", f"documents/{document_id}")
            assert (document["replaces"], document["replaced_by"]) == (replaces, replaced_by)
    newest = tagged.note(f"{word} newest", replaces=own)
    assert tagged.ok("GET", f"documents/{own}")["replaced_by"] == newest
    assert tagged.ok("PATCH", f"notes/{back}", json={"text": f"{word} changed"})["replaces"] is None
    assert admin.ok("GET", f"documents/{back}")["replaces"] == other


@pytest.fixture
def path(tmp_path):
    return tmp_path / "keys.json"


def test_no_use_of_a_key_is_written_by_who_uses_it_and_all_are_in_the_end(path):
    keys = Keyring(KeyFile(path))
    _, token = keys.make("reader", "read", Limit())
    written = path.stat().st_mtime_ns
    for _ in range(100):
        keys.identify(token_digest(token))
    assert path.stat().st_mtime_ns == written
    assert keys.named("reader").used_at
    assert Keyring(KeyFile(path)).named("reader").used_at is None
    keys.flush()
    assert Keyring(KeyFile(path)).named("reader").used_at == keys.named("reader").used_at


def test_a_use_is_written_after_a_while_by_itself(path, monkeypatch):
    monkeypatch.setattr(keyring, "USED_SECONDS", 0.05)
    keys = Keyring(KeyFile(path))
    _, token = keys.make("reader", "read", Limit())
    for _ in range(2):  # and again after it was written
        keys.identify(token_digest(token))
        used = keys.named("reader").used_at
        eventually("it is written", lambda: Keyring(KeyFile(path)).named("reader").used_at == used)  # noqa: B023 - waited for here


def test_a_key_that_is_revoked_meanwhile_stays_so(path):
    keys = Keyring(KeyFile(path))
    _, token = keys.make("reader", "read", Limit())
    keys.identify(token_digest(token))
    keys.revoke("reader")
    keys.flush()
    assert Keyring(KeyFile(path)).every() == []


def test_of_two_who_rotate_a_key_at_once_one_is_told_that_the_other_one_has(path):
    keys = Keyring(KeyFile(path))
    keys.make("reader", "read", Limit())
    both = keys.existing("reader"), keys.existing("reader")
    _, token = keys.rotate(both[0], timedelta())
    with pytest.raises(KeyRotated):
        keys.rotate(both[1], timedelta(minutes=5))
    assert Keyring(KeyFile(path)).identify(token_digest(token))
    keys.rotate(keys.existing("reader"), timedelta())
    keys.revoke("reader")
    with pytest.raises(NotFound):
        keys.rotate(both[1], timedelta())


def test_the_folder_of_a_limit_is_spelled_as_paths_are_also_of_a_key_that_was_made_before():
    apart = unicodedata.normalize("NFD", "/notés/")
    key = NamedKey("reader", "read", (), apart, "digest", "2026-01-01T00:00:00Z")
    assert key.caller.limit.admits((), "/notés/a.md")
    assert key.caller.limit == Limit(folder="/notés/")


LONG = "of-sixteen-characters-or-more"


def status_for(server, key, path="/api/v1/status", **headers):
    return httpx2.get(f"{server.url}{path}", headers={"Authorization": f"Bearer {key}"} | headers).status_code


@pytest.mark.requirement("R-5")
async def test_keys_of_a_file_are_rotated_without_a_restart_and_the_gateway_sends_the_first(start_server, tmp_path):
    file = tmp_path / "keys"
    file.write_text("# of scripts\n\nfirst-key\nsecond-key\n")
    with start_server(tmp_path / "data", KB_API_KEY_FILE=str(file), KB_MCP_API_KEY=MCP_KEY, KB_APPS=ALL_APPS) as server:
        for path in ("/api/v1/status", "/metrics"):
            tried = ("first-key", "second-key", "third-key", "# of scripts", "#")
            assert [status_for(server, key, path) for key in tried] == [200, 200, 401, 401, 401]
        async with Client(f"{server.url}/mcp", auth=MCP_KEY) as agent:
            assert (await agent.call_tool("kb_status", {})).structured_content["version"]
            file.write_text("third-key\nfourth-key\n")
            assert [status_for(server, key) for key in ("first-key", "third-key", "fourth-key")] == [401, 200, 200]
            assert (await agent.call_tool("kb_status", {})).structured_content["version"]
        file.write_text("\n")
        assert status_for(server, "third-key") == 200
    log = server.log.read_text()
    assert "KB_API_KEY_FILE: " in log
    assert "third-key" not in log


@pytest.mark.requirement("R-5")
async def test_who_tries_many_keys_is_refused_for_a_while_and_nobody_else(start_server, tmp_path):
    keys = {"KB_API_KEY": KEY, "KB_MCP_API_KEY": MCP_KEY, "KB_LOG_FORMAT": "json"}
    with start_server(tmp_path, **keys) as server, httpx2.Client(base_url=server.url) as http:
        guesser, other = {"X-Forwarded-For": "192.0.2.7"}, {"X-Forwarded-For": "192.0.2.8"}

        def answered(key):
            return http.get("/api/v1/status", headers={"Authorization": f"Bearer {key}"} | guesser)

        # On a slow machine a guess or two more are free meanwhile.
        refused_at = next(number for number in range(500) if answered(f"guess {number}").status_code == 429)
        assert refused_at >= GUESSES_PER_MINUTE
        refused = answered(KEY)
        assert refused.status_code == 429
        assert 0 < int(refused.headers["retry-after"]) <= 4
        assert refused.json()["type"] == "urn:kb:problem:too-many-guesses"
        assert status_for(server, KEY, **other) == 200
        assert status_for(server, KEY) == 200
        assert httpx2.get(f"{server.url}/healthz", headers=guesser).status_code == 200
    told = [line for line in lines(server) if line["message"] == "request"]
    assert {"192.0.2.7", "192.0.2.8", "127.0.0.1"} == {line["client"] for line in told}


def test_the_same_wrong_key_again_and_no_key_at_all_are_no_guesses(start_server, tmp_path):
    with start_server(tmp_path, KB_API_KEY=KEY, KB_MCP_API_KEY=MCP_KEY) as server:
        for _ in range(2 * GUESSES_PER_MINUTE):
            assert status_for(server, "of-last-year") == 401
            assert httpx2.get(f"{server.url}/api/v1/status").status_code == 401
        assert status_for(server, KEY) == 200


def test_a_network_of_version_6_is_one_address_and_version_4_in_its_form_is_itself():
    assert (
        address_network("2001:db8:1:2::7")
        == address_network("2001:db8:1:2:ffff::9")
        != address_network("2001:db8:1:3::7")
    )
    assert address_network("::ffff:192.0.2.7") == address_network("192.0.2.7") != address_network("192.0.2.8")
    assert address_network("192.0.2.7") != address_network("::ffff:192.0.2.8")


def test_only_so_many_guessers_are_remembered():
    guesses = Guesses()
    for number in range(3 * MAX_CALLERS):
        guesses.add(f"address {number}", "guess")
    assert len(guesses._limiter._arrivals) <= MAX_CALLERS
    assert len(guesses._made) <= MAX_CALLERS


@pytest.mark.parametrize(("key", "is_told"), mostly_rare([("x" * 15, True), (LONG, False)]))
def test_a_key_that_can_be_guessed_is_told_of(start_server, tmp_path, key, is_told):
    with start_server(tmp_path, KB_API_KEY=key, KB_MCP_API_KEY=f"{LONG},{key}", KB_APPS=ALL_APPS) as server:
        pass
    for name in ("KB_API_KEY", "KB_MCP_API_KEY"):
        assert (f"{name}: a key of fewer than 16 characters can be guessed" in server.log.read_text()) == is_told
    assert key not in server.log.read_text()


def test_a_limited_key_lists_its_own_operations(make_key, admin):
    mine = make_key("operations-of-work", right="write", tags=["work"])
    note = mine.note("The crane of the quay is blue.", tags=["work"])
    admin.ok("PATCH", f"documents/{note}/tags", json={"add": ["seen"]})
    mine.ok("DELETE", f"documents/{note}", headers={"KB-Operation": "mine"})
    [deleted, added] = mine.ok("GET", "operations")["operations"]
    assert (deleted["deleted"], added["added"]) == (1, 1)
    assert mine.ok("GET", "operations?key=mine")["operations"] == [deleted]
    assert mine.ok("GET", "operations?key=other")["operations"] == []
