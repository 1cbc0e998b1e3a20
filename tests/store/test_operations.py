"""An undo reverts the changes of an operation together, and restored files return from the bin."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from kb import clock
from kb.api.errors import FolderTaken
from kb.api.rights import Caller
from kb.blobs.folder import FolderBlobs
from kb.clock import Clock, read_machine
from kb.documents.delete import delete
from kb.documents.originals import Originals
from kb.documents.undo import PlannedUndo, Scope, _in_turn, carry_out, find_operation, plan
from kb.documents.write_document import write_document
from kb.routes.folders import claim
from kb.store.rows import Author, NewJob, SyncedFolder
from tests.store.test_store import content
from tests.support.eventually import eventually
from tests.support.undo import undo

ME = Caller("me")


@pytest.fixture
def store(make_store, embedder):
    with make_store(dimensions=embedder.spec.dimensions) as opened:
        yield opened


@pytest.fixture
def originals(tmp_path):
    return Originals(FolderBlobs(tmp_path), keep=False)


@pytest.fixture
def take_back(store, embedder, originals):
    """`take_back()` takes the last operation back, or one by its number."""

    def act(number=None, key="undo"):
        planned = plan(store, Scope(find_operation(store, number, ME)))
        return carry_out(store, originals, planned, Author("me", operation_key=key))

    return act


def of(key):
    return Author("me", operation_key=key)


def held(text, doc_type="text"):
    vectors = np.eye(1, 384, dtype=np.float32)
    return replace(content(text, doc_type=doc_type), content_hash=f"hash of {text}", vectors=vectors)


def add(store, path, text, key, tags=()):
    with store.write() as tx:
        return write_document(tx, held(text), path, tags, author=of(key))[0]


def there(store):
    with store.read() as tx:
        found = [tx.documents.get(id_) for id_ in range(1, 20)]
        return {each.id: each.source_path for each in found if each}


def test_an_operation_is_taken_back_as_a_whole_and_the_next_undo_brings_it_back_with_its_ids(store, take_back):
    first = add(store, "/kept.md", "kept", "one")
    ids = [add(store, f"/{number}.md", f"text {number}", "two") for number in range(3)]
    before = there(store)
    assert [step.action for step in take_back(key="undo 1")] == ["delete"] * 3
    assert there(store) == {first: "/kept.md"}
    assert [step.action for step in take_back(key="undo 2")] == ["restore"] * 3
    assert there(store) == before
    assert sorted(before) == [first, *ids]


def test_a_job_that_ends_late_is_of_the_moment_when_its_command_was_given(store, embedder, originals):
    with store.write() as tx:
        tx.jobs.add(NewJob("file", source_path="/late.md", author=of("early")))
    since = clock.own.now()
    late = add(store, "/late.md", "late", "early")
    other = add(store, "/other.md", "other", "later")
    [step] = undo(store, originals, since)
    assert (step.document_id, there(store)) == (other, {late: "/late.md"})


def test_what_was_changed_again_is_left_alone_and_says_by_which_operation(store, take_back):
    id_ = add(store, "/a.md", "one", "one")
    add(store, "/a.md", "two", "two")
    [step] = take_back(1)
    assert step.skipped == "Operation 2 changed it afterwards."
    assert there(store) == {id_: "/a.md"}
    assert [step.action for step in take_back()] == ["revert"]


def test_jobs_that_wait_are_dropped_with_their_operation(store, take_back):
    with store.write() as tx:
        job = tx.jobs.add(NewJob("note", text="Waits.", author=of("one")))
    with store.read() as tx:
        [operation] = tx.operations.page(limit=5)
        assert tx.operations.jobs(operation) == [job]
    assert take_back() == []
    with store.read() as tx:
        assert tx.jobs.get(job) is None
        assert tx.operations.page(limit=5) == []


def test_how_much_an_operation_did_is_counted(store, originals):
    ids = [add(store, f"/{number}.md", f"text {number}", "one") for number in range(3)]
    add(store, "/0.md", "changed", "two")
    delete(store, originals, ids[1], of("two"))
    with store.read() as tx:
        counted = [tx.operations.counts(each.id) for each in tx.operations.page(limit=5)]
    assert [(each.added, each.changed, each.deleted) for each in counted] == [(0, 1, 1), (3, 0, 0)]


@pytest.mark.parametrize(
    ("path", "text"), [("/a.md", "one"), ("/a.md", "other"), ("/moved/a.md", "one"), ("/b.md", "one")]
)
def test_a_file_that_is_there_again_takes_its_document_out_of_the_bin(store, originals, path, text):
    id_ = add(store, "/a.md", "one", "one", ["by-hand"])
    delete(store, originals, id_, of("two"))
    assert add(store, path, text, "three") == id_
    with store.read() as tx:
        document, versions = tx.documents.get(id_), tx.history.versions(id_, limit=9)
        assert tx.history.binned(id_) is None
    assert (document.source_path, document.content_hash, document.tags) == (path, f"hash of {text}", ("by-hand",))
    assert [version.number for version in versions] == [2, 1]
    assert versions[1].document.content_hash == "hash of one"


def test_another_file_and_a_note_take_nothing_out_of_the_bin(store, originals):
    id_ = add(store, "/a.md", "one", "one")
    delete(store, originals, id_, of("two"))
    assert add(store, "/b.md", "two", "three") != id_
    with store.write() as tx:
        assert write_document(tx, held("one", "note"), "/a.md", ())[0] != id_


def synced(prefix, path="/home/ada/vault", machine="one"):
    return SyncedFolder(prefix, machine, "lamp", path, "{}", "2026-01-01T00:00:00.000Z")


def test_a_name_belongs_to_one_folder_until_another_takes_it_over(store):
    claim(store, synced("vault/"), take_over=False)
    claim(store, synced("vault/"), take_over=False)
    claim(store, synced("vault/sub/", "/home/ada/vault/sub"), take_over=False)
    claim(store, synced("vault2/", "/home/ada/other"), take_over=False)
    for other in (synced("vault/", machine="two"), synced("vault/", "/tmp/x"), synced("vault/in/", "/tmp/x")):
        with pytest.raises(FolderTaken, match="/home/ada/vault on lamp"):
            claim(store, other, take_over=False)
    claim(store, synced("vault/", machine="two"), take_over=True)
    with store.read() as tx:
        assert [(each.prefix, each.machine) for each in tx.folders.all()] == [("vault/", "two"), ("vault2/", "one")]


def test_a_file_that_was_left_out_is_let_in_when_it_is_added_by_name(store):
    with store.write() as tx:
        tx.folders.leave_out("/a.md")
        tx.folders.leave_out("/b.md")
    add(store, "/a.md", "one", "one")
    with store.read() as tx:
        assert tx.folders.left_out() == ["/b.md"]


def test_an_earlier_failed_job_for_a_path_goes_when_one_is_done(store):
    with store.write() as tx:
        half, other, whole = (
            tx.jobs.add(NewJob("file", source_path=path)) for path in ("/scan.pdf", "/other.pdf", "/scan.pdf")
        )
        for job in (half, other):
            tx.jobs.fail(job, "It is damaged.")
        tx.jobs.finish(whole, 1)
        assert [tx.jobs.get(job) is None for job in (half, other, whole)] == [True, False, False]


def test_a_document_that_came_back_counts_as_added(store, originals, take_back):
    id_ = add(store, "/a.md", "one", "one")
    delete(store, originals, id_, of("two"))
    add(store, "/a.md", "one", "three")
    delete(store, originals, id_, of("four"))
    take_back(key="undo")
    add(store, "/a.md", "changed", "five")
    with store.read() as tx:
        counted = [tx.operations.counts(each.id) for each in tx.operations.page(limit=9)]
    assert [(each.added, each.changed, each.deleted) for each in counted] == [
        (0, 1, 0), (1, 0, 0), (1, 0, 0), (1, 0, 0)
    ]  # fmt: skip


def test_a_failed_job_with_an_idempotency_key_stays_for_who_asks_again(store):
    with store.write() as tx:
        asked = tx.jobs.add(NewJob("file", source_path="/a.pdf", idempotency_key="again"))
        tx.jobs.fail(asked, "It is damaged.")
        whole = tx.jobs.add(NewJob("file", source_path="/a.pdf"))
        tx.jobs.finish(whole, 1)
        assert tx.jobs.with_key("again").id == asked


def test_taking_back_many_files_looks_at_each_a_few_times():
    looks = []

    class Watched(PlannedUndo):
        def __getattribute__(self, name):
            looks.append(name)
            return object.__getattribute__(self, name)

    steps = [Watched(number, "", "restore", skipped="It was changed.") for number in range(500)]
    looks.clear()
    _in_turn(steps, lambda step: step)
    assert len(looks) < 10 * len(steps)


def test_what_came_inside_a_document_that_stays_in_the_bin_stays_there():
    whole = PlannedUndo(1, "", "restore", skipped="It was changed.")
    part, other = PlannedUndo(2, "", "restore", part_of=1), PlannedUndo(3, "", "restore", part_of=9)
    inner = PlannedUndo(4, "", "restore", part_of=2)
    taken = _in_turn([whole, part, inner, other], lambda step: step)
    assert [step.skipped is None for step in taken] == [False, False, False, True]


def test_coming_back_can_be_taken_back_also_of_a_document_that_a_wrong_clock_dated_ahead(
    store, originals, take_back, monkeypatch
):
    ahead = Clock(lambda: replace(read_machine(), at=read_machine().at + 20 * 86_400))
    with monkeypatch.context() as patched:
        patched.setattr(clock, "own", ahead)
        id_ = add(store, "/a.md", "one", "one")
    delete(store, originals, id_, of("two"))
    add(store, "/a.md", "one", "three")
    assert [step.action for step in take_back()] == ["delete"]
    assert there(store) == {}


def times_of(store, document_id):
    """The times that the history shows of the changes of a document, the first one first."""
    with store.read() as tx:
        versions, binned = tx.history.versions(document_id, limit=9), tx.history.binned(document_id)
    stamps = [*reversed([version.at for version in versions]), *([binned.deleted_at] if binned else [])]
    return [datetime.fromisoformat(stamp) for stamp in stamps]


def await_next_second():
    """Wait until a command and its change have times in different seconds."""
    begun = datetime.now(UTC).second
    eventually("another second has begun", lambda: datetime.now(UTC).second != begun)


@pytest.mark.parametrize("shown", [lambda at: at, lambda at: at.replace(microsecond=0)], ids=["millisecond", "second"])
def test_an_undo_since_the_time_of_a_change_undoes_it_though_its_command_came_earlier(
    store, embedder, originals, shown
):
    with store.write() as tx:
        tx.jobs.add(NewJob("file", source_path="/late.md", author=of("early")))
    await_next_second()
    late = add(store, "/late.md", "late", "early")
    add(store, "/late.md", "later", "early")
    [step] = undo(store, originals, shown(times_of(store, late)[0]))
    assert (step.document_id, step.action, step.skipped) == (late, "delete", None)


def test_an_undo_since_a_second_takes_back_no_part_of_a_command_that_came_earlier(store, embedder, originals):
    with store.write() as tx:
        tx.jobs.add(NewJob("file", source_path="/0.md", author=of("early")))
    await_next_second()
    ids = [add(store, f"/{number}.md", f"text {number}", "early") for number in range(3)]
    assert undo(store, originals, times_of(store, ids[0])[0].replace(microsecond=0)) == []
    assert len(there(store)) == 3


def test_an_undo_since_the_time_of_a_deletion_restores_the_document(store, embedder, originals):
    id_ = add(store, "/a.md", "one", "one")
    delete(store, originals, id_, of("two"))
    [step] = undo(store, originals, times_of(store, id_)[-1])
    assert (step.document_id, step.action, step.skipped) == (id_, "restore", None)


def test_an_undo_since_the_moment_after_a_change_keeps_it(store, embedder, originals):
    id_ = add(store, "/a.md", "one", "one")
    add(store, "/a.md", "two", "two")
    [step] = undo(store, originals, times_of(store, id_)[0] + timedelta(milliseconds=1))
    assert (step.document_id, step.action, step.version) == (id_, "revert", 1)
