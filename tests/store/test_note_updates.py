"""A changed note: what others change at once, passages that stay, vectors that come later, and repeated calls."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from kb.api.errors import AlreadyMade, KeyReused
from kb.blobs.folder import FolderBlobs
from kb.documents import repeated_change
from kb.documents.delete import delete
from kb.documents.note_edit import Edit, NoteChange
from kb.documents.originals import Originals
from kb.documents.restore_document import restore, revert
from kb.documents.tags import change_tags
from kb.documents.write_document import write_document
from kb.documents.write_updated_note import update_note
from kb.ingest.chunk import Chunker
from kb.ingest.draft import draft_note, embed_draft
from kb.store.rows import Author, Filter, NewJob
from tests.support.eventually import eventually
from tests.support.models import WrappedModel
from tests.support.note_vectors import at_once, has_vectors
from tests.support.workers import job_of, queued, working

ME, OTHER = Author("me"), Author("another")
LOG = "".join(
    f"On day {day}, the keeper of the harbour counted {3 * day} ships and {day} gulls.\n\n" for day in range(60)
)
LINE = "On day 61, a whale came by."


@pytest.fixture
def store(make_store):
    with make_store() as opened:
        yield opened


@pytest.mark.parametrize("edit", [Edit(append="A crane was added."), Edit("Another text.")])
def test_a_title_given_while_the_text_is_edited_is_kept(store, embedder, edit):
    content = embed_draft(draft_note("The harbour has no crane.", None, embedder), embedder)
    with store.write() as tx:
        note, _ = write_document(tx, content, None, [])
    others = [NoteChange(title="Harbour log")]

    def meanwhile():
        if others:
            update_note(store, at_once(embedder), note, others.pop())

    document, chunks, _ = update_note(store, at_once(embedder), note, NoteChange(edit), checkpoint=meanwhile)
    assert (document.title, document.title_given) == ("Harbour log", True)
    assert chunks[-1].text.endswith(edit.text or edit.append)


def test_an_optional_field_of_a_note_changes_in_a_version_of_its_own_and_keeps_text_and_vectors(store, embedder):
    content = embed_draft(draft_note("The harbour has no crane.", None, embedder), embedder)
    with store.write() as tx:
        note, _ = write_document(tx, replace(content, source="Ada"), None, ["sea"])
    for source in ("Bob", "Bob", None):
        changed, chunks, _ = update_note(store, at_once(embedder), note, NoteChange(optional={"source": source}))
        assert (changed.source, changed.tags, chunks[0].text) == (source, ("sea",), "The harbour has no crane.")
    assert has_vectors(store, note)
    with store.read() as tx:
        assert [version.document.source for version in tx.history.versions(note, limit=9)] == [None, "Bob", "Ada"]


def test_an_optional_field_and_the_text_of_a_note_change_together(store, embedder):
    content = embed_draft(draft_note("The harbour has no crane.", None, embedder), embedder)
    with store.write() as tx:
        note, _ = write_document(tx, content, None, [])
    change = NoteChange(Edit(append="A crane was added."), optional={"source": "Ada"}, if_match=[content.content_hash])
    first = update_note(store, at_once(embedder), note, change).note
    assert (first.source, update_note(store, at_once(embedder), note, change).note) == ("Ada", first)


class Counting(WrappedModel):
    """A model that keeps the texts that it embeds."""

    def __init__(self, embedder):
        super().__init__(embedder)
        self.texts = []

    @property
    def current(self):
        return self

    def embed_passages(self, texts, *, alone=True):
        self.texts += texts
        return self._embedder.embed_passages(texts, alone=alone)


class Busy(Counting):
    """A model that has no time for notes."""

    def embed_passages(self, texts, *, alone=True):
        raise TimeoutError


@pytest.fixture
def model(embedder):
    return Counting(embedder)


@pytest.fixture
def note(store, embedder):
    """The id of a note of several passages."""
    with store.write() as tx:
        return write_document(tx, embed_draft(draft_note(LOG, None, embedder), embedder), None, [])[0]


def change(store, embedder, note, edit, author=ME, **fields):
    return update_note(store, at_once(embedder), note, NoteChange(edit, **fields), author=author)


def changed_later(store, embedder, note, edit):
    """Change a note whose vectors must wait."""
    return change(store, Busy(embedder), note, edit)


def chunks_of(store, note):
    with store.read() as tx:
        return tx.documents.chunks(note)


def text_of(store, note):
    return "".join(chunk.text for chunk in chunks_of(store, note))


def vectors_of(store, note):
    """The vector of each passage, in the order of the passages."""
    ids = [chunk.id for chunk in chunks_of(store, note)]
    with store.read() as tx:
        vectors = tx.index.select(Filter()).vectors(np.array(sorted(ids), np.int64))
    return vectors[[sorted(ids).index(chunk_id) for chunk_id in ids]]


def jobs(store):
    with store.read() as tx:
        return tx.jobs.page(status=None, limit=100, before=None)


def test_only_the_passages_at_an_appended_line_are_embedded_and_the_others_stay(store, model, note):
    before = chunks_of(store, note)
    change(store, model, note, Edit(append=LINE))
    after = chunks_of(store, note)
    assert len(before) > 5
    assert after[: len(before) - 1] == before[:-1]
    assert len(model.texts) <= 2
    assert all(LOG[-60:].strip() in text or LINE in text for text in model.texts)
    assert has_vectors(store, note)
    assert jobs(store) == []


@pytest.mark.parametrize("seed", range(3))
def test_after_any_edits_each_passage_has_its_place_and_its_own_vector(store, model, note, seed):
    random, text = Random(seed), LOG
    for number in range(8):
        start = random.randrange(len(text))
        end = min(len(text), start + random.choice((0, 1, 40, 900)))
        text = text[:start] + random.choice(("", "é", "\r\n", f"Note {number}. ", LOG[:700])) + text[end:]
        change(store, model, note, Edit(text))
        if number == 4:
            change(store, model, note, Edit(), title="Log")
    chunks = chunks_of(store, note)
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    for chunk in chunks:
        assert text[chunk.place.char_start : chunk.place.char_end] == chunk.text
        assert chunk.place.line_start == text.count("\n", 0, chunk.place.char_start) + 1
    passages = [Chunker(model).passage(chunk.header, chunk.text) for chunk in chunks]
    own = model.embed_passages(passages)
    assert (np.vecdot(vectors_of(store, note), own) > 0.999).all()
    assert len(set(passages) - set(model.texts[: -len(passages)])) < len(chunks)  # some have never changed


def test_passages_that_only_change_places_keep_their_ids_and_vectors(store, model, note):
    before, vectors = chunks_of(store, note), vectors_of(store, note)
    content = draft_note(LOG, None, model)
    with store.write() as tx:
        tx.documents.replace(note, replace(content.content(), chunks=content.chunks[::-1]))
    assert [chunk.id for chunk in chunks_of(store, note)] == [chunk.id for chunk in before][::-1]
    assert (vectors_of(store, note) == vectors[::-1]).all()
    assert model.texts == []


@pytest.mark.requirement("N-2")
def test_words_are_found_before_the_vectors_come(store, embedder, note, tmp_path):
    changed_later(store, embedder, note, Edit(append=LINE))
    with store.read() as tx:
        assert tx.index.select(Filter()).full_text(["whale"], 10).ids.size == 1
        assert [chunk.text.endswith(f"{LINE}\n") for chunk in tx.documents.without_vectors(note)] == [True]
    [job] = jobs(store)
    assert (job.kind, job.status, job.document_id) == ("vectors", "queued", note)
    with working(store, embedder, tmp_path):
        eventually("the vectors are there", lambda: has_vectors(store, note))
        eventually("its job is gone", lambda: jobs(store) == [])


def test_vectors_come_after_a_restart(make_store, embedder, tmp_path):
    with make_store() as store:
        with store.write() as tx:
            note, _ = write_document(tx, embed_draft(draft_note(LOG, None, embedder), embedder), None, [])
        changed_later(store, embedder, note, Edit(append=LINE))
        with store.queue() as tx:
            assert tx.jobs.claim(1)  # the engine ends while it works on it
    with make_store() as store, working(store, embedder, tmp_path):
        eventually("the vectors are there", lambda: has_vectors(store, note))


def test_a_note_that_changes_again_while_its_vectors_are_missing_gets_them_for_its_last_text(
    store, model, note, tmp_path
):
    changed_later(store, model, note, Edit(append=LINE))
    changed_later(store, model, note, Edit(old=LINE, new="On day 61, two whales came by."))
    changed_later(store, model, note, Edit(prepend="# The log\n"))
    assert len(jobs(store)) == 1
    with working(store, model, tmp_path):
        eventually("the vectors are there", lambda: has_vectors(store, note))
    assert not any(LINE in text for text in model.texts)


def test_a_change_while_the_vectors_of_the_last_one_are_being_made_gets_its_own(store, embedder, note, tmp_path):
    changed_later(store, embedder, note, Edit(append=LINE))
    with store.queue() as tx:
        [running] = tx.jobs.claim(1)
    changed_later(store, embedder, note, Edit(append="The end."))
    assert [job.status for job in jobs(store)] == ["queued", "running"]
    with store.write() as tx:
        tx.jobs.delete(running.id)
    with working(store, embedder, tmp_path):
        eventually("the vectors are there", lambda: has_vectors(store, note))


def test_a_note_that_is_deleted_or_taken_back_before_its_vectors_come_has_them_in_the_end(
    store, embedder, note, tmp_path
):
    originals = Originals(FolderBlobs(tmp_path), keep=True)
    changed_later(store, embedder, note, Edit(append=LINE))
    delete(store, originals, note, ME)
    restore(store, note, ME)
    revert(store, originals, note, 1, author=ME)
    with working(store, embedder, tmp_path):
        eventually("the vectors are there", lambda: has_vectors(store, note))
        eventually("no job is left", lambda: jobs(store) == [])
    assert text_of(store, note) == LOG


def test_the_job_for_vectors_ends_when_the_note_is_gone(store, embedder, note, tmp_path):
    changed_later(store, embedder, note, Edit(append=LINE))
    with store.write() as tx:
        tx.documents.delete(note)
    with working(store, embedder, tmp_path):
        eventually("no job is left", lambda: jobs(store) == [])
    with store.read() as tx:
        assert tx.documents.count(Filter()) == 0


def test_a_change_of_tags_makes_no_vectors(store, model, note):
    change(store, model, note, Edit(), tags_add=["harbour"])
    change_tags(store, note, add=["log"], remove=[])
    assert (model.texts, jobs(store)) == ([], [])


def test_an_edit_that_is_sent_again_is_not_made_again(store, embedder, note):
    for edit in (Edit(append=LINE), Edit(old="61", new="61 or 610"), Edit(prepend="# Log")):
        change(store, embedder, note, edit, once=True)
        change(store, embedder, note, Edit(append="Another's line."), author=OTHER)
        text = text_of(store, note)
        with pytest.raises(AlreadyMade, match="To make it again, pass if_match="):
            change(store, embedder, note, edit, once=True)
        assert text_of(store, note) == text


def test_equal_lines_can_be_appended_on_purpose(store, embedder, note, monkeypatch):
    document, *_ = change(store, embedder, note, Edit(append=LINE), once=True)
    change(store, embedder, note, Edit(append=LINE), author=OTHER, once=True)
    document, *_ = change(store, embedder, note, Edit(append=LINE))
    change(store, embedder, note, Edit(append=LINE), once=True, if_match=[document.content_hash])
    assert text_of(store, note).count(LINE) == 4
    monkeypatch.setattr(repeated_change, "REPEATED_SECONDS", -1)
    change(store, embedder, note, Edit(append=LINE), once=True)
    assert text_of(store, note).count(LINE) == 5


def test_an_edit_can_be_made_again_after_it_was_undone(store, embedder, note, tmp_path):
    change(store, embedder, note, Edit(append=LINE), once=True)
    revert(store, Originals(FolderBlobs(tmp_path), keep=True), note, 1, author=ME)
    change(store, embedder, note, Edit(append=LINE), once=True)
    assert text_of(store, note).count(LINE) == 1


def test_words_that_came_back_can_be_taken_out_again(store, embedder, note):
    for _ in range(2):
        change(store, embedder, note, Edit(append=LINE), author=OTHER)
        change(store, embedder, note, Edit(old=LINE, new=""), once=True)
    assert LINE not in text_of(store, note)
    with pytest.raises(AlreadyMade):
        change(store, embedder, note, Edit(old=LINE, new=""), once=True)


def test_a_change_from_a_version_is_made_once(store, embedder, note):
    with store.read() as tx:
        known = [tx.documents.get(note).content_hash]
    for _ in range(2):
        changed, *_ = change(store, embedder, note, Edit(append=LINE), if_match=known)
    assert text_of(store, note).count(LINE) == 1
    with store.read() as tx:
        assert len(tx.history.versions(note, limit=9)) == 2
        assert tx.documents.get(note) == changed


def test_a_change_with_a_key_is_made_once_even_if_others_change_the_note(store, embedder, note):
    for _ in range(2):
        change(store, embedder, note, Edit(append=LINE), idempotency_key="k", request_hash="h")
        change(store, embedder, note, Edit(append="Another's line."), author=OTHER)
    assert text_of(store, note).count(LINE) == 1
    with pytest.raises(KeyReused):
        change(store, embedder, note, Edit(append="Other words."), idempotency_key="k", request_hash="other")
    assert [(job.status, job.document_id) for job in jobs(store)] == [("done", note)]


def test_a_call_that_is_repeated_while_the_first_one_is_at_work_is_made_once(store, embedder, note):
    again = [Edit(append=LINE)]

    def meanwhile():
        if again:
            change(store, embedder, note, again.pop(), idempotency_key="k", request_hash="h")

    first = NoteChange(Edit(append=LINE), idempotency_key="k", request_hash="h")
    update_note(store, at_once(embedder), note, first, checkpoint=meanwhile, author=ME)
    assert text_of(store, note).count(LINE) == 1


def test_a_file_that_changed_keeps_the_vectors_of_the_passages_that_stay(store, model, tmp_path):
    with working(store, model, tmp_path):
        for number, text in enumerate((LOG, LOG + LINE, LOG + LINE)):
            (tmp_path / "staging" / str(number)).write_text(text)
            job = NewJob("file", source_path="/log.txt", staged=str(number), filename="log.txt")
            [job_id] = queued(store, job)
            document = eventually("it is read", lambda job_id=job_id: job_of(store, job_id).document_id)
            if number == 0:
                model.texts.clear()
    assert 1 <= len(model.texts) <= 2
    assert text_of(store, document) == LOG + LINE
    assert has_vectors(store, document)
    assert {job.kind for job in jobs(store)} == {"file"}


def test_a_changed_file_whose_document_others_change_meanwhile_gets_all_vectors(store, model, tmp_path):
    """Its passages are left out for the document that it replaced when it was read."""
    original = model.embed_passages
    with working(store, model, tmp_path):
        (tmp_path / "staging" / "a").write_text(LOG)
        [first] = queued(store, NewJob("file", source_path="/log.txt", staged="a", filename="log.txt"))
        document = eventually("it is read", lambda: job_of(store, first).document_id)

        def leave(texts, *, alone=True):
            model.embed_passages = original
            with store.write() as tx:
                tx.documents.delete(document)
            return original(texts, alone=alone)

        model.embed_passages = leave
        (tmp_path / "staging" / "b").write_text(LOG + LINE)
        [second] = queued(store, NewJob("file", source_path="/log.txt", staged="b", filename="log.txt"))
        again = eventually("it is read again", lambda: job_of(store, second).document_id)
        eventually("the vectors are there", lambda: has_vectors(store, again))


def test_the_answer_to_a_change_names_its_author_whoever_changes_the_note_next(store, embedder, note):
    updated = update_note(store, at_once(embedder), note, NoteChange(Edit(append=LINE)), author=ME)
    update_note(store, at_once(embedder), note, NoteChange(tags_add=["sea"]), author=OTHER)
    assert updated.author == ME


@pytest.mark.parametrize(
    ("before", "edit", "after"),
    [
        ("One.\r\nTwo.\r\n", Edit(append="Three."), "One.\r\nTwo.\r\nThree.\r\n"),
        ("One.\r\nTwo.\r\n", Edit(prepend="Zero.\n"), "Zero.\r\nOne.\r\nTwo.\r\n"),
        ("One.\n", Edit(append="Two."), "One.\nTwo.\n"),
        ("One.", Edit(append="Two."), "One.\nTwo."),
    ],
)
def test_added_lines_end_as_the_lines_of_the_note_do(before, edit, after):
    assert edit.apply(before) == after
    assert edit.is_in(after)
