"""The inbox over a real store: files that cannot be read, that are still written, that are too large, or gone for a while."""

import json
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from kb.api.errors import SettingError
from kb.blobs.folder import FolderBlobs
from kb.documents.originals import Originals
from kb.ingest.vectors_at_once import NoteVectors
from kb.live_settings import check_inbox_folder
from kb.notes_folder import attachments
from kb.notes_folder.folders import KeptFolders
from kb.notes_folder.parts import FolderParts
from kb.settings import Settings
from kb.store.rows import Content
from tests.notes_folder.test_random_changes import Killed, killed_at

pytestmark = pytest.mark.requirement("R-3")


@pytest.fixture
def folder(tmp_path):
    for name in ("in", "data", "data/staging"):
        (tmp_path / name).mkdir()
    return tmp_path / "in"


@pytest.fixture
def new_inbox(folder, make_store, embedder, tmp_path, monkeypatch):
    """`new_inbox()` is the inbox of an engine that starts; `new_inbox.sent()` are the names of what went in."""
    monkeypatch.setattr(attachments, "QUIET_SECONDS", 0.0)
    settings = Settings.read({"KB_DATA_DIR": str(tmp_path / "data"), "KB_INBOX_DIR": str(folder)})
    with make_store() as store, ThreadPoolExecutor(1) as pool:
        originals = Originals(FolderBlobs(tmp_path / "data"), keep=True)
        parts = FolderParts(folder, store, originals, NoteVectors(embedder, pool), 10_000, most_file_bytes=1000)

        def make():
            return KeptFolders(parts, settings).inbox(settings)

        def sent():
            with store.read() as tx:
                return sorted(job.filename for job in tx.jobs.page(status=None, limit=100, before=None))

        make.sent, make.store = sent, store
        yield make


def look_twice(inbox):
    inbox.step()
    inbox.step()


def test_a_file_that_cannot_be_read_holds_up_no_other_and_goes_in_once_it_can(folder, new_inbox, monkeypatch, caplog):
    for name in ("a.txt", "b.txt", "c.txt"):
        (folder / name).write_text(name)
    real = attachments.submit_file

    def refuse(*args, **kwargs):
        if args[3] == "b.txt":
            raise PermissionError(13, "Permission denied")
        return real(*args, **kwargs)

    monkeypatch.setattr(attachments, "submit_file", refuse)
    inbox = new_inbox()
    look_twice(inbox)
    look_twice(inbox)
    assert new_inbox.sent() == ["a.txt", "c.txt"]
    assert [problem.reason for problem in inbox.status().problems] == ["Permission denied"]
    assert caplog.text.count("Permission denied") == 1
    monkeypatch.undo()
    monkeypatch.setattr(attachments, "QUIET_SECONDS", 0.0)
    inbox.step()
    assert new_inbox.sent() == ["a.txt", "b.txt", "c.txt"]
    look_twice(new_inbox())
    assert len(new_inbox.sent()) == 3


def test_names_with_any_space_go_in_and_bytes_that_are_no_text_stop_nothing(folder, new_inbox):
    for name in ("z.txt", "領収書　一.txt", "à\N{NO-BREAK SPACE}faire.txt"):
        (folder / name).write_text(name)
    (folder / os.fsdecode(b"\xff.txt")).write_text("bytes")
    inbox = new_inbox()
    look_twice(inbox)
    look_twice(inbox)
    assert new_inbox.sent() == ["z.txt", "à\N{NO-BREAK SPACE}faire.txt", "領収書　一.txt"]


def test_a_file_that_is_still_written_too_large_or_became_a_link_stays_out(folder, new_inbox, monkeypatch):
    (folder / "large.iso").write_bytes(bytes(1001))
    growing, swapped = folder / "growing.txt", folder / "swapped.txt"
    growing.write_text("a")
    swapped.write_text("a")
    inbox = new_inbox()
    inbox.step()
    growing.write_text("ab")
    scan = FolderParts.scan

    def scan_then_swap(*args):
        found = scan(*args)
        swapped.unlink()
        swapped.symlink_to("/etc/hostname")
        return found

    with monkeypatch.context() as patched:
        patched.setattr(FolderParts, "scan", scan_then_swap)
        inbox.step()
    assert new_inbox.sent() == []
    look_twice(inbox)
    assert new_inbox.sent() == ["growing.txt"]


def test_a_file_goes_in_after_two_seconds_without_a_change(folder, new_inbox, monkeypatch):
    monkeypatch.setattr(attachments, "QUIET_SECONDS", 2.0)
    (folder / "a.txt").write_text("a")
    inbox, now = new_inbox(), [0.0]
    inbox._attachments.now = lambda: now[0]
    look_twice(inbox)
    assert new_inbox.sent() == []
    now[0] = 2.5
    inbox.step()
    assert new_inbox.sent() == ["a.txt"]


def test_what_was_taken_is_still_known_when_its_disk_was_away_for_a_while(folder, new_inbox):
    (folder / "a.txt").write_text("a")
    look_twice(new_inbox())
    kept = folder.rename(folder.with_name("elsewhere"))
    folder.mkdir()
    look_twice(inbox := new_inbox())
    folder.rmdir()
    look_twice(inbox)
    kept.rename(folder)
    look_twice(inbox)
    assert new_inbox.sent() == ["a.txt"]


@pytest.mark.sqlite  # another engine must wait until the hold of a killed one has expired
def test_an_engine_killed_at_each_write_sends_each_file_once(folder, new_inbox, monkeypatch):
    for number in range(1, 20):
        (folder / f"{number}.txt").write_text(f"text {number}")
        with killed_at(monkeypatch, number % 4):
            try:
                look_twice(inbox := new_inbox())
                look_twice(inbox)
            except Killed:
                pass
    look_twice(new_inbox())
    assert len(new_inbox.sent()) == len(set(new_inbox.sent())) == 19


def test_what_an_earlier_version_took_does_not_go_in_again_even_if_its_document_was_deleted(
    folder, new_inbox, embedder, tmp_path
):
    for name in ("known.txt", "deleted.txt", "changed.txt", "new.txt"):
        (folder / name).write_text(name)
    taken = {name: (folder / name).stat() for name in ("known.txt", "deleted.txt", "changed.txt")}
    states = {str(folder / name): (status.st_mtime_ns, status.st_size) for name, status in taken.items()}
    (tmp_path / "data" / "inbox.json").write_text(json.dumps(states))
    (folder / "changed.txt").write_text("another text")
    with new_inbox.store.write() as tx:
        path, vectors = str(folder / "known.txt"), embedder.embed_passages([])
        known = tx.documents.add(Content("text", "known", "a hash", [], vectors), path, [])
    for _ in range(2):
        look_twice(inbox := new_inbox())
        look_twice(inbox)
        assert new_inbox.sent() == ["changed.txt", "new.txt"]
    with new_inbox.store.read() as tx:
        ids = {row.path: row.document_id for row in tx.note_files(f"{folder}/").attachments()}
    assert ids["known.txt"] == known
    assert ids.keys() == {"known.txt", "deleted.txt", "changed.txt", "new.txt"}


def test_a_folder_in_which_kb_keeps_its_own_files_is_no_inbox(folder):
    with pytest.raises(SettingError, match="kb keeps its own files in"):
        check_inbox_folder(settings_of(folder, folder / "kb"))
    check_inbox_folder(settings_of(folder, folder / ".local/share/kb"))


def settings_of(inbox, data):
    return Settings.read({"KB_DATA_DIR": str(data), "KB_INBOX_DIR": str(inbox)})
