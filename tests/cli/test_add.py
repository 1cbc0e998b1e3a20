from __future__ import annotations

import json
import os
import time
import zipfile
from pathlib import Path

import pytest

from kb.folders.timed_reads import ask
from kb_cli.sync import file_selection
from kb_cli.sync.file_selection import select_files
from tests.formats.test_exports import chatgpt, claude


def added(answer):
    return sorted(Path(each["path"]).name for each in answer)


@pytest.mark.requirement("L-2")
def test_a_folder_goes_in_with_all_that_is_not_hidden_in_it(kb, folder, tag):
    answer = kb.json("add", "papers", "--tags", f"{tag}, second", "--wait")
    assert added(answer) == ["cat.txt", "rust.md"]
    for each in answer:
        assert each["job"]["status"] == "done"
        document = kb.json("get", each["job"]["document_id"])
        assert document["source_path"] == each["path"]
        assert Path(each["path"]) in (folder / "rust.md", folder / "deep" / "cat.txt")
        assert sorted(document["tags"]) == sorted([tag, "second"])


@pytest.mark.requirement("L-2")
def test_what_was_added_with_wait_is_found_at_once(kb, folder, tag):
    assert kb("add", "papers", "--tags", tag, "--wait").returncode == 0
    found = kb.json("search", "sleeping cats", "--tags", tag)["results"]
    assert found[0]["title"] == "cat"


@pytest.mark.requirement("L-2")
def test_patterns_are_expanded_where_the_shell_did_not(kb, folder):
    assert added(kb.json("add", "papers/**/*.txt")) == ["cat.txt"]


def test_what_a_pattern_matches_and_is_no_file_is_passed_over(kb, folder):
    (folder / "gone.md").symlink_to("nowhere")
    os.mkfifo(folder / "pipe.md")
    assert added(kb.json("add", "papers/*.md")) == ["rust.md"]
    assert kb("add", "papers/pipe.md").stderr == "kb: papers/pipe.md is not a regular file. Name a file or a folder.\n"
    assert kb("add", "papers/gone*").returncode == 2


def test_links_that_lead_in_a_circle_are_passed_over(kb, folder):
    (folder / "a.md").symlink_to("b.md")
    (folder / "b.md").symlink_to("a.md")
    (folder / "here").symlink_to(".")
    assert added(kb.json("add", "papers")) == ["cat.txt", "rust.md"]
    assert kb("sync", "papers").returncode == 0


def test_an_empty_path_is_not_the_folder_one_is_in(kb, folder):
    for words in (["add", ""], ["sync", ""], ["list", "--under", ""], ["search", "x", "--path", ""]):
        ended = kb(*words)
        assert (ended.returncode, ended.stdout) == (2, ""), words
        assert ended.stderr.count("\n") == 1


def test_hidden_files_and_folders_go_in_when_they_are_named(kb, folder):
    assert added(kb.json("add", "papers/.hidden.txt", "papers/.git")) == [".hidden.txt", "config.txt"]


def test_a_file_that_is_named_twice_is_sent_once(kb, folder):
    assert added(kb.json("add", "papers/rust.md", "papers/../papers/rust.md", "papers/*.md")) == ["rust.md"]


def test_a_single_file_can_be_given_a_title(kb, folder):
    [each] = kb.json("add", "papers/rust.md", "--title", "On [borrowing]", "--wait")
    assert kb.json("get", each["job"]["document_id"])["title"] == "On [borrowing]"
    assert kb("add", "papers/rust.md", "--title", "On lending", "--wait").stdout == "1 file: 1 changed\n"
    assert kb.json("get", each["job"]["document_id"])["title"] == "On lending"
    assert kb("add", "papers/rust.md", "--title", "On lending").stdout == "1 file: all up to date\n"
    refused = kb("add", "papers", "--title", "Both")
    assert refused.returncode == 2
    assert "single file" in refused.stderr


@pytest.mark.requirement("L-3")
def test_a_file_that_cannot_be_read_is_named_with_the_reason_and_the_rest_goes_in(kb, folder):
    (folder / "empty.txt").touch()
    (folder / "noise.bin").write_bytes(bytes(range(256)) * 8)
    ended = kb("add", "papers", "--wait")
    assert ended.returncode == 1
    assert ended.stdout == "4 files: 2 added, 1 empty, 1 failed\n"
    reasons = ended.stderr.splitlines()
    assert len(reasons) == 1
    assert reasons[0].startswith(f"kb: {folder}/noise.bin: ")


def test_a_file_without_permission_is_named(kb, folder):
    (folder / "rust.md").chmod(0)
    ended = kb.without_roots_rights("add", "papers")
    assert ended.returncode == 1
    assert "rust.md: Permission denied" in ended.stderr


def test_a_file_the_engine_refuses_is_named_and_the_rest_goes_in(start_server, kb, folder, tmp_path):
    (folder / "huge.txt").write_text("too much " * 300_000)
    with start_server(tmp_path / "small", KB_MAX_UPLOAD_MB="1", KB_APPS="api") as small:
        ended = kb("add", "papers", env={"KB_ENGINE_URL": small.url})
    assert ended.returncode == 1
    assert ended.stdout == "3 files: 2 queued, 1 failed\n"
    assert "huge.txt: " in ended.stderr


def test_a_path_that_leads_nowhere_stops_before_anything_is_sent(kb, folder, tag):
    ended = kb("add", "papers/rust.md", "nowhere.md", "--tags", tag)
    assert ended.returncode == 2
    assert ended.stderr == "kb: The file or folder nowhere.md does not exist.\n"
    assert kb.json("list", "--tags", tag)["documents"] == []


def test_a_name_that_is_not_utf8_is_refused_and_the_rest_goes_in(kb, folder):
    (folder / os.fsdecode(b"caf\xe9.txt")).write_text("Coffee")
    ended = kb("add", "papers")
    assert ended.returncode == 1
    assert "its name is not UTF-8" in ended.stderr
    assert ended.stdout.startswith("3 files: 2 queued")


def test_an_empty_folder_is_nothing_to_worry_about(kb, tmp_path):
    (tmp_path / "empty").mkdir()
    ended = kb("add", "empty")
    assert (ended.returncode, ended.stdout) == (0, "0 files: nothing to do\n")


def test_a_terminal_shows_how_far_it_is_and_keeps_only_the_summary(kb, folder):
    (folder / "noise.bin").write_bytes(bytes(range(256)) * 10_000)
    code, shown = kb.in_terminal("add", "papers")
    assert code == 0
    assert "sending" in shown
    assert "/s" in shown
    assert shown.endswith("3 files: 3 queued\n")


def test_what_is_there_already_is_not_sent_again_but_gets_its_tags(kb, folder, tag):
    first = kb.json("add", "papers", "--wait")
    again = kb.json("add", "papers", "--tags", f"late-{tag}")
    assert [each["job"] for each in again] == [None, None]
    assert [each["document_id"] for each in again] == [each["document_id"] for each in first]
    assert len(kb.json("list", "--tags", f"late-{tag}")["documents"]) == 2
    assert kb("add", "papers").stdout == "2 files: all up to date\n"
    (folder / "rust.md").write_text(f"Changed {tag}.\n")
    assert kb("add", "papers").stdout == "2 files: 1 queued, 1 up to date\n"


def test_what_was_deleted_from_the_knowledge_base_goes_in_again_as_the_same_document(kb, folder):
    [each] = kb.json("add", "papers/rust.md", "--wait")
    kb("delete", "--yes", each["document_id"])
    [again] = kb.json("add", "papers/rust.md", "--wait")
    assert again["document_id"] == each["document_id"]


def test_a_folder_says_what_to_leave_out_and_so_can_the_command(kb, folder):
    (folder / ".kbignore").write_text("# drafts\ndeep/*\n!deep/keep.txt\n")
    (folder / "deep" / "keep.txt").write_text("Kept all the same.\n")
    (folder / "photo.JPG").write_bytes(b"\xff\xd8\xff")
    ended = kb("add", "papers", "--exclude", "rust.*")
    assert ended.stdout == (
        "1 file: 1 queued; 3 files and folders left out"
        " (kb doesn't read .jpg files: 1, skipped by --exclude: 1, skipped by .kbignore: 1)\n"
    )
    assert added(kb.json("add", "papers")) == ["keep.txt", "rust.md"]
    assert added(kb.json("add", "papers/rust.md", "papers/**/*.txt", "--exclude", "rust.*")) == ["cat.txt", "keep.txt"]
    (folder / ".kbignore").write_text("\ufeffdeep/\r\n", encoding="utf-8")
    assert added(kb.json("add", "papers")) == ["rust.md"]
    (folder / ".kbignore").write_bytes(b"\xff\xfe")
    assert kb("add", "papers").returncode == 2


def test_standard_input_is_a_file_of_whatever_kind(kb, tag):
    [each] = kb.json(
        "add", "-", "--title", "Piped", "--tags", tag, "--wait", text=f"<html><body><p>Tea {tag}</body></html>"
    )
    document = kb.json("get", each["document_id"])
    assert (document["title"], document["doc_type"], document["tags"]) == ("Piped", "html", [tag])
    [named] = kb.json("add", "-", "--source-path", f"/{tag}/notes.md", "--wait", text="# Tea\n\nGreen.\n")
    assert kb.json("get", named["document_id"])["source_path"] == f"/{tag}/notes.md"
    assert kb("add", "-", "papers", text="x").returncode == 2


def test_many_failures_are_summed_up(kb, folder):
    for number in range(30):
        (folder / f"{number}.txt").write_text(" ")
    ended = kb("add", "papers", "--wait")
    assert ended.returncode == 1
    assert ended.stderr.startswith("kb: 30 files: ")
    assert ended.stderr.count("\n") == 1
    again = kb("add", "papers", "--wait")
    assert (again.returncode, again.stderr) == (0, "")


def test_many_failures_name_the_option_that_was_typed(kb, folder):
    for number in range(30):
        (folder / f"{number}.txt").write_text(f"sheet {number}")
    ended = kb("add", "papers", "--tags", "x" * 201)
    assert ended.stderr.startswith("kb: 32 files: --tags: a tag can have at most 200 characters")


def test_a_named_file_is_sent_again_though_it_could_not_be_read_before(kb, folder):
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7 broken")
    for _ in range(2):
        ended = kb("add", "papers/broken.pdf", "--wait")
        assert ended.returncode == 1
        assert "1 failed" in ended.stdout
    assert kb("add", "papers", "--wait").returncode == 0


def test_several_archives_beside_other_files_each_go_in_as_the_files_in_them(kb, folder):
    for name in ("notes", "letters"):
        with zipfile.ZipFile(folder / f"{name}.zip", "w") as archive:
            archive.writestr("deep/one.md", f"# One\n\nOut of the {name}.\n")
            archive.writestr("deep/one.png", b"\x89PNG")
    (folder / "broken.zip").write_bytes(b"PK\x03\x04 and no more")
    paths = ("papers/notes.zip", "papers/broken.zip", "papers/rust.md", "papers/letters.zip")
    ended = kb("add", *paths, "--wait")
    assert ended.returncode == 1
    assert ended.stdout == "4 files: 3 added, 1 failed; 2 files and folders left out (kb doesn't read .png files: 2)\n"
    assert ended.stderr.startswith(f"kb: {folder}/broken.zip: kb cannot unpack it: ")
    held = {each["source_path"] for each in kb.json("list", "--under", str(folder))["documents"]}
    assert held == {f"{folder}/{each}" for each in ("notes.zip/deep/one.md", "letters.zip/deep/one.md", "rust.md")}
    assert "--source-path need a single file" in kb("add", *paths, "--source-path", "x").stderr
    assert "--title needs a single file" in kb("add", *paths, "--title", "x").stderr


def test_an_archive_goes_in_as_the_files_in_it(kb, tmp_path, tag):
    inner = tmp_path / "Part-1.zip"
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("Home/Boat 1234.md", f"# Boat\n\nThe keel of {tag}.\n")
        archive.writestr("Home/picture.png", b"\x89PNG")
        archive.writestr("../../outside.md", f"Not outside {tag}.\n")
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.write(inner, "Part-1.zip")
        archive.writestr(".gitignore", "*.md\n")
    inner.unlink()
    added = kb("add", "export.zip", "--wait")
    assert (added.returncode, added.stdout) == (
        0,
        "2 files: 2 added; 1 file or folder left out (kb doesn't read .png files: 1)\n",
    )
    held = {
        each["source_path"]: each["title"] for each in kb.json("list", "--under", f"{tmp_path}/export.zip")["documents"]
    }
    assert held == {f"{tmp_path}/export.zip/Home/Boat 1234.md": "Boat", f"{tmp_path}/export.zip/outside.md": "outside"}
    assert kb("add", "export.zip", "--wait").stdout.startswith("2 files: 2 up to date; 1 file or folder")
    (tmp_path / "broken.zip").write_bytes(b"PK\x03\x04 and no more")
    assert kb("add", "broken.zip").returncode == 2
    assert "--title needs a single file" in kb("add", "export.zip", "--title", "Boats").stderr


@pytest.mark.parametrize("make", [chatgpt, claude])
def test_conversations_are_found_by_what_was_said(kb, tmp_path, tag, make):
    export = [make(number, f"The answer of {tag} is number{number}x.") for number in range(5)]
    (tmp_path / "conversations.json").write_text(json.dumps(export))
    kb("add", "conversations.json", "--wait", "--tags", tag)
    kb("jobs", "--follow")
    [found, *_] = kb.json("search", f"{tag} number3x", "--tags", tag, "--fts-only")["results"]
    assert found["title"] in ("Boat 3: the keel", "Sail 3")
    assert found["date"]
    assert found["place"]["heading"][-1].startswith("Assistant, 20")


KINDS = ("project", "person/friend", "place/city/harbour")


@pytest.fixture
def vault(tmp_path, tag):
    """300 notes in folders, with nested tags, dates, aliases and links; pictures beside them, and Obsidian's own."""
    vault = tmp_path / "vault"
    (vault / ".obsidian").mkdir(parents=True)
    (vault / ".obsidian" / "app.json").write_text("{}")
    (vault / "attachments").mkdir()
    for number in range(300):
        folder = vault / f"area {number % 5}"
        folder.mkdir(exist_ok=True)
        (folder / f"note {number}.md").write_text(
            f"---\ntitle: Note № {number}\ntags:\n  - {KINDS[number % 3]}\n  - {tag}\n"
            f"date: {2000 + number % 25}-02-{1 + number % 28:02}\naliases: [Alias{number}{tag}]\n---\n"
            f"About [[note {(number + 1) % 300}]] and #inline/{number % 4}. ![[picture {number}.png]]\n"
        )
        (vault / "attachments" / f"picture {number}.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes([number % 256]))
    (vault / "attachments" / "terms.csv").write_text(f"term,meaning\n{tag},a word\n")
    return vault


@pytest.mark.slow
def test_a_vault_shows_titles_tags_and_dates_as_written_and_no_passage_is_front_matter(kb, vault, tag):
    ended = kb("add", "vault", "--wait")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == "601 files: 601 added\n"
    documents = kb.json("list", "--all", "--tags", tag)["documents"]
    assert len(documents) == 300  # pictures have no tags
    shown = {document["title"]: document for document in documents}
    for number in range(300):
        document = shown[f"Note № {number}"]
        assert sorted(document["tags"]) == sorted([tag, KINDS[number % 3], f"inline/{number % 4}"])
        assert document["date"] == f"{2000 + number % 25}-02-{1 + number % 28:02}"
    line = kb("list", "--path", vault / "area 2" / "note 7.md").stdout.rstrip("\n").split("\t")
    assert line[1:5] == ["markdown", "2007-02-08", "Note № 7", f"inline/3, person/friend, {tag}"]
    assert len(kb.json("list", "--all", "--tags", f"{tag},place/city/harbour")["documents"]) == 100
    found = kb("search", f"Alias42{tag}", "-n", "1").stdout.splitlines()
    assert found[0] == " 1  Note № 42"
    assert "2017-02-15" in found[1]
    assert f"inline/2, project, {tag}" in found[1]
    assert "[[note 43]]" in kb("get", "--path", vault / "area 2" / "note 42.md").stdout
    for query in ("what is still open", "tags", "date 2001-02-01", f"aliases {tag}"):
        for result in kb.json("search", query, "--under", vault, "-n", 100)["results"]:
            assert "tags:" not in result["text"]
            assert "---" not in result["text"]
    [passage] = kb.json("search", f"Alias42{tag}", "-n", "1")["results"]
    assert passage["place"]["line_start"] == 9  # as in the file, below its front matter
    (vault / "bare.md").write_text(" \n")
    assert "bare.md: the file contains no text" in kb("sync", "vault").stderr
    again = kb("sync", "vault")
    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout.startswith("602 files: 601 up to date, 1 unreadable")


def test_what_is_named_is_sent_whatever_it_is_called(kb, vault):
    ended = kb("add", "vault/attachments/picture 3.png", "--wait")
    assert (ended.returncode, ended.stdout) == (0, "1 file: 1 added\n")


SHOWN = {
    "![[house.png]]": "house.png",
    "![[House.PNG|300]]": "house.png",
    "![[attachments/photo (1).jpg]]": "attachments/photo (1).jpg",
    "![the door](../pictures/front%20door.jpeg)": "pictures/front door.jpeg",
    "![the door](<pictures/front door.webp>)": "pictures/front door.webp",
    '![the door](door.png "The door")': "door.png",
    '<img src="img/Anna\'s house.png" width="200">': "img/Anna's house.png",
    "![the door][door]\n\n[door]: img/door.gif": "img/door.gif",
    "![[caf\u00e9.png]]": "cafe\u0301.png",
}


@pytest.mark.parametrize("text", SHOWN)
def test_a_folder_sends_the_pictures_that_its_markdown_files_show(tmp_path, text):
    folder = tmp_path / "notes"
    for name in ("deep/note.md", SHOWN[text], "other.png", "loud.mp3"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text if name.endswith(".md") else "x")
    selection = select_files([str(folder)])
    assert {path.relative_to(folder).as_posix() for path in selection.files} == {"deep/note.md", SHOWN[text]}
    assert [path.name for path in selection.passed_over] == ["loud.mp3", "other.png"]


def test_an_edited_note_decides_again_which_pictures_kb_sends(tmp_path):
    (tmp_path / "door.png").write_bytes(b"x")
    for text, names in (("No picture.", ["note.md"]), ("![[door.png]] is blue.", ["door.png", "note.md"])):
        (tmp_path / "note.md").write_text(text)
        assert [path.name for path in select_files([str(tmp_path)]).files] == names


def test_kb_reads_an_unchanged_note_only_once_to_find_its_pictures(tmp_path, monkeypatch):
    for name, text in (("door.png", "x"), ("a.md", "![[door.png]]"), ("sub/b.md", "No picture."), ("c.txt", "x")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    first, read = select_files([str(tmp_path)]), []
    monkeypatch.setattr(file_selection, "ask", lambda path, *rest: read.append(path) or ask(path, *rest))
    assert select_files([str(tmp_path)]).files == first.files
    assert read == []
    (tmp_path / "a.md").write_text("The door is gone.")
    assert [path.name for path in select_files([str(tmp_path)]).passed_over] == ["door.png"]
    assert [path.name for path in read] == ["a.md"]


def test_kb_looks_for_pictures_in_a_hostile_markdown_file_in_little_time(tmp_path):
    (tmp_path / "door.png").write_bytes(b"x")
    (tmp_path / "note.md").write_text("(.png" * 800_000)
    began = time.monotonic()
    assert len(select_files([str(tmp_path)]).passed_over) == 1
    assert time.monotonic() - began < 10


def test_only_a_vault_sends_all_of_its_pictures(kb, tmp_path, tag):
    for name in ("vault/.obsidian/app.json", "vault/area/door.png", "plain/door.png", "plain/note.md"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(20) if name.endswith(".png") else b"{} words")
    assert kb("add", "vault", "--wait", "--tags", tag).stdout == "1 file: 1 added\n"
    assert (
        kb("add", "plain", "--wait").stdout
        == "1 file: 1 added; 1 file or folder left out (kb doesn't read .png files: 1)\n"
    )
    [picture] = kb.json("list", "--tags", tag)["documents"]
    assert (picture["doc_type"], picture["title"]) == ("image", "door")
