"""Uploaded files that kb keeps, and files that it does not."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from errno import ENOSPC
from functools import partial
from hashlib import sha256
from itertools import count
from threading import Event

import pytest

from kb.api.errors import NotFound, Unconfirmed
from kb.api.job_models import FileRequest
from kb.blobs.folder import FolderBlobs, KeptFiles
from kb.blobs.protocol import kept_as
from kb.documents.disk_use import FRESH_SECONDS, MOST_SECONDS, DiskUse, sizes
from kb.documents.job_queue import submit_file
from kb.documents.originals import Originals, queue_unread
from kb.documents.staging import staged_jobs
from kb.formats.text.extracted import Attachment
from kb.store.rows import NewJob
from tests.store.test_store import add, content
from tests.support.blobs import kept_at

FILES = {name: sha256(name.encode()).hexdigest() for name in ("needed", "stray", "part", "waiting")}


@pytest.fixture
def store(make_store):
    with make_store(dimensions=8) as opened:
        yield opened


@pytest.fixture
def originals(tmp_path):
    originals = Originals(FolderBlobs(tmp_path), keep=True)
    for name, digest in FILES.items():
        path = kept_at(originals, digest)
        path.parent.mkdir(parents=True, exist_ok=True)
        (path.with_suffix(".part") if name == "part" else path).write_text(name)
    for foreign in ("readme.txt", "ab/readme.txt", "ab/" + "cd" * 32, f"{FILES['stray'][:2]}/{'x' * 64}"):
        (tmp_path / "files" / foreign).parent.mkdir(exist_ok=True)
        (tmp_path / "files" / foreign).write_text("foreign")
    return originals


def kept(tmp_path):
    return sorted(path.read_text() for path in (tmp_path / "files").rglob("*") if path.is_file())


def test_files_that_no_document_needs_go_and_nothing_that_is_not_ours(store, originals, tmp_path):
    with store.write() as tx:
        for name in ("needed", "waiting"):
            tx.documents.add(replace(content(name, doc_type="text"), content_hash=FILES[name]), None, ())
        note = replace(content("stray"), content_hash=FILES["stray"])
        tx.documents.add(note, None, ())
    originals.sweep_strays(store)
    assert kept(tmp_path) == ["foreign"] * 4 + ["needed", "waiting"]


def test_nothing_goes_where_the_database_is_empty(store, originals, tmp_path):
    originals.sweep_strays(store)
    assert kept(tmp_path) == sorted(["foreign"] * 4 + list(FILES))
    add(store, "one")
    originals.sweep_strays(store)
    assert kept(tmp_path) == ["foreign"] * 4


@pytest.mark.parametrize("hash_", ["./../secret", "../../secret", "{folder}/secret", "secret", "0" * 63, ""])
def test_a_hash_that_is_none_leads_to_no_file(store, originals, tmp_path, hash_):
    hash_, secret = hash_.format(folder=tmp_path), tmp_path / "secret"
    secret.write_text("secret")
    before = kept(tmp_path)
    with store.write() as tx:
        document_id = tx.documents.add(replace(content("a file", doc_type="text"), content_hash=hash_), None, ())
        document = tx.documents.get(document_id)
    for refused in (originals.open, originals.check):
        with pytest.raises(NotFound):
            refused(document)
    with pytest.raises(FileNotFoundError), originals.local(hash_):
        pass
    for refused in (kept_as, KeptFiles(tmp_path / "files").path):
        with pytest.raises(FileNotFoundError):
            refused(hash_)
    assert not KeptFiles(tmp_path / "files").has(hash_)
    with store.write() as tx:
        tx.documents.delete(document_id)
    originals.sweep(store)
    assert secret.read_text() == "secret"
    assert kept(tmp_path) == before


@pytest.fixture
def passed_over(store, tmp_path):
    """The files of PDFs of which a page was passed over."""
    originals, paths = Originals(FolderBlobs(tmp_path), keep=True), []
    (tmp_path / "staging").mkdir()
    for name in ("one", "other"):
        digest = sha256(name.encode()).hexdigest()
        paths.append(kept_at(originals, digest))
        paths[-1].parent.mkdir(parents=True, exist_ok=True)
        paths[-1].write_text(name)
        read = content(f"[Page 2 is a picture: OCR is not done.]\n{name}", doc_type="pdf")
        with store.write() as tx:
            tx.documents.add(replace(read, content_hash=digest), f"/{name}.pdf", ())
    return originals, paths


def test_files_that_are_read_again_take_no_room_while_they_wait(store, passed_over, tmp_path):
    originals, paths = passed_over
    queue_unread(store, originals.blobs)
    with store.read() as tx:
        jobs = tx.jobs.page(status="queued", limit=9, before=None)
    assert {job.content_hash for job in jobs} == {path.name for path in paths}
    for job in jobs:
        assert (tmp_path / "staging" / job.staged).samefile(kept_at(originals, job.content_hash))


def test_the_engine_starts_where_there_is_no_room_to_read_files_again(store, passed_over, tmp_path, monkeypatch):
    originals, _ = passed_over

    def full(*_):
        raise OSError(ENOSPC, "No space left on device")

    monkeypatch.setattr("os.link", full)
    monkeypatch.setattr("shutil.copyfile", full)
    queue_unread(store, originals.blobs)
    with store.read() as tx:
        assert tx.jobs.pending() == 0
    assert list((tmp_path / "staging").iterdir()) == []


def test_the_size_of_a_folder_is_that_of_all_files_in_it_and_looked_at_now_and_then(tmp_path):
    now = [0.0]
    use = DiskUse(partial(sizes, tmp_path), clock=lambda: now[0])
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "one").write_bytes(b"x" * 300)
    (tmp_path / "two").write_bytes(b"x" * 20)
    assert use.size() == 320
    (tmp_path / "three").write_bytes(b"x")
    assert use.size() == 320
    now[0] = FRESH_SECONDS
    assert use.size() == 321


def test_a_folder_of_very_many_files_has_no_size_and_one_that_is_not_there_none_either(tmp_path):
    for number in range(4):
        (tmp_path / str(number)).write_bytes(b"x")
    assert DiskUse(partial(sizes, tmp_path), most=4).size() == 4
    assert DiskUse(partial(sizes, tmp_path), most=3).size() is None
    assert DiskUse(partial(sizes, tmp_path / "absent")).size() == 0
    assert DiskUse(None).size() is None


def test_a_folder_that_takes_long_to_look_through_has_no_size(tmp_path):
    for number in range(4):
        (tmp_path / str(number)).write_bytes(b"x")
    assert DiskUse(partial(sizes, tmp_path), clock=count(step=MOST_SECONDS / 10).__next__).size() == 4
    assert DiskUse(partial(sizes, tmp_path), clock=count(step=MOST_SECONDS).__next__).size() is None


def test_while_a_folder_is_looked_through_nobody_else_waits_for_it():
    begun, may_end = Event(), Event()

    def slow():
        begun.set()
        assert may_end.wait(60)
        yield 5

    use = DiskUse(slow)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(use.size)
        try:
            assert begun.wait(60)
            assert pool.submit(use.size).result(timeout=30) is None
        finally:
            may_end.set()
    assert use.size() == first.result() == 5


class BreaksOff:
    """A store whose changes are written, but whose answers to that are lost."""

    def __init__(self, store):
        self._store = store

    @contextmanager
    def write(self):
        with self._store.write() as tx:
            yield tx
        raise Unconfirmed


def test_the_file_of_a_job_that_may_be_queued_is_kept_for_it(store, tmp_path):
    with pytest.raises(Unconfirmed):
        submit_file(BreaksOff(store), FolderBlobs(tmp_path), io.BytesIO(b"content"), "a.txt", FileRequest(), "key")
    with store.read() as tx:
        job = tx.jobs.with_key("key")
    assert (tmp_path / "staging" / job.staged).read_bytes() == b"content"
    again = submit_file(store, FolderBlobs(tmp_path), io.BytesIO(b"content"), "a.txt", FileRequest(), "key")
    assert again.job_id == job.id


def test_so_are_those_of_what_came_with_it(store, tmp_path):
    with store.write() as tx:
        message = tx.jobs.get(tx.jobs.add(NewJob("file", staged="mail", filename="m.eml")))
    attachments = [Attachment("a.txt", b"inside")]
    with (
        pytest.raises(Unconfirmed),
        staged_jobs(message, attachments, FolderBlobs(tmp_path)) as [inside],
        BreaksOff(store).write() as tx,
    ):
        tx.jobs.add(inside)
    assert (tmp_path / "staging" / inside.staged).read_bytes() == b"inside"
