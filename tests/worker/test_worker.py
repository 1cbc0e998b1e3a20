"""The worker over a real store and a real model, with the faults that a disk or a device may have."""

from __future__ import annotations

import asyncio
import resource
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, count
from random import Random

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kb.api.errors import KbError, NotRetryable
from kb.api.fields import ENDED
from kb.api.job_error_phrases import remedy_for
from kb.api.rights import Limit
from kb.blobs.folder import FolderBlobs
from kb.documents.job_queue import drop, retry
from kb.documents.note_edit import Edit, NoteChange
from kb.documents.originals import Originals
from kb.documents.write_document import write_document
from kb.documents.write_updated_note import update_note
from kb.ingest.draft import draft_note, embed_draft
from kb.ingest.stop_signal import StopSignal
from kb.parser.extracting_sandbox import ExtractingSandbox
from kb.parser.extractors import Extractors
from kb.parser.sandbox import Limits
from kb.store.rows import NOBODY, Author, Filter, NewJob
from kb.worker import loop
from kb.worker.job import MAX_ATTEMPTS
from kb.worker.job_waiters import JobWaiters
from kb.worker.loop import Slots, in_lanes
from tests.support.eventually import eventually
from tests.support.models import WrappedModel
from tests.support.note_vectors import at_once
from tests.support.rare_cases import mostly_rare
from tests.support.scans import scan
from tests.support.workers import job_of, new_worker, queued, working

SLICE = 4
LONG = "The clerks of the counting house kept their ledgers in good order. " * 300


class Failing(WrappedModel):
    """The real model, until it is told to fail so many times, or at texts with a word. It may call back before a slice."""

    def __init__(self, embedder):
        super().__init__(embedder)
        self.failures = 0
        self.word = None
        self.slices = 0
        self.before_slice = {}
        self.before_cut = lambda text: None

    def token_starts(self, text):
        self.before_cut(text)
        return self._embedder.token_starts(text)

    def embed_passages(self, texts, *, alone=True):
        if len(texts) == SLICE and "ledgers" in texts[0]:
            self.slices += 1
            self.before_slice.get(self.slices, list)()
        if self.failures:
            self.failures -= 1
            raise RuntimeError("the device is lost")
        if self.word and any(self.word in text for text in texts):
            raise RuntimeError("the device is lost over a word")
        return self._embedder.embed_passages(texts)


@pytest.fixture
def failing(embedder):
    return Failing(embedder)


@pytest.fixture
def store(make_store):
    with make_store() as opened:
        yield opened


@pytest.fixture
def worker(store, failing, tmp_path, monkeypatch):
    monkeypatch.setattr("kb.worker.loop.RETRY_SECONDS", 0.01)
    monkeypatch.setattr("kb.worker.loop.SLICE", SLICE)
    monkeypatch.setattr("kb.ingest.draft.SLICE", SLICE)
    with working(store, failing, tmp_path) as started:
        yield started


def submit(store, worker, **job):
    [job_id] = queued(store, NewJob(job.pop("kind", "note"), **job))
    worker.wake()
    return job_id


def ended(store, job_id):
    return eventually("the job has ended", lambda: job_of(store, job_id), lambda job: job.status in ENDED)


def found(store, word):
    with store.read() as tx:
        ids = tx.index.select(Filter()).full_text([word], 100).ids.tolist()
        return [hit.text for hit in tx.index.hits(ids)]


def test_a_model_that_fails_once_only_delays_a_job(store, worker, failing):
    failing.failures = 1
    assert ended(store, submit(store, worker, text="patience")).status == "done"
    assert found(store, "patience") == ["patience"]


def test_a_failed_job_is_not_tried_again_over_what_came_later_for_its_path(store, worker, failing):
    failing.failures = MAX_ATTEMPTS
    old = ended(store, submit(store, worker, text="outdated", source_path="/p"))
    new = ended(store, submit(store, worker, text="present", source_path="/p"))
    with pytest.raises(NotRetryable, match=rf"^Job {old.id} would overwrite newer content .* from job {new.id}\.$"):
        retry(store, old.id)
    with store.write() as tx:
        tx.documents.delete(new.document_id)
    assert retry(store, old.id).status == "queued"


def test_a_model_that_keeps_failing_fails_the_job_with_a_reason_and_the_queue_goes_on(store, worker, failing):
    failing.failures = MAX_ATTEMPTS
    job = ended(store, submit(store, worker, text="doomed"))
    assert (job.status, job.document_id) == ("failed", None)
    assert "see its log" in job.error
    assert found(store, "doomed") == []
    assert ended(store, submit(store, worker, text="next")).status == "done"


def test_a_job_that_the_engine_failed_kept_its_content_and_can_be_tried_again(store, worker, failing):
    failing.failures = MAX_ATTEMPTS
    job_id = submit(store, worker, text="phoenix")
    assert ended(store, job_id).status == "failed"
    with store.write() as tx:
        assert tx.jobs.retry(job_id)
    worker.wake()
    job = ended(store, job_id)
    assert (job.status, job.error) == ("done", None)
    assert found(store, "phoenix") == ["phoenix"]
    with store.write() as tx:
        assert not tx.jobs.retry(job_id)


def test_a_job_that_alone_meets_an_io_error_fails_and_the_queue_goes_on(store, worker, monkeypatch):
    def saved(tx, content, *arguments, **options):
        if "doomed" in content.chunks[0].text:
            raise apsw.exception_for(apsw.SQLITE_IOERR_READ)  # of the pages that it is to be written to
        return write_document(tx, content, *arguments, **options)

    monkeypatch.setattr("kb.worker.job.write_document", saved)
    job = ended(store, submit(store, worker, text="doomed"))
    assert (job.status, job.document_id) == ("failed", None)
    assert "see its log" in job.error
    assert ended(store, submit(store, worker, text="next")).status == "done"


def test_what_a_limited_key_sent_to_a_path_that_became_anothers_is_kept_and_can_be_tried_again(store, worker, tmp_path):
    other = ended(store, submit(store, worker, text="theirs", source_path="/f/a", tags=("y",))).document_id
    (tmp_path / "staging" / "a").write_text("mine")
    sent = {"kind": "file", "staged": "a", "filename": "a.txt", "source_path": "/f/a", "tags": ("x",)}
    job_id = submit(store, worker, **sent, author=Author("ada"), limit=Limit(("x",), "/f/"))
    job = ended(store, job_id)
    assert (job.status, job.document_id) == ("failed", None)
    assert "/f/a" in job.error
    with store.write() as tx:
        tx.documents.delete(other)
        assert tx.jobs.retry(job_id)
    worker.wake()
    assert ended(store, job_id).status == "done"
    assert found(store, "mine") == ["mine"]


def test_a_file_whose_extractor_is_out_of_reach_can_be_tried_again(store, failing, tmp_path):
    staging = tmp_path / "staging"
    (staging / "kb-extract-cut-off").mkdir(parents=True)
    (staging / "a").write_text("words")
    (staging / "kb-extract-cut-off" / "file.doc").write_text(
        "a copy of a file on whose extractor the engine was killed"
    )
    extractors = Extractors.parse(".doc=http://127.0.0.1:9/")
    sandbox = ExtractingSandbox(Limits(), extractors, 20, staging)
    [job_id] = queued(store, NewJob("file", staged="a", filename="a.doc", source_path="/a.doc"))
    with working(store, failing, tmp_path, sandbox=sandbox) as worker:
        assert ended(store, job_id).error.startswith("The engine could not read it: its extractor http://127.0.0.1:9/")
        assert [each.name for each in staging.iterdir()] == ["a"]
        sandbox.extractors = Extractors.parse(".doc=cat")
        with store.write() as tx:
            assert tx.jobs.retry(job_id)
        worker.wake()
        assert ended(store, job_id).status == "done"


def test_notes_and_what_is_read_already_wait_for_no_extractor(store, failing, tmp_path, monkeypatch):
    monkeypatch.setattr("kb.worker.job.PATIENCE_SECONDS", 0.05)
    staging = tmp_path / "staging"
    staging.mkdir()
    sandbox = ExtractingSandbox(Limits(), Extractors.parse(".slow=sh -c 'sleep 1 && cat'"), 20, staging)
    worker = new_worker(store, failing, tmp_path, sandbox=sandbox)
    with store.write():
        for name in ("one", "two", "three"):
            (staging / name).write_text(name)
    with store.write() as tx:
        slow = [tx.jobs.add(NewJob("file", staged=name, filename="a.slow")) for name in ("one", "two", "three")]
        claimed_with_them = tx.jobs.add(NewJob("note", text="a first note"))
    worker.start()
    try:
        eventually("it runs", lambda: sandbox.is_extracting, bool)
        later = submit(store, worker, text="a later note")
        ends = [ended(store, job_id) for job_id in (claimed_with_them, later, *slow)]
    finally:
        worker.stop()
    assert [(job.status, job.attempts) for job in ends] == [("done", 1)] * 5
    first, second, *files = [job.finished_at for job in ends]
    assert max(first, second) < files[0] < files[1] < files[2]


def test_a_stop_amid_an_extractor_is_quick_and_its_file_is_begun_again(store, failing, tmp_path):
    staging = tmp_path / "staging"
    staging.mkdir()
    (staging / "a").write_text("words")
    sandbox = ExtractingSandbox(Limits(), Extractors.parse(".slow=sleep 47129"), 60, staging)
    worker = new_worker(store, failing, tmp_path, sandbox=sandbox)
    job_id = submit(store, worker, kind="file", staged="a", filename="a.slow")
    worker.start()
    eventually("it runs", lambda: sandbox.is_extracting, bool)
    began = time.monotonic()
    worker.stop()
    assert time.monotonic() - began < 5
    assert [each.name for each in staging.iterdir()] == ["a"]
    job = job_of(store, job_id)
    assert (job.status, job.attempts) == ("queued", 0)


def test_a_short_note_that_comes_while_a_long_text_is_embedded_is_done_first(store, worker, failing):
    notes = []
    failing.before_slice = {2: lambda: notes.append(submit(store, worker, text="a short one"))}
    long = ended(store, submit(store, worker, text=LONG))
    [note] = [ended(store, job_id) for job_id in notes]
    assert failing.slices > 3
    assert note.finished_at < long.finished_at
    assert (note.attempts, long.attempts) == (1, 1)


@pytest.mark.rare
def test_short_notes_that_fail_do_not_count_against_the_long_text_between_whose_slices_they_are_done(
    store, worker, failing
):
    notes = []
    failing.word = "doomed"
    failing.before_slice = {
        number: lambda number=number: notes.append(submit(store, worker, text=f"doomed {number}"))
        for number in range(1, MAX_ATTEMPTS + 1)
    }
    long = ended(store, submit(store, worker, text=LONG))
    assert failing.slices > MAX_ATTEMPTS
    assert (long.status, long.attempts) == ("done", 1)
    jobs = [ended(store, job_id) for job_id in notes]
    assert [job.status for job in jobs] == ["failed"] * MAX_ATTEMPTS
    assert all(f"failed {MAX_ATTEMPTS} times" in job.error for job in jobs)


@pytest.mark.rare
def test_short_notes_that_fill_several_slices_are_done_between_two_of_a_long_text(store, worker, failing):
    chinese = "账房先生把账簿整理得井井有条。" * 30
    notes = []

    def submit_notes():
        notes.extend(submit(store, worker, text=f"{number}{chinese}") for number in range(10))

    failing.before_slice = {2: submit_notes}
    long = ended(store, submit(store, worker, text=LONG))
    jobs = [ended(store, job_id) for job_id in notes]
    assert [(job.status, job.attempts) for job in [long, *jobs]] == [("done", 1)] * 11


def stage(store, worker, folder, name, text, **job):
    (folder / "staging" / name).write_text(text)
    return submit(store, worker, kind="file", staged=name, filename=f"{name}.txt", **job)


@pytest.mark.rare
def test_short_files_that_wait_behind_a_long_one_or_come_meanwhile_are_done_before_it(store, worker, failing, tmp_path):
    later = []

    def come_meanwhile():
        later.extend(stage(store, worker, tmp_path, f"later {number}", f"came later {number}") for number in range(5))

    failing.before_slice = {2: come_meanwhile}
    with store.write():  # until all are there
        jobs = [NewJob("file", staged="long", filename="long.txt")]
        jobs += [NewJob("file", staged=f"short {number}", filename="short.txt") for number in range(20)]
        for job in jobs:
            (tmp_path / "staging" / job.staged).write_text(LONG if job.staged == "long" else job.staged)
    with store.write() as tx:
        long, *short = [tx.jobs.add(job) for job in jobs]
    worker.wake()
    ends = {job_id: ended(store, job_id) for job_id in (long, *short)}
    ends |= {job_id: ended(store, job_id) for job_id in later}
    assert len(later) == 5
    assert {job.status for job in ends.values()} == {"done"}
    assert max(ends, key=lambda job_id: ends[job_id].finished_at) == long


@pytest.mark.rare
def test_what_comes_after_a_long_text_for_its_path_is_done_after_it(store, failing, tmp_path, monkeypatch):
    monkeypatch.setattr("kb.worker.loop.SLICE", SLICE)
    jobs = queued(store, *(NewJob("note", text=text, source_path="/p") for text in (LONG, "the later text")))
    with working(store, failing, tmp_path):
        assert len({ended(store, job_id).document_id for job_id in jobs}) == 1
    assert found(store, "later") == ["the later text"]
    assert found(store, "ledgers") == []


@pytest.mark.rare
def test_what_comes_before_a_long_text_for_its_path_is_done_before_it(store, failing, tmp_path, monkeypatch):
    monkeypatch.setattr("kb.worker.loop.SLICE", SLICE)
    monkeypatch.setattr("kb.worker.loop.WAITING_SLICES", 1)
    jobs = queued(store, *(NewJob("note", text=text, source_path="/p") for text in ("the earlier text", LONG)))
    with working(store, failing, tmp_path):
        assert len({ended(store, job_id).document_id for job_id in jobs}) == 1
    assert found(store, "earlier") == []
    assert found(store, "ledgers")


def test_a_file_is_read_while_the_model_works_on_the_one_before(store, worker, failing, tmp_path):
    reading = threading.Event()
    failing.before_cut = lambda text: reading.set() if "second" in text else None
    failing.before_slice = {1: lambda: reading.wait(30) or pytest.fail("it waits for the model")}
    (tmp_path / "staging" / "a").write_text("ledgers\n\n" * 2 + "Ledgers of the counting house. " * 170)
    (tmp_path / "staging" / "b").write_text("second")
    jobs = queued(store, *(NewJob("file", staged=name, filename=f"{name}.txt") for name in ("a", "b")))
    worker.wake()
    assert [ended(store, job_id).status for job_id in jobs] == ["done", "done"]
    assert failing.slices
    assert reading.is_set()


class WaitedFor:
    """A store in which an urgent write always waits."""

    has_urgent = True

    def __init__(self, store):
        self._store = store

    def __getattr__(self, name):
        return getattr(self._store, name)


def test_while_somebody_waits_to_write_one_document_is_written_at_a_time(store, failing, tmp_path):
    submitted = queued(store, *(NewJob("note", text=f"Note {number}.") for number in range(5)))
    with working(WaitedFor(store), failing, tmp_path):
        assert {ended(store, job_id).status for job_id in submitted} == {"done"}
    with store.read() as tx:
        times = {note.created_at for note in tx.documents.page(Filter(), sort="id", limit=100, cursor=None)}
    assert len(times) == len(submitted)


def test_the_progress_of_jobs_that_are_embedded_together_is_each_ones_own(store, worker, failing):
    seen = {}

    def look():
        with store.read() as tx:
            seen.update({job.id: job.progress for job in tx.jobs.page(status="running", limit=10, before=None)})

    failing.before_slice = {2: look}
    with store.write() as tx:
        texts = LONG[: len(LONG) // 10], LONG[: len(LONG) // 3]
        first, second = (tx.jobs.add(NewJob("note", text=f"{len(text)} {text}")) for text in texts)
    worker.wake()
    assert [ended(store, job_id).progress for job_id in (first, second)] == [1, 1]
    assert seen[first] == 1
    assert 0 < seen[second] < 0.5


def test_jobs_that_are_claimed_together_start_when_each_is_begun(store, worker, failing):
    failing.before_cut = lambda text: time.sleep(0.02)
    jobs = queued(store, *(NewJob("note", text=f"note {number}") for number in range(3)))
    worker.wake()
    starts = [ended(store, job_id).started_at for job_id in jobs]
    assert starts == sorted(set(starts))


@pytest.mark.rare
def test_a_text_that_fails_after_its_first_slice_is_begun_again_and_written_once(store, worker, failing):
    failing.before_slice = {2: lambda: setattr(failing, "failures", 1)}
    job = ended(store, submit(store, worker, text=LONG))
    assert (job.status, job.attempts) == ("done", 2)
    with store.read() as tx:
        assert tx.counts().documents == {"note": 1}


@pytest.mark.requirement("N-2")
def test_an_update_whose_text_cannot_be_cut_leaves_the_old_note_whole(store, worker, failing):
    document_id = ended(store, submit(store, worker, text="old words")).document_id

    def out_of_memory(_):
        raise MemoryError

    failing.before_cut = out_of_memory
    with pytest.raises(MemoryError):
        update_note(store, at_once(failing), document_id, NoteChange(Edit("new words")))
    assert found(store, "old") == ["old words"]
    assert found(store, "new") == []
    with store.read() as tx:
        assert tx.documents.get(document_id).updated_at is None


@pytest.mark.requirement("N-2")
def test_an_update_that_cannot_be_embedded_leaves_the_old_note_whole(store, worker, failing):
    document_id = ended(store, submit(store, worker, text="old words")).document_id
    failing.failures = 1
    with pytest.raises(RuntimeError):
        update_note(store, at_once(failing), document_id, NoteChange(Edit("new words")))
    assert found(store, "old") == ["old words"]
    assert found(store, "new") == []
    with store.read() as tx:
        assert tx.documents.get(document_id).updated_at is None


def test_what_a_job_came_with_is_not_kept_after_it(store, worker, tmp_path):
    (tmp_path / "staging" / "a").write_bytes(b"words of a file")
    (tmp_path / "staging" / "b").write_bytes(b"")
    done = ended(store, submit(store, worker, kind="file", staged="a", filename="a.txt"))
    failed = ended(store, submit(store, worker, kind="file", staged="b", filename="b.txt"))
    assert (done.status, failed.status) == ("done", "failed")
    worker.stop()
    assert list((tmp_path / "staging").iterdir()) == []
    with store.read() as tx:
        assert tx.jobs.get(done.id).staged is None


@pytest.mark.slow
def test_a_stopped_worker_leaves_its_jobs_for_the_next_one(store, failing, tmp_path):
    first = new_worker(store, failing, tmp_path)
    jobs = queued(store, *(NewJob("note", text=f"note {number} " + "ledger " * 300) for number in range(40)))
    first.start()
    first.stop()
    with store.read() as tx:
        assert {tx.jobs.get(job_id).status for job_id in jobs} <= {"queued", "done"}
        assert all(tx.jobs.get(job_id).attempts == 0 for job_id in jobs if tx.jobs.get(job_id).status == "queued")
    with working(store, failing, tmp_path):
        assert {ended(store, job_id).status for job_id in jobs} == {"done"}


def test_stops_that_are_cut_off_do_not_count_against_the_job_that_was_under_way(store, failing, tmp_path):
    stopped = StopSignal()
    stopped.request()
    [job] = queued(store, NewJob("note", text="patience"))
    for _ in range(MAX_ATTEMPTS + 1):
        with store.write() as tx:
            assert [claimed.id for claimed in tx.jobs.claim(1)] == [job]
        new_worker(store, failing, tmp_path).before_stop()  # and the process ends
        with working(store, failing, tmp_path, stop=stopped):
            pass
    with working(store, failing, tmp_path):
        assert ended(store, job).status == "done"


def test_a_job_that_was_running_when_the_clock_was_ahead_is_begun_again(store, failing, tmp_path):
    with store.write() as tx:
        job = tx.jobs.add(NewJob("note", text="text"))
        tx.jobs.claim(1)
        tx.connection.execute("UPDATE jobs SET heartbeat_at = '2999-01-01 00:00:00.000'")
    with working(store, failing, tmp_path):
        assert ended(store, job).status == "done"


@pytest.mark.requirement("E-11")
def test_two_notes_under_one_path_in_one_batch_are_one_document_with_the_later_text(store, failing, tmp_path):
    worker = new_worker(store, failing, tmp_path)
    jobs = queued(store, *(NewJob("note", text=text, source_path="/p") for text in ("early", "late")))
    worker.start()
    assert len({ended(store, job_id).document_id for job_id in jobs}) == 1
    assert all(ended(store, job_id).attempts == 1 for job_id in jobs)
    worker.stop()
    assert found(store, "late") == ["late"]
    assert found(store, "early") == []


def test_of_two_notes_that_replace_the_same_one_the_second_is_kept_and_can_be_tried_again(store, failing, tmp_path):
    with working(store, failing, tmp_path) as worker:
        first = ended(store, submit(store, worker, text="the ferry leaves at six")).document_id
        with store.write() as tx:
            texts = ("the ferry leaves at seven", "the ferry leaves at eight")
            seven, eight = [tx.jobs.add(NewJob("note", text=text, replaces=first)) for text in texts]
        worker.wake()
        second, refused = ended(store, seven).document_id, ended(store, eight)
        assert (refused.status, refused.document_id, remedy_for(refused.error)) == ("failed", None, "retry")
        assert f"note {second} already replaces note {first}. Replace {second} instead" in refused.error
        remedy = f"Send it again with replaces={second}, or delete note {second} and retry the job."
        assert refused.error.endswith(f" {remedy}")
        with store.write() as tx:
            assert tx.documents.successors([first]) == {first: [second]}
            tx.history.discard(second, NOBODY)
            assert tx.jobs.retry(eight)
        worker.wake()
        third = ended(store, eight).document_id
        with store.read() as tx:
            assert tx.documents.successors([first]) == {first: [third]}
    assert found(store, "eight") == ["the ferry leaves at eight"]


@pytest.mark.rare
def test_a_long_text_that_is_dropped_while_it_is_embedded_is_not_written_and_the_next_is_done(
    store, worker, failing, tmp_path
):
    dropped = []

    def drop_it():
        with store.read() as tx:
            [running] = tx.jobs.page(status="running", limit=10, before=None)
        dropped.append(drop(store, tmp_path / "staging", running.id))

    failing.before_slice = {3: drop_it}
    long = submit(store, worker, text=LONG)
    eventually("the job is dropped", lambda: dropped)
    assert ended(store, submit(store, worker, text="the next one")).status == "done"
    assert (dropped[0].job_id, dropped[0].was) == (long, "running")
    assert job_of(store, long) is None
    assert failing.slices == 3
    with store.read() as tx:
        assert tx.counts().documents == {"note": 1}


def test_a_running_file_that_is_dropped_leaves_neither_document_nor_file(store, failing, tmp_path):
    staging = tmp_path / "staging"
    staging.mkdir()
    with store.write() as tx:
        for name in ("a", "b", "c"):
            (staging / name).write_text(f"words of {name}")
            tx.jobs.add(NewJob("file", staged=name, filename=f"{name}.txt"))
    worker = new_worker(store, failing, tmp_path)
    first, second, third = range(1, 4)
    dropped = []

    def drop_the_others(text):
        if text == "words of a" and not dropped:
            dropped.extend(drop(store, staging, job_id).was for job_id in (second, third))

    failing.before_cut = drop_the_others
    worker.start()
    assert ended(store, first).status == "done"
    assert ended(store, submit(store, worker, text="and on")).status == "done"
    worker.stop()
    assert list(staging.iterdir()) == []
    assert [path.read_text() for path in (tmp_path / "files").rglob("*") if path.is_file()] == ["words of a"]
    assert dropped == ["running", "running"]
    with store.read() as tx:
        assert tx.counts().documents == {"note": 1, "text": 1}
        assert tx.jobs.get(second) is tx.jobs.get(third) is None


def test_a_file_waits_while_too_many_files_are_open(store, worker, tmp_path, caplog):
    (tmp_path / "staging" / "a").write_text("patience")
    job = NewJob("file", staged="a", filename="a.txt")
    with store.write() as tx:
        first = tx.jobs.add(replace(job, staged="b"))
        (tmp_path / "staging" / "b").write_text("the parser has started")
    worker.wake()
    assert ended(store, first).status == "done"
    with no_files_left():
        with store.write() as tx:
            second = tx.jobs.add(job)
        worker.wake()
        eventually(
            "the worker has failed more often than a job may",
            lambda: caplog.text.count("the worker failed"),
            lambda failures: failures > MAX_ATTEMPTS,
        )
    worker.wake()
    assert ended(store, second).status == "done"
    assert found(store, "patience") == ["patience"]


@contextmanager
def no_files_left():
    """No room in the table of open files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def stage_before(store, folder, content, name="a", **job):
    (folder / "staging" / name).write_bytes(content)
    with store.write() as tx:
        return tx.jobs.add(NewJob("file", staged=name, filename=name, **job))


def drafted(text, model):
    return embed_draft(draft_note(text, None, model), model, StopSignal().check)


def engine_ended(store, failing, folder):
    job_id = stage_before(store, folder, b"words")
    with store.write() as tx:
        for _ in range(MAX_ATTEMPTS):
            tx.jobs.take_up(MAX_ATTEMPTS + 1, "")
            tx.jobs.claim(1)
    return job_id


def engine_failed(store, failing, folder):
    failing.failures = MAX_ATTEMPTS
    return stage_before(store, folder, b"words", "a.txt")


def extractor_out_of_reach(store, failing, folder):
    return stage_before(store, folder, b"words", "a.far")


def path_became_anothers(store, failing, folder):
    with store.write() as tx:
        tx.documents.add(drafted("theirs", failing), "/f/a", ["y"])
    mine = {"tags": ("x",), "author": Author("ada"), "limit": Limit(("x",), "/f/")}
    return stage_before(store, folder, b"words", "a.txt", source_path="/f/a", **mine)


def message_in_bin(store, failing, folder):
    with store.write() as tx:
        mail = tx.documents.add(drafted("mail", failing), "/m", [])
        tx.history.discard(mail, NOBODY)
    return stage_before(store, folder, b"words", "a.txt", source_path="/m#a.txt", part_of=mail)


def message_deleted(store, failing, folder):
    return stage_before(store, folder, b"words", "a.txt", source_path="/m#a.txt", part_of=99)


def unreadable(data):
    return lambda store, failing, folder: stage_before(store, folder, data)


@pytest.mark.parametrize(
    ("fail", "remedy"),
    mostly_rare(
        [
            (engine_ended, "retry"),
            (engine_failed, "retry"),
            (extractor_out_of_reach, "retry"),
            (path_became_anothers, "retry"),
            (message_in_bin, "retry"),
            (message_deleted, "other-content"),
            pytest.param(unreadable(b""), "other-content", id="empty"),
            pytest.param(unreadable(b"\0\1\2"), "other-content", id="binary"),
            pytest.param(unreadable(scan("words")), "extractor", id="scan"),
            pytest.param(unreadable(b"fLaC\0\0\0\x22" + bytes(256)), "extractor", id="sound"),
            pytest.param(unreadable(b"\0\0\0\x18ftypmp42" + bytes(range(256))), "extractor", id="film"),
        ],
        6,
    ),
)
def test_the_error_of_a_failed_job_says_what_helps_and_it_can_be_tried_again_if_that_does(
    store, failing, tmp_path, fail, remedy, monkeypatch
):
    monkeypatch.setattr("kb.worker.loop.RETRY_SECONDS", 0.01)
    (tmp_path / "staging").mkdir()
    job_id = fail(store, failing, tmp_path)
    sandbox = ExtractingSandbox(Limits(), Extractors.parse(".far=http://127.0.0.1:9/"), 20, tmp_path / "staging")
    with working(store, failing, tmp_path, sandbox=sandbox):
        job = ended(store, job_id)
    assert (job.status, remedy_for(job.error)) == ("failed", remedy), job.error
    with store.write() as tx:
        assert tx.jobs.retry(job_id) == (remedy == "retry")


def test_errors_of_ours_have_a_message_by_themselves():
    assert str(KbError()) == "The engine failed to handle the request; its log says why."


async def heard(store, worker, job_id):
    """The job once its end was published: it is not looked at before that but once."""
    deadline = asyncio.get_running_loop().time() + 60
    with worker.ends.subscribe(job_id) as subscription:
        while (job := job_of(store, job_id)).status not in ENDED:
            assert await subscription.wait(deadline), job
    return job


async def test_whoever_waits_hears_of_every_kind_of_end(store, worker, failing, tmp_path):
    (tmp_path / "staging" / "empty").write_bytes(b"")
    (tmp_path / "staging" / "orphan").write_bytes(b"words")
    done = await heard(store, worker, submit(store, worker, text="patience"))
    failed = await heard(store, worker, submit(store, worker, kind="file", staged="empty", filename="a"))
    orphan = await heard(store, worker, submit(store, worker, kind="file", staged="orphan", filename="b", part_of=99))
    failing.failures = MAX_ATTEMPTS
    gave_up = await heard(store, worker, submit(store, worker, text="doomed"))
    assert [job.status for job in (done, failed, orphan, gave_up)] == ["done", "failed", "failed", "failed"]
    assert ["empty" in failed.error, "deleted" in orphan.error, "log" in gave_up.error] == [True] * 3


def test_done_jobs_go_when_their_time_has_come_and_their_documents_stay(store, worker, failing, tmp_path):
    (tmp_path / "staging" / "a").write_bytes(b"words of a file")
    old = ended(store, submit(store, worker, kind="file", staged="a", filename="a.txt"))
    young = ended(store, submit(store, worker, text="young"))
    assert (old.status, young.status) == ("done", "done")
    with store.write() as tx:
        lost = tx.jobs.add(NewJob("note", text="lost"))
        tx.jobs.fail(lost, "no")
        for job_id in (old.id, lost):
            tx.connection.execute(f"UPDATE jobs SET finished_at = '2020-01-01 00:00:00.000' WHERE id = {job_id}")
    originals = Originals(FolderBlobs(tmp_path), keep=True)
    with working(store, failing, tmp_path, keep_jobs_days=30):
        eventually("the job is gone", lambda: job_of(store, old.id) is None)
    with store.read() as tx:
        assert tx.jobs.get(young.id).status == "done"
        assert tx.jobs.get(lost).status == "failed"
        document = tx.documents.get(old.document_id)
    assert (document.filename, b"".join(originals.open(document).blocks)) == ("a.txt", b"words of a file")
    assert found(store, "file") == ["words of a file"]


def test_without_a_limit_done_jobs_stay(store, worker):
    job = ended(store, submit(store, worker, text="for ever"))
    with store.write() as tx:
        tx.connection.execute("UPDATE jobs SET finished_at = '2020-01-01 00:00:00.000'")
    ended(store, submit(store, worker, text="and one after it"))
    assert job_of(store, job.id).status == "done"


async def test_a_staged_file_that_cannot_be_removed_keeps_nobody_waiting(store, worker, tmp_path, monkeypatch):
    def stay(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("kb.worker.job.discard", stay)
    for name in ("a", "b"):
        (tmp_path / "staging" / name).write_text(f"words of {name}")
    jobs = [submit(store, worker, kind="file", staged=name, filename=f"{name}.txt") for name in ("a", "b")]
    for job_id in jobs:
        job = await heard(store, worker, job_id)
        assert (job.status, job.attempts) == ("done", 1)


JOBS, WAITERS = 200, 5


async def until(condition):
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.001)


async def wait_for(ends, job_id, ended):
    """As the routes do: subscribe, look, wait, look again."""
    deadline = asyncio.get_running_loop().time() + 60
    with ends.subscribe(job_id) as subscription:
        while job_id not in ended and await subscription.wait(deadline):
            pass
    return job_id in ended


@pytest.mark.parametrize("seed", range(3))
async def test_no_end_is_missed_however_waiting_and_ending_meet(seed):
    ends, ended, chance = JobWaiters(), set(), Random(seed)
    jobs = list(range(JOBS))
    chance.shuffle(jobs)

    def work(own):
        for job_id in own:
            time.sleep(chance.random() / 1000)
            ended.add(job_id)  # what became of it is in the store
            ends.publish(job_id)

    async def begin_late(job_id):
        await asyncio.sleep(chance.random() / 10)
        return await wait_for(ends, job_id, ended)

    threads = [threading.Thread(target=work, args=(jobs[start::4],)) for start in range(4)]
    for thread in threads:
        thread.start()
    async with asyncio.timeout(30):
        heard = await asyncio.gather(*(begin_late(job_id) for job_id in range(JOBS) for _ in range(WAITERS)))
    for thread in threads:
        thread.join()
    assert heard == [True] * JOBS * WAITERS


async def test_an_end_wakes_those_who_wait_for_this_job_alone():
    ends, ended = JobWaiters(), set()
    one, two = (asyncio.create_task(wait_for(ends, job_id, ended)) for job_id in (1, 2))
    await asyncio.sleep(0)
    ended.add(1)
    await asyncio.to_thread(ends.publish, 1)
    assert await one
    assert not two.done()
    two.cancel()


async def test_a_job_that_was_begun_again_is_waited_for_on():
    ends, ended = JobWaiters(), set()
    waiter = asyncio.create_task(wait_for(ends, 1, ended))
    await asyncio.sleep(0)
    ends.publish(1)  # it failed, and was retried before anyone looked
    await asyncio.sleep(0.01)
    assert not waiter.done()
    ended.add(1)
    ends.publish(1)
    assert await waiter


async def test_who_waits_is_woken_when_the_engine_stops_and_who_comes_later_does_not_wait():
    ends = JobWaiters()
    waiters = [asyncio.create_task(wait_for(ends, job_id, set())) for job_id in range(5)]
    await asyncio.sleep(0)
    await asyncio.to_thread(ends.close)
    async with asyncio.timeout(30):
        assert await asyncio.gather(*waiters) == [False] * 5
        assert not await wait_for(ends, 9, set())


async def test_no_wait_is_longer_than_its_deadline():
    ends = JobWaiters()
    with ends.subscribe(1) as subscription:
        assert not await subscription.wait(asyncio.get_running_loop().time() + 0.01)


def test_who_left_with_his_event_loop_does_not_disturb_an_end():
    ends = JobWaiters()
    loop = asyncio.new_event_loop()

    async def subscribe():
        context = ends.subscribe(1)
        context.__enter__()
        return context

    kept = loop.run_until_complete(subscribe())
    loop.close()
    ends.publish(1)
    kept.__exit__(None, None, None)


NOTE, LONG_NOTE, FILE, LONG_FILE = "note", "long note", "file", "long file"
SIZES = {NOTE: 100, LONG_NOTE: 60_000, FILE: 8_000, LONG_FILE: 900_000}
SLICE_BYTES = 40_000
"""About what a slice of 64 passages holds."""

OVERTAKERS = loop.SHORT_JOBS * loop.SHORT_ROUNDS + loop.SHORT_FILES // SIZES[FILE]
"""How many may go ahead between two slices at most."""


class Queue:
    """A worker without a model: it claims as the real one does, and each slice is a step of time."""

    def __init__(self, store):
        self.store = store
        self.kinds, self.done, self.claims = {}, [], count(1)
        self.arrivals = iter(())

    def add(self, *jobs):
        """Queue jobs, each a kind and a path, and return their ids."""
        with self.store.write() as tx:
            added = [tx.jobs.add(self._job(number, *job)) for number, job in enumerate(jobs, len(self.kinds))]
        self.kinds |= zip(added, jobs, strict=True)
        return added

    def _job(self, number, kind, path=None):
        staged = f"{kind}-{number}" if "file" in kind else None
        text = None if staged else "x" * SIZES[kind]
        return NewJob("file" if staged else "note", text=text, staged=staged, source_path=path)

    def size_of(self, staged):
        return SIZES[staged.partition("-")[0]]

    def finish(self, *jobs):
        with self.store.write() as tx:
            for job in jobs:
                tx.jobs.delete(job.id)
                self.done.append(job.id)

    def step(self):
        """A slice of time, in which others come."""
        self.add(*next(self.arrivals, ()))

    def work(self):
        """Claim once, and do all of it."""
        with self.store.queue() as tx:
            jobs = tx.jobs.claim(loop.CLAIM, begun_first=not next(self.claims) % loop.BEGUN_EVERY)
        notes, others, _ = in_lanes(jobs, ())
        self.finish(*notes)
        for job in others:
            slices = -(-SIZES[self.kinds[job.id][0]] // SLICE_BYTES)
            for number in range(slices):
                self.step()
                self.meanwhile(files=number < slices - 1)
            self.finish(job)
        return bool(jobs)

    def meanwhile(self, *, files):
        room = Slots(loop.SHORT_FILES if files else 0, self.size_of)
        for _ in range(loop.SHORT_ROUNDS):
            with self.store.queue() as tx:
                jobs = tx.jobs.claim_short(loop.SHORT_JOBS, loop.SHORT_NOTE, room.take if room.is_left else None)
            self.finish(*chain(*in_lanes(jobs, ())))
            if not jobs:
                return


@pytest.fixture
def queue(make_store):
    with make_store(dimensions=8) as store:
        yield Queue(store)


def slices_of(kinds):
    return sum(-(-SIZES[kind] // SLICE_BYTES) for kind in kinds)


def overtaken(queue, job):
    """How many that came after a job were done before it."""
    return sum(other > job for other in queue.done[: queue.done.index(job)])


KINDS = st.sampled_from([NOTE, NOTE, NOTE, FILE, FILE, LONG_NOTE, LONG_FILE])
PATHS = st.sampled_from([None, None, None, "/a", "/b"])
COMING = st.lists(st.lists(st.tuples(KINDS, PATHS), max_size=8), max_size=12)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(KINDS, PATHS), min_size=1, max_size=80), COMING)
def test_whoever_waits_is_overtaken_only_as_often_as_the_work_before_it_has_slices(queue, there, coming):
    queue.done.clear()
    queue.kinds.clear()
    first = queue.add(*there)
    queue.arrivals = iter(coming)
    while queue.work():
        pass
    assert sorted(queue.done) == sorted(queue.kinds), "all are done, once"
    for number, job in enumerate(first):
        ahead = slices_of(queue.kinds[each][0] for each in first[: number + 1])
        batch = slices_of(queue.kinds[each][0] for each in first[number + 1 : number + loop.CLAIM])
        assert overtaken(queue, job) <= (ahead + batch) * OVERTAKERS + loop.CLAIM
    for path in ("/a", "/b"):
        of_path = [job for job in queue.done if queue.kinds[job][1] == path]
        assert of_path == sorted(of_path), "what came for a path is done in the order that it came in"


def test_a_claimed_short_note_is_done_before_anything_that_came_after_its_claim(queue):
    notes = []
    for _ in range(20):
        *_, note = queue.add((FILE, None), (LONG_NOTE, None), (NOTE, None))
        notes.append(note)
    queue.arrivals = ([(NOTE, None)] * 10 + [(FILE, None)] * 10 for _ in range(60))
    queue.work()
    newcomers = [job for job in queue.done if job > notes[-1]]
    assert queue.done[: len(notes)] == notes
    assert newcomers


def test_a_note_behind_thousands_of_files_is_done_after_the_slice_at_hand(queue):
    queue.add(*[(FILE, None)] * 600)
    queue.arrivals = iter([[], [(NOTE, None)], *[[] for _ in range(600)]])
    queue.work()
    note = next(job for job, (kind, _) in queue.kinds.items() if kind == NOTE)
    assert queue.done.index(note) <= 2


def test_a_long_note_is_done_though_short_ones_and_files_come_all_the_time(queue):
    long = queue.add(*[(LONG_NOTE, None)] * 5)
    queue.arrivals = ([(NOTE, None)] * 150 + [(FILE, None)] * 40 for _ in range(20))
    for _ in range(3):
        queue.work()
    assert set(long) <= set(queue.done)
    assert max(overtaken(queue, job) for job in long) <= slices_of([LONG_NOTE] * 5) * OVERTAKERS + loop.CLAIM


def test_a_job_that_was_begun_before_has_its_turn_though_new_ones_come_all_the_time(queue):
    [begun] = queue.add((LONG_NOTE, None))
    with queue.store.queue() as tx:
        tx.jobs.claim(1)
        tx.jobs.release([begun], failed=True)
    queue.add(*[(FILE, None)] * (loop.CLAIM * 8))
    for _ in range(loop.BEGUN_EVERY):
        queue.work()
    assert begun in queue.done


PASSAGES = 4


class Arriving(WrappedModel):
    """The real model, before each slice of which others come."""

    def __init__(self, embedder):
        super().__init__(embedder)
        self.before_slice = lambda: None

    def embed_passages(self, texts):
        if "ledgers" in texts[0]:
            self.before_slice()
        return self._embedder.embed_passages(texts)


@pytest.mark.rare
def test_the_worker_does_notes_and_long_texts_while_others_come_with_each_slice(
    make_store, embedder, tmp_path, monkeypatch
):
    monkeypatch.setattr("kb.worker.loop.SLICE", PASSAGES)
    monkeypatch.setattr("kb.ingest.draft.SLICE", PASSAGES)
    monkeypatch.setattr("kb.worker.loop.SHORT_JOBS", 4)
    model = Arriving(embedder)
    with make_store() as store:
        worker = new_worker(store, model, tmp_path)
        come = []

        def others():
            if len(come) < 400:
                with store.write() as tx:
                    come.extend(tx.jobs.add(NewJob("note", text=f"another {len(come) + each}")) for each in range(8))

        model.before_slice = others
        with store.write() as tx:
            long = [tx.jobs.add(NewJob("note", text=f"{number} {LONG}")) for number in range(2)]
            note = tx.jobs.add(NewJob("note", text="a short one"))
        worker.start()

        def ended():
            with store.read() as tx:
                return [tx.jobs.get(job) for job in (*long, note)]

        jobs = eventually("they have ended", ended, lambda found: all(job.status in ENDED for job in found))
        with store.read() as tx:
            others_done = [job for job in map(tx.jobs.get, come) if job.status == "done"]
        worker.stop()
    assert {job.status for job in jobs} == {"done"}
    assert not [job for job in others_done if job.finished_at < jobs[-1].finished_at], "none came before the note"
    assert [job for job in others_done if job.finished_at < jobs[0].finished_at], "some came before the long ones"


class Scanning:
    """A sandbox that gives scans to an extractor."""

    extracts = (".scan",)


def test_a_file_waits_for_a_few_files_at_extractors_and_not_for_all_that_were_claimed_with_it(
    make_store, embedder, tmp_path, monkeypatch
):
    with make_store() as store:
        worker = new_worker(store, embedder, tmp_path, sandbox=Scanning())
        begun = []
        monkeypatch.setattr(worker, "_do", lambda jobs: begun.extend(job.id for job in jobs) or (yield from ()))
        with store.write() as tx:
            scans = [tx.jobs.add(NewJob("file", staged=f"s{number}", filename="a.SCAN")) for number in range(30)]
            of_path = tx.jobs.add(NewJob("file", staged="p", filename="b.scan", source_path="/p"))
            after = tx.jobs.add(NewJob("file", staged="q", filename="b.txt", source_path="/p"))
            file = tx.jobs.add(NewJob("file", staged="f", filename="c.txt"))
        worker._work()
        assert begun == [*scans[: loop.EXTRACTED], file]
        with store.read() as tx:
            waiting = [tx.jobs.get(job) for job in (*scans[loop.EXTRACTED :], of_path, after)]
        assert {(job.status, job.attempts) for job in waiting} == {("queued", 0)}


def test_the_content_of_a_job_that_failed_before_an_upgrade_is_still_known_to_be_kept():
    assert remedy_for("The document that it came in is in the bin: it is read when that is restored.") == "retry"
