"""The files that a sync treats as deleted, and the files that it does not."""

from __future__ import annotations

import json
import os
import unicodedata
from pathlib import PurePosixPath

import pytest

from kb.folders import timed_reads
from kb.folders.deletions import ITSELF, Judge, remembered
from kb.folders.disk_view import DiskView, unescaped
from kb.folders.ignore_rules import LEFTOVER
from kb.folders.temporary_files import is_leftover
from kb.folders.watching import explain, folder_state
from kb_cli.sync.digests import DigestCache
from kb_cli.sync.file_selection import select_files


@pytest.fixture
def judge(tmp_path):
    """`judge(total)` says what goes of a folder of so many documents."""
    (tmp_path / "kept.md").touch()

    def make(total=100, before="", now="", unread=(), **options):
        return Judge(DiskView(tmp_path), (before, now), unread, total, **options)

    return make


def paths(count, folder="a"):
    return [f"{folder}/{number}.md" for number in range(count)]


@pytest.mark.parametrize(
    ("gone", "total", "is_allowed"), [(5, 5, True), (6, 30, True), (6, 29, False), (50, 51, False)]
)
def test_more_than_five_and_more_than_a_fifth_need_a_yes(judge, gone, total, is_allowed):
    careful = judge(total)
    assert careful.allow(paths(gone)) == (paths(gone) if is_allowed else [])
    assert [each.needs_yes for each in careful.withheld] == ([] if is_allowed else [True])
    assert is_allowed or f"{gone} of {total} documents" in careful.withheld[0].reason
    assert judge(total, is_sure=True).allow(paths(gone)) == paths(gone)


def test_documents_stay_while_their_disk_is_away_and_it_is_remembered_which(judge):
    mounted, unmounted = json.dumps({"": "/", "usb": "/mnt/usb 1f"}), json.dumps({"": "/"})
    careful = judge(before=mounted, now=unmounted)
    assert careful.allow(["usb/a.md", "b.md"]) == ["b.md"]
    assert careful.keep_away(["usb/a.md", "b.md"]) == ["b.md"]
    assert json.loads(remembered(mounted, unmounted, ["usb/a.md"])) == json.loads(mounted)
    assert json.loads(remembered(mounted, unmounted, [])) == {"": "/"}


def test_documents_of_a_folder_that_is_suddenly_empty_stay(judge, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / ".DS_Store").touch()
    careful = judge()
    assert careful.allow([*paths(3), "b.md"]) == ["b.md"]
    assert "a is empty, and 3 documents come from there" in careful.withheld[0].reason
    (tmp_path / "a" / "left.md").touch()
    assert judge().allow(paths(3)) == paths(3)


def test_a_folder_in_which_only_leftovers_stand_is_empty(judge, tmp_path):
    (tmp_path / "a").mkdir()
    for name in ("~$report.docx", "1.md~", "x.tmp", "Thumbs.db"):
        (tmp_path / "a" / name).touch()
    assert judge().allow(paths(3)) == []


def test_documents_of_a_folder_that_was_suddenly_empty_stay_until_all_of_its_files_are_back(judge, tmp_path):
    (tmp_path / "a").mkdir()
    now = json.dumps({"": "/"})
    first = judge(before=now, now=now)
    assert first.allow(paths(3)) == []
    known = remembered(now, now, paths(3), first.emptied)
    (tmp_path / "a" / "0.md").touch()
    second = judge(before=known, now=now)
    assert second.allow([*paths(3)[1:], "b.md"]) == ["b.md"]
    assert "a was empty, and not all of its files are back" in second.withheld[0].reason
    assert second.keep_away(paths(3)) == paths(3), "a file that was moved elsewhere is found there"
    known = remembered(known, now, paths(3)[1:], second.emptied)
    assert judge(before=known, now=now, is_sure=True).allow(paths(3)[1:]) == paths(3)[1:]
    assert json.loads(remembered(known, now, [])) == {"": "/"}, "they are back, or deleted"


def test_documents_of_a_synced_folder_that_was_suddenly_empty_stay_until_all_of_its_files_are_back(judge, tmp_path):
    now = json.dumps({"": "/"})
    known = remembered(now, now, paths(3), [ITSELF])
    filling = judge(before=known, now=now)
    assert filling.allow([*paths(3), "b.md"]) == []
    assert "4 documents stay: The folder was empty" in filling.withheld[0].reason
    assert filling.keep_away(paths(3)) == paths(3)
    assert remembered(known, now, ["b.md"], filling.emptied) == known
    assert json.loads(remembered(known, now, [])) == {"": "/"}, "all are back"
    (tmp_path / "kept.md").unlink()
    assert judge(before=now, now=now).allow(["a.md", "b.md"]) == [], "emptied while the round went on"


def test_nothing_is_deleted_beside_a_file_that_cannot_be_read_even_with_a_yes(judge):
    careful = judge(unread=["a/locked.md"], is_sure=True)
    assert careful.allow(["a/1.md", "a/deep/2.md", "b/3.md"]) == ["b/3.md"]
    assert [each.needs_yes for each in careful.withheld] == [False]


@pytest.mark.parametrize("name", [".f1.md.icloud", "f1.md.nextcloud", "f1.md.owncloud", "f1.md.rsls", "f1.md.cloud"])
def test_a_placeholder_is_a_file_that_is_elsewhere(tmp_path, name):
    (tmp_path / name).write_bytes(b"\0")
    selection = select_files([str(tmp_path)])
    assert (selection.files, selection.elsewhere) == ([], [tmp_path / "f1.md"])
    assert DiskView(tmp_path).has_file(PurePosixPath("f1.md"))


def test_all_of_a_folder_that_is_elsewhere_is_elsewhere(tmp_path):
    (tmp_path / ".deep.icloud").write_bytes(b"bplist00")
    assert DiskView(tmp_path).has_file(PurePosixPath("deep/er/a.md"))
    assert not DiskView(tmp_path).has_file(PurePosixPath("other/a.md"))


def test_what_git_lfs_did_not_fetch_is_elsewhere(tmp_path):
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 12345\n"
    (tmp_path / "a.md").write_text(pointer)
    (tmp_path / "b.md").write_text(pointer.replace("version", "a text on version"))
    selection = select_files([str(tmp_path)])
    assert (selection.files, selection.elsewhere) == ([tmp_path / "b.md"], [tmp_path / "a.md"])


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_a_file_is_found_however_the_disk_spells_it(tmp_path, form):
    folder, name = (unicodedata.normalize(form, each) for each in ("Café", "é.md"))
    (tmp_path / folder).mkdir()
    (tmp_path / folder / name).touch()
    for asked in ("NFC", "NFD"):
        assert DiskView(tmp_path).has_file(PurePosixPath(unicodedata.normalize(asked, "Café/é.md")))


def test_another_case_is_another_name(tmp_path):
    (tmp_path / "README.md").touch()
    assert not DiskView(tmp_path).has_file(PurePosixPath("Readme.md"))


@pytest.mark.parametrize(
    "name",
    [
        "~$report.docx", "~WRD0001.tmp", "~WRL0002.tmp", "note.md~", "#note.md#", ".x.swp", "4913", "a.tmp", "b.TEMP",
        "c.pdf.crdownload", "d.part", "e.partial", "f.opdownload", "g.filepart", "Thumbs.db", "desktop.ini", "h.!ut",
        "note.md.sb-1a2b3c4d-XyZ123", "~syncthing~a.md.tmp", "i.aria2", "Icon\r", "j.laccdb",
    ],
)  # fmt: skip
def test_what_programs_leave_is_skipped(name):
    assert is_leftover(name, is_folder=False)


@pytest.mark.parametrize(
    "name", ["note.md", "a.sync-conflict-20260101-120000-ABC.md", "b (conflicted copy).md", "poetry.lock", "tmp.md", "~.md",
             "c#.md", "part.md", "4913.md", "template.tmpl", "#hashtag.md"],
)  # fmt: skip
def test_what_a_person_means_is_not(name):
    assert not is_leftover(name, is_folder=False)


def test_leftovers_are_counted_and_a_kbignore_lets_them_in(tmp_path):
    for name in ("note.md", "a.tmp", "b.tmp"):
        (tmp_path / name).write_text("words")
    assert select_files([str(tmp_path)]).ignored[LEFTOVER] == 2
    (tmp_path / ".kbignore").write_text("!a.tmp\n")
    selection = select_files([str(tmp_path)])
    assert ([path.name for path in selection.files], selection.ignored[LEFTOVER]) == (["a.tmp", "note.md"], 1)


def test_a_file_that_gives_no_answer_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(timed_reads, "BLOCKED_SECONDS", 0.1)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="did not respond"):
        DigestCache().digest(str(tmp_path / "pipe"))
    timed_reads.forget_silent()
    (tmp_path / "file").write_text("words")
    assert len(DigestCache().digest(str(tmp_path / "file"))) == 64


def test_a_change_is_seen_by_looking(tmp_path):
    (tmp_path / "a.md").write_text("one")
    before = folder_state(tmp_path)
    assert folder_state(tmp_path) == before
    (tmp_path / "a.md").write_text("three")
    assert folder_state(tmp_path) != before


def test_what_has_run_out_is_named_with_the_command_that_raises_it():
    import errno

    assert "sudo sysctl fs.inotify.max_user_watches=" in explain(errno.ENOSPC)
    assert "sudo sysctl fs.inotify.max_user_instances=" in explain(errno.EMFILE)


def test_a_mount_point_is_read_as_the_system_lists_it():
    assert unescaped(r"/mnt/my\040disk\134x") == "/mnt/my disk\\x"
