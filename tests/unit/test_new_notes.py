"""A new note is stored within its request, and never twice."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

from kb.access.restricted_store import CallerStore
from kb.api.errors import AlreadyReplaced, Forbidden, JobDone, KeyReused, ModelChanged
from kb.api.models import ENDED, NoteRequest
from kb.api.rights import Caller, Limit
from kb.blobs.folder import FolderBlobs
from kb.documents.delete import delete, purge
from kb.documents.edit import Edit
from kb.documents.new_note import NoteIntake
from kb.documents.originals import Originals
from kb.documents.restore import restore
from kb.documents.submit import drop, retry
from kb.documents.undo import Scope, carry_out, find_operation, plan
from kb.documents.update import NoteChange, update_note
from kb.formats.readers.front_matter import fact_of
from kb.ingest import prompt_vectors
from kb.ingest.active_model import ActiveModel
from kb.ingest.prompt_vectors import PromptVectors
from kb.store.rows import Author, Filter, NewJob
from tests.support.eventually import eventually
from tests.support.models import WrappedModel
from tests.support.workers import job_of, queued, working

FERRY = "The ferry leaves at six."
LONG = "The clerks of the counting house kept their ledgers in good order. " * 200
API = "The Lantern API allows 60 calls a minute for each key."


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
    monkeypatch.setattr(prompt_vectors, "PATIENCE_SECONDS", 20)
    (tmp_path / "staging").mkdir(exist_ok=True)
    return NoteIntake(store, FolderBlobs(tmp_path), PromptVectors(gate, pool))


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
    monkeypatch.setattr(prompt_vectors, "PATIENCE_SECONDS", 0.01)
    with closed(gate):
        return add(intake, text, **fields)


def worked_off(store, gate, tmp_path, job_id):
    """The job, when a worker has ended it."""
    with working(store, gate, tmp_path):
        return eventually(
            "the job has ended", lambda: job_of(store, job_id), lambda job: job is None or job.status in ENDED
        )


def has_vectors(store, document_id):
    with store.read() as tx:
        ids = np.array(sorted(place.id for place in tx.documents.chunk_places(document_id)), np.int64)
        return tx.index.select(Filter()).vectors(ids).any(axis=1).all()


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
    def changed(draft):
        raise ModelChanged

    monkeypatch.setattr(intake.vectors, "content", changed)
    answer = add(intake, FERRY)
    assert (answer.status, answer.document_id) == ("queued", None)


def test_a_note_that_is_changed_before_its_vectors_come_keeps_the_change(store, intake, gate, tmp_path, monkeypatch):
    answer = late(intake, gate, monkeypatch)
    update_note(store, gate, answer.document_id, NoteChange(edit=Edit(text="The ferry leaves at noon.")))
    assert worked_off(store, gate, tmp_path, answer.job_id).status == "done"
    assert text_of(store, answer.document_id) == "The ferry leaves at noon."
    assert has_vectors(store, answer.document_id)


def test_a_note_that_gets_another_title_before_its_vectors_come_keeps_it(store, intake, gate, tmp_path, monkeypatch):
    answer = late(intake, gate, monkeypatch)
    update_note(store, gate, answer.document_id, NoteChange(title="Timetable"))
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
        restore(store, gate, answer.document_id)
        assert has_vectors(store, answer.document_id)


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


def test_an_undo_takes_back_a_note_that_waits_for_vectors(store, intake, gate, tmp_path, monkeypatch):
    monkeypatch.setattr(prompt_vectors, "PATIENCE_SECONDS", 0.01)
    me = Author("me", operation_key="one")
    with closed(gate):
        answer = intake.add(NoteRequest(text=FERRY), author=me)
    planned = plan(store, Scope(find_operation(store, None, Caller("me"))))
    [step] = carry_out(store, gate, Originals(FolderBlobs(tmp_path), keep=True), planned, Author("me"))
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


def test_a_note_comes_after_what_is_queued_for_its_path(store, intake, gate, tmp_path):
    (earlier,) = queued(store, NewJob("note", text="The old timetable.", source_path="trips/ferry"))
    answer = add(intake, FERRY, source_path="trips/ferry")
    assert (answer.status, answer.document_id, answer.job_id > earlier) == ("queued", None, True)
    job = worked_off(store, gate, tmp_path, answer.job_id)
    assert text_of(store, job.document_id) == FERRY
    assert count(store) == (1, 0)


def test_a_note_that_only_waits_for_vectors_keeps_none_from_its_path(store, intake, gate, tmp_path, monkeypatch):
    first = late(intake, gate, monkeypatch, source_path="trips/ferry")
    monkeypatch.setattr(prompt_vectors, "PATIENCE_SECONDS", 20)
    second = add(intake, "The ferry leaves at noon.", source_path="trips/ferry")
    assert (second.status, second.document_id) == ("done", first.document_id)
    assert worked_off(store, gate, tmp_path, first.job_id).status == "done"
    assert text_of(store, first.document_id) == "The ferry leaves at noon."


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
    picture = "data:image/png;base64," + "iVBORw0KGgo" * 100
    answer = add(intake, f"![a map]({picture})")
    assert (answer.status, answer.document_id) == ("queued", None)
    assert job_of(store, answer.job_id).kind == "file"


SAME = {
    "a date": f"---\ndate: 2026-04-01\n---\n{API}",
    "another date": f"---\ndate: 2026-05-02\n---\n{API}\n",
    "tags": f"---\ntags: [api, limits]\n---\n{API}",
    "a title": f"---\ntitle: Limits\n---\n\n{API}",
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
    assert text_of(store, stored.document_id) == first
    assert count(store) == (1, 0)


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
    update_note(store, gate, note, NoteChange(edit=Edit(text=SAME["a date"])))
    assert add(intake, API).document_id == note
    discard(store, note, tmp_path)
    restore(store, gate, note)
    assert add(intake, SAME["another date"]).document_id == note
    update_note(store, gate, note, NoteChange(edit=Edit(text=FERRY)))
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


def test_if_new_stores_nothing_that_is_known_or_alike(store, intake):
    stored = add(intake, SAME["a date"], tags=["one"])
    before = count(store)
    again = add(intake, API, tags=["two"], if_new=True)
    assert (again.stored, again.existed, again.document_id, again.job_id) == (False, True, stored.document_id, None)
    alike = add(intake, API.replace("60", "90"), if_new=True)
    assert (alike.stored, alike.existed, alike.document_id) == (False, False, None)
    assert [note.document_id for note in alike.alike] == [stored.document_id]
    assert count(store) == before
    with store.read() as tx:
        assert tx.documents.get(stored.document_id).tags == ("one",)
    assert add(intake, "Bruno prefers tea.", if_new=True).stored


def test_if_new_does_not_mind_the_note_that_it_changes_or_replaces(store, intake):
    first = add(intake, FERRY, source_path="ferry")
    moved = add(intake, "The ferry leaves at seven.", source_path="ferry", if_new=True)
    assert (moved.stored, moved.document_id) == (True, first.document_id)
    later = add(intake, "The ferry leaves at eight.", replaces=first.document_id, if_new=True)
    assert later.stored


def test_if_new_compares_words_while_the_model_is_busy(store, intake, gate, monkeypatch):
    stored = add(intake, API)
    answer = late(intake, gate, monkeypatch, API.replace("60", "90"), if_new=True)
    assert (answer.stored, [note.document_id for note in answer.alike]) == (False, [stored.document_id])
    assert late(intake, gate, monkeypatch, "Bruno prefers tea.", if_new=True).stored


def test_of_many_who_say_the_same_at_once_one_is_stored(store, intake):
    texts = [
        f"---\ndate: 2026-01-0{day}\n---\nThe ferry leaves at {'six' if day % 2 else 'seven'}." for day in range(1, 9)
    ]
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda text: add(intake, text, if_new=True), texts))
    assert [answer.stored for answer in answers].count(True) == 1
    assert count(store) == (1, 0)


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

    class Changing(PromptVectors):
        def content(self, draft):
            tried.append(1)
            if len(tried) == 1:
                raise ModelChanged
            return super().content(draft)

    answer = add(replace(intake, vectors=Changing(model, pool)), FERRY)
    assert (answer.status, len(tried)) == ("done", 2)
