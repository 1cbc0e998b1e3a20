"""A folder with a file of each note, over a real store and the real model: edits on both sides, moves, deletions."""

from __future__ import annotations

import pytest

from kb.ingest import note_vectors
from kb.notes_folder import incoming, outgoing
from tests.support.notes_folder import KeptFolder


@pytest.fixture
def at_once(monkeypatch):
    """kb waits neither for the end of typing nor for files that may come back."""
    monkeypatch.setattr(incoming, "DELETE_SECONDS", 0.0)
    monkeypatch.setattr(outgoing, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(note_vectors, "PATIENCE_SECONDS", 60.0)  # no worker would make the vectors later


@pytest.fixture
def kept(at_once, make_store, embedder, tmp_path):
    (tmp_path / "data" / "staging").mkdir(parents=True)
    with make_store() as store:
        yield KeptFolder(store, embedder, tmp_path / "notes", tmp_path / "data")


def test_each_note_becomes_a_file_with_its_fields_and_its_text_byte_for_byte(kept):
    one = kept.add("Buy milk  \r\nand ümlauts\n\n\n", tags=["home/shop"])
    two = kept.add("---\nstatus: open\ntags: [kiln]\n---\nBricks", source_path="projects/Kiln.md", title="Kiln")
    kept.settle()
    files = kept.files()
    assert list(files) == [f"{kept.note(one).created_at[:4]}/buy-milk.md", "projects/Kiln.md"]
    written = files["projects/Kiln.md"].decode()
    assert written.startswith(f"---\nkb: {two}\ntitle: Kiln\ncreated: {kept.note(two).created_at}\nstatus: open\n")
    assert written.endswith("status: open\ntags: [kiln]\n---\nBricks")
    assert next(iter(files.values())).endswith(b"---\r\nBuy milk  \r\nand \xc3\xbcmlauts\n\n\n")
    assert b"tags: [home/shop]\r\n" in next(iter(files.values()))


def test_an_edited_file_becomes_a_new_version_by_file_and_is_not_written_again(kept):
    note = kept.add("one\ntwo\n", title="Numbers", tags=["a"])
    kept.settle()
    file = kept.file(note)
    file.write_text(file.read_text().replace("two", "three").replace("[a]", "[a, b]").replace("Numbers", "Sums"))
    edited = file.read_bytes()
    kept.settle()
    assert kept.text(note) == "one\nthree\n"
    assert (kept.note(note).title, kept.note(note).tags) == ("Sums", ("a", "b"))
    assert [version.author.by for version in kept.history(note)] == ["file", "anna"]
    assert file.read_bytes() == edited
