"""The inbox over a real store: files that cannot be read, that are still written, that are too large, or gone for a while."""

import os

import pytest

from kb import inbox as inbox_module
from kb.api.errors import SettingError
from kb.blobs.folder import FolderBlobs
from kb.inbox import Inbox

pytestmark = pytest.mark.requirement("R-3")


@pytest.fixture
def folder(tmp_path):
    for name in ("in", "data", "data/staging"):
        (tmp_path / name).mkdir()
    return tmp_path / "in"


@pytest.fixture
def new_inbox(folder, make_store, tmp_path):
    """`new_inbox()` is the inbox of an engine that starts; `new_inbox.sent()` are the names of what went in."""
    with make_store() as store:

        def make():
            return Inbox(folder, store, FolderBlobs(tmp_path / "data"), tmp_path / "data", 1000, lambda: None)

        def sent():
            with store.read() as tx:
                return sorted(job.filename for job in tx.jobs.page(status=None, limit=100, before=None))

        make.sent = sent
        yield make


def look_twice(inbox):
    inbox.look()
    inbox.look()


def test_a_file_that_cannot_be_read_holds_up_no_other_and_goes_in_once_it_can(folder, new_inbox, monkeypatch, caplog):
    for name in ("a.txt", "b.txt", "c.txt"):
        (folder / name).write_text(name)
    real = inbox_module.submit_file

    def refuse(*args, **kwargs):
        if args[3] == "b.txt":
            raise PermissionError(13, "Permission denied")
        return real(*args, **kwargs)

    monkeypatch.setattr(inbox_module, "submit_file", refuse)
    inbox = new_inbox()
    look_twice(inbox)
    look_twice(inbox)
    assert new_inbox.sent() == ["a.txt", "c.txt"]
    assert caplog.text.count("Permission denied") == 1
    monkeypatch.undo()
    inbox.look()
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
    inbox.look()
    growing.write_text("ab")
    listing = inbox._files

    def list_then_swap(*args):
        yield from listing(*args)
        swapped.unlink()
        swapped.symlink_to("/etc/hostname")

    monkeypatch.setattr(inbox, "_files", list_then_swap)
    inbox.look()
    monkeypatch.undo()
    assert new_inbox.sent() == []
    look_twice(inbox)
    assert new_inbox.sent() == ["growing.txt"]


def test_what_was_taken_is_still_known_when_its_disk_was_away_for_a_while(folder, new_inbox):
    (folder / "a.txt").write_text("a")
    look_twice(new_inbox())
    kept = folder.rename(folder.with_name("elsewhere"))
    folder.mkdir()
    look_twice(inbox := new_inbox())
    folder.rmdir()
    kept.rename(folder)
    look_twice(inbox)
    assert new_inbox.sent() == ["a.txt"]


def test_a_folder_in_which_kb_keeps_its_own_files_is_no_inbox(folder, make_store, tmp_path):
    with make_store() as store:
        data = folder / "kb"
        with pytest.raises(SettingError, match="kb keeps its own files in"):
            Inbox(folder, store, FolderBlobs(data), data, 1000, lambda: None)
        Inbox(folder, store, FolderBlobs(data), folder / ".local/share/kb", 1000, lambda: None)
