"""Files in a folder that are not documents of a person."""

from __future__ import annotations

import pytest

from kb.folders.ignore_rules import LEFTOVER
from kb_cli.sync.file_selection import select_files

KEY = "SHA256E-s1048576--9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08.md"


@pytest.fixture
def selected(tmp_path):
    """`selected(name, text)` is what is selected of a folder with such a file and one of a person."""

    def select(name, text):
        file = tmp_path / "vault" / name
        file.parent.mkdir(parents=True)
        file.write_text(text)
        (tmp_path / "vault" / "own.md").write_text("Mine.")
        found = select_files([str(tmp_path / "vault")])
        assert tmp_path / "vault" / "own.md" in found.files
        return found

    return select


@pytest.mark.parametrize(
    "pointer",
    [
        f"/annex/objects/{KEY}\n",
        f"/annex/objects/{KEY}",
        f"../.git/annex/objects/9w/K3/{KEY}/{KEY}",
        f".git\\annex\\objects\\9w\\K3\\{KEY}\\{KEY}\n",
    ],
)
def test_what_git_annex_did_not_fetch_is_elsewhere(selected, pointer):
    found = selected("a.md", pointer)
    assert [path.name for path in found.elsewhere] == ["a.md"]


@pytest.mark.parametrize(
    "text",
    [
        f"/annex/objects/{KEY}\nis where git-annex puts it, as I found out today.\n",
        f"See .git/annex/objects/{KEY}\n",
        "/annex/objects of the museum\n",
    ],
)
def test_a_note_about_it_is_a_note(selected, text):
    assert not selected("a.md", text).elsewhere


@pytest.mark.parametrize("suffix", ["gdoc", "gsheet", "GSLIDES"])
def test_a_document_of_google_drive_is_elsewhere(selected, suffix):
    found = selected(f"Plan.{suffix}", '{"doc_id": "1AbC", "email": "me@example.com"}')
    assert [path.name for path in found.elsewhere] == [f"Plan.{suffix}"]


@pytest.mark.parametrize(
    "name",
    [
        "@Recycle/old.md", "#snapshot/GMT-2026/old.md", "@Recently-Snapshot/x.md", "Network Trash Folder/n.md",
        "Temporary Items/n.md", "r.pdf:Zone.Identifier", "r.pdf\uf03aZone.Identifier", "r.pdf:Zone.Identifier:$DATA",
        "r.pdf:com.dropbox.attributes", "r.md___jb_tmp___", "r.md___jb_old___", "film.md.dtapart", "a.txt.xltd",
    ],
)  # fmt: skip
def test_what_network_disks_windows_and_programs_leave_is_skipped(selected, name):
    found = selected(name, "left")
    assert found.ignored[LEFTOVER] == 1
    assert len(found.files) == 1


@pytest.mark.parametrize(
    "name", ["recycle.md", "Zone.Identifier.md", "snapshot/a.md", "jb_tmp.md", "co:lon.md", "a.gdocs.md"]
)
def test_what_a_person_may_call_a_file_goes_in(selected, name):
    assert len(selected(name, "A text of mine.").files) == 2
