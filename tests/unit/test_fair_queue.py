"""The queue is fair: nobody is overtaken without bound, and a short note never waits for what came after it.

First the queue by itself: real stores, the worker's own rules of whom it claims when, and made-up work. Then the worker.
"""

from __future__ import annotations

from itertools import chain, count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kb.api.models import ENDED
from kb.store.rows import NewJob
from kb.worker import loop
from kb.worker.loop import Room, in_lanes
from tests.support.eventually import eventually
from tests.support.workers import new_worker

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
        room = Room(loop.SHORT_FILES if files else 0, self.size_of)
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


LONG = "The clerks of the counting house kept their ledgers in good order. " * 300
PASSAGES = 4


class Arriving:
    """The real model, before each slice of which others come."""

    def __init__(self, embedder):
        self._embedder = embedder
        self.before_slice = lambda: None

    def __getattr__(self, name):
        return getattr(self._embedder, name)

    @property
    def current(self):
        return self

    def embed_passages(self, texts):
        if "ledgers" in texts[0]:
            self.before_slice()
        return self._embedder.embed_passages(texts)


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
