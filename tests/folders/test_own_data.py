"""Folders of kb itself within a synced folder: their files change with each sync."""

from __future__ import annotations

import asyncio

import pytest

from kb.folders.own_data import MARKS, NOTES_MARK, is_in_own_data, own_folder_around
from kb.folders.watching import folder_state, watch
from kb.notes_folder import marker
from kb_cli.runtime.exit_codes import UsageError
from kb_cli.sync.file_selection import select_files
from kb_cli.sync.folder import Folder
from tests.support.rare_cases import mostly_rare


@pytest.fixture(params=MARKS, ids=["data", "backup", "export"])
def own(request, tmp_path):
    """A folder of kb in a folder with a note."""
    (tmp_path / "note.md").write_text("A note.")
    folder = tmp_path / "sub" / "kb"
    (folder / "files").mkdir(parents=True)
    for name in (*request.param, "other.txt", "files/x.md"):
        (folder / name).write_text("Of kb.")
    return folder


def test_no_file_of_kb_is_selected(own, tmp_path):
    assert select_files([str(tmp_path)]).files == [tmp_path / "note.md"]


def test_a_change_of_such_a_file_is_no_change(own, tmp_path):
    before = folder_state(tmp_path)
    (own / "files" / "new.md").write_text("Of kb, too.")
    assert folder_state(tmp_path) == before
    assert is_in_own_data(own / "files" / "new.md", tmp_path)
    assert not is_in_own_data(tmp_path / "note.md", tmp_path)
    assert not is_in_own_data(own / "x", own / "files"), "what is above the synced folder does not matter"


@pytest.mark.parametrize("own", mostly_rare(MARKS), indirect=True, ids=["data", "backup", "export"])
def test_what_watches_hears_of_other_changes_only(own, tmp_path):
    async def changes(file):
        seen = []
        async for is_changed in watch(tmp_path, print):
            seen.append(is_changed)
            if len(seen) == 2:
                file.write_text("Changed.")
            if len(seen) > 5:
                return any(seen[2:])
        return None

    assert asyncio.run(changes(own / "other.txt")) is False
    assert asyncio.run(changes(tmp_path / "note.md")) is True


def test_a_folder_of_kb_or_in_one_is_neither_synced_nor_watched(own, tmp_path):
    for folder in (own, own / "files"):
        with pytest.raises(UsageError, match=f"kb keeps its own files in {own}. Choose a separate folder."):
            Folder(folder, "").check()
    Folder(tmp_path, "").check()


def test_no_note_of_the_notes_folder_is_selected(tmp_path):
    (tmp_path / "notes").mkdir()
    for name in (marker.NAME, "note.md"):
        (tmp_path / "notes" / name).write_text("Of the notes folder.")
    (tmp_path / "other.md").write_text("Another note.")
    assert marker.NAME == NOTES_MARK
    assert select_files([str(tmp_path)]).files == [tmp_path / "other.md"]


def test_the_files_in_a_data_folder_are_not_added_but_folders_beside_them_are(tmp_path):
    for name in ("kb.lock", "clock.json"):
        (tmp_path / name).touch()
    for place in ("files/2c", "staging", "documents"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "a.txt").write_text("text")
    assert own_folder_around(tmp_path / "documents") is None
    assert {own_folder_around(tmp_path / each) for each in ("files", "files/2c", "staging", ".")} == {tmp_path}
