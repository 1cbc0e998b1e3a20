"""No question that a client asks often reads a whole table: what SQLite does for each is pinned."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import numpy as np
import pytest

from kb.store.row_mapping import cursor_after
from kb.store.rows import ChunkPosition, Content, Filter, NewChunk, NewJob
from kb.store.sqlite.store import SqliteStore
from tests.support.spaces import space

DIMENSIONS = 8
TABLES = ("documents", "chunks", "tags", "document_tags", "jobs", "note_bodies", "links", "link_names")

# The order of a list without a filter is the order of the table, or of the index: reading it ends at the limit.
IN_ORDER = {
    "the first page": {"SCAN documents"},
    "the first page of recent ones": {"SCAN documents USING INDEX documents_recent"},
    "the first page of recent ones with a common tag": {"SCAN documents USING INDEX documents_recent"},
    "the first page with either of two tags": {"SCAN documents"},
    "the first page of recent ones with either of two tags": {"SCAN documents USING INDEX documents_recent"},
    "the first page without a tag": {"SCAN documents"},
    "the first page of recent ones without a tag": {"SCAN documents USING INDEX documents_recent"},
    "the first page of a long time": {"SCAN documents"},
    "the first page of jobs": {"SCAN jobs"},
}

# A rare tag has few documents, a path or a claim too: they may be put in order when they are found.
SORTED = {
    "the first page of recent ones with a rare tag",
    "the next page of recent ones with a rare tag",
    "the first page with either of two rare tags",
    "the first page of recent ones with either of two rare tags",
    "the first page of a short time",
    "the next page of a short time",
    "the first page of recent ones of a short time",
    "a note by what it says",  # the few notes of one hash, from two indexes
}


def a_note(number):
    chunk = NewChunk(f"text {number} [[5]]", "", ChunkPosition(1, 1, 0, 10))
    return Content("note", "A note", f"hash{number}", [chunk], np.ones((1, DIMENSIONS), np.float32))


def page(where=None, *, sort="id", next_=False):
    def act(tx):
        cursor = cursor_after(tx.documents.get(700)) if next_ else None
        return tx.documents.page(where or Filter(), sort=sort, limit=10, cursor=cursor)

    return act


def jobs(status=None, before=None):
    return lambda tx: tx.jobs.page(status=status, limit=10, before=before)


COMMON, RARE = Filter(("common",)), Filter(("rare",))
SHORT, LONG = (Filter(created_after=datetime(year, 1, 1, tzinfo=UTC)) for year in (2999, 2000))
EITHER, RARE_ONES = Filter(tag_any=("common", "rare")), Filter(tag_any=("rare", "rarest"))
ACTS = {
    "a document": lambda tx: (tx.documents.get(5), tx.documents.chunks(5)),
    "the first page": page(),
    "the next page": page(next_=True),
    "the first page of recent ones": page(sort="recent"),
    "the next page of recent ones": page(sort="recent", next_=True),
    "the first page with a tag": page(COMMON),
    "the next page with a tag": page(COMMON, next_=True),
    "the first page with two tags": page(Filter(("common", "rare"))),
    "the first page of recent ones with a rare tag": page(RARE, sort="recent"),
    "the next page of recent ones with a rare tag": page(RARE, sort="recent", next_=True),
    "the first page of recent ones with a common tag": page(COMMON, sort="recent"),
    "the next page of recent ones with a common tag": page(COMMON, sort="recent", next_=True),
    "the first page with either of two tags": page(EITHER),
    "the next page with either of two tags": page(EITHER, next_=True),
    "the first page of recent ones with either of two tags": page(EITHER, sort="recent"),
    "the next page of recent ones with either of two tags": page(EITHER, sort="recent", next_=True),
    "the first page with either of two rare tags": page(RARE_ONES),
    "the first page of recent ones with either of two rare tags": page(RARE_ONES, sort="recent"),
    "the first page without a tag": page(Filter(tag_not=("common",))),
    "the first page of recent ones without a tag": page(Filter(tag_not=("common",)), sort="recent"),
    "the first page of a type": page(Filter(doc_type="note")),
    "the next page of a type": page(Filter(doc_type="note"), next_=True),
    "the first page of recent ones of a type": page(Filter(doc_type="note"), sort="recent"),
    "the next page of recent ones of a type": page(Filter(doc_type="note"), sort="recent", next_=True),
    "the first page of a short time": page(SHORT),
    "the next page of a short time": page(SHORT, next_=True),
    "the first page of recent ones of a short time": page(SHORT, sort="recent"),
    "the first page of a long time": page(LONG),
    "the first page of recent ones of a long time": page(LONG, sort="recent"),
    "the documents at a path": page(Filter(source_path="/5")),
    "the notes at a path": page(Filter(source_path="/5", doc_type="note")),
    "the first page below a folder": page(Filter(source_prefix="/1")),
    "the next page below a folder": page(Filter(source_prefix="/1"), next_=True),
    "a document by its content": lambda tx: tx.documents.with_content("hash5", None, note=True),
    "a note by what it says": lambda tx: [*tx.documents.with_body("hash5", 9)],
    "a document by its path": lambda tx: tx.documents.at_path("/5"),
    "the links of a document": lambda tx: tx.links.outgoing(tx.documents.get(5)),
    "the links to a document": lambda tx: tx.links.incoming(tx.documents.get(5), 10),
    "adding": lambda tx: tx.documents.add(a_note("new"), "/new", ["common", "new"]),
    "updating": lambda tx: tx.documents.replace(6, a_note("newer")),
    "changing tags": lambda tx: tx.documents.change_tags(7, add=["rare"], remove=["common"]),
    "deleting": lambda tx: tx.documents.delete(8),
    "a job": lambda tx: tx.jobs.get(5),
    "the first page of jobs": jobs(),
    "the next page of jobs": jobs(before=30),
    "the first page of failed jobs": jobs("failed"),
    "the next page of failed jobs": jobs("failed", 30),
    "adding a job": lambda tx: tx.jobs.add(NewJob("note", text="text")),
    "claiming jobs": lambda tx: tx.jobs.claim(5),
    "a sign of life": lambda tx: tx.jobs.heartbeat([1]),
    "stalled jobs": lambda tx: tx.jobs.release_stalled(10),
    "finishing a job": lambda tx: (tx.jobs.finish(2, 1), tx.jobs.fail(3, "no")),
    "claiming short notes": lambda tx: tx.jobs.claim_short(5, 1000, lambda _: True),
    "whether a path is awaited": lambda tx: tx.jobs.awaits("/5", 30),
    "the document of a job": lambda tx: tx.jobs.set_document(4, 1, existed=False, omitted={}),
    "staged files": lambda tx: tx.jobs.staged(),
    "the jobs whose time has come": lambda tx: tx.jobs.expire(30, 1000),
}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    opened = SqliteStore(tmp_path_factory.mktemp("plans") / "kb.db", space(DIMENSIONS))
    with opened.write() as tx:
        for number in range(1500):
            tags = ["common"] * (number % 5 > 0) + ["rare"] * (number % 100 == 0) + ["rarest"] * (number == 77)
            tx.documents.add(a_note(number), f"/{number}", tags)
        for number in range(50):
            tx.jobs.add(NewJob("note", text=f"text {number}"))
    yield opened
    opened.close()


def plans_of(store, act):
    """What SQLite plans for each statement on our tables that the act runs."""
    statements = {}
    with store.write() as tx:
        tx.connection.exec_trace = lambda _, sql, bindings: statements.update({sql: bindings}) or True
        act(tx)
        tx.connection.exec_trace = None
        plans = []
        for sql, bindings in statements.items():
            plans += [row[3] for row in tx.connection.execute(f"EXPLAIN QUERY PLAN {sql}", bindings)]
    return plans


@pytest.mark.requirement("E-4")
@pytest.mark.requirement("E-3")
@pytest.mark.parametrize("name", ACTS)
def test_no_table_is_read_whole(store, name):
    plans = plans_of(store, ACTS[name])
    assert plans
    whole = {plan for plan in plans if re.match(rf"SCAN ({'|'.join(TABLES)})\b", plan)}
    assert whole == IN_ORDER.get(name, set())
    assert ("USE TEMP B-TREE FOR ORDER BY" in plans) == (name in SORTED)


@pytest.mark.parametrize("name", ["the notes at a path", "a document by its content"])
def test_the_rarer_of_two_conditions_is_looked_up(store, name):
    plans = plans_of(store, ACTS[name])
    assert re.search("source_path=|content_hash=", plans[0]), plans


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("finishing a job", "jobs_failed_path"),
        ("claiming short notes", "jobs_new_notes"),
        ("claiming short notes", "jobs_queued_path"),
        ("claiming jobs", "jobs_queued_path"),
    ],
)
def test_jobs_for_one_path_are_looked_up_and_not_sought_among_all(store, name, index):
    assert any(index in plan for plan in plans_of(store, ACTS[name]))
