"""Faults that users of similar programs reported: folders that empty notes, files that lose their notes or their form."""

from __future__ import annotations

import os
import shutil

import pytest

from kb.notes_folder import incoming, marker, outgoing
from kb.notes_folder.claims import LIKE, nearness
from kb.notes_folder.file_text import FileContent
from kb.store.rows import NoteFile
from tests.support.notes_folder import KeptFolder


@pytest.fixture
def begin(monkeypatch, make_store, embedder, tmp_path):
    """Begins to keep a folder, with a store of its own if `name` says so."""
    monkeypatch.setattr(incoming, "DELETE_SECONDS", 0.0)
    monkeypatch.setattr(outgoing, "QUIET_SECONDS", 0.0)
    (tmp_path / "data" / "staging").mkdir(parents=True)
    with make_store() as store:
        yield lambda folder="notes", **options: KeptFolder(
            store, embedder, tmp_path / folder, tmp_path / "data", **options
        )


@pytest.fixture
def kept(begin):
    return begin()


def binned(kept):
    return [kept.note(id_) for id_ in kept.binned()]


def test_a_new_empty_folder_is_filled_and_deletes_nothing(begin):
    kept = begin()
    for number in range(20):
        kept.add(f"text {number}", source_path=f"{number}.md")
    kept.settle()
    kept.folder.release()
    other = begin("another folder")
    assert other.settle().withheld == []
    other.start()
    other.settle()
    assert (len(other.files()), other.binned()) == (20, set())


def test_a_folder_that_was_moved_keeps_its_notes_also_those_that_changed_on_the_way(begin, tmp_path):
    kept = begin()
    notes = [kept.add(f"A text of {number} words", title=f"Title {number}", tags=["t"]) for number in range(3)]
    notes.append(kept.add("Under a path", source_path="a/b.md"))
    kept.settle()
    kept.folder.release()
    shutil.copytree(tmp_path / "notes", tmp_path / "moved")
    file = tmp_path / "moved" / "Title 1.md"
    file.write_text(file.read_text().replace("words", "other words"))
    moved = begin("moved")
    assert moved.settle().conflicts == []
    assert sorted(moved.notes()) == notes
    assert moved.text(notes[1]) == "A text of 1 other words"


@pytest.mark.parametrize("text", ["as it was in the letter", "as it was in the letter of the aunt"])
def test_files_that_are_put_back_with_their_old_dates_get_their_notes_back(kept, text):
    notes = [
        kept.add(f"letter {number}: as it was in the letter", source_path=f"{number}.md", tags=["t"])
        for number in range(3)
    ]
    notes.append(kept.add("A title of its own\n\nas it was in the letter", title="Named", tags=["t"]))
    kept.add("another note that stays")
    kept.settle()
    before = {path: (content, (kept.root / path).stat()) for path, content in kept.files().items()}
    for _ in range(2):
        for note in notes:
            kept.file(note).unlink()
        kept.settle()
        assert kept.binned() == set(notes)
        for path, (content, status) in before.items():
            file = kept.write(path, content.replace(b"as it was in the letter", text.encode()))
            os.utime(file, (status.st_atime - 1e6, status.st_mtime - 1e6))
        kept.settle()
        assert kept.binned() == set()
        assert all(text in kept.text(note) and kept.note(note).tags == ("t",) for note in notes)


FORMS = {
    "crlf": b"one\r\ntwo\r\n",
    "bom": b"\xef\xbb\xbf---\ntags: [a]\n---\nwith a mark\n",
    "no last line end": b"one\ntwo",
    "tabs and blanks": b"\tone  \n\t\ttwo  \n",
    "rule": b"---\n\nunder a rule\n",
    "comments": b"---\n# a comment\nname: &x value # why\nother: *x\n---\ntext\n",
    "twice": b"---\na: 1\na: 2\n---\ntext\n",
    "dots": b"---\na: 1\n...\ntext\n",
    "empty": b"---\n---\ntext in an empty block\n",
    "long": b"---\nnotes: " + b"word " * 1200 + b"\n---\ntext of a long one\n",
    "block list": b"---\ntags:\n  - a\n  - b\n---\ntext with a list\n",
    "flow list": b"---\ntags: [ a,b ]\n---\ntext with a flow\n",
    "toml": b'+++\ntitle = "Kiln"\ndate = 2026-03-14\n[menu]\nmain = 1\n+++\ntext in toml\n',
    "json": b'{\n  "title": "{"\n}\ntext in json\n',
    "dates": b"---\ncreated: 2026-02-30\ndate: 12:30\ntitle: 007\ntags: [yes, 1.10, 2026-03-14]\n---\ntext with dates\n",
    "own fields": b"---\nkb: 12\nupdated: yesterday\nreplaces: nothing\n---\ntext with fields of its own\n",
}


def test_files_that_kb_did_not_write_stay_to_the_byte_and_a_tag_adds_one_line(kept):
    for name, content in FORMS.items():
        kept.write(f"{name}.md", content)
    kept.settle()
    kept.start()
    kept.settle()
    assert kept.files() == {f"{name}.md": content for name, content in sorted(FORMS.items())}
    for note in kept.notes():
        kept.edit(note, tags_add=["new"])
    kept.settle()
    for name, content in FORMS.items():
        written = (kept.root / f"{name}.md").read_bytes()
        added = [line for line in written.splitlines() if line not in content.splitlines()]
        assert all(b"new" in line or line == b"---" for line in added), name
        assert all(line in written for line in content.splitlines()), name
        assert written.startswith(b"\xef\xbb\xbf") == content.startswith(b"\xef\xbb\xbf")
    for note in kept.notes():
        kept.edit(note, tags_remove=["new"])
    kept.settle()
    assert kept.files() == {f"{name}.md": content for name, content in sorted(FORMS.items())}


def test_ids_that_somebody_copied_or_typed_take_no_note_away(begin):
    kept = begin(with_ids=True)
    one, two = kept.add("the first text", source_path="a.md"), kept.add("the second text", source_path="b.md")
    kept.settle()
    assert (kept.root / "a.md").read_text() == f"---\nkb: {one}\n---\nthe first text"
    kept.write("copy.md", (kept.root / "a.md").read_text() + " and more")
    for number in range(5):
        kept.write(f"template {number}.md", f"---\nkb: {one}\n---\nfrom a template {number}")
    for number in (two, 0, 10**30, "text"):
        kept.write(f"typed {number}.md", f"---\nkb: {number}\n---\ntyped by hand {number}")
    kept.settle()
    assert (kept.text(one), kept.text(two)) == ("the first text", "the second text")
    assert len(kept.notes()) == 12
    (kept.root / "a.md").unlink()
    kept.settle()
    assert kept.binned() == {one}
    assert "the first text and more" in "".join(kept.notes().values())
    kept.start()
    before = kept.files()
    kept.settle()
    assert kept.files() == before


def test_with_ids_a_restored_database_knows_files_that_were_renamed_and_changed(begin, tmp_path):
    kept = begin(with_ids=True)
    note = kept.add("some words that stay, and some that change", title="Old name")
    kept.settle()
    kept.folder.release()
    shutil.copytree(tmp_path / "notes", tmp_path / "elsewhere")
    shutil.rmtree(tmp_path / "elsewhere" / marker.NAME)
    file = tmp_path / "elsewhere" / "Old name.md"
    file.write_text(file.read_text().replace("change", "changed"))
    file.rename(tmp_path / "elsewhere" / "New name.md")
    moved = begin("elsewhere", with_ids=True)
    moved.settle()
    assert list(moved.notes()) == [note]
    assert sorted(path for path in moved.files() if " (conflict " not in path) == ["New name.md"]


def test_files_of_an_earlier_version_are_known_by_their_fields_and_not_rewritten(begin):
    kept = begin()
    note = kept.add("the text", title="A title", tags=["t"])
    kept.settle()
    created = kept.note(note).created_at
    written = f"---\nkb: {note}\ntitle: A title\ntags: [t]\ncreated: {created}\n---\nthe text"
    file = kept.write("2026/a-title.md", written)
    kept.file(note).unlink()
    status = file.stat()
    state = f"{status.st_mtime_ns} {status.st_ctime_ns} {status.st_size} {status.st_ino}"
    with kept.store.write() as tx:
        [row] = kept.parts.files(tx).all()
        old = NoteFile(note, "2026/a-title.md", None, row.version, state, incoming.disk.digest_of(written.encode()))
        kept.parts.files(tx).put(old, FileContent("the text", "A title", ("t",), None).packed())
    kept.start()
    kept.settle()
    assert kept.files() == {"2026/a-title.md": written.encode()}
    file.rename(kept.root / "elsewhere.md")
    kept.write("elsewhere.md", written.replace("the text", "quite other words in it"))
    kept.settle()
    assert kept.notes() == {note: "quite other words in it"}
    kept.edit(note, "words of an agent", tags_add=["u"])
    kept.settle()
    text = (kept.root / "elsewhere.md").read_text()
    assert text.startswith(f"---\nkb: {note}\ntitle: A title\n")
    assert "tags: [t, u]\n" in text
    assert text.endswith(f"created: {created}\n---\nwords of an agent")


def test_a_name_that_changes_only_in_case_keeps_its_note_and_two_files_stay_two(kept):
    note = kept.add("text", source_path="Dir/Note.md")
    kept.settle()
    (kept.root / "Dir" / "Note.md").rename(kept.root / "Dir" / "note.md")
    kept.settle()
    (kept.root / "Dir").rename(kept.root / "dir")
    kept.settle()
    assert kept.note(note).source_path == "dir/note.md"
    kept.write("dir/NOTE.md", "another")
    kept.settle()
    assert sorted(kept.files()) == ["dir/NOTE.md", "dir/note.md"]
    assert sorted(kept.notes().values()) == ["another", "text"]


def test_a_tree_that_is_moved_in_and_out_again_is_followed(kept, tmp_path):
    tree = tmp_path / "out" / "tree"
    for number in range(6):
        (tree / f"{number % 3}" / "deep").mkdir(parents=True, exist_ok=True)
        (tree / f"{number % 3}" / "deep" / f"{number}.md").write_text(f"leaf {number}")
    kept.add("one that stays")
    for number in range(30):
        kept.add(f"other {number}")
    kept.settle()
    tree.rename(kept.root / "tree")
    kept.settle()
    before = kept.notes()
    assert len(before) == 37
    (kept.root / "tree" / "0" / "deep" / "0.md").write_text("leaf 0, edited")
    kept.settle()
    (kept.root / "tree").rename(tree)
    (tree / "1" / "deep" / "1.md").write_text("leaf 1, edited outside")
    kept.settle()
    assert all("edited outside" not in text for text in kept.notes().values())
    tree.rename(kept.root / "tree")
    kept.settle()
    assert kept.notes().keys() == before.keys()


def test_an_inode_that_the_system_gives_to_a_new_file_leads_to_no_old_note(kept):
    old = kept.add("the old words of a letter", source_path="old.md", tags=["private"])
    kept.add("another note that stays")
    kept.settle()
    file = kept.file(old)
    file.write_text("a recipe with flour and eggs")
    file.rename(kept.root / "recipe.md")  # the same inode, another name and another content
    kept.settle()
    assert kept.binned() == {old}
    [recipe] = [id_ for id_, text in kept.notes().items() if "flour" in text]
    assert kept.note(recipe).tags == ()


def test_a_new_file_with_the_inode_of_a_deleted_note_is_another_file_unless_it_begins_with_the_text():
    assert nearness("Boat", "A report about the Boat and its crew.", is_same_inode=True) < LIKE
    assert nearness("Boat", "Boat with new ropes for the summer.", is_same_inode=True) > LIKE
    assert nearness("Boat", "Boat with new ropes for the summer.") < LIKE
