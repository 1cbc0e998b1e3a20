"""A folder with a file of each note, over a real store and the real model: edits on both sides, moves, deletions."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import shutil
import sys
import time
from contextlib import suppress
from dataclasses import replace

import pytest

from kb.ingest import vectors_at_once
from kb.markdown.merge import merged
from kb.notes_folder import disk, incoming, outgoing
from kb.notes_folder import folder as notes_folder
from kb.open_folder import OpenFolder
from kb.store.rows import Retention
from tests.support.notes_folder import KeptFolder, KeptVault


@pytest.fixture
def at_once(monkeypatch):
    """kb waits neither for the end of typing nor for files that may come back."""
    monkeypatch.setattr(incoming, "DELETE_SECONDS", 0.0)
    monkeypatch.setattr(outgoing, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(vectors_at_once, "PATIENCE_SECONDS", 60.0)  # no worker would make the vectors later


@pytest.fixture
def new_kept(at_once, make_store, embedder, tmp_path):
    (tmp_path / "data" / "staging").mkdir(parents=True)
    with make_store() as store:
        yield lambda kind: kind(store, embedder, tmp_path / "notes", tmp_path / "data")


@pytest.fixture
def kept(new_kept):
    return new_kept(KeptFolder)


def test_the_file_of_a_note_is_its_text_byte_for_byte(kept):
    text = "Buy milk  \r\nand ümlauts for the #shop\n\n\n"
    kept.add(text, tags=["shop"])
    kept.settle()
    assert kept.files() == {"Buy milk.md": text.encode()}


def test_the_front_matter_gets_only_a_title_and_tags_that_the_text_does_not_say(kept):
    kept.add("Buy milk\r\n", tags=["home/shop"])
    kept.add("---\nstatus: open\ntags: [kiln]\n---\nBricks", "projects/Kiln.md", "The kiln", tags=["kiln", "new"])
    kept.settle()
    assert kept.files() == {
        "Buy milk.md": b"---\r\ntags: [home/shop]\r\n---\r\nBuy milk\r\n",
        "projects/Kiln.md": (b"---\ntitle: The kiln\nkb_tags: [new]\nstatus: open\ntags: [kiln]\n---\nBricks"),
    }


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


def test_changes_of_different_lines_are_merged(kept):
    note = kept.add("one\ntwo\nthree\nfour\nfive\n")
    kept.settle()
    file = kept.file(note)
    file.write_text(file.read_text().replace("one", "ONE"))
    kept.edit(note, "one\ntwo\nthree\nfour\nFIVE\n")
    status = kept.settle()
    assert kept.text(note) == "ONE\ntwo\nthree\nfour\nFIVE\n"
    assert file.read_text() == "ONE\ntwo\nthree\nfour\nFIVE\n"
    assert status.conflicts == []


def test_changes_of_the_same_line_keep_both_texts_and_the_status_says_so(kept):
    note = kept.add("one\ntwo\n", source_path="a/n.md")
    kept.settle()
    file = kept.file(note)
    file.write_text(file.read_text().replace("two", "file"))
    theirs = file.read_bytes()
    kept.edit(note, "one\nagent\n")
    status = kept.settle()
    assert kept.text(note) == "one\nagent\n"
    assert file.read_text() == "one\nagent\n"
    [conflict] = status.conflicts
    assert conflict == f"a/n (conflict {kept.parts.today()}).md"
    assert (kept.root / conflict).read_bytes() == theirs
    assert len(kept.notes()) == 1


@pytest.mark.parametrize(
    ("base", "mine", "theirs", "both"),
    [
        ("one\n", "one\nagent\n", "one\nperson\n", "one\nperson\nagent\n"),
        ("one", "one\nagent", "one\nperson", "one\nperson\nagent"),
        ("one\ntwo\n", "ONE\ntwo\nagent\n", "one\ntwo\nperson\n", "ONE\ntwo\nperson\nagent\n"),
        ("one\n", "one\nagent\n", "one\nagent\nperson\n", "one\nagent\nperson\n"),
        ("one\n", "one\nagent\nmore\n", "one\nagent\n", "one\nagent\nmore\n"),
        ("one\ntwo\n", "one\nTWO\n", "one\ntwo\nperson\n", "one\nTWO\nperson\n"),
        ("one\ntwo", "one\nTWO", "one\ntwo\nperson", "one\nTWO\nperson"),
        ("one\ntwo\n", "one\ntwo\nagent\n", "one\nTWO", "one\nTWO\nagent\n"),
        ("one\ntwo\n", "one\nTWO\nmore\n", "one\ntwo\nmore\n", "one\nTWO\nmore\n"),
        ("one\ntwo", "one\nTWO\nmore", "one\ntwo\nmore", "one\nTWO\nmore\n"),
        ("one\x0ctwo\nthree\n", "one\x0cTWO\nthree\n", "one\x0ctwo\nthree\nmore\n", "one\x0cTWO\nthree\nmore\n"),
        ("one\ntwo\n", "one\n", "one\ntwo\nperson\n", None),
        ("one\ntwo\n", "one\nTWO\nagent\n", "one\nZWEI\nperson\n", None),
        ("one\n", "agent\n", "person\n", None),
    ],
)
def test_lines_that_both_sides_add_to_the_end_are_both_kept(base, mine, theirs, both):
    assert merged(base, mine, theirs) == both


def test_a_merge_needs_no_history(at_once, make_store, embedder, tmp_path):
    (tmp_path / "data" / "staging").mkdir(parents=True)
    with make_store(retention=Retention(history_days=0)) as store:
        kept = KeptFolder(store, embedder, tmp_path / "notes", tmp_path / "data")
        note = kept.add("one\ntwo\nthree\n")
        kept.settle()
        file = kept.file(note)
        file.write_text(file.read_text().replace("one", "ONE"))
        kept.edit(note, "one\ntwo\nTHREE\n")
        kept.settle()
        assert kept.text(note) == "ONE\ntwo\nTHREE\n"


def test_a_new_file_is_a_new_note_and_stays_as_it_is(kept):
    text = "---\ntags: [boat]\ntitle: Our boat\n---\nPaint it."
    file = kept.write("ideas/Boat.md", text)
    kept.settle()
    [note] = kept.notes()
    assert kept.text(note) == "---\ntags: [boat]\ntitle: Our boat\n---\nPaint it."
    assert (kept.note(note).source_path, kept.note(note).title, kept.note(note).tags) == (
        "ideas/Boat.md", "Our boat", ("boat",),
    )  # fmt: skip
    assert file.read_text() == text
    assert kept.history(note)[0].author.by == "file"


def test_hash_tags_that_somebody_writes_in_a_file_are_tags_of_its_note(kept):
    kept.write("Kiln.md", "Bricks for the #kiln. `#code`\n")
    kept.settle()
    [note] = kept.notes()
    assert kept.note(note).tags == ("kiln",)
    file = kept.file(note)
    file.write_text(file.read_text() + "Two #owls moved in.\n")
    kept.settle()
    assert kept.note(note).tags == ("kiln", "owls")
    kept.edit(note, tags_remove=["kiln"])
    kept.settle()
    file.write_text(file.read_text().replace("#owls", "#doves"))
    kept.settle()
    assert kept.note(note).tags == ("doves",), "a tag that somebody removed in kb is not added again"
    assert file.read_text() == "Bricks for the #kiln. `#code`\nTwo #doves moved in.\n"


def test_a_renamed_file_stays_its_note_also_if_only_its_case_or_unicode_form_changes(kept):
    note = kept.add("é", source_path="Café.md")
    kept.settle()
    kept.file(note).rename(kept.root / "cafe\u0301.md")
    kept.settle()
    assert kept.note(note).source_path == "café.md"
    (kept.root / "cafe\u0301.md").rename(kept.root / "café.md")
    (kept.root / "b").mkdir()
    (kept.root / "café.md").rename(kept.root / "b" / "x.md")
    kept.settle()
    assert kept.note(note).source_path == "b/x.md"
    assert list(kept.notes()) == [note]
    assert len(kept.files()) == 1


@pytest.mark.parametrize("kind", [KeptFolder, KeptVault])
def test_a_short_note_that_grows_while_its_file_is_renamed_and_edited_in_kb_stays_one_note(new_kept, kind):
    kept = new_kept(kind)
    note = kept.add("Boat", f"{kept.parts.prefix}x.md")
    kept.settle()
    file = kept.root / "Boat.md"
    kept.file(note).rename(file)
    file.write_text("Boat\nPaint her\nbefore the summer\n")
    kept.edit(note, "Boat #harbour")
    kept.settle()
    assert kept.notes() == {note: "Boat #harbour\nPaint her\nbefore the summer\n"}
    assert list(kept.files()) == ["Boat.md"]


def test_a_renamed_file_whose_text_has_a_time_of_creation_stays_its_note(kept):
    kept.write("x.md", "---\ncreated: 2024-01-01\ntags: [a]\nupdated: 2024-02-01\n---\ntext")
    kept.settle()
    [note] = kept.notes()
    kept.edit(note, tags_add=["b"])
    kept.settle()
    assert "kb_tags: [b]\n" in kept.file(note).read_text()
    kept.file(note).rename(kept.root / "y.md")
    kept.write("y.md", (kept.root / "y.md").read_text().replace("text", "more"))
    kept.settle()
    assert kept.notes() == {note: "---\ncreated: 2024-01-01\ntags: [a]\nupdated: 2024-02-01\n---\nmore"}
    assert set(kept.note(note).tags) == {"a", "b"}


def test_files_that_exchange_their_names_stay_their_notes(kept):
    one, two = kept.add("one", source_path="a.md"), kept.add("two", source_path="b.md")
    kept.settle()
    with OpenFolder.of(kept.root) as folder:
        folder.exchange("a.md", "b.md")
    kept.settle()
    assert (kept.note(one).source_path, kept.note(two).source_path) == ("b.md", "a.md")
    assert (kept.text(one), kept.text(two)) == ("one", "two")


def test_files_that_are_edited_while_they_exchange_their_names_stay_their_notes(kept):
    one, two = kept.add("one two three four", source_path="a.md"), kept.add("five six seven", source_path="b.md")
    kept.settle()
    (kept.root / "a.md").unlink()
    (kept.root / "b.md").unlink()
    kept.write("a.md", b"five six seven eight")
    kept.write("b.md", b"one two three four nine")
    kept.settle()
    assert (kept.note(one).source_path, kept.note(two).source_path) == ("b.md", "a.md")
    assert (kept.text(one), kept.text(two)) == ("one two three four nine", "five six seven eight")


@pytest.mark.parametrize("is_written_in_place", [True, False])
def test_a_new_file_that_exchanged_its_name_with_an_edited_one_is_its_note(kept, is_written_in_place):
    note = kept.add("one two three", source_path="a.md")
    kept.settle()
    if is_written_in_place:
        kept.write("a.md", b"five six seven")
    else:
        kept.write("c.md", b"five six seven").replace(kept.root / "a.md")
    kept.write("b.md", b"one two three four")
    kept.settle()
    text = "five six seven" if is_written_in_place else "one two three four"
    assert (kept.note(note).source_path, kept.text(note)) == ("a.md" if is_written_in_place else "b.md", text)
    assert sorted(kept.notes().values()) == ["five six seven", "one two three four"]


def test_a_note_that_moves_takes_its_file_along(kept):
    note = kept.add("text", source_path="a/b/c.md")
    kept.settle()
    kept.move(note, "d.md")
    kept.settle()
    assert list(kept.files()) == ["d.md"]
    assert not (kept.root / "a").exists()


def test_a_note_that_moves_while_its_file_is_edited_takes_the_file_along(kept):
    note = kept.add("text", source_path="a/x.md")
    kept.settle()
    (kept.root / "a" / "x.md").write_text("text by hand")
    kept.move(note, "b/y.md")
    kept.settle()
    assert (kept.files(), kept.text(note)) == ({"b/y.md": b"text by hand"}, "text by hand")


def test_a_copy_of_a_file_is_a_note_of_its_own(kept):
    note = kept.add("text", title="One", tags=["t"])
    kept.settle()
    kept.write("copy.md", kept.file(note).read_bytes())
    kept.settle()
    [copy] = kept.notes().keys() - {note}
    assert kept.text(copy) == "---\ntitle: One\ntags: [t]\n---\ntext"
    assert (kept.note(copy).title, kept.note(copy).tags) == ("One", ("t",))
    assert (kept.root / "copy.md").read_bytes() == kept.file(note).read_bytes()


def test_the_file_of_another_knowledge_base_changes_no_note_that_has_its_id_here(kept):
    note = kept.add("ours")
    kept.settle()
    kept.file(note).unlink()
    kept.write("theirs.md", f"---\nkb: {note}\ntitle: T\ncreated: 2020-01-01T00:00:00.000Z\n---\ntheirs")
    kept.add("another")
    kept.settle()
    other = next(id_ for id_, text in kept.notes().items() if "theirs" in text)
    assert other != note
    assert kept.note(other).title == "T"
    assert kept.note(other).date == "2020-01-01T00:00:00.000Z"


def test_a_deleted_file_moves_its_note_to_the_bin_and_a_restored_note_gets_its_file_again(kept):
    note, _ = kept.add("text", source_path="x.md"), kept.add("other")
    kept.settle()
    kept.file(note).unlink()
    kept.settle()
    assert kept.binned() == {note}
    kept.restore(note)
    kept.settle()
    assert (kept.root / "x.md").read_text() == "text"


def test_a_deleted_note_removes_its_file_unless_somebody_edited_it(kept):
    one, two = kept.add("one", source_path="1.md"), kept.add("two", source_path="2.md")
    kept.settle()
    kept.delete(one)
    kept.delete(two)
    file = kept.file(two)
    file.write_text(f"{file.read_text()}\nand more")
    kept.settle()
    assert list(kept.files()) == ["2.md"]
    assert kept.notes() == {two: "two\nand more"}


def test_a_file_that_comes_back_restores_its_note(kept):
    """As when git checks out an older branch, and then the newer one."""
    note, _ = kept.add("text", source_path="x.md"), kept.add("other")
    kept.settle()
    newer = kept.file(note).read_bytes()
    kept.file(note).unlink()
    kept.settle()
    kept.write("x.md", newer.replace(b"text", b"older text"))
    kept.settle()
    assert kept.text(note) == "older text"
    assert kept.binned() == set()


def test_a_program_that_saves_by_renaming_keeps_the_note(kept):
    note = kept.add("text", source_path="x.md")
    kept.settle()
    for number in range(3):
        kept.write("x.md.tmp", kept.file(note).read_text() + f"\n{number}").replace(kept.root / "x.md")
        kept.settle()
    assert kept.notes() == {note: "text\n0\n1\n2"}


@pytest.mark.parametrize("ends", ["\r\n", "\n", "\r"])
@pytest.mark.parametrize("last", ["", "\n", "\r\n\r\n", "  "])
def test_a_file_keeps_its_line_ends_to_the_byte(kept, ends, last):
    text = f"one{ends}two{ends}{ends}three{last}"
    kept.write("x.md", text)
    kept.settle()
    [note] = kept.notes()
    assert kept.text(note) == text
    assert kept.file(note).read_bytes().endswith(text.encode())


def test_a_byte_order_mark_is_not_part_of_the_text(kept):
    file = kept.write("x.md", b"\xef\xbb\xbf---\ntags: [a]\n---\ntext")
    kept.settle()
    [note] = kept.notes()
    assert kept.text(note) == "---\ntags: [a]\n---\ntext"
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes().replace(b"text", b"more"))
    kept.settle()
    assert kept.text(note).endswith("more")


def test_an_emptied_file_keeps_its_note_and_the_status_says_so(kept):
    note = kept.add("text", source_path="x.md")
    kept.write("new.md", "")
    kept.settle()
    kept.file(note).write_text("")
    status = kept.settle()
    assert kept.notes() == {note: "text"}
    assert [(problem.path, problem.reason[:18]) for problem in status.problems] == [("x.md", "The file is empty.")]
    kept.edit(note, "changed")
    kept.settle()
    assert kept.file(note).read_bytes() == b""


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\xff\xfe\x00a", "It is not UTF-8 text."),
        (b"x" * 100_001, "It is too long: a note can have at most 100,000 characters (KB_MAX_NOTE_CHARS)."),
        (b"x" * 1_000_000, "It is larger than 0 MiB."),
        (
            b"![a map](data:image/png;base64," + b"iVBORw0KGgo" * 100 + b")",
            "It contains a picture as base64. Save the picture as a file, and link to it.",
        ),
    ],
    ids=["utf-16", "long", "huge", "base64"],
)
def test_a_file_that_cannot_be_a_note_stays_as_it_is(kept, content, reason):
    kept.write("x.md", content)
    status = kept.settle()
    assert [(problem.path, problem.reason) for problem in status.problems] == [("x.md", reason)]
    assert kept.notes() == {}
    assert kept.files() == {"x.md": content}
    kept.write("x.md", "text")
    assert kept.settle().problems == []
    assert list(kept.notes().values()) == ["text"]


def test_a_read_only_file_is_not_written(kept):
    note = kept.add("text", source_path="x.md")
    kept.settle()
    file = kept.file(note)
    file.chmod(0o444)
    kept.settle()
    kept.edit(note, "changed")
    status = kept.settle()
    assert file.read_text() == "text"
    assert [(problem.path, problem.reason) for problem in status.problems] == [("x.md", "It is read-only.")]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell who has a file open")
def test_a_file_that_a_program_is_writing_is_written_after_it_was_closed(kept):
    note = kept.add("begin", source_path="x.md")
    kept.settle()
    with (kept.root / "x.md").open("a") as file:
        file.write("first line\n")
        file.flush()
        kept.edit(note, tags_add=["t"])
        [problem] = kept.settle().problems
        assert (problem.path, "has it open" in problem.reason) == ("x.md", True)
        file.write("second line\n")
    kept.folder._outgoing.failed.clear()
    assert kept.settle().problems == []
    assert kept.text(note) == "beginfirst line\nsecond line\n"
    assert kept.files() == {"x.md": b"---\ntags: [t]\n---\nbeginfirst line\nsecond line\n"}


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell who has a file open")
def test_words_that_a_program_still_writes_to_the_file_of_a_deleted_note_are_kept(kept):
    note, other = kept.add("begin\n", source_path="x.md"), kept.add("other", source_path="y.md")
    kept.settle()
    with (kept.root / "x.md").open("a") as file, (kept.root / "y.md").open("a"):
        kept.delete(note)
        kept.delete(other)
        assert [problem.path for problem in kept.settle().problems] == ["x.md", "y.md"]
        assert len(list(kept.root.glob(".kb-part-*"))) == 0
        file.write("more\n")
    kept.settle()
    assert kept.files() == {"x.md": b"begin\nmore\n"}
    assert (kept.text(note), kept.binned()) == ("begin\nmore\n", {other})


@pytest.mark.parametrize("is_killed", [False, True])
def test_another_file_that_takes_the_path_of_a_new_note_costs_no_text(kept, monkeypatch, is_killed):
    def create(place, *arguments):
        kept.write("x.md", "a letter of somebody else")
        if is_killed:
            raise KeyboardInterrupt
        return real(place, *arguments)

    real = disk.create
    with monkeypatch.context() as patched:
        patched.setattr(disk, "create", create)
        note = kept.add("what an agent wrote", source_path="x.md")
        with suppress(KeyboardInterrupt):
            kept.folder.step()
    kept.start()
    status = kept.settle()
    assert (kept.text(note), len(status.conflicts)) == ("what an agent wrote", 1)
    assert sorted(kept.files().values()) == [b"a letter of somebody else", b"what an agent wrote"]


def test_a_full_disk_loses_nothing_and_the_file_is_written_later(kept, monkeypatch):
    note = kept.add("text", source_path="x.md")
    kept.settle()

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(disk, "_write_part", full)
        kept.edit(note, "changed")
        kept.add("new", source_path="y.md")
        status = kept.settle()
        assert {problem.path for problem in status.problems} == {"x.md", "y.md"}
        assert "disk is full" in status.problems[0].reason
        [trouble] = status.trouble
        assert re.fullmatch(
            r"Since \d{4}-\d\d-\d\d \d\d:\d\d UTC, 2 files: The engine's disk is full.* 2 notes wait to be written\."
            r" Nothing is lost: the database has the notes, and kb tries again\.",
            trouble,
        )
        assert kept.settle().trouble == [trouble]
    kept.folder._outgoing.failed.clear()
    status = kept.settle()
    assert (status.problems, status.trouble) == ([], [])
    assert sorted(kept.files()) == ["x.md", "y.md"]
    assert kept.file(note).read_text() == "changed"


def test_a_conflict_file_that_finds_no_space_is_written_as_soon_as_there_is_some(kept, monkeypatch):
    note = kept.add("the same line", source_path="x.md")
    kept.settle()

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(disk, "_write_part", full)
        patched.setattr(incoming, "RETRY_SECONDS", 0.0)
        kept.write("x.md", "the line of a person")
        kept.edit(note, "the line of an agent")
        assert {problem.path for problem in kept.settle().problems} == {"x.md"}
        assert kept.files() == {"x.md": b"the line of a person"}
    kept.folder._outgoing.failed.clear()
    status = kept.settle()
    assert (status.problems, len(status.conflicts)) == ([], 1)
    assert sorted(kept.files().values()) == [b"the line of a person", b"the line of an agent"]


def test_a_folder_that_is_gone_says_since_when_and_how_many_notes_wait(kept, tmp_path, caplog):
    kept.add("text", source_path="x.md")
    kept.settle()
    kept.root.rename(tmp_path / "away")
    kept.add("more", source_path="y.md")
    for _ in range(3):
        [trouble] = kept.settle().trouble
    assert "does not exist. Is its disk connected? 1 note waits to be written. Nothing is lost" in trouble
    assert len([record for record in caplog.records if "cannot be kept in sync" in record.message]) == 1
    (tmp_path / "away").rename(kept.root)
    assert kept.settle().trouble == []
    assert sorted(kept.files()) == ["x.md", "y.md"]


def test_the_status_counts_the_files_that_kb_has_still_to_read(kept, monkeypatch):
    for number in range(7):
        kept.write(f"{number}.md", f"text {number}")
    monkeypatch.setattr(incoming, "AT_ONCE", 3)
    counts, real = [], incoming.Incoming._take

    def counted(*arguments):
        status = kept.folder.status()
        counts.append((status.files, status.to_read))
        real(*arguments)

    monkeypatch.setattr(incoming.Incoming, "_take", counted)
    assert kept.settle().to_read == 0
    assert counts == [(7, number) for number in range(7, 0, -1)]


def test_names_and_titles_of_any_kind_give_paths_that_every_system_accepts(kept):
    paths = [
        "https://example.org/a?b",
        "/home/me/x.md",
        "C:\\notes\\x.md",
        "../../up.md",
        "aux.md",
        ".hidden/x",
        "x" * 300,
    ]
    by_path = [kept.add(f"text of {path}", source_path=path) for path in paths]
    titles = ["a/b: c", "🎉", "Same", "Same", "n" * 400, "con", "हिन्दी"]
    for number, title in enumerate(titles):
        kept.add(f"text {number}", title=title[:250])
    status = kept.settle()
    files = kept.files()
    assert (status.problems, len(files)) == ([], len(paths) + len(titles))
    for path in files:
        assert not set(path) & set('<>:"|?*\\')
        assert all(len(part.encode()) <= 255 and not part.startswith(".") for part in path.split("/"))
    assert {"a-b c.md", "🎉.md", "Same.md", "Same 2.md", "_con.md", "हिन्दी.md"} <= files.keys()
    assert [kept.note(id_).source_path for id_ in by_path] == paths
    kept.start()
    kept.settle()
    assert kept.files() == files


def test_two_notes_whose_paths_differ_only_in_case_have_two_files(kept):
    kept.add("one", source_path="Note.md")
    kept.add("two", source_path="note.md")
    kept.settle()
    assert sorted(kept.files()) == ["Note.md", "note 2.md"]


def test_links_hidden_files_leftovers_and_conflict_copies_are_not_notes(kept, tmp_path):
    (tmp_path / "secret.md").write_text("secret")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x.md").write_text("outside")
    kept.add("note", source_path="n.md")
    kept.settle()
    (kept.root / "link.md").symlink_to(tmp_path / "secret.md")
    (kept.root / "folder").symlink_to(tmp_path / "outside")
    copies = [
        "n.sync-conflict-20261126-101010-ABCDEFG.md",
        "n (Anna's conflicted copy 2026-11-26).md",
        "n (conflicted copy 2026-11-26 101010).md",
        "n (SFConflict anna@example.org 2026-11-26-10-10-10).md",
    ]
    for name in (".obsidian/x.md", ".n.md.swp", "~$n.md", ".n.md.icloud", "n.md.crdownload", "n.md~", "a.png", *copies):
        kept.write(name, "something else")
    status = kept.settle()
    assert list(kept.notes().values()) == ["note"]
    assert status.conflicts == sorted(copies)


def test_kb_writes_nothing_through_links_and_deletes_no_note_because_of_them(kept, tmp_path):
    (tmp_path / "outside").mkdir()
    kept.root.mkdir()
    (kept.root / "folder").symlink_to(tmp_path / "outside")
    (tmp_path / "elsewhere.md").write_text("elsewhere")
    (kept.root / "link.md").symlink_to(tmp_path / "elsewhere.md")
    behind, beside = kept.add("behind", source_path="folder/x.md"), kept.add("beside", source_path="link.md")
    status = kept.settle()
    reason = "A folder in its path is a link, and kb does not follow links."
    assert [(problem.path, problem.reason) for problem in status.problems] == [("folder/x.md", reason)]
    assert not list((tmp_path / "outside").iterdir())
    assert (tmp_path / "elsewhere.md").read_text() == "elsewhere"
    assert kept.file(beside).name == "link 2.md"
    (kept.root / "folder").unlink()
    kept.folder._outgoing.failed.clear()
    kept.settle()
    assert (kept.root / "folder" / "x.md").read_text().endswith("behind")
    assert kept.note(behind)


def test_notes_whose_folder_becomes_a_link_stay_until_somebody_decides(kept, tmp_path):
    notes = [kept.add(f"note {number}", source_path=f"folder/{number}.md") for number in range(2)]
    kept.add("other", source_path="other.md")
    kept.settle()
    (kept.root / "folder").rename(tmp_path / "moved")
    (kept.root / "folder").symlink_to(tmp_path / "moved")
    status = kept.settle()
    [reason] = status.withheld
    assert reason.startswith("kb kept notes whose files were at folder: that path is now a link")
    assert all(map(kept.note, notes))
    kept.delete(notes[0])
    kept.settle()
    assert (tmp_path / "moved" / "0.md").exists()
    kept.folder.act("delete")
    kept.settle()
    assert kept.binned() == set(notes)


def test_a_note_with_the_name_of_a_conflict_copy_has_a_file_again_after_a_restore_of_the_database(kept):
    note = kept.add("text", source_path="x (conflict 2026-01-01).md")
    kept.settle()
    kept.mark("of another time")
    kept.start()
    assert kept.settle().waiting == 0
    assert kept.file(note).read_text().endswith("text")


@pytest.mark.rare
def test_a_file_that_is_too_large_now_does_not_hold_up_the_others(kept):
    large, small = kept.add("é" * 90_000, source_path="large.md"), kept.add("small", source_path="small.md")
    kept.settle()
    kept.parts = replace(kept.parts, most_characters=1000)
    kept.start()
    kept.settle()
    kept.edit(large, tags_add=["urgent"])
    kept.edit(small, tags_add=["urgent"])
    status = kept.settle()
    assert [problem.path for problem in status.problems] == ["large.md"]
    assert "urgent" in (kept.root / "small.md").read_text()


def test_a_long_text_with_many_empty_lines_is_merged_unless_both_sides_changed_all_of_it():
    base = "".join(f"line {number}\n\n" for number in range(9_000))
    mine, theirs = base.replace("line 10\n", "mine\n"), base.replace("line 8990\n", "theirs\n")
    both = mine.replace("line 8990\n", "theirs\n")
    assert merged(base, mine, theirs) == both
    assert merged(base, "".join(f"mine {number}\n\n" for number in range(9_000)), theirs) is None


def test_kb_rests_between_ticks_without_changes_if_each_takes_long(kept, monkeypatch):
    steps = []

    async def watch(*_):
        for is_changed in (False, False, False, True, False):
            yield is_changed

    def step(*, is_changed=True):
        steps.append(is_changed)
        time.sleep(0.05)

    kept.settle()
    monkeypatch.setattr(notes_folder, "watch", watch)
    monkeypatch.setattr(kept.folder, "step", step)
    asyncio.run(kept.folder._follow())
    assert steps == [True, True, True]  # at the start, when watching began, at the change


def test_only_files_count_as_files_that_a_killed_engine_left(kept):
    kept.root.mkdir()
    (kept.root / ".kb-part-folder").mkdir()
    (kept.root / ".kb-part-link").symlink_to(kept.root / "missing")
    kept.add("text", source_path="x.md")
    assert kept.settle().stopped is None
    assert list(kept.files()) == ["x.md"]


def test_a_file_is_written_where_the_system_neither_exchanges_nor_links_files(kept, monkeypatch):
    note = kept.add("one", source_path="x.md")
    kept.settle()

    def refuse(*_, **__):
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(OpenFolder, "_rename", lambda *_, **__: False)
    monkeypatch.setattr(os, "link", refuse)
    kept.edit(note, "two")
    kept.settle()
    assert kept.file(note).read_text().endswith("two")
    assert [file.name for file in kept.root.iterdir() if file.name.startswith(disk.PART)] == []


def test_an_engine_that_starts_with_nothing_changed_reads_no_file(kept, monkeypatch):
    for number in range(5):
        kept.add(f"text {number}")
    kept.settle()
    monkeypatch.setattr(disk, "read", None)
    kept.start()
    kept.settle()


def test_many_deleted_files_delete_nothing_until_somebody_decides(kept):
    for number in range(10):
        kept.add(f"text {number}", source_path=f"{number}.md")
    kept.settle()
    before = kept.notes()
    for number in range(6):
        (kept.root / f"{number}.md").unlink()
    status = kept.settle()
    assert kept.notes() == before
    assert status.withheld == [
        "6 of 10 documents would be deleted (6 in the folder itself), so kb deleted none. If you deleted these files,"
        " run 'kb notes delete'; to write them again, 'kb notes restore'."
    ]
    kept.folder.act("restore")
    assert kept.settle().withheld == []
    assert len(kept.files()) == 10
    for number in range(6):
        (kept.root / f"{number}.md").unlink()
    kept.settle()
    kept.folder.act("delete")
    kept.settle()
    assert len(kept.notes()) == 4


def test_missing_files_are_written_again_also_if_a_folder_has_their_name_now(kept):
    kept.add("Plant beans.", "Garden.md")
    kept.settle()
    (kept.root / "Garden.md").unlink()
    (kept.root / "Garden.md").mkdir()
    assert "no notes left" in kept.settle().withheld[0]
    kept.folder.act("restore")
    assert kept.settle().withheld == []
    assert kept.files() == {"Garden 2.md": b"Plant beans."}


def test_files_that_disappear_one_after_another_are_counted_together(kept):
    for number in range(20):
        kept.add(f"text {number}", source_path=f"{number}.md")
    kept.settle()
    for number in range(8):
        (kept.root / f"{number}.md").unlink()
        status = kept.settle()
    assert len(kept.notes()) == 15
    assert status.withheld[0].startswith("6 of 20 files disappeared within a minute")
    kept.folder._incoming._deleted.clear()  # a minute later
    kept.settle()
    assert len(kept.notes()) == 15
    kept.folder.act("delete")
    kept.settle()
    assert len(kept.notes()) == 12


def test_an_empty_folder_another_folder_and_no_folder_delete_nothing(kept, tmp_path):
    kept.add("one", source_path="1.md")
    kept.add("two", source_path="2.md")
    kept.settle()
    before = kept.notes()
    for file in kept.root.glob("*.md"):
        file.unlink()
    assert "no notes left" in kept.settle().withheld[0] or "is empty" in kept.settle().withheld[0]
    kept.root.rename(tmp_path / "away")
    assert "does not exist" in kept.settle().stopped
    kept.root.mkdir()
    assert "is not the folder that kb used before" in kept.settle().stopped
    kept.write("other.md", "of another disk")
    kept.start()
    assert "is not the folder that kb used before" in kept.settle().stopped
    assert kept.notes() == before
    kept.folder.act("restore")
    assert kept.settle().stopped is None
    assert sorted(kept.files()) == ["1.md", "2.md", "other.md"]


def test_two_knowledge_bases_do_not_fight_over_a_folder(kept):
    note = kept.add("text", source_path="x.md")
    kept.settle()
    kept.mark("of-another-kb\n")
    kept.edit(note, "changed")
    assert "Another kb is using the folder" in kept.settle().stopped
    assert kept.file(note).read_text() == "text"
    kept.folder.act("restore")
    assert kept.settle().stopped is None
    assert kept.file(note).read_text() == "changed"


def test_a_folder_whose_mark_was_removed_is_known_by_its_files(kept):
    """As by git clean."""
    kept.add("text", source_path="x.md")
    kept.settle()
    shutil.rmtree(kept.root / ".kb-folder")
    assert kept.settle().stopped is None
    assert (kept.root / ".kb-folder").exists()


def test_without_a_bin_a_deleted_file_deletes_no_note(at_once, make_store, embedder, tmp_path):
    (tmp_path / "data" / "staging").mkdir(parents=True)
    with make_store(retention=Retention(bin_days=0)) as store:
        kept = KeptFolder(store, embedder, tmp_path / "notes", tmp_path / "data")
        note, _ = kept.add("one"), kept.add("two")
        kept.settle()
        kept.file(note).unlink()
        assert "KB_BIN_DAYS=0" in kept.settle().withheld[0]
        assert note in kept.notes()


def test_after_a_restore_of_the_database_the_notes_hold_and_the_texts_of_files_are_kept(kept):
    note = kept.add("old text", source_path="x.md")
    kept.settle()
    kept.mark("another session\n")  # the database is from an earlier time than the folder
    kept.file(note).write_text(kept.file(note).read_text().replace("old", "new"))
    kept.start()
    status = kept.settle()
    assert kept.text(note) == "old text"
    assert [(kept.root / path).read_text()[-8:] for path in status.conflicts] == ["new text"]


def test_another_folder_in_the_settings_gets_all_notes(kept, tmp_path):
    kept.add("one", source_path="1.md")
    kept.settle()
    kept.folder.release()
    other = KeptFolder(kept.store, kept.embedder, tmp_path / "other", tmp_path / "data")
    other.settle()
    assert list(other.files()) == ["1.md"]
    assert list(other.notes().values()) == ["one"]


def test_an_undo_takes_back_the_changes_of_a_look_together(kept):
    notes = [kept.add(f"text {number}", source_path=f"{number}.md") for number in range(2)]
    kept.settle()
    for note in notes:
        kept.file(note).write_text(kept.file(note).read_text().replace("text", "changed"))
    kept.settle()
    with kept.store.read() as tx:
        [newest, *_] = tx.operations.page(limit=1)
        assert tx.operations.documents(newest.id) == notes


def test_a_file_edited_while_kb_writes_it_keeps_its_text(kept, monkeypatch):
    note = kept.add("one\ntwo\nthree\n", source_path="x.md")
    kept.settle()
    kept.edit(note, "ONE\ntwo\nthree\n")
    file, real = kept.file(note), disk._write_part

    def edited_meanwhile(*arguments):
        written = real(*arguments)
        if "two" in file.read_text() and "THREE" not in file.read_text():
            file.write_text(file.read_text().replace("three", "THREE"))
        return written

    with monkeypatch.context() as patched:
        patched.setattr(disk, "_write_part", edited_meanwhile)
        kept.folder.step()
    kept.settle()
    assert kept.text(note) == "ONE\ntwo\nTHREE\n"
    assert file.read_text() == "ONE\ntwo\nTHREE\n"


def test_a_file_changed_a_moment_ago_is_not_written_yet(kept, monkeypatch):
    monkeypatch.setattr(outgoing, "QUIET_SECONDS", 60.0)
    file = kept.write("x.md", "text")
    kept.settle()
    [note] = kept.notes()
    kept.edit(note, tags_add=["t"])
    kept.folder.step()
    assert file.read_text() == "text"
    os.utime(file, (1, 1))
    kept.settle()
    assert file.read_text() == "---\ntags: [t]\n---\ntext"


@pytest.mark.parametrize(
    "matter",
    [
        'title: "a: b"\n"quoted key": x\n',
        "📅: today\naliases:\n- one\n- two\n",
        "date created: 2026-01-01\nup: [[Home]]\n",
        "description: |\n  two\n  lines\n\n# a comment\n1st: x\n",
        "nested:\n  key: value\n  list:\n  - x\n",
        "{{template}}: x\n",
    ],
)
def test_the_properties_of_a_note_and_of_kb_share_one_front_matter(kept, matter):
    """Two blocks would hide the note's own properties from other programs."""
    text = f"---\n{matter}---\nbody\n"
    kept.write("x.md", text)
    kept.settle()
    [note] = kept.notes()
    assert kept.text(note) == text
    kept.edit(note, tags_add=["t"])
    kept.settle()
    assert kept.file(note).read_text() == text.replace("---\n", "---\ntags: [t]\n", 1)
    kept.edit(note, text.replace("body", "changed"))
    kept.settle()
    kept.file(note).write_text(kept.file(note).read_text().replace("changed", "again"))
    kept.settle()
    assert kept.text(note) == text.replace("body", "again")


def test_properties_written_anew_by_an_editor_make_no_version(kept):
    note = kept.add("body", title="A: title", tags=["a b", "c"])
    kept.settle()
    file = kept.file(note)
    file.write_text(
        file.read_text().replace('tags: ["a b", c]', "tags:\n  - a b\n  - c").replace('"A: title"', "'A: title'")
    )
    kept.settle()
    assert len(kept.history(note)) == 1
    assert "tags:\n  - a b\n" in file.read_text()


def test_a_renamed_folder_moves_all_its_notes_and_deletes_none(kept):
    notes = [kept.add(f"text {number}", source_path=f"old/{number}.md") for number in range(10)]
    kept.settle()
    (kept.root / "old").rename(kept.root / "new")
    assert kept.settle().withheld == []
    assert [kept.note(note).source_path for note in notes] == [f"new/{number}.md" for number in range(10)]
    assert kept.binned() == set()


def test_a_rename_that_updates_the_links_in_other_notes_keeps_them_all(kept):
    """As Obsidian does it: one file moves, and the files that link to it change."""
    target = kept.add("The kiln.", source_path="Kiln.md")
    others = [kept.add(f"See [[Kiln]] {number}.", source_path=f"{number}.md") for number in range(3)]
    kept.settle()
    (kept.root / "Kiln.md").rename(kept.root / "Furnace.md")
    for other in others:
        file = kept.file(other)
        file.write_text(file.read_text().replace("[[Kiln]]", "[[Furnace]]"))
    kept.settle()
    assert kept.note(target).source_path == "Furnace.md"
    assert [kept.text(other) for other in others] == [f"See [[Furnace]] {number}." for number in range(3)]


def test_a_new_note_that_is_named_before_it_is_written_is_one_note(kept):
    """As an editor creates it: an empty file, a name, then the text in parts."""
    kept.write("Untitled.md", "")
    kept.settle()
    (kept.root / "Untitled.md").rename(kept.root / "Boat.md")
    kept.settle()
    for text in ("P", "Paint", "Paint it"):
        (kept.root / "Boat.md").write_text(text)
        kept.settle()
    assert list(kept.notes().values()) == ["Paint it"]


def test_the_copy_that_a_cloud_drive_makes_is_a_note_of_its_own_and_both_can_be_edited(kept):
    note = kept.add("text", source_path="Note.md")
    kept.settle()
    kept.write("Note 2.md", kept.file(note).read_bytes().replace(b"text", b"text of the other machine"))
    kept.settle()
    assert kept.text(note) == "text"
    assert sorted(kept.notes().values()) == ["text", "text of the other machine"]


def test_a_folder_that_is_a_link_is_followed(at_once, make_store, embedder, tmp_path):
    for name in ("data/staging", "real"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "notes").symlink_to(tmp_path / "real")
    with make_store() as store:
        kept = KeptFolder(store, embedder, tmp_path / "notes", tmp_path / "data")
        kept.add("text", source_path="x.md")
        kept.settle()
        assert (tmp_path / "real" / "x.md").read_text().endswith("text")
        kept.write("y.md", "by hand")
        kept.settle()
        assert sorted(kept.notes().values()) == ["by hand", "text"]


def test_a_folder_takes_the_place_of_a_file(kept):
    """A note called `a.md`, and one whose path has a folder of that name."""
    kept.add("one", source_path="a.md")
    kept.settle()
    two = kept.add("two", source_path="a.md/b.md")
    assert kept.settle().problems == []
    assert sorted(kept.files()) == ["a.md", "b.md"]
    kept.start()
    kept.settle()
    assert kept.note(two).source_path == "a.md/b.md"
