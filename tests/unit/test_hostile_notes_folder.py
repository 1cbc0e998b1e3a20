"""Links, pipes and deep folders that somebody puts into the notes folder neither cost a file nor stop kb."""

from __future__ import annotations

import os
import time

import pytest

from kb.notes_folder import disk, marker
from kb.notes_folder.merge import merged
from kb.notes_folder.paths import MOST_FOLDERS, path_from

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs links and pipes")


@pytest.mark.parametrize("name", [".kb-folder", ".kb-folder.part"])
def test_a_link_at_the_mark_costs_no_file(tmp_path, name):
    victim, root = tmp_path / "victim", tmp_path / "notes"
    victim.write_text("the owner's own key")
    root.mkdir()
    (root / name).symlink_to(victim)
    marker.write(root, "session", "")
    assert victim.read_text() == "the owner's own key"
    assert not (root / ".kb-folder").is_symlink()
    assert marker.sessions(root) == ["session"]
    assert [path.name for path in root.iterdir() if path.name.endswith(".part")] in ([], [name])


@pytest.mark.parametrize(
    "make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("gone")], ids=["fifo", "dir", "link"]
)
def test_what_is_no_file_at_the_mark_counts_as_no_mark(tmp_path, make):
    make(tmp_path / ".kb-folder")
    assert marker.sessions(tmp_path) is None


def test_a_pipe_in_place_of_a_note_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "a (conflict 2026-01-01).md")
    assert disk.set_aside(tmp_path / "a.md", b"mine", "2026-01-01").name == "a (conflict 2026-01-01 2).md"


def test_hundreds_of_folders_within_each_other_are_a_problem_and_not_the_end(tmp_path):
    (tmp_path / "note.md").write_text("first")
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(300):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    found = disk.scan(tmp_path, ())
    assert list(found.files) == ["note.md"]
    [(path, reason)] = found.problems.items()
    assert path.count("/") == MOST_FOLDERS
    assert str(MOST_FOLDERS) in reason
    assert found.unreadable == [path]


def test_a_deep_path_of_a_note_ends_in_a_folder_that_kb_looks_into(tmp_path):
    path = path_from("/home/ada/pub/" + "d/" * 1200 + "z.md")
    assert path.count("/") == MOST_FOLDERS
    assert path.endswith("/z.md")
    disk.create(tmp_path / path, b"deep")
    assert list(disk.scan(tmp_path, ()).files) == [path]


@pytest.mark.parametrize("common", ["common\n", "common {}\n"], ids=["one", "many"])
@pytest.mark.parametrize("lines", [1000, 3000, 20_000])
def test_a_merge_takes_no_minutes_whatever_the_lines(common, lines):
    base = "".join(common.format(number) + f"old {number}\n" for number in range(lines // 2))
    mine = base.replace("old", "new")
    begun = time.process_time()
    merged(base, mine, base + "tail\n")
    assert time.process_time() - begun < 3
