"""Changes of which nobody knows whether they were written: what they would need is kept."""

from __future__ import annotations

import io
from contextlib import contextmanager

import pytest

from kb.api.errors import Unconfirmed
from kb.api.models import FileRequest
from kb.blobs.folder import FolderBlobs
from kb.documents.staging import staged_jobs
from kb.documents.submit import submit_file
from kb.formats.text.extracted import Attachment
from kb.store.rows import NewJob


class BreaksOff:
    """A store whose changes are written, but whose answers to that are lost."""

    def __init__(self, store):
        self._store = store

    @contextmanager
    def write(self):
        with self._store.write() as tx:
            yield tx
        raise Unconfirmed


@pytest.fixture
def store(make_store):
    with make_store(dimensions=8) as opened:
        yield opened


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
