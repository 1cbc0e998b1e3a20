"""A new note is stored within its request, and never twice."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace

import numpy as np
import pytest

from kb.access.restricted_store import CallerStore
from kb.api.errors import AlreadyReplaced, Forbidden, JobDone, KeyReused, ModelChanged, NotRetryable
from kb.api.fields import ENDED
from kb.api.note_models import NoteRequest
from kb.api.rights import Caller, Limit
from kb.api.tag_tree import meant_tag
from kb.blobs.folder import FolderBlobs
from kb.documents import similar_notes
from kb.documents.delete import delete, purge
from kb.documents.job_queue import drop, retry
from kb.documents.note_edit import Edit, NoteChange
from kb.documents.originals import Originals
from kb.documents.restore_document import restore
from kb.documents.tags import change_tags, rename_tag
from kb.documents.undo import Scope, carry_out, find_operation, plan
from kb.documents.write_new_note import NoteIntake
from kb.documents.write_updated_note import update_note
from kb.embed.protocol import Likeness
from kb.ingest import vectors_at_once
from kb.ingest.active_model import ActiveModel
from kb.ingest.vectors_at_once import NoteVectors
from kb.markdown.front_matter import fact_of
from kb.search.query import Query
from kb.search.recall_monitor import RecallMonitor
from kb.search.service import SearchService
from kb.store.rows import Author, Filter, NewJob
from kb.telemetry.instruments import Instruments
from tests.support.eventually import eventually
from tests.support.models import WrappedModel
from tests.support.note_vectors import at_once, has_vectors
from tests.support.workers import job_of, queued, working

FERRY = "The ferry leaves at six."
LONG = "The clerks of the counting house kept their ledgers in good order. " * 200
API = "The Lantern API allows 60 calls a minute for each key."
REWORDED = "For each key the Lantern API allows 60 calls a minute."


PICTURE = f"![a map](data:image/png;base64,{'iVBORw0KGgo' * 100})\n"


class Gate(WrappedModel):
    """The real model, which can be kept from embedding, or told to fail."""

    def __init__(self, embedder):
        super().__init__(embedder)
        self.open = threading.Event()
        self.open.set()
        self.fails = False

    def embed_passages(self, texts, *, alone=True):
        if self.fails:
            raise RuntimeError("the device is lost")
        self.open.wait(20)
        return self._embedder.embed_passages(texts, alone=alone)


class Squeezed(WrappedModel):
    """The real model, but unrelated texts have a cosine of 0.8, as by some models in many languages."""

    def __init__(self, embedder, likeness):
        super().__init__(embedder)
        self.spec = replace(embedder.spec, name="squeezed", digest="ab" * 32, likeness=likeness)

    def embed_passages(self, texts, *, alone=True):
        vectors = self._embedder.embed_passages(texts, alone=alone)
        vectors[:, 0] = 0
        vectors *= np.sqrt(0.2) / np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors[:, 0] = np.sqrt(0.8)
        return vectors


@pytest.fixture
def gate(embedder):
    return Gate(embedder)


@pytest.fixture
def store(make_store):
    with make_store() as opened:
        yield opened


@pytest.fixture
def pool():
    with ThreadPoolExecutor(1) as pool:
        yield pool


@pytest.fixture
def intake(store, gate, pool, tmp_path, monkeypatch):
    monkeypatch.setattr(vectors_at_once, "PATIENCE_SECONDS", 20)
    (tmp_path / "staging").mkdir(exist_ok=True)
    return NoteIntake(store, FolderBlobs(tmp_path), NoteVectors(gate, pool))


def add(intake, text, key=None, **fields):
    return intake.add(NoteRequest(text=text, **fields), key)


@contextmanager
def closed(gate):
    """The model is busy during the block."""
    gate.open.clear()
    try:
        yield
    finally:
        gate.open.set()


def late(intake, gate, monkeypatch, text=FERRY, **fields):
    """The answer for a note that came while the model was busy."""
    monkeypatch.setattr(vectors_at_once, "PATIENCE_SECONDS", 0.01)
    with closed(gate):
        return add(intake, text, **fields)


def worked_off(store, gate, tmp_path, job_id):
    """The job, when a worker has ended it."""
    with working(store, gate, tmp_path):
        return eventually(
            "the job has ended", lambda: job_of(store, job_id), lambda job: job is None or job.status in ENDED
        )


def found(store, word):
    with store.read() as tx:
        ids = tx.index.select(Filter()).full_text([word], 10).ids
        return set(tx.index.documents_of(ids))


def text_of(store, document_id):
    with store.read() as tx:
        return "".join(chunk.text for chunk in tx.documents.chunks(document_id))


def discard(store, document_id, folder, *, for_good=False):
    blobs = FolderBlobs(folder)
    originals = Originals(blobs, keep=True)
    if for_good:
        purge(store, originals, blobs, document_id)
    else:
        delete(store, originals, document_id)


def count(store):
    with store.read() as tx:
        return tx.documents.count(Filter()), tx.jobs.pending()


def test_a_note_is_a_document_with_words_and_vectors_when_it_is_answered(store, intake):
    answer = add(intake, FERRY, tags=["trips"])
    assert (answer.status, answer.existed, answer.stored, answer.alike) == ("done", False, True, [])
    assert found(store, "ferry") == {answer.document_id}
    assert has_vectors(store, answer.document_id)
    job = job_of(store, answer.job_id)
    assert (job.status, job.document_id, job.text, job.progress) == ("done", answer.document_id, None, 1)


@pytest.mark.parametrize("text", [FERRY, LONG], ids=["short", "long"])
def test_a_note_whose_vectors_are_late_is_found_by_its_words_and_gets_them_afterwards(
    store, intake, gate, tmp_path, monkeypatch, text
):
    answer = late(intake, gate, monkeypatch, text)
    assert (answer.status, answer.existed) == ("queued", False)
    assert found(store, text.split()[1]) == {answer.document_id}
    assert not has_vectors(store, answer.document_id)
    with store.read() as tx:
        before = tx.documents.get(answer.document_id)
    job = worked_off(store, gate, tmp_path, answer.job_id)
    assert (job.status, job.document_id, job.text) == ("done", answer.document_id, None)
    assert has_vectors(store, answer.document_id)
    assert count(store) == (1, 0)
    with store.read() as tx:
        assert tx.documents.get(answer.document_id) == before
        assert [version.number for version in tx.history.versions(answer.document_id, limit=9)] == [1]


def test_a_long_note_does_not_wait_for_the_model_at_all(store, intake, gate):
    with closed(gate):
        answer = add(intake, LONG)
    assert (answer.status, found(store, "ledgers")) == ("queued", {answer.document_id})


def test_a_model_that_fails_keeps_no_note_from_being_stored(store, intake, gate, tmp_path):
    gate.fails = True
    answer = add(intake, FERRY)
    assert (answer.status, found(store, "ferry")) == ("queued", {answer.document_id})
    gate.fails = False
    assert worked_off(store, gate, tmp_path, answer.job_id).status == "done"
    assert has_vectors(store, answer.document_id)


def test_while_another_model_comes_into_use_a_note_is_queued(store, intake, monkeypatch):
    def changed(draft, arrived):
        raise ModelChanged

    monkeypatch.setattr(intake.vectors, "content", changed)
    answer = add(intake, FERRY)
    assert (answer.status, answer.document_id) == ("queued", None)


def test_if_new_also_holds_for_a_note_that_is_queued(store, intake, monkeypatch):
    def changed(draft, arrived):
        raise ModelChanged

    known = f"{API} Beyond this limit it answers with status 429 until the next minute begins."
    add(intake, known)
    monkeypatch.setattr(intake.vectors, "content", changed)
    texts = [known, known.replace(API, REWORDED), PICTURE + known, known.replace("60", "90"), FERRY]
    answers = [add(intake, text, if_new=True) for text in texts]
    assert [answer.stored for answer in answers] == [False, False, True, True, True]
    assert count(store) == (1, 3)
    keyed = add(intake, "Bruno prefers tea.", "k")
    assert add(intake, "Bruno prefers tea.", "k").job_id == keyed.job_id


def test_a_note_that_is_changed_before_its_vectors_come_keeps_the_change(store, intake, gate, tmp_path, monkeypatch):
    answer = late(intake, gate, monkeypatch)
    update_note(store, at_once(gate), answer.document_id, NoteChange(edit=Edit(text="The ferry leaves at noon.")))
    assert worked_off(store, gate, tmp_path, answer.job_id).status == "done"
    assert text_of(store, answer.document_id) == "The ferry leaves at noon."
    assert has_vectors(store, answer.document_id)


def test_a_note_that_gets_another_title_before_its_vectors_come_keeps_it(store, intake, gate, tmp_path, monkeypatch):
    answer = late(intake, gate, monkeypatch)
    update_note(store, at_once(gate), answer.document_id, NoteChange(title="Timetable"))
    worked_off(store, gate, tmp_path, answer.job_id)
    assert found(store, "timetable") == {answer.document_id}
    assert has_vectors(store, answer.document_id)


@pytest.mark.parametrize("for_good", [False, True])
def test_a_note_that_is_deleted_before_its_vectors_come_stays_deleted(
    store, intake, gate, tmp_path, monkeypatch, for_good
):
    answer = late(intake, gate, monkeypatch)
    discard(store, answer.document_id, tmp_path, for_good=for_good)
    assert (job_of(store, answer.job_id).text is None) == for_good
    assert worked_off(store, gate, tmp_path, answer.job_id).status == "done"
    assert (count(store), found(store, "ferry")) == ((0, 0), set())
    if not for_good:
        restore(store, answer.document_id)
        with working(store, gate, tmp_path):
            eventually("it has vectors again", lambda: has_vectors(store, answer.document_id))


def test_the_job_of_a_note_that_waits_for_vectors_cannot_be_dropped(store, intake, gate, tmp_path, monkeypatch):
    answer = late(intake, gate, monkeypatch)
    with pytest.raises(JobDone, match=f"its document is {answer.document_id}"):
        drop(store, FolderBlobs(tmp_path), answer.job_id)


def test_a_note_whose_vectors_failed_stays_and_its_job_can_be_tried_again_or_discarded(
    store, intake, gate, tmp_path, monkeypatch
):
    monkeypatch.setattr("kb.worker.loop.RETRY_SECONDS", 0.01)
    answer = late(intake, gate, monkeypatch)
    gate.fails = True
    assert worked_off(store, gate, tmp_path, answer.job_id).status == "failed"
    assert found(store, "ferry") == {answer.document_id}
    retry(store, answer.job_id)
    assert worked_off(store, gate, tmp_path, answer.job_id).status == "failed"
    drop(store, FolderBlobs(tmp_path), answer.job_id)
    assert count(store) == (1, 0)


@pytest.mark.parametrize("is_free", [True, False], ids=["the model is free", "the model is busy"])
@pytest.mark.parametrize("titles", [(None, None), ("Timetable", None), ("Timetable", "Timetable")])
def test_a_note_without_vectors_gets_them_when_it_is_added_again(
    store, intake, gate, tmp_path, monkeypatch, is_free, titles
):
    monkeypatch.setattr("kb.worker.loop.RETRY_SECONDS", 0.01)
    first, again = titles
    lost = late(intake, gate, monkeypatch, title=first)
    gate.fails = True
    assert worked_off(store, gate, tmp_path, lost.job_id).status == "failed"
    gate.fails = False
    drop(store, FolderBlobs(tmp_path), lost.job_id)
    monkeypatch.setattr(vectors_at_once, "PATIENCE_SECONDS", 20 if is_free else 0.01)
    with nullcontext() if is_free else closed(gate):
        answer = add(intake, FERRY, title=again)
    assert (answer.document_id, answer.existed) == (lost.document_id, True)
    assert answer.status == ("done" if is_free and first == again else "queued")
    assert count(store) == (1, int(answer.status == "queued"))
    worked_off(store, gate, tmp_path, answer.job_id)
    assert (has_vectors(store, lost.document_id), count(store)) == (True, (1, 0))
    assert found(store, "timetable") == ({lost.document_id} if first else set())


def test_a_known_note_has_no_unfinished_job_while_the_model_is_busy(store, intake, gate, monkeypatch):
    add(intake, FERRY)
    answer = late(intake, gate, monkeypatch, tags=["trips"])
    assert (answer.status, answer.existed, count(store)) == ("done", True, (1, 0))


def test_a_queued_note_that_is_known_gives_the_known_one_its_vectors(store, intake, gate, tmp_path, monkeypatch):
    lost = late(intake, gate, monkeypatch)
    with store.write() as tx:
        tx.jobs.fail(lost.job_id, "The model failed.")
    (again,) = queued(store, NewJob("note", text=FERRY))
    job = worked_off(store, gate, tmp_path, again)
    assert (job.document_id, job.existed, has_vectors(store, lost.document_id)) == (lost.document_id, True, True)


def test_a_note_that_waits_for_vectors_is_pending(store, intake, gate, tmp_path, monkeypatch):
    answer = late(intake, gate, monkeypatch)
    assert count(store) == (1, 1)
    worked_off(store, gate, tmp_path, answer.job_id)
    assert count(store) == (1, 0)


def test_a_note_added_again_with_a_source_and_a_tag_keeps_its_title(store, intake):
    note = add(intake, FERRY, title="Timetable", tags=["trips"]).document_id
    answer = add(intake, FERRY, source="Ada", tags=["boats"])
    with store.read() as tx:
        document = tx.documents.get(note)
        versions = tx.history.versions(note, limit=9)
    assert (answer.document_id, answer.existed, answer.status) == (note, True, "done")
    assert (document.title, document.title_given, document.source) == ("Timetable", True, "Ada")
    assert (set(document.tags), document.updated_at is not None) == ({"trips", "boats"}, True)
    assert [version.document.source for version in versions][-1] is None
    assert found(store, "timetable") == {note}
    assert has_vectors(store, note)
    assert add(intake, FERRY, title="Departures").document_id == note
    assert (found(store, "timetable"), found(store, "departures")) == (set(), {note})


def test_an_undo_takes_back_a_note_that_waits_for_vectors(store, intake, gate, tmp_path, monkeypatch):
    monkeypatch.setattr(vectors_at_once, "PATIENCE_SECONDS", 0.01)
    me = Author("me", operation_key="one")
    with closed(gate):
        answer = intake.add(NoteRequest(text=FERRY), author=me)
    planned = plan(store, Scope(find_operation(store, None, Caller("me"))))
    [step] = carry_out(store, Originals(FolderBlobs(tmp_path), keep=True), planned, Author("me"))
    assert (step.document_id, step.action, step.skipped) == (answer.document_id, "delete", None)
    assert worked_off(store, gate, tmp_path, answer.job_id).status == "done"
    assert count(store) == (0, 0)


def test_a_note_without_vectors_is_no_result_of_a_search_by_meaning_alone(store, intake, gate, monkeypatch):
    add(intake, API)
    answer = late(intake, gate, monkeypatch)
    vector = gate.embed_queries(["ferry"])[0]
    with store.read() as tx:
        near = tx.index.select(Filter()).nearest(vector, 10)
        scores = dict(zip(tx.index.documents_of(near.ids), near.scores.tolist(), strict=True))
    assert scores.get(answer.document_id, 0) == 0


@pytest.mark.parametrize("query", ["boat", "ferry", "Abfahrt des Schiffes"])
@pytest.mark.parametrize("full_text", [True, False])
def test_a_note_without_vectors_that_replaces_another_one_has_a_score(
    store, intake, gate, monkeypatch, query, full_text
):
    old = add(intake, FERRY)
    add(intake, API)
    new = late(intake, gate, monkeypatch, "From May on, the ship departs at seven.", replaces=old.document_id)
    with ThreadPoolExecutor(1) as searches, closing(RecallMonitor(store, Instruments())) as recall:
        service = SearchService(store, ActiveModel(gate), searches, Instruments(), recall)
        answer = service.search(Query.parse(query, Filter(), full_text=full_text), 5, explain=True)
    [found, *_] = answer.results
    assert (found.document_id, np.isfinite(found.score), "nan" in repr(found)) == (new.document_id, True, False)


def test_a_note_comes_after_what_is_queued_for_its_path(store, intake, gate, tmp_path):
    (earlier,) = queued(store, NewJob("note", text="The old timetable.", source_path="trips/ferry"))
    answer = add(intake, FERRY, source_path="trips/ferry")
    assert (answer.status, answer.document_id, answer.job_id > earlier) == ("queued", None, True)
    job = worked_off(store, gate, tmp_path, answer.job_id)
    assert text_of(store, job.document_id) == FERRY
    assert count(store) == (1, 0)


def test_a_note_that_only_waits_for_vectors_keeps_none_from_its_path(store, intake, gate, tmp_path, monkeypatch):
    first = late(intake, gate, monkeypatch, source_path="trips/ferry")
    monkeypatch.setattr(vectors_at_once, "PATIENCE_SECONDS", 20)
    second = add(intake, "The ferry leaves at noon.", source_path="trips/ferry")
    assert (second.status, second.document_id) == ("done", first.document_id)
    assert worked_off(store, gate, tmp_path, first.job_id).status == "done"
    assert text_of(store, first.document_id) == "The ferry leaves at noon."


@pytest.mark.parametrize("fails", [False, True])
def test_an_earlier_job_that_is_tried_again_does_not_overwrite_a_note_that_waits_for_vectors(
    store, intake, gate, tmp_path, monkeypatch, fails
):
    monkeypatch.setattr("kb.worker.loop.RETRY_SECONDS", 0.01)
    (earlier,) = queued(store, NewJob("note", text="The old timetable.", source_path="trips/ferry"))
    with store.write() as tx:
        tx.jobs.fail(earlier, "The engine failed.")
    answer = late(intake, gate, monkeypatch, source_path="trips/ferry")
    if fails:
        gate.fails = True
        assert worked_off(store, gate, tmp_path, answer.job_id).status == "failed"
    with pytest.raises(NotRetryable, match=f"from job {answer.job_id}"):
        retry(store, earlier)


def test_the_same_idempotency_key_is_the_same_note(store, intake):
    first, again = add(intake, FERRY, "k"), add(intake, FERRY, "k")
    assert (again.job_id, again.document_id) == (first.job_id, first.document_id)
    with pytest.raises(KeyReused):
        add(intake, API, "k")
    assert count(store) == (1, 0)


def test_a_note_replaces_another_one_in_the_same_step(store, intake):
    first = add(intake, FERRY)
    second = add(intake, "The ferry leaves at seven.", replaces=first.document_id)
    assert second.alike == []
    with store.read() as tx:
        assert tx.documents.successors([first.document_id]) == {first.document_id: [second.document_id]}
    with pytest.raises(AlreadyReplaced):
        add(intake, "The ferry leaves at eight.", replaces=first.document_id)
    assert count(store) == (2, 0)


def test_a_note_with_an_embedded_picture_becomes_a_file_as_before(store, intake):
    answer = add(intake, PICTURE)
    assert (answer.status, answer.document_id) == ("queued", None)
    assert job_of(store, answer.job_id).kind == "file"


SAME = {
    "a date": f"---\ndate: 2026-04-01\n---\n{API}",
    "tags": f"---\ntags: [api, limits]\n---\n{API}",
    "TOML": f'+++\ndate = "2026-04-01"\n+++\n{API}',
    "white space": f"  {API}\n\n",
    "lines of Windows": f"---\r\ndate: 2026-04-01\r\n---\r\n{API}\r\n",
}


@pytest.mark.parametrize("first", [API, SAME["a date"]], ids=["without a date", "with a date"])
@pytest.mark.parametrize("again", SAME)
def test_the_same_fact_in_other_front_matter_is_one_note_with_the_tags_of_both(store, intake, first, again):
    stored = add(intake, first, tags=["one"])
    answer = add(intake, SAME[again], tags=["two"])
    assert (answer.document_id, answer.existed, answer.alike) == (stored.document_id, True, [])
    with store.read() as tx:
        assert {"one", "two"} <= set(tx.documents.get(stored.document_id).tags)
        assert ("api" in tx.documents.get(stored.document_id).tags) == (again == "tags")
    brings_date = first == API and "date" in SAME[again]
    assert text_of(store, stored.document_id) == (SAME[again] if brings_date else first)
    assert count(store) == (1, 0)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("title: Room A", "title: Room B"),
        ("date: last Monday", "date: last Tuesday"),
        ("date: 2026-01-01\nupdated: 2026-02-02", "date: 2026-01-01\nupdated: 2026-03-03"),
        ("title: Room A", "date: 2026-01-01"),
        ("date: 2026-01-01\ntitle: Room A", "date: 2026-01-01\ntitle: Room B"),
    ],
)
def test_of_notes_with_the_same_text_none_loses_a_title_or_a_date(store, intake, first, second):
    texts = [f"---\n{matter}\n---\n{API}" for matter in (first, second)]
    notes = [add(intake, text).document_id for text in texts]
    assert [text_of(store, note) for note in notes] == texts
    assert add(intake, f"{texts[1]}\n").document_id == notes[1]


def test_a_known_fact_that_gets_a_title_in_its_text_has_it_afterwards(store, intake):
    fact = add(intake, API, tags=["one"])
    answer = add(intake, f"---\ntitle: Limits\n---\n\n{API}")
    with store.read() as tx:
        document = tx.documents.get(fact.document_id)
    assert (answer.document_id, document.title, document.tags) == (fact.document_id, "Limits", ("one",))


def test_a_known_fact_that_gets_a_date_keeps_its_tags_and_origin(store, intake):
    fact = add(intake, SAME["tags"], source="Ada")
    answer = add(intake, SAME["a date"])
    with store.read() as tx:
        document = tx.documents.get(fact.document_id)
    assert (answer.document_id, document.date) == (fact.document_id, "2026-04-01")
    assert (document.source, set(document.tags)) == ("Ada", {"api", "limits"})


def test_a_known_fact_with_a_given_title_is_not_replaced_by_one_without(store, intake):
    fact = add(intake, API, title="Limits")
    answer = add(intake, SAME["a date"])
    assert answer.document_id != fact.document_id
    with store.read() as tx:
        assert tx.documents.get(fact.document_id).title == "Limits"


def test_the_text_of_a_turn_outside_of_its_conversation_is_a_note_of_its_own(store, intake):
    turn = add(intake, API, thread="lantern")
    assert add(intake, SAME["tags"]).document_id != turn.document_id


def test_the_same_text_with_another_date_is_another_event_and_is_named_as_alike(store, intake):
    first = add(intake, SAME["a date"])
    second = add(intake, f"---\ndate: 2026-05-02\n---\n{API}\n")
    assert (second.existed, [note.document_id for note in second.alike]) == (False, [first.document_id])
    assert count(store) == (2, 0)


def test_a_known_fact_that_replaces_a_note_or_has_a_title_says_so_afterwards(store, intake):
    old, fact = add(intake, FERRY), add(intake, API)
    answer = add(intake, SAME["tags"], replaces=old.document_id, title="Limits")
    assert (answer.document_id, answer.existed) == (fact.document_id, True)
    with store.read() as tx:
        document = tx.documents.get(fact.document_id)
    assert (document.replaces, document.title) == (old.document_id, "Limits")


OTHER = {
    "another field": {"text": f"---\nstatus: closed\n---\n{API}"},
    "a path": {"text": SAME["a date"], "source_path": "limits"},
    "a turn of a conversation": {"text": SAME["a date"], "thread": "lantern"},
    "another text": {"text": f"---\ndate: 2026-04-01\n---\n{API} Really."},
}


@pytest.mark.parametrize("other", OTHER)
def test_what_says_more_than_another_note_is_a_note_of_its_own(store, intake, other):
    stored = add(intake, API)
    answer = add(intake, **OTHER[other])
    assert (answer.document_id != stored.document_id, answer.existed) == (True, False)
    assert text_of(store, answer.document_id) == OTHER[other]["text"]


def test_notes_of_nothing_but_front_matter_differ(store, intake):
    first, second = add(intake, "---\ntags: [a]\n---\n"), add(intake, "---\ntags: [b]\n---\n")
    assert first.document_id != second.document_id


def test_a_fact_is_known_again_after_its_note_was_changed_deleted_and_restored(store, intake, gate, tmp_path):
    note = add(intake, FERRY).document_id
    update_note(store, at_once(gate), note, NoteChange(edit=Edit(text=SAME["a date"])))
    assert add(intake, API).document_id == note
    discard(store, note, tmp_path)
    restore(store, note)
    assert add(intake, SAME["tags"]).document_id == note
    update_note(store, at_once(gate), note, NoteChange(edit=Edit(text=FERRY)))
    assert add(intake, API).document_id != note


def test_front_matter_of_other_fields_is_part_of_the_fact():
    assert fact_of("---\nauthor: Ada\ndate: 2026-01-01\nsources:\n  - a\n---\nText.\n") == (
        "---\nauthor: Ada\nsources: - a\n---\nText."
    )


def test_alike_notes_are_a_hint_with_their_beginnings(store, intake):
    first = add(intake, f"{FERRY} {'It is blue. ' * 20}", title="Ferry")
    same = add(intake, FERRY)
    answer = add(intake, "The ferry leaves at seven.")
    assert (answer.stored, answer.existed) == (True, False)
    [nearest, *_] = answer.alike
    assert (nearest.document_id, nearest.title, nearest.text) == (same.document_id, FERRY, FERRY)
    assert all(len(note.text) <= 120 for note in answer.alike)
    assert first.document_id not in [note.document_id for note in add(intake, "Bruno prefers tea.").alike]


@pytest.mark.parametrize(("measured", "is_named"), [((5.0, -4.0, 5.0, -4.0), True), ((), False)])
def test_cosines_of_another_model_say_what_is_alike_if_they_were_measured(
    make_store, embedder, pool, tmp_path, monkeypatch, measured, is_named
):
    monkeypatch.setattr(vectors_at_once, "PATIENCE_SECONDS", 20)
    model = Squeezed(embedder, Likeness(*measured))
    with make_store(model="squeezed", digest=model.spec.digest) as store:
        intake = NoteIntake(store, FolderBlobs(tmp_path), NoteVectors(model, pool))
        first = add(intake, "Anna leads the Harbor team.")
        add(intake, "Bruno leads the kitchen.")
        alike = add(intake, "The Harbor team is led by Anna.").alike
        assert [note.document_id for note in alike] == ([first.document_id] if is_named else [])
        assert all(0.82 <= note.likeness <= 1 for note in alike)


def test_if_new_stores_nothing_that_is_known_or_alike(store, intake):
    stored = add(intake, SAME["a date"], tags=["one"])
    before = count(store)
    again = add(intake, API, tags=["two"], if_new=True)
    assert (again.stored, again.existed, again.document_id, again.job_id) == (False, True, stored.document_id, None)
    alike = add(intake, REWORDED, if_new=True)
    assert (alike.stored, alike.existed, alike.document_id) == (False, False, None)
    assert [note.document_id for note in alike.alike] == [stored.document_id]
    assert count(store) == before
    with store.read() as tx:
        assert tx.documents.get(stored.document_id).tags == ("one",)
    assert add(intake, "Bruno prefers tea.", if_new=True).stored


def test_if_new_stores_a_note_with_another_number_and_names_the_similar_one(store, intake):
    stored = add(intake, f"{API} {LONG}")
    later = add(intake, f"{API.replace('60', '90')} {LONG}", if_new=True)
    assert (later.stored, later.existed, later.document_id != stored.document_id) == (True, False, True)
    assert [note.document_id for note in later.alike] == [stored.document_id]
    longer = add(intake, f"{API} {LONG} Since 2031 it answers in JSON.", if_new=True)
    assert longer.stored
    assert not add(intake, f"{API.upper()} {LONG}", if_new=True).stored


def test_if_new_does_not_mind_the_note_that_it_changes_or_replaces(store, intake):
    first = add(intake, FERRY, source_path="ferry")
    moved = add(intake, "The ferry leaves at seven.", source_path="ferry", if_new=True)
    assert (moved.stored, moved.document_id) == (True, first.document_id)
    later = add(intake, "The ferry leaves at eight.", replaces=first.document_id, if_new=True)
    assert later.stored


def test_if_new_stores_a_note_that_says_what_or_when_something_no_longer_holds(store, intake):
    add(intake, API)
    former = add(intake, FERRY)
    later = add(intake, REWORDED, replaces=former.document_id, if_new=True)
    assert later.stored
    assert add(intake, API.upper(), valid_until="2030-01-31", if_new=True).stored
    assert not add(intake, API.upper(), if_new=True).stored


def test_if_new_compares_words_while_the_model_is_busy(store, intake, gate, monkeypatch):
    stored = add(intake, API)
    answer = late(intake, gate, monkeypatch, REWORDED, if_new=True)
    assert (answer.stored, [note.document_id for note in answer.alike]) == (False, [stored.document_id])
    assert late(intake, gate, monkeypatch, "Bruno prefers tea.", if_new=True).stored


def test_of_many_who_say_the_same_at_once_one_is_stored(store, intake):
    texts = [f"---\ndate: 2026-01-0{day}\n---\n{API if day % 2 else REWORDED}" for day in range(1, 9)]
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda text: add(intake, text, if_new=True), texts))
    assert [answer.stored for answer in answers].count(True) == 1
    assert count(store) == (1, 0)


class Raced:
    """A store in which somebody else adds a note before each write."""

    def __init__(self, store, add_other):
        self._store = store
        self._add_other = add_other

    def __getattr__(self, name):
        return getattr(self._store, name)

    def write(self, *arguments, **options):
        self._add_other()
        return self._store.write(*arguments, **options)


@pytest.mark.parametrize("is_busy", [False, True])
def test_if_new_sees_what_came_while_the_note_was_prepared_and_searches_in_no_write(
    store, intake, gate, monkeypatch, is_busy
):
    others = [FERRY, "Bruno prefers tea.", REWORDED]
    add(intake, others[0])
    monkeypatch.setattr(vectors_at_once, "PATIENCE_SECONDS", 0.01 if is_busy else 20)
    raced = replace(intake, store=Raced(store, lambda: [add(intake, other) for other in others]))
    searched = []
    monkeypatch.setattr(similar_notes, "_candidates", record_and(similar_notes._candidates, searched))
    with closed(gate) if is_busy else nullcontext():
        answer = add(raced, API, if_new=True)
    assert (answer.stored, [note.text for note in answer.alike]) == (False, [others[2]])
    assert len(searched) == 1 + len(others)


def record_and(act, calls):
    def recorded(*arguments):
        calls.append(arguments)
        return act(*arguments)

    return recorded


def test_a_limited_key_learns_nothing_of_notes_beyond_its_limit(store, intake):
    mine = CallerStore(store, Caller("ada", "write", Limit(("ada",), None)))
    hers = replace(intake, store=mine)
    theirs = add(intake, FERRY)
    ada = Author("ada")
    answer = hers.add(NoteRequest(text=FERRY, if_new=True), author=ada)
    assert (answer.stored, answer.alike, answer.document_id != theirs.document_id) == (True, [], True)
    with store.read() as tx:
        assert tx.documents.get(answer.document_id).tags == ("ada",)
    again = hers.add(NoteRequest(text=f"---\ndate: 2026-01-01\n---\n{FERRY}"), author=ada)
    assert (again.document_id, again.existed) == (answer.document_id, True)
    with pytest.raises(Forbidden):
        hers.add(NoteRequest(text="Mine.", source_path="elsewhere/a"), author=ada)


def test_a_superseded_note_is_not_named_as_alike(store, intake):
    first = add(intake, FERRY)
    second = add(intake, "The ferry leaves at seven.", replaces=first.document_id)
    answer = add(intake, "The ferry leaves at eight.")
    assert [note.document_id for note in answer.alike] == [second.document_id]


def test_an_engine_with_another_model_in_use_than_the_note_was_cut_for_starts_again(store, intake, embedder, pool):
    model = ActiveModel(embedder)
    tried = []

    class Changing(NoteVectors):
        def content(self, draft, arrived):
            tried.append(1)
            if len(tried) == 1:
                raise ModelChanged
            return super().content(draft, arrived)

    answer = add(replace(intake, vectors=Changing(model, pool)), FERRY)
    assert (answer.status, len(tried)) == ("done", 2)


@pytest.mark.parametrize("old", ["#kiln", "kiln/"])
def test_a_tag_that_an_earlier_version_stored_can_be_found_removed_and_renamed(store, intake, embedder, old):
    note = add(intake, FERRY).document_id
    with store.write() as tx:
        tx.documents.change_tags(note, add=[old, "kiln"], remove=())
        assert meant_tag(old, [tag for tag, _ in tx.documents.tags()]) == old
    assert change_tags(store, note, add=(), remove=[old]).tags == ("kiln",)
    assert change_tags(store, note, add=(), remove=[old]).tags == ()
    with store.write() as tx:
        tx.documents.change_tags(note, add=[old], remove=())
    rename_tag(store, embedder, old, "harbour")
    with store.read() as tx:
        assert tx.documents.get(note).tags == ("harbour",)
