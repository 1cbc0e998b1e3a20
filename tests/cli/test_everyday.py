"""The first day of a new user, and the messages of kb."""

from __future__ import annotations

import os
import pty
import re
import signal

import pytest

from kb_cli.main import as_options, run
from tests.cli.conftest import read
from tests.cli.test_sync import watching
from tests.conftest import KEY
from tests.support.eventually import SECONDS


def failed_jobs(kb, path):
    jobs = kb.json("jobs", "--status", "failed", "-n", 500)["jobs"]
    return [job for job in jobs if job["source_path"] == str(path)]


def test_an_address_from_the_browser_has_a_slash_at_its_end(kb, server, outside):
    for words in (["status"], ["search", "x"], ["sync", "--dry-run", "."]):
        assert kb(*words, env={"KB_ENGINE_URL": f"{server.url}/"}).returncode in (0, 1)
    file = outside.folder / "config/kb/config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(f"engine_url = '{server.url}/'\napi_key = '{kb.environment['KB_API_KEY']}'\n")
    file.chmod(0o600)
    assert outside("status").returncode == 0
    assert outside("status", env={"KB_ENGINE_URL": server.url}).returncode == 0


@pytest.mark.slow
def test_the_command_line_finds_the_engine_that_runs_here_whatever_its_port(outside, start_server, tmp_path):
    data = tmp_path / "share" / "kb"
    home = {"XDG_DATA_HOME": str(tmp_path / "share")}
    with start_server(data, KB_APPS="api") as server:
        shown = outside("status", env=home)
        assert (shown.returncode, shown.stderr) == (0, "")
        assert f" at {server.url}\n" in shown.stdout
        assert f"the engine that runs here (process {server.process.pid})" in outside("config", env=home).stdout
        assert outside("status", env={"KB_DATA_DIR": str(data)}).returncode == 0
        for line in (rf"\ndata folder +{re.escape(str(data))}, ", " free\n", r"\nup since +"):
            assert re.search(line, shown.stdout)
        assert outside("status", env=home | {"KB_ENGINE_URL": "http://127.0.0.1:1"}).returncode == 3
        second = outside("serve", "--port", "0", env=home | {"KB_MODEL_DIR": os.devnull})
        assert second.returncode == 8
        assert f"It is running at {server.url} (process {server.process.pid}). Stop it first" in second.stderr
        taken = outside("serve", "--port", server.port, env={"KB_DATA_DIR": str(tmp_path / "other")})
        assert taken.returncode == 2
        assert "--port" in taken.stderr
    away = outside("status", env=home | {"KB_PORT": "1"})
    assert away.returncode == 3
    assert "http://127.0.0.1:1 " in away.stderr


def test_a_list_shows_the_newest_first_and_how_many_there_are(kb, tag):
    notes = [kb.note(f"Note {number} {tag}", "--tags", tag) for number in range(4)]
    shown = kb("list", "--tags", tag, "-n", "3")
    assert [int(line.split("\t")[0]) for line in shown.stdout.splitlines()] == notes[:0:-1]
    assert shown.stderr == "kb: 3 of 4 documents; --all lists all\n"
    answer = kb.json("list", "--tags", tag, "-n", "3")
    assert (answer["total"], len(answer["documents"])) == (4, 3)
    assert kb.json("list", "--tags", tag)["total"] == 4
    assert kb("list", "--tags", tag).stderr == ""
    assert "3 of 4" in kb.in_terminal("list", "--tags", tag, "-n", "3")[1]


def test_what_holds_no_text_is_said_once_and_not_sent_again_until_it_changes(kb, folder):
    (folder / "empty.md").touch()
    (folder / "blank.md").write_text("\n \n")
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4 and no more")
    first = kb("sync", "papers")
    assert first.returncode == 1
    assert first.stdout == "5 files: 2 added, 1 empty, 2 failed\n"
    assert first.stderr.count("\n") == 2
    for command in (["sync"], ["add", "--wait"]):
        again = kb(*command, "papers")
        assert (again.returncode, again.stderr) == (0, "")
        assert (
            again.stdout
            == "5 files: 2 up to date, 1 empty, 2 unreadable ('kb jobs --status failed' shows the reasons)\n"
        )
    assert len(failed_jobs(kb, folder / "broken.pdf")) == 1
    (folder / "blank.md").write_text("Not blank any more.\n")
    changed = kb("sync", "papers")
    assert (changed.returncode, changed.stderr) == (0, "")
    assert changed.stdout.startswith("5 files: 1 added, 2 up to date, 1 empty, 1 unreadable")


def test_failed_jobs_can_be_dismissed(kb, folder):
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4 and no more")
    kb("sync", "papers")
    [job] = failed_jobs(kb, folder / "broken.pdf")
    shown = kb("jobs", "dismiss", job["id"])
    assert (shown.returncode, shown.stdout) == (0, f"job {job['id']} dismissed\n")
    assert failed_jobs(kb, folder / "broken.pdf") == []
    kb("sync", "papers")
    assert len(failed_jobs(kb, folder / "broken.pdf")) == 1
    assert kb("jobs", "dismiss").returncode == 0
    assert failed_jobs(kb, folder / "broken.pdf") == []


def test_a_job_that_cannot_be_dismissed_is_answered_with_a_command_that_helps(kb):
    document_id = kb.json("addnote", "--wait", "a job that is done")["document_id"]
    done = next(job for job in kb.json("jobs", "--status", "done")["jobs"] if job["document_id"] == document_id)
    refused = kb("jobs", "dismiss", done["id"])
    assert (refused.returncode, refused.stdout) == (6, "")
    assert refused.stderr == f"kb: Job {done['id']} is done. To delete its document, use 'kb delete {document_id}'.\n"
    assert kb("delete", document_id, "--yes").returncode == 0
    unknown = kb("jobs", "dismiss", 10**9)
    assert (unknown.returncode, unknown.stderr) == (6, f"kb: Job {10**9} does not exist.\n")


def test_a_renamed_file_is_the_same_document(kb, folder, tag):
    kb("sync", "papers")
    before = {each["source_path"]: each for each in kb.json("list", "--all", "--under", folder)["documents"]}
    kb("tag", before[f"{folder}/rust.md"]["id"], "--add", f"by-hand-{tag}")
    (folder / "rust.md").rename(folder / "iron.md")
    (folder / "deep").rename(folder / "deeper")
    shown = kb("sync", "papers")
    assert (shown.returncode, shown.stdout) == (0, "2 files: 2 moved\n")
    after = {each["source_path"]: each for each in kb.json("list", "--all", "--under", folder)["documents"]}
    assert after.keys() == {f"{folder}/iron.md", f"{folder}/deeper/cat.txt"}
    for old, new in (("rust.md", "iron.md"), ("deep/cat.txt", "deeper/cat.txt")):
        was, is_ = before[f"{folder}/{old}"], after[f"{folder}/{new}"]
        assert (is_["id"], is_["created_at"], is_["title"]) == (was["id"], was["created_at"], was["title"])
    assert f"by-hand-{tag}" in after[f"{folder}/iron.md"]["tags"]
    assert kb("sync", "papers", "--delete").stdout == "2 files: all up to date\n"


def test_a_document_that_is_called_after_its_file_is_renamed_with_it(kb, folder, tag):
    (folder / "ideas.md").write_text(f"No heading {tag}.\n")
    kb("sync", "papers")
    [before] = kb.json("list", "--path", folder / "ideas.md")["documents"]
    (folder / "ideas.md").rename(folder / "plans.md")
    kb("sync", "papers")
    [after] = kb.json("list", "--path", folder / "plans.md")["documents"]
    assert (before["title"], after["title"], after["id"]) == ("ideas", "plans", before["id"])
    found = kb.json("search", f"plans {tag}", "--fts-only")["results"]
    assert found[0]["document_id"] == after["id"]


@pytest.mark.rare
def test_a_watched_folder_tells_of_each_file_with_the_time(kb, folder):
    with watching(kb, "--delete") as process:
        assert process.stdout.readline() == "2 files: 2 added\n"
        told = []
        (folder / "rust.md").rename(folder / "iron.md")
        told.append(process.stdout.readline())
        (folder / "iron.md").write_text("Iron rusts.\n")
        told.append(process.stdout.readline())
        (folder / "iron.md").unlink()
        told.append(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=SECONDS)
    assert [line.partition(" ")[2] for line in told] == [
        "moved rust.md to iron.md\n", "changed iron.md\n", "deleted iron.md\n",
    ]  # fmt: skip
    assert all(line[2] == line[5] == ":" for line in told)


def test_a_note_is_all_the_words_of_the_line(kb, tag):
    job = kb.json("addnote", "hello", "world", tag, "--wait")
    assert kb("get", job["document_id"], "--text").stdout == f"hello world {tag}"
    assert kb("updatenote", job["document_id"], "good", "bye").returncode == 0
    assert kb("get", job["document_id"], "--text").stdout == "good bye"


def test_a_note_comes_through_a_pipe(kb, tag):
    job = kb.json("addnote", "--wait", text=f"hi {tag}\n")
    assert kb("get", job["document_id"], "--text").stdout == f"hi {tag}\n"
    refused = kb("updatenote", job["document_id"], text="more\n")
    assert refused.returncode == 2
    assert "with the piped text, use -" in refused.stderr
    assert kb("get", job["document_id"], "--text").stdout == f"hi {tag}\n"


def test_tags_within_a_note_count(kb, tag):
    note = kb.note(f"#{tag} meeting about the #roof/tiles, not `#code` or issue #12", "--tags", "given")
    document = kb.json("get", note)
    assert document["tags"] == sorted(["given", tag, "roof/tiles"])
    assert document["title"].startswith(f"#{tag} meeting")
    kb("tag", note, "--remove", "roof/tiles")
    kb("updatenote", note, "--append", "The #gutter leaks, `#code` does not.")
    assert kb.json("get", note)["tags"] == sorted(["given", tag, "gutter"])


@pytest.fixture
def printed(capsys):
    """What kb prints, run in this process."""

    def printed(*words):
        assert run(as_options(list(words))) == 0
        return capsys.readouterr().out

    return printed


@pytest.mark.parametrize("words", [["-h"], ["help"], ["search", "-h"], ["help", "search"]])
def test_help_is_found_however_it_is_asked_for(printed, words):
    command = ["search"] if "search" in words else []
    assert printed(*words) == printed(*command, "--help")


@pytest.mark.parametrize("word", ["version", "-V"])
def test_the_version_is_found_however_it_is_asked_for(printed, word):
    assert printed(word) == printed("--version")


@pytest.mark.parametrize(
    ("word", "command"),
    [("rm", "delete"), ("show", "get"), ("edit", "updatenote"), ("note", "addnote"), ("ls", "list")],
)
def test_a_command_goes_by_its_usual_name_too(printed, word, command):
    usage, _, rest = printed(word, "--help").partition("\n")
    assert usage.startswith(f"Usage: kb {word} ")
    assert rest == printed(command, "--help").partition("\n")[2]


def test_a_tag_or_a_type_that_does_not_exist_is_named_with_the_nearest_one(kb, tag):
    kb.note(f"a note {tag}", "--tags", f"ideas-{tag}")
    shown = kb("list", "--tags", f"idea-{tag}")
    assert shown.stderr == f"kb: no document has the tag 'idea-{tag}'; the closest is 'ideas-{tag}'\n"
    assert f"the closest is 'ideas-{tag}'" in kb("search", "note", "--any", f"idea-{tag}").stderr
    shown = kb("list", "--type", "markdwon")
    assert shown.returncode == 2
    assert "'markdwon'" in shown.stderr
    assert "'markdown'" in shown.stderr


def test_a_search_says_that_no_word_occurs(kb, tag):
    kb.note(f"The mooring lines of {tag}")
    shown = kb("search", "zzzqqqxxyyz")
    assert shown.stderr.splitlines()[:2] == [  # the third line names languages of other tests' documents
        "kb: no document contains 'zzzqqqxxyyz'",
        "kb: no document contains any of these words; the closest in meaning:",
    ]
    assert shown.returncode == 0
    assert kb("search", "mooring").stderr == ""


def test_a_search_says_that_no_word_occurs_where_the_filters_let_it_look(kb, tag):
    kb.note(f"The mooring lines of {tag}")
    kb.note("A note on ducks", "--tags", tag)
    assert kb("search", "mooring", "--tags", tag).stderr == (
        "kb: no document that matches the filters contains any of these words; the closest in meaning:\n"
    )


@pytest.mark.slow
def test_a_search_that_finds_nothing_says_why_and_what_is_still_on_the_way_in(start_server, outside, tmp_path):
    with start_server(tmp_path / "idle", KB_API_KEY=KEY) as server:
        env = {"KB_ENGINE_URL": server.url, "KB_API_KEY": KEY}
        (tmp_path / "long.txt").write_text("Many words about ledgers keep the engine busy for a long while. " * 3_000)
        outside("add", str(tmp_path / "long.txt"), env=env)
        assert outside("search", "key", "--tags", "absent", env=env).stderr == (
            "kb: nothing found: no document has the tag 'absent'; 1 job is unfinished\n"
        )
        assert outside("search", "key", env=env).stderr == "kb: nothing found; 1 job is unfinished\n"


def test_what_a_folder_leaves_out_by_itself_does_not_go_in(kb, folder):
    (folder / ".gitignore").write_text("*.log\n")
    for name in ("build.log", "id_rsa", "server.pem", "node_modules/a.js", "venv/b.py", "__pycache__/c.txt"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("left out\n")
    assert {each["source_path"] for each in kb.json("sync", "papers")["files"]} == {
        f"{folder}/rust.md", f"{folder}/deep/cat.txt",
    }  # fmt: skip
    (folder / ".kbignore").write_text("!build.log\n!venv/\n")
    assert len(kb.json("sync", "papers")["files"]) == 4


def test_a_file_is_written_into_a_folder_under_its_own_name(kb, folder):
    [each] = kb.json("add", "papers/rust.md", "--wait")
    assert kb("get", each["job"]["document_id"], "--file", "papers/deep/").returncode == 0
    assert (folder / "deep/rust.md").read_bytes() == (folder / "rust.md").read_bytes()


def test_opening_a_document_starts_the_editor_at_its_line(kb, folder, tmp_path, tag):
    (folder / "long.md").write_text("---\ntags: [x]\n---\n" + "filler\n\n" * 20 + f"The keel of {tag} is green.\n")
    kb("add", "papers", "--wait")
    script = tmp_path / "editor.sh"
    script.write_text('#!/bin/sh\necho "$@" > called\n')
    script.chmod(0o700)
    [document] = kb.json("list", "--path", folder / "long.md")["documents"]
    assert kb("open", document["id"], env={"EDITOR": script}).returncode == 0
    assert (tmp_path / "called").read_text() == f"{folder}/long.md\n"
    assert (
        kb(
            "search", "keel", tag, "--fts-only", "--path", folder / "long.md", "--open", env={"EDITOR": script}
        ).returncode
        == 0
    )
    line = (folder / "long.md").read_text().split("\n").index(f"The keel of {tag} is green.") + 1
    assert (tmp_path / "called").read_text() == f"+{line} {folder}/long.md\n"


def test_an_empty_list_says_so(kb, tag):
    assert kb("list", "--under", f"/no/{tag}").stderr.startswith("kb: no document ")


def test_a_server_tells_a_person_what_to_do_next_and_keeps_its_log_to_itself(outside, model_files, tmp_path):
    data = tmp_path / "data"
    ours, its = pty.openpty()
    environment = {"KB_DATA_DIR": str(data), "KB_PORT": "0", "KB_MODEL_DIR": str(model_files.onnx.parent)}
    process = outside.start("serve", stdin=its, stdout=its, stderr=its, env=environment)
    os.close(its)
    shown = ""
    while "/docs" not in shown:
        shown += os.read(ours, 65536).decode()
    process.send_signal(signal.SIGINT)
    shown += b"".join(iter(lambda: read(ours), b"")).decode()
    process.wait(timeout=SECONDS)
    os.close(ours)
    assert "kb is ready at http://127.0.0.1:" in shown
    assert "Its data folder is ~/data." in shown
    assert "kb search where is the key" in shown
    assert "INFO" not in shown


def test_a_file_in_the_place_of_a_folder_is_named_with_the_command_for_it(kb, folder):
    refused = kb("sync", "papers/rust.md")
    assert (refused.returncode, refused.stderr) == (2, f"kb: {folder}/rust.md is a file. To add it, use 'kb add'.\n")
