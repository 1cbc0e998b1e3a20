"""Files inside messages become documents of their own, once, together with the message."""

from __future__ import annotations

import time
from email.message import EmailMessage

import apsw
import numpy as np
import pytest

from kb.api.omissions import phrase
from kb.blobs.folder import FolderBlobs
from kb.documents.delete import purge
from kb.documents.originals import Originals
from kb.documents.restore_document import restore
from kb.documents.staging import staged_jobs
from kb.formats.text.extracted import Attachment
from kb.ingest.draft import MAX_ATTACHMENTS
from kb.store.rows import NOBODY, ChunkPosition, Content, Filter, NewChunk, NewJob
from kb.telemetry.instruments import Instruments
from tests.support.eventually import eventually
from tests.support.stores import sqlite
from tests.support.workers import working

pytestmark = pytest.mark.requirement("E-10")

FAULT = """CREATE TRIGGER fault BEFORE INSERT ON jobs WHEN NEW.source_path = '/m#b.txt'
  BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"""


def sql(folder, statement):
    """Change the database behind the engine's back, while it is closed."""
    connection = apsw.Connection(str(folder / "kb.db"))
    connection.execute(statement)
    connection.close()


@pytest.fixture
def store(make_store):
    with make_store() as opened:
        yield opened


@pytest.fixture
def staging(tmp_path):
    (tmp_path / "staging").mkdir()
    (tmp_path / "files").mkdir()
    return tmp_path / "staging"


@pytest.fixture
def worker(store, embedder, staging):
    with working(store, embedder, staging.parent) as worker:
        yield worker


def message(*attachments, subject="Outer"):
    mail = EmailMessage()
    mail["From"], mail["Subject"], mail["Message-ID"] = "a@example.org", subject, "<1@example.org>"
    mail.set_content(f"words of {subject}")
    for name, content in attachments:
        if isinstance(content, EmailMessage):
            mail.add_attachment(content)
        else:
            mail.add_attachment(content.encode(), maintype="application", subtype="octet-stream", filename=name)
    mail.set_boundary(f"the-end-of-{subject}")  # else a random one, and no two messages are the same
    return mail


class Raw(str):
    """A file as it is."""

    def as_bytes(self):
        return self.encode("latin-1")


@pytest.fixture
def send(store, worker, staging):
    """Sends messages, each as its job, and waits until nothing waits."""

    def send(mail, **job):
        name = f"staged{time.monotonic_ns()}"
        (staging / name).write_bytes(mail.as_bytes())
        with store.write() as tx:
            job_id = tx.jobs.add(NewJob("file", staged=name, filename="mail.eml", **job))
        worker.wake()
        until_idle(store)
        return job_id

    return send


def until_idle(store):
    def waiting():
        return [job for job in jobs(store) if job.status in ("queued", "running")]

    eventually("no job waits", waiting, until=lambda waiting: not waiting)


def jobs(store):
    with store.read() as tx:
        return tx.jobs.page(status=None, limit=500, before=None)


def a_note():
    chunk = NewChunk("mine", "", ChunkPosition(1, 1, 0, 4))
    return Content("note", "mine", "hash", [chunk], np.ones((1, 384), np.float32))


def documents(store):
    with store.read() as tx:
        return {
            document.source_path: document
            for document in tx.documents.page(Filter(), sort="recent", limit=500, cursor=None)
        }


def test_attachments_are_documents_linked_to_the_message_with_its_tags(store, send, worker, staging):
    send(message(("a.txt", "one"), ("b.csv", "x,y\n1,2")), source_path="/mail/1.eml", tags=("work",))
    found = documents(store)
    assert {path: found[path].doc_type for path in found} == {
        "/mail/1.eml": "eml",
        "/mail/1.eml#a.txt": "text",
        "/mail/1.eml#b.csv": "csv",
    }
    assert {document.tags for document in found.values()} == {("work",)}
    worker.stop()
    assert list(staging.iterdir()) == []


def test_without_a_path_the_job_links_them_and_sending_it_again_adds_nothing(store, send, worker, staging):
    first = send(message(("a.txt", "one")))
    send(message(("a.txt", "one")))
    assert documents(store).keys() == {None, f"job:{first}#a.txt"}
    worker.stop()
    assert list(staging.iterdir()) == []


def test_a_message_sent_again_with_other_attachments_replaces_them_in_place(store, send):
    send(message(("a.txt", "old")), source_path="/m")
    before = documents(store)
    send(message(("a.txt", "new")), source_path="/m")
    after = documents(store)
    assert {path: document.id for path, document in before.items()} == {
        path: document.id for path, document in after.items()
    }
    assert before["/m#a.txt"].content_hash != after["/m#a.txt"].content_hash


def test_an_attachment_that_a_message_has_no_more_goes_to_the_bin_and_with_the_message_for_good(store, send, staging):
    send(message(("a.txt", "one"), ("b.txt", "secret")), source_path="/m")
    with store.write() as tx:
        note = tx.documents.add(a_note(), "/m#c.txt", [])
    send(message(("a.txt", "one")), source_path="/m")
    assert documents(store).keys() == {"/m", "/m#a.txt", "/m#c.txt"}
    assert [job.status for job in jobs(store)] == ["done"] * 5
    with store.read() as tx:
        assert [binned.document.source_path for binned in tx.history.bin(limit=9)] == ["/m#b.txt"]
    assert len(list((staging.parent / "files").glob("*/*"))) == 4  # those of the former message, too
    with store.write() as tx:
        tx.documents.delete(documents(store)["/m"].id)
        assert tx.documents.get(note)
        assert tx.history.counts().versions == 0
    assert documents(store).keys() == {"/m#c.txt"}
    Originals(FolderBlobs(staging.parent), keep=True).sweep(store)
    assert not list((staging.parent / "files").glob("*/*"))


def test_an_attachment_of_a_message_that_was_deleted_meanwhile_is_not_taken_in(store, embedder, staging):
    with store.write() as tx:
        (staging / "late").write_bytes(message(("b.txt", "words")).as_bytes())
        gone = tx.documents.add(a_note(), "/m", [])
        tx.documents.delete(gone)
        job_id = tx.jobs.add(NewJob("file", staged="late", filename="a.eml", source_path="/m#a.eml", part_of=gone))
    watch = Instruments(doc_types=["eml"])
    with working(store, embedder, staging.parent, instruments=watch):
        until_idle(store)
    assert [(job.status, job.error) for job in jobs(store)] == [
        ("failed", "The message or archive that contained it was deleted.")
    ]
    assert watch.registry.get_sample_value("kb_ingested_total", {"doc_type": "eml", "outcome": "failed"}) == 1
    with store.write() as tx:
        assert not tx.jobs.retry(job_id)
    assert documents(store) == {}
    assert list(staging.iterdir()) == []


def binned_with_one_waiting(store):
    """The id of a message in the bin, of which a file waits."""
    with store.write() as tx:
        mail = tx.documents.add(a_note(), "/m", [])
        tx.jobs.add(NewJob("file", staged="late", filename="a.eml", source_path="/m#a.eml", part_of=mail))
        tx.history.discard(mail, NOBODY)
    return mail


@pytest.mark.slow
def test_what_waits_when_its_message_goes_to_the_bin_comes_back_with_it(store, embedder, staging):
    originals = Originals(FolderBlobs(staging.parent), keep=True)
    (staging / "late").write_bytes(message(("b.txt", "words")).as_bytes())
    mail = binned_with_one_waiting(store)
    with working(store, embedder, staging.parent):
        until_idle(store)
        [job] = jobs(store)
        assert (job.status, "bin" in job.error) == ("failed", True)
        restore(store, mail)
        until_idle(store)
    assert documents(store).keys() == {"/m", "/m#a.eml", "/m#a.eml#b.txt"}
    purge(store, originals, originals.blobs, mail)
    assert documents(store) == {}


def test_what_waits_goes_with_its_message_that_is_purged(store, staging):
    (staging / "late").write_bytes(b"secret")
    mail = binned_with_one_waiting(store)
    blobs = FolderBlobs(staging.parent)
    purge(store, Originals(blobs, keep=True), blobs, mail)
    assert jobs(store) == []
    assert list(staging.iterdir()) == []


def test_names_are_numbered_when_repeated_and_lose_folders(store, send):
    send(message(("a.txt", "1"), ("a.txt", "2"), ("../../etc/a.txt", "3"), ("C:\\x\\b.txt", "4")), source_path="/m")
    assert documents(store).keys() == {"/m", "/m#a.txt", "/m#a (2).txt", "/m#a (3).txt", "/m#b.txt"}


def test_an_attachment_that_cannot_be_read_fails_alone(store, send):
    send(message(("a.bin", "\0\1\2"), ("b.txt", "words")), source_path="/m")
    assert documents(store).keys() == {"/m", "/m#b.txt"}
    [failed] = [job for job in jobs(store) if job.status == "failed"]
    assert (failed.source_path, failed.filename) == ("/m#a.bin", "a.bin")
    assert "binary data" in failed.error


def test_an_attached_picture_is_no_failed_job_and_named_in_the_message(store, send):
    message_id = send(message(("photo.png", "\x89PNG\r\n\x1a\n\0\0\0\rIHDR"), ("b.txt", "words")), source_path="/m")
    assert documents(store).keys() == {"/m", "/m#b.txt"}
    assert [job.status for job in jobs(store)] == ["done", "done"]
    with store.read() as tx:
        text = "".join(chunk.text for chunk in tx.documents.chunks(tx.jobs.get(message_id).document_id))
    assert "Attachments without text: photo.png" in text


@pytest.mark.slow
def test_each_message_of_a_mailbox_is_a_document_and_each_file_in_it(store, send):
    parts = [message(("a.txt", f"file {number}"), subject=f"Mail {number}").as_string() for number in range(1, 103)]
    separator = "From a@example.org Mon Jan  1 10:00:00 2024\n"
    send_mailbox = "".join(f"{separator}{part}\n" for part in parts)
    send(Raw(send_mailbox), source_path="/in.mbox")
    found = documents(store)
    assert len(found) == 1 + 2 + 2 * 102
    assert found["/in.mbox#0101-0102.mbox#0002 Mail 102.eml"].title == "Mail 102"
    assert found["/in.mbox#0001-0100.mbox#0007 Mail 7.eml#a.txt"].doc_type == "text"


def test_messages_inside_messages_are_followed_three_deep(store, send):
    mail = message(("deep.txt", "too deep"), subject="4")
    for depth in ("3", "2", "1"):
        mail = message((None, mail), subject=depth)
    send(mail, source_path="/m")
    assert documents(store).keys() == {"/m", "/m#2.eml", "/m#2.eml#3.eml", "/m#2.eml#3.eml#4.eml"}
    assert not_read(store) == {"/m#2.eml#3.eml#4.eml": {"files": 1}}


def not_read(store):
    """Return by path what of each document was not read, which its job and its last line say alike."""
    found = {path: dict(each.omitted) for path, each in documents(store).items() if each.omitted}
    assert {each.source_path: dict(each.omitted) for each in jobs(store) if each.omitted} == found
    with store.read() as tx:
        for path, each in documents(store).items():
            last = "".join(chunk.text for chunk in tx.documents.chunks(each.id)).splitlines()[-1]
            assert last == f"Not read: {phrase(each.omitted)}" if path in found else "Not read" not in last
    return found


@pytest.mark.rare
def test_no_message_makes_more_than_so_many_documents(store, send):
    send(message(*((f"{number}.txt", f"number {number}") for number in range(MAX_ATTACHMENTS + 5))), source_path="/m")
    assert len(documents(store)) == MAX_ATTACHMENTS + 1
    assert not_read(store) == {"/m": {"files": 5}}


def test_message_and_attachments_are_written_together_or_not_at_all(tmp_path, embedder, staging):
    (staging / "mail").write_bytes(message(("a.txt", "1"), ("b.txt", "2")).as_bytes())
    with sqlite(tmp_path) as store, store.write() as tx:
        job_id = tx.jobs.add(NewJob("file", staged="mail", filename="m.eml", source_path="/m"))
    sql(tmp_path, FAULT)
    with sqlite(tmp_path) as store, working(store, embedder, staging.parent):
        eventually("the job is tried again", lambda: any(job.attempts > 1 for job in jobs(store)))
        assert [job.id for job in jobs(store)] == [job_id]
        assert documents(store) == {}
    sql(tmp_path, "DROP TRIGGER fault")
    with sqlite(tmp_path) as store, working(store, embedder, staging.parent):
        until_idle(store)
        assert documents(store).keys() == {"/m", "/m#a.txt", "/m#b.txt"}
        assert len(jobs(store)) == 3
    assert list(staging.iterdir()) == []


@pytest.mark.slow
def test_a_message_keeps_its_attachments_if_a_later_one_of_the_same_batch_cannot_be_written(
    tmp_path, embedder, staging, monkeypatch
):
    monkeypatch.setattr("kb.store.sqlite.store.SqliteStore.has_urgent", True)
    with sqlite(tmp_path) as store, store.write() as tx:
        for path, attached in (("/l", "a.txt"), ("/m", "b.txt")):
            (staging / path[1:]).write_bytes(message((attached, path), subject=path).as_bytes())
            tx.jobs.add(NewJob("file", staged=path[1:], filename=f"{path[1:]}.eml", source_path=path))
    sql(tmp_path, FAULT)
    with sqlite(tmp_path) as store, working(store, embedder, staging.parent):
        eventually("the attachment is read", lambda: documents(store).keys() == {"/l", "/l#a.txt"})
    sql(tmp_path, "DROP TRIGGER fault")
    with sqlite(tmp_path) as store, working(store, embedder, staging.parent):
        until_idle(store)
        assert documents(store).keys() == {"/l", "/l#a.txt", "/m", "/m#b.txt"}


@pytest.mark.parametrize(("depth", "expected"), [(0, [1, 1]), (1, [1, 2]), (2, [2, 3])])
def test_a_batch_of_a_large_mailbox_is_no_deeper_than_the_mailbox(store, staging, depth, expected):
    with store.write() as tx:
        job = tx.jobs.get(tx.jobs.add(NewJob("file", staged="a", filename="a.mbox", source_path="/a", depth=depth)))
    files = [Attachment("0001-0100.mbox", b"From"), Attachment("0001 Mail.eml", b"From")]
    with staged_jobs(job, files, FolderBlobs(staging.parent)) as inside:
        assert [each.depth for each in inside] == expected
