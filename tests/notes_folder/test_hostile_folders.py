"""A notes folder that somebody else may write to: links, pipes, deep paths, exchanged folders and endless differences."""

from __future__ import annotations

import os
import subprocess
import time
from contextlib import contextmanager

import pytest

from kb import open_folder
from kb.folders.watching import folder_state
from kb.markdown.merge import merged
from kb.notes_folder import disk, incoming, outgoing
from kb.notes_folder.paths import MOST_FOLDERS, path_from
from kb.open_folder import Linked, opened
from kb_cli.sync.file_selection import select_files
from tests.support.notes_folder import KeptFolder


@pytest.fixture
def kept(monkeypatch, make_store, embedder, tmp_path):
    monkeypatch.setattr(incoming, "DELETE_SECONDS", 0.0)
    monkeypatch.setattr(outgoing, "QUIET_SECONDS", 0.0)
    (tmp_path / "data" / "staging").mkdir(parents=True)
    with make_store() as store:
        yield KeptFolder(store, embedder, tmp_path / "notes", tmp_path / "data")


@contextmanager
def deep(folder):
    """Make folders in folders, with a file in the last one, and remove them again, which pytest cannot."""
    try:
        with opened(folder, ["d"] * 1100, make=True) as deepest:
            deepest.create("x.md", b"deep")
        yield
    finally:
        subprocess.run(["rm", "-rf", folder / "d"], check=True)


@pytest.fixture
def outside(tmp_path):
    """A file that is not kb's."""
    file = tmp_path / "key.md"
    file.write_text("the owner's key")
    yield file
    assert file.read_text() == "the owner's key"


@pytest.mark.parametrize("name", [".kb-folder", ".kb-folder.part", ".kb-part-x", "n.md", "n (conflict 2026-01-01).md"])
def test_no_link_in_the_folder_leads_kb_to_another_file(kept, outside, name):
    kept.root.mkdir()
    (kept.root / name).symlink_to(outside)
    note = kept.add("text", source_path="n.md")
    assert kept.settle().stopped is None
    assert kept.file(note).read_text() == "text"
    assert not kept.file(note).is_symlink()
    kept.start()
    kept.edit(note, "changed")
    kept.settle()
    assert kept.file(note).read_text() == "changed"


def test_a_link_in_place_of_the_mark_s_content_is_replaced(kept, outside):
    kept.add("text", source_path="n.md")
    kept.settle()
    mark = kept.root / ".kb-folder" / "mark"
    mark.unlink()
    mark.symlink_to(outside)
    kept.start()
    assert kept.settle().stopped is None
    assert not mark.is_symlink()


@pytest.mark.parametrize("name", [".kb-folder", ".kb-part-x", "a.md", "n.md", "n (conflict 2026-01-01).md"])
def test_a_pipe_in_the_folder_blocks_nothing(kept, name):
    kept.root.mkdir()
    os.mkfifo(kept.root / name)
    note = kept.add("text", source_path="n.md")
    assert kept.settle().stopped is None
    assert kept.file(note).read_text() == "text"


def test_a_pipe_in_place_of_a_conflict_file_does_not_keep_the_text_from_disk(kept):
    note = kept.add("one\n", source_path="n.md")
    kept.settle()
    os.mkfifo(kept.root / f"n (conflict {kept.parts.today()}).md")
    kept.file(note).write_text("file\n")
    kept.edit(note, "agent\n")
    kept.settle()
    assert (kept.root / f"n (conflict {kept.parts.today()} 2).md").read_text() == "file\n"


def test_a_note_with_a_very_deep_path_stops_no_other_note(kept):
    deep = kept.add("deep", source_path="d/" * 1200 + "z.md")
    note = kept.add("text", source_path="n.md")
    status = kept.settle()
    assert (status.stopped, status.problems, status.waiting) == (None, [], 0)
    assert kept.file(note).read_text() == "text"
    assert path_from("d/" * 1200 + "z.md").count("/") == MOST_FOLDERS
    kept.file(note).write_text("edited")
    kept.settle()
    assert (kept.text(note), kept.text(deep)) == ("edited", "deep")


def test_folders_that_are_too_deep_are_a_problem_and_the_rest_is_kept(kept):
    kept.add("text", source_path="n.md")
    kept.settle()
    kept.write("new.md", "new")
    with deep(kept.root):
        status = kept.settle()
    [problem] = status.problems
    assert problem.path == "/".join(["d"] * (MOST_FOLDERS + 1))
    assert problem.reason == "It is more than 50 folders deep, so kb does not look at it."
    assert sorted(kept.notes().values()) == ["new", "text"]


def test_a_sync_and_a_watch_of_a_very_deep_folder_end(tmp_path):
    (tmp_path / "a.md").write_text("a")
    with deep(tmp_path):
        assert tmp_path / "a.md" in select_files([str(tmp_path)]).files
        assert len(folder_state(tmp_path)) >= 1


def test_a_folder_exchanged_for_a_link_between_a_look_and_a_write_leads_nowhere(kept, tmp_path, monkeypatch):
    (tmp_path / "outside").mkdir()
    note = kept.add("text", source_path="a/n.md")
    kept.settle()
    kept.edit(note, "changed")
    real = disk._write_part

    def exchanged(folder, *arguments):
        if (kept.root / "a").is_dir() and not (kept.root / "a").is_symlink():
            (kept.root / "a").rename(tmp_path / "was a")
            (kept.root / "a").symlink_to(tmp_path / "outside")
        return real(folder, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(disk, "_write_part", exchanged)
        kept.folder.step()
    assert list((tmp_path / "outside").iterdir()) == []
    assert (tmp_path / "was a" / "n.md").read_text() in ("text", "changed")
    status = kept.settle()
    assert kept.text(note) == "changed"
    assert list((tmp_path / "outside").iterdir()) == []
    assert status.withheld or status.problems


def test_an_open_folder_refuses_links_and_says_so(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(Linked, match=open_folder.LINKED.rstrip(".")), opened(tmp_path, ["link"]):
        pass
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError), opened(tmp_path, ["file", "x"]):
        pass


@pytest.mark.parametrize("number", [2_000, 19_000])
def test_texts_that_differ_in_every_second_line_take_a_bounded_time(number):
    base = "".join(f"same {line}\n" if line % 2 else f"base {line}\n" for line in range(number))
    mine = base.replace("base", "mine")
    began = time.process_time()
    both = merged(base, mine, f"{base}theirs\n")
    assert both is None
    assert time.process_time() - began < 20


def test_a_merge_can_be_stopped():
    class Stopped(Exception):
        pass

    def stop():
        raise Stopped

    with pytest.raises(Stopped):
        merged("a\nb\n", "x\nb\n", "a\ny\n", stop)


def test_a_step_that_fails_says_why_until_one_succeeds(kept, monkeypatch, caplog):
    kept.add("text", source_path="n.md")

    def deep(*_, **__):
        return deep()

    with monkeypatch.context() as patched:
        patched.setattr(disk, "scan", deep)
        for _ in range(3):
            with pytest.raises(RecursionError) as raised:
                kept.folder.step()
            kept.folder._note_fault(raised.value)
    assert "RecursionError" in kept.folder.status().stopped
    [record] = [record for record in caplog.records if record.levelname == "ERROR"]
    assert len(record.message.splitlines()) < 100
    kept.settle()
    assert kept.folder.status().stopped is None
