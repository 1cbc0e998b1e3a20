"""The worker over a real store and a real model, with the faults that a disk or a device may have."""

from __future__ import annotations

import time

import pytest

from kb.api.errors import KbError
from kb.documents.originals import KeptFiles
from kb.documents.save import update_note
from kb.store.rows import Filter, NewJob
from kb.worker.loop import MAX_ATTEMPTS, Worker


class Failing:
    """The real model, until it is told to fail so many times."""

    def __init__(self, embedder):
        self._embedder = embedder
        self.failures = 0

    def __getattr__(self, name):
        return getattr(self._embedder, name)

    def embed(self, texts):
        if self.failures:
            self.failures -= 1
            raise RuntimeError("the device is lost")
        return self._embedder.embed(texts)


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
    (tmp_path / "staging").mkdir()
    started = Worker(store, failing, tmp_path / "staging", KeptFiles(tmp_path / "files", keep=True))
    started.start()
    yield started
    started.stop()


def submit(store, worker, **job):
    with store.write() as tx:
        job_id = tx.jobs.add(NewJob(job.pop("kind", "note"), **job))
    worker.wake()
    return job_id


def ended(store, job_id):
    while True:
        with store.read() as tx:
            job = tx.jobs.get(job_id)
        if job.status in ("done", "failed"):
            return job
        time.sleep(0.005)


def found(store, word):
    with store.read() as tx:
        ids = tx.index.matches(f'"{word}"', Filter()).ids.tolist()
        return [hit.text for hit in tx.index.hits(ids)]


def test_a_model_that_fails_once_only_delays_a_job(store, worker, failing):
    failing.failures = 1
    assert ended(store, submit(store, worker, text="patience")).status == "done"
    assert found(store, "patience") == ["patience"]


def test_a_model_that_keeps_failing_fails_the_job_with_a_reason_and_the_queue_goes_on(store, worker, failing):
    failing.failures = MAX_ATTEMPTS
    job = ended(store, submit(store, worker, text="doomed"))
    assert (job.status, job.document_id) == ("failed", None)
    assert "log says why" in job.error
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


@pytest.mark.requirement("N-2")
def test_an_update_that_cannot_be_embedded_leaves_the_old_note_whole(store, worker, failing):
    document_id = ended(store, submit(store, worker, text="old words")).document_id
    failing.failures = 1
    with pytest.raises(RuntimeError):
        update_note(store, failing, document_id, "new words", None)
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


def test_a_stopped_worker_leaves_its_jobs_for_the_next_one(store, failing, tmp_path):
    (tmp_path / "staging").mkdir()
    first = Worker(store, failing, tmp_path / "staging", KeptFiles(tmp_path / "files", keep=True))
    with store.write() as tx:
        jobs = [tx.jobs.add(NewJob("note", text=f"note {number} " + "ledger " * 300)) for number in range(40)]
    first.start()
    first.stop()
    with store.read() as tx:
        assert {tx.jobs.get(job_id).status for job_id in jobs} <= {"queued", "done"}
        assert all(tx.jobs.get(job_id).attempts == 0 for job_id in jobs if tx.jobs.get(job_id).status == "queued")
    second = Worker(store, failing, tmp_path / "staging", KeptFiles(tmp_path / "files", keep=True))
    second.start()
    assert {ended(store, job_id).status for job_id in jobs} == {"done"}
    second.stop()


def test_a_job_that_was_running_when_the_clock_was_ahead_is_begun_again(store, failing, tmp_path):
    (tmp_path / "staging").mkdir()
    with store.write() as tx:
        job = tx.jobs.add(NewJob("note", text="text"))
        tx.jobs.claim(1)
        tx.connection.execute("UPDATE jobs SET heartbeat_at = '2999-01-01 00:00:00.000'")
    worker = Worker(store, failing, tmp_path / "staging", KeptFiles(tmp_path / "files", keep=True))
    worker.start()
    assert ended(store, job).status == "done"
    worker.stop()


@pytest.mark.requirement("E-11")
def test_two_notes_under_one_path_in_one_batch_are_one_document_with_the_later_text(store, failing, tmp_path):
    (tmp_path / "staging").mkdir()
    worker = Worker(store, failing, tmp_path / "staging", KeptFiles(tmp_path / "files", keep=True))
    with store.write() as tx:
        jobs = [tx.jobs.add(NewJob("note", text=text, source_path="/p")) for text in ("early", "late")]
    worker.start()
    assert len({ended(store, job_id).document_id for job_id in jobs}) == 1
    assert all(ended(store, job_id).attempts == 0 for job_id in jobs)
    worker.stop()
    assert found(store, "late") == ["late"]
    assert found(store, "early") == []


def test_errors_of_ours_have_a_message_by_themselves():
    assert str(KbError()) == "The engine failed to handle the request; its log says why."


def test_done_jobs_go_when_their_time_has_come_and_their_documents_stay(store, worker, failing, tmp_path):
    (tmp_path / "staging" / "a").write_bytes(b"words of a file")
    old = ended(store, submit(store, worker, kind="file", staged="a", filename="a.txt"))
    young = ended(store, submit(store, worker, text="young"))
    assert (old.status, young.status) == ("done", "done")
    with store.write() as tx:
        lost = tx.jobs.add(NewJob("note", text="lost"))
        tx.jobs.fail(lost, "no")
        for job_id in (old.id, lost):
            tx.connection.execute("UPDATE jobs SET finished_at = '2020-01-01 00:00:00.000' WHERE id = ?", (job_id,))
    kept = KeptFiles(tmp_path / "files", keep=True)
    second = Worker(store, failing, tmp_path / "staging", kept, keep_jobs_days=30)
    second.start()
    try:
        eventually_gone(store, old.id)
    finally:
        second.stop()
    with store.read() as tx:
        assert tx.jobs.get(young.id).status == "done"
        assert tx.jobs.get(lost).status == "failed"
        document = tx.documents.get(old.document_id)
    assert (document.filename, kept.path(document.content_hash).read_bytes()) == ("a.txt", b"words of a file")
    assert found(store, "file") == ["words of a file"]


def eventually_gone(store, job_id):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with store.read() as tx:
            if tx.jobs.get(job_id) is None:
                return
        time.sleep(0.005)
    pytest.fail("the job is still there")


def test_without_a_limit_done_jobs_stay(store, worker):
    job = ended(store, submit(store, worker, text="for ever"))
    with store.write() as tx:
        tx.connection.execute("UPDATE jobs SET finished_at = '2020-01-01 00:00:00.000'")
    ended(store, submit(store, worker, text="and one after it"))
    with store.read() as tx:
        assert tx.jobs.get(job.id).status == "done"
