"""kb sync: the knowledge base contains the files of a folder."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import zipfile
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from unittest.mock import ANY

import httpx2
import pytest

from kb_cli.sync.remote_files import RemoteFile, with_pending
from tests.formats.test_exports import chatgpt
from tests.support.eventually import SECONDS, eventually

MAIL = b"""Subject: Moorings
Content-Type: multipart/mixed; boundary=b

--b

The moorings are renewed in May.
--b
Content-Disposition: attachment; filename=berths.txt

Berth 14 is for Anna.
--b--
"""


@pytest.fixture
def synced(kb, folder):
    """Brings the knowledge base in step with the folder; answers what it says."""

    def sync(*options, **more):
        return kb.json("sync", "papers", *options, **more)

    return sync


def held(kb, folder, prefix=None):
    """What the knowledge base holds of a folder: the content's hash by path."""
    listed = kb.json("list", "--all", "--under", prefix or folder)["documents"]
    return {document["source_path"]: document["content_hash"] for document in listed}


def files_of(folder):
    """What the folder holds, without what is hidden."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    seen = [path for path in paths if not any(part.startswith(".") for part in path.relative_to(folder).parts)]
    return {str(path): sha256(path.read_bytes()).hexdigest() for path in seen}


def test_new_files_go_in_changed_ones_are_replaced_and_the_rest_is_left_alone(kb, synced, folder):
    first = {each["source_path"]: each["document_id"] for each in synced()["files"]}
    assert held(kb, folder) == files_of(folder)
    (folder / "rust.md").write_text("Something else about lifetimes.\n")
    (folder / "new.txt").write_text("A new file about tides.\n")
    second = {each["source_path"]: each for each in synced()["files"]}
    assert held(kb, folder) == files_of(folder)
    assert {path: each["document_id"] for path, each in second.items() if path in first} == first
    assert second[str(folder / "deep/cat.txt")]["job"] is None
    assert all(each["job"] is None for each in synced()["files"])


def test_nothing_is_deleted_unless_it_is_asked_for(kb, synced, folder):
    synced()
    (folder / "rust.md").unlink()
    assert synced()["deleted"] == []
    assert str(folder / "rust.md") in held(kb, folder)
    assert synced("--delete")["deleted"] == [str(folder / "rust.md")]
    assert held(kb, folder) == files_of(folder)


def test_a_file_whose_name_begins_with_that_of_another_one_is_deleted_when_it_is_gone(kb, synced, folder):
    for name in ("b", "b#c.md", "b#c.md#d.md"):
        (folder / name).write_text(f"The tides of {name}.\n")
    synced()
    (folder / "b#c.md").unlink()
    assert synced("--delete")["deleted"] == [f"{folder}/b#c.md"]
    (folder / "b#c.md#d.md").unlink()
    assert synced("--delete")["deleted"] == [f"{folder}/b#c.md#d.md"]
    assert held(kb, folder) == files_of(folder)


def test_what_came_inside_a_file_stays_while_that_is_there(kb, synced, folder):
    (folder / "chats.json").write_text(json.dumps([chatgpt(number, "Said.") for number in range(2)]))
    (folder / "a.eml").write_bytes(MAIL)
    synced()
    kb("jobs", "--follow")
    parts = {path for path in held(kb, folder) if "#" in path}
    assert {path.removeprefix(f"{folder}/").partition("#")[0] for path in parts} == {"chats.json", "a.eml"}
    assert synced("--delete")["deleted"] == []
    (folder / "chats.json").unlink()
    (folder / "a.eml").unlink()
    synced("--delete")
    assert held(kb, folder) == files_of(folder)


def test_only_documents_from_below_the_folder_are_ever_deleted_and_notes_never(kb, synced, folder, tag):
    beside = folder.with_name("papers2")
    shutil.copytree(folder, beside)
    kb("add", beside, "--wait")
    inside = kb.note(f"A note {tag}", "--source-path", f"{folder}/written by hand")
    loose = kb.note(f"Another note {tag}")
    synced()
    shutil.rmtree(folder / "deep")
    assert synced("--delete")["deleted"] == [f"{folder}/deep/cat.txt"]
    assert held(kb, beside) == files_of(beside)
    assert kb("get", inside).returncode == kb("get", loose).returncode == 0


def test_an_empty_folder_deletes_nothing_without_being_told_twice(kb, synced, folder):
    synced()
    before = held(kb, folder)
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    refused = kb("sync", "papers", "--delete")
    assert refused.returncode == 2
    assert "2 documents would be deleted" in refused.stderr
    assert held(kb, folder) == before
    assert len(synced("--delete", "--yes")["deleted"]) == 2
    assert held(kb, folder) == {}


def test_a_folder_that_is_not_there_is_an_error_and_deletes_nothing(kb, synced, folder):
    synced()
    folder.rename(folder.with_name("away"))
    assert kb("sync", "papers", "--delete", "--yes").returncode == 2
    assert len(held(kb, f"{folder}/")) == 2


def test_a_file_that_cannot_be_read_any_more_keeps_its_document_and_is_named(kb, synced, folder):
    synced()
    (folder / "rust.md").write_bytes(b"")
    ended = kb("sync", "papers", "--delete")
    assert ended.returncode == 1
    assert ended.stderr.startswith(f"kb: {folder}/rust.md: ")
    assert len(held(kb, folder)) == 2


def test_a_file_that_moves_keeps_its_tags(kb, synced, folder, tag):
    [document_id] = [each["document_id"] for each in synced()["files"] if each["path"].endswith("rust.md")]
    kb("tag", document_id, "--add", f"by-hand-{tag}")
    (folder / "rust.md").rename(folder / "deep" / "moved.md")
    synced("--delete")
    [moved] = kb.json("list", "--path", folder / "deep" / "moved.md")["documents"]
    assert f"by-hand-{tag}" in moved["tags"]


def test_a_renamed_file_gives_its_new_name_to_its_document(kb, synced, folder):
    synced()
    (folder / "deep" / "cat.txt").rename(folder / "deep" / "feline.txt")
    synced("--delete")
    [renamed] = kb.json("list", "--path", folder / "deep" / "feline.txt")["documents"]
    assert renamed["title"] == "feline"


def test_what_is_ignored_does_not_go_in_and_is_not_gone(kb, synced, folder):
    synced()
    (folder / ".kbignore").write_text("*.txt\n")
    assert synced("--delete") == {"files": ANY, "deleted": []}
    (folder / "deep" / ".kbignore").write_text("!cat.txt\n")
    assert len(synced()["files"]) == 2
    assert [each["path"] for each in synced("--exclude", "/rust.*")["files"]] == [f"{folder}/deep/cat.txt"]


def test_a_name_for_the_folder_makes_it_the_same_on_every_machine(kb, synced, folder, tag):
    synced("--as", tag)
    assert held(kb, folder, f"{tag}/").keys() == {f"{tag}/rust.md", f"{tag}/deep/cat.txt"}
    elsewhere = folder.with_name("elsewhere")
    folder.rename(elsewhere)
    (elsewhere / "rust.md").unlink()
    answer = kb.json("sync", elsewhere, "--as", tag, "--delete")
    assert (answer["files"][0]["job"], answer["deleted"]) == (None, [f"{tag}/rust.md"])


def test_a_dry_run_says_what_would_be_done_and_does_nothing(kb, synced, folder):
    synced()
    (folder / "rust.md").write_text("Changed.\n")
    (folder / "new.md").write_text("New.\n")
    (folder / "deep/cat.txt").unlink()
    before = held(kb, folder)
    (folder / "empty.md").touch()
    assert synced("--delete", "--dry-run") == {
        "added": [f"{folder}/new.md"],
        "changed": [f"{folder}/rust.md"],
        "moved": [],
        "deleted": [f"{folder}/deep/cat.txt"],
    }
    planned = kb("sync", "papers", "--delete", "--dry-run").stdout.splitlines()[-1]
    assert held(kb, folder) == before
    done = kb("sync", "papers", "--delete").stdout.strip()
    assert done == "3 files: 1 added, 1 changed, 1 deleted, 1 empty"
    assert planned == f"dry run, kb changed nothing: {done}"


@pytest.mark.parametrize("target", ["deep/trip.eml", "renamed.eml"])
def test_a_dry_run_says_of_a_mail_that_moved_what_the_real_run_does(kb, synced, folder, target):
    (folder / "trip.eml").write_bytes(MAIL)
    synced()
    kb("jobs", "--follow")
    (folder / "trip.eml").rename(folder / target)
    planned = synced("--delete", "--dry-run")
    assert (planned["moved"], planned["deleted"]) == ([f"{folder}/trip.eml -> {folder}/{target}"], [])
    dry = kb("sync", "papers", "--delete", "--dry-run").stdout.splitlines()[-1]
    assert dry == f"dry run, kb changed nothing: {kb('sync', 'papers', '--delete').stdout.strip()}"
    assert {path for path in held(kb, folder) if "#" in path} == {f"{folder}/{target}#berths.txt"}


@pytest.fixture
def from_archive(kb, folder):
    """The path of a document that came in an archive."""
    with zipfile.ZipFile(folder / "notes.zip", "w") as archive:
        archive.writestr("inner/one.md", f"# One\n\nOut of an archive, for {folder}.\n")
    kb("add", "papers/notes.zip", "--wait")
    return f"{folder}/notes.zip/inner/one.md"


def vanish(archive):
    archive.unlink()


def become_a_link_to_nothing(archive):
    archive.unlink()
    archive.symlink_to(archive.with_name("not mounted") / "notes.zip")


def get_another_name(archive):
    archive.rename(archive.with_name("old.zip"))


@pytest.mark.parametrize("happen", [None, vanish, become_a_link_to_nothing, get_another_name])
def test_documents_from_an_archive_stay_whatever_becomes_of_it(kb, synced, folder, from_archive, happen):
    if happen:
        happen(folder / "notes.zip")
    assert synced("--delete", "--dry-run")["deleted"] == []
    assert synced("--delete")["deleted"] == []
    assert from_archive in held(kb, folder)


def test_a_folder_that_holds_only_an_archive_is_refused_only_if_a_document_would_go(kb, synced, folder, from_archive):
    shutil.rmtree(folder / "deep")
    (folder / "rust.md").unlink()
    assert synced("--delete") == {"files": [], "deleted": []}
    kb("add", "-", "--source-path", f"{folder}/tides.md", "--wait", text="The tides.\n")
    refused = kb("sync", "papers", "--delete")
    assert refused.returncode == 2
    assert "1 document would be deleted" in refused.stderr
    assert kb("sync", "papers", "--delete", "--dry-run").stderr == refused.stderr
    assert synced("--delete", "--yes")["deleted"] == [f"{folder}/tides.md"]
    assert held(kb, folder).keys() == {from_archive}


def test_documents_from_an_archive_move_to_where_it_was_unpacked(kb, synced, folder, from_archive):
    with zipfile.ZipFile(folder / "notes.zip") as archive:
        archive.extractall(folder / "notes")
    (folder / "notes.zip").unlink()
    moved = f"{from_archive} -> {folder}/notes/inner/one.md"
    assert synced("--delete", "--dry-run")["moved"] == [moved]
    synced("--delete")
    assert held(kb, folder) == files_of(folder)


def test_a_file_in_a_folder_that_is_named_like_an_archive_is_deleted_when_it_is_gone(kb, synced, folder):
    (folder / "deep").rename(folder / "deep.zip")
    synced()
    (folder / "deep.zip/cat.txt").unlink()
    assert synced("--delete")["deleted"] == [f"{folder}/deep.zip/cat.txt"]


@pytest.mark.rare
def test_a_watched_folder_is_followed(kb, folder):
    with watching(kb, "--delete") as process:
        assert process.stdout.readline() == "2 files: 2 added\n"
        (folder / "new.md").write_text("# New\n\nWritten while someone watches.\n")
        assert after_time(process.stdout) == "added new.md\n"
        (folder / "rust.md").unlink()
        assert after_time(process.stdout) == "deleted rust.md\n"
        assert held(kb, folder) == files_of(folder)
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=SECONDS) == ("", "")
    assert process.returncode == 130


@pytest.mark.rare
def test_what_cannot_be_read_is_not_sent_again_while_a_folder_is_watched(kb, folder):
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4 and no more")
    with watching(kb) as process:
        assert process.stdout.readline() == "3 files: 2 added, 1 failed\n"
        (folder / "new.md").write_text("# New\n\nWritten while someone watches.\n")
        assert after_time(process.stdout) == "added new.md\n"
        assert "broken.pdf" in process.stderr.readline()
        (folder / "broken.pdf").write_bytes(b"%PDF-1.4 and a little more")
        assert "broken.pdf" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert "broken.pdf" not in process.communicate(timeout=SECONDS)[1]
    jobs = [job for job in kb.json("jobs", "-n", 100)["jobs"] if job["source_path"] == str(folder / "broken.pdf")]
    assert len(jobs) == 2


@pytest.mark.slow
def test_a_watched_folder_is_followed_whatever_is_in_it(kb, folder):
    odd = folder / os.fsdecode(b"caf\xe9.md")
    odd.write_text("Coffee")
    with watching(kb) as process:
        assert process.stdout.readline() == "3 files: 2 added, 1 failed\n"
        odd.write_text("More coffee")
        (folder / "new.md").write_text("# New\n\nWritten while someone watches.\n")
        assert after_time(process.stdout) == "added new.md\n"
        process.send_signal(signal.SIGINT)
        assert "Traceback" not in process.communicate(timeout=SECONDS)[1]
    assert held(kb, folder) == {str(path): text for path, text in files_of(folder).items() if path != str(odd)}


@pytest.mark.slow
def test_a_watched_folder_that_was_away_is_followed_again(kb, folder):
    away = folder.with_name("away")
    with watching(kb) as process:
        assert process.stdout.readline() == "2 files: 2 added\n"
        folder.rename(away)
        assert "does not exist" in process.stderr.readline()
        shutil.copytree(away, folder)
        (folder / "new.md").write_text("# New\n\nThere when it came back.\n")
        assert after_time(process.stdout) == "added new.md\n"
        (folder / "newer.md").write_text("# Newer\n\nWritten while someone watches.\n")
        assert after_time(process.stdout) == "added newer.md\n"
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=SECONDS)


def after_time(lines):
    """The next line, without the time at its beginning."""
    return lines.readline().partition(" ")[2]


@contextmanager
def watching(kb, *options):
    """A sync that follows the folder, and does not outlive the block."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with kb.start("sync", "papers", "--watch", *options, **pipes, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def queue_of(server):
    return httpx2.get(f"{server.url}/api/v1/status").json()["queue"]


def jobs_in(server):
    return sum(queue_of(server).values())


@pytest.mark.slow
@pytest.mark.parametrize("count", [150, pytest.param(2000, marks=[pytest.mark.long, pytest.mark.timeout(1800)])])
def test_an_add_that_is_interrupted_twice_goes_on_and_ends_as_one_that_was_not(outside, start_server, tmp_path, count):
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(count):
        (folder / f"{number:04}.md").write_text(
            f"---\ntags: [t{number % 7}]\n---\n# Title {number}\n\nText {number} of many.\n"
        )
    ends = {}
    with start_server(tmp_path / "broken", KB_APPS="api") as server:
        kb = type(outside)(outside.folder, outside.environment | {"KB_ENGINE_URL": server.url})
        for stop, share in ((signal.SIGINT, 3), (signal.SIGKILL, 2)):
            process = kb.start(
                "add", "many", "--tags", "all", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
            )
            eventually(
                "some files are sent", partial(jobs_in, server), lambda jobs, enough=count // share: jobs >= enough
            )
            process.send_signal(stop)
            _, complaint = process.communicate(timeout=SECONDS)
            ends[stop] = (process.returncode, complaint)
        eventually(
            "what the dead had sent is done",
            lambda: queue_of(server),
            lambda queue: not queue["queued"] + queue["running"],
        )
        before = jobs_in(server)
        third = kb.json("add", "many", "--tags", "all", "--wait", timeout=900)
        assert jobs_in(server) == count
        assert before < count, "nothing was interrupted"
        broken = contents(kb)
    assert ends[signal.SIGINT][0] == 130
    assert "run the same command again to continue" in ends[signal.SIGINT][1]
    assert "Traceback" not in ends[signal.SIGINT][1]
    assert ends[signal.SIGKILL][0] == -signal.SIGKILL
    assert all(each["document_id"] and not each["error"] for each in third)
    with start_server(tmp_path / "clean", KB_APPS="api") as server:
        kb = type(outside)(outside.folder, outside.environment | {"KB_ENGINE_URL": server.url})
        kb("add", "many", "--tags", "all", "--wait", timeout=900)
        assert contents(kb) == broken


def contents(kb):
    shown = ("source_path", "title", "content_hash", "tags", "doc_type", "date")
    return sorted([document[name] for name in shown] for document in kb.json("list", "--all")["documents"])


def test_what_stands_in_a_folder_that_cannot_be_listed_is_not_gone(kb, synced, folder):
    synced()
    (folder / "deep").chmod(0)
    ended = kb.without_roots_rights("sync", "papers", "--delete")
    (folder / "deep").chmod(0o700)
    assert ended.returncode == 1
    assert held(kb, folder) == files_of(folder)


def test_a_folder_that_cannot_be_entered_stops_nothing_and_what_is_in_it_is_not_gone(kb, synced, folder):
    with zipfile.ZipFile(folder / "deep/notes.zip", "w") as archive:
        archive.writestr("one.md", f"# One\n\nOut of an archive, for {folder}.\n")
    kb("add", "papers/deep/notes.zip", "--wait")
    (folder / "deep/draft.md").write_text(f"A draft about tides, for {folder}.\n")
    synced()
    before = held(kb, folder)
    (folder / ".kbignore").write_text("draft.md\n")
    (folder / "deep").chmod(0o644)
    ended = kb.without_roots_rights("sync", "papers", "--delete")
    (folder / "deep").chmod(0o700)
    assert ended.returncode == 1
    assert f"{folder}/deep/cat.txt: Permission denied" in ended.stderr
    assert held(kb, folder) == before


def test_links_out_of_the_folder_are_not_followed_unless_that_is_said(kb, folder, tmp_path, tag):
    (tmp_path / "secret.txt").write_text(f"The key of {tag}.")
    (folder / "readme.md").symlink_to(tmp_path / "secret.txt")
    for command in (["sync"], ["add", "--wait"]):
        assert "links to files outside the folder, without --follow-links: 1" in kb(*command, "papers").stdout
    assert f"{folder}/readme.md" not in kb("list", "--under", folder).stdout
    assert "left out" not in kb("sync", "papers", "--follow-links").stdout
    assert f"{folder}/readme.md" in kb("list", "--under", folder).stdout


def test_a_file_that_is_left_out_from_now_on_keeps_its_document(kb, synced, folder):
    (folder / "draft.md").write_text("A draft about tides.\n")
    synced()
    before = held(kb, folder)
    (folder / ".gitignore").write_text("draft.md\n")
    shutil.copy(folder / "draft.md", folder / "copy.md")
    done = kb("sync", "papers", "--delete")
    assert "skipped by .gitignore: 1" in done.stdout
    assert "deleted" not in done.stdout
    assert held(kb, folder).items() >= before.items()
    (folder / "draft.md").unlink()
    assert synced("--delete")["deleted"] == [str(folder / "draft.md")]


def test_a_file_on_its_way_in_is_added_unless_its_path_has_a_document():
    def file(content_hash, **fields):
        return RemoteFile(content_hash, None, frozenset(), **fields)

    expected = with_pending({"a": file("1", document_id=1)}, {"a": file("2", job_id=7), "b": file("3", job_id=8)})
    assert (expected["a"].is_new, expected["b"].is_new) == (False, True)
