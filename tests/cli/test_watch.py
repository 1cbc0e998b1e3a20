"""kb watch: folders that are synced without a terminal, by a real engine and its real child."""

from __future__ import annotations

import json
import os
import signal
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from subprocess import PIPE
from uuid import uuid4

import httpx2
import pytest

from kb.folders.disk_view import place_of
from tests.cli.conftest import Shell
from tests.conftest import KEY, free_port
from tests.support.eventually import eventually
from tests.support.rounds import documents_below


@pytest.fixture(scope="module")
def home(tmp_path_factory, start_server):
    """An engine and the home folder that its child shares with the command line."""
    home = tmp_path_factory.mktemp("home")
    places = {"HOME": str(home), "XDG_CONFIG_HOME": str(home / "config")}
    with start_server(tmp_path_factory.mktemp("engine"), KB_API_KEY=KEY, **places) as server:
        yield server, places


@pytest.fixture
def engine(home):
    return home[0]


@pytest.fixture
def kb(home, outside):
    server, places = home
    return Shell(outside.folder, outside.environment | places | {"KB_ENGINE_URL": server.url, "KB_API_KEY": KEY})


@pytest.fixture
def watched(kb, folder, tag):
    """The folder, watched under the name of this test's tag until the test ends."""
    assert kb("watch", "add", folder, "--as", tag, "--delete").returncode == 0
    yield folder
    kb("watch", "remove", tag)


def row(kb, name):
    """What kb lists of a watched folder; None without it."""
    rows = kb.json("watch", "list")["folders"]
    return next((each for each in rows if each["prefix"] == f"{name}/"), None)


def paths(engine, name):
    return sorted(each["source_path"].removeprefix(f"{name}/") for each in documents_below(engine, f"{name}/"))


def until_synced(kb, name, **result):
    """The folder, once a complete round had this result."""

    def has_ended():
        watch = row(kb, name)["watch"]
        return watch if watch["result"] and result.items() <= watch["result"].items() else None

    return eventually("a round has ended", has_ended)


def test_a_folder_is_followed_without_a_terminal(kb, engine, watched, tag):
    until_synced(kb, tag, files=2, added=2)
    (watched / "new.md").write_text(f"A new file of {tag}.")
    eventually("it has come", lambda: "new.md" in paths(engine, tag))
    (watched / "rust.md").unlink()
    eventually("it has gone", lambda: paths(engine, tag) == ["deep/cat.txt", "new.md"])
    listed = kb("watch", "list").stdout
    assert all(words in listed for words in (tag, str(watched), "watching"))
    assert row(kb, tag)["watch"]["delete"] is True


@pytest.mark.rare
def test_a_request_to_sync_now_is_followed_by_a_round(kb, engine, watched, tag):
    first = until_synced(kb, tag, files=2)["synced_at"]
    with httpx2.Client(base_url=f"{engine.url}/api/v1", headers={"Authorization": f"Bearer {KEY}"}) as http:
        http.post(f"folders/watches/{row(kb, tag)['watch']['id']}/sync").raise_for_status()
    eventually("the round has ended", lambda: row(kb, tag)["watch"], lambda watch: watch["synced_at"] > first)
    eventually("the request is answered", lambda: row(kb, tag)["watch"]["asked_at"] is None)


def test_a_report_names_the_files_that_are_left_out_and_why(kb, watched, tag):
    (watched / "song.mp3").write_bytes(b"ID3")
    (watched / ".gitignore").write_text("*.log\n")
    (watched / "today.log").write_text("A log.")
    kb("watch", "now", tag)
    left_out = eventually("it is reported", lambda: row(kb, tag)["watch"]["result"]["left_out"])
    assert left_out == [
        {"reason": "kb doesn't read .mp3 files", "count": 1, "paths": ["song.mp3"]},
        {"reason": "skipped by .gitignore", "count": 1, "paths": []},
    ]
    assert "2 files and folders left out" in kb("watch", "list").stdout


def test_now_syncs_in_the_terminal_and_reports_to_the_engine(kb, watched, tag):
    (watched / "empty.pdf").write_bytes(b"%PDF-1.4 broken")
    until_synced(kb, tag, failed=1)
    ended = kb("watch", "now", tag)
    assert (ended.returncode, "3 files: 2 up to date, 1 unreadable" in ended.stdout) == (0, True), ended
    [failure] = row(kb, tag)["watch"]["result"]["failures"]
    assert failure["path"] == "empty.pdf"
    assert f"{tag}: empty.pdf: " in kb("watch", "list").stderr


def test_a_synced_vault_is_edited_on_both_sides_and_can_be_only_read_again(kb, engine, folder, tag):
    note = folder / "rust.md"
    assert kb("watch", "add", folder, "--as", tag, "--tags", tag).returncode == 0
    until_synced(kb, tag, files=2)
    ids = {each["source_path"]: each["id"] for each in documents_below(engine, f"{tag}/")}
    added = kb("watch", "add", folder, "--as", tag, "--both")
    assert (added.returncode, added.stdout) == (0, f"kb now keeps {folder} in sync as {tag}, in both directions.\n"), (
        added
    )
    eventually(
        "the file is a note", lambda: documents_below(engine, f"{tag}/"), lambda each: types(each) == {"note", "text"}
    )
    before = note.read_text()
    assert kb("updatenote", ids[f"{tag}/rust.md"], "--append", "Said by an agent.").returncode == 0
    eventually("the file has the words", lambda: "Said by an agent." in note.read_text())
    assert note.read_text().startswith(before)
    assert kb("addnote", "From an agent.", "--source-path", f"{tag}/ideas/new.md").returncode == 0
    eventually("the new note has a file", (folder / "ideas" / "new.md").exists)
    note.write_text(f"Written by hand, in {tag}.")
    eventually("the words are found", lambda: kb("get", ids[f"{tag}/rust.md"]).stdout, lambda text: "by hand" in text)
    assert {each["id"] for each in documents_below(engine, f"{tag}/")} >= set(ids.values())
    assert "watching, both ways" in kb("watch", "list").stdout
    now = kb("watch", "now", tag)
    assert (now.returncode, now.stdout) == (0, f"{tag}: 3 files, all up to date\n"), now
    refused = kb("sync", folder)
    assert (refused.returncode, "first run 'kb watch remove'" in refused.stderr) == (2, True)
    assert kb("watch", "remove", tag).returncode == 0
    assert kb("sync", folder, "--as", tag).returncode == 0
    assert {each["id"] for each in documents_below(engine, f"{tag}/")} >= set(ids.values())


def test_a_sync_in_both_directions_ends_when_both_sides_are_the_same(kb, engine, folder, tag):
    for number in range(30):
        (folder / f"{number}.md").write_text(f"Note {number} of {tag}.")
    for _ in range(2):
        synced = kb("sync", folder, "--as", tag, "--both")
        assert (synced.returncode, f"{tag}: 32 files, all up to date" in synced.stdout) == (0, True), synced
        notes = [each for each in documents_below(engine, f"{tag}/") if each["doc_type"] == "note"]
        assert len(notes) == 31
    (folder / "1.md").write_text("Written by hand.")
    assert kb("sync", folder, "--both").returncode == 0
    [note] = [each for each in documents_below(engine, f"{tag}/") if each["source_path"] == f"{tag}/1.md"]
    assert "Written by hand." in kb("get", note["id"]).stdout
    refused = kb("sync", folder, "--both", "--dry-run")
    assert (refused.returncode, "--both cannot be used" in refused.stderr) == (2, True)


def test_a_folder_of_another_machine_at_the_same_path_is_not_taken_for_this_one(kb, engine, folder, tag):
    there, watch = {"prefix": f"{tag}-there/", "machine": "other"}, f"folders/watches/{uuid4().hex}"
    with httpx2.Client(base_url=f"{engine.url}/api/v1/", headers={"Authorization": f"Bearer {KEY}"}) as client:
        client.put("folders", json=there | {"host": "elsewhere", "path": str(folder)}).raise_for_status()
        client.put(watch, json=there | {"both": True, "place": place_of(folder)}).raise_for_status()
        synced = kb("sync", folder, "--as", tag, "--both")
        client.delete(watch).raise_for_status()
    assert (synced.returncode != 0, "Choose a separate folder" in synced.stderr) == (True, True), synced


def types(documents):
    return {each["doc_type"] for each in documents}


def test_a_folder_that_the_engine_does_not_see_cannot_be_kept_in_both_directions(kb, engine, folder, tag):
    with httpx2.Client(base_url=f"{engine.url}/api/v1", headers={"Authorization": f"Bearer {KEY}"}) as http:
        claimed = {"prefix": f"{tag}/", "machine": "m", "host": "h", "path": str(folder)}
        http.put("folders", json=claimed).raise_for_status()
        watch = {"prefix": f"{tag}/", "machine": "m", "both": True, "place": "1 2"}
        refused = http.put(f"folders/watches/{'0' * 32}", json=watch)
        limited = http.post("keys", json={"name": f"writes-{tag}", "right": "write"}).json()["key"]
        key = {"Authorization": f"Bearer {limited}"}
        forbidden = http.put(f"folders/watches/{'0' * 32}", json=watch, headers=key)
    assert (refused.status_code, "The engine does not see the folder" in refused.text) == (422, True)
    assert forbidden.status_code == 403
    assert row(kb, tag) is None


def test_a_removed_folder_is_followed_no_more_and_its_documents_stay(kb, engine, watched, tag):
    until_synced(kb, tag, files=2)
    removed = kb("watch", "remove", watched)
    assert removed.stdout == f"kb no longer watches {watched}. Its documents stay.\n"
    (watched / "late.md").write_text("Too late.")
    kb("watch", "now")
    assert (row(kb, tag), len(paths(engine, tag))) == (None, 2)
    again = kb("watch", "remove", watched)
    assert (again.returncode, "is not watching" in again.stderr) == (2, True)


@pytest.mark.rare
def test_a_folder_that_is_away_is_said_and_followed_again_when_it_is_back(kb, engine, watched, tag):
    until_synced(kb, tag, files=2)
    away = watched.rename(watched.with_name("away"))
    said = eventually("it is said", lambda: row(kb, tag)["watch"], lambda watch: watch["state"] == "failing")
    moved = f"If you moved it, run 'kb watch add NEW_FOLDER --as {tag}'."
    assert said["error"] == f"The folder {watched} does not exist. {moved}"
    assert f"{tag}: The folder {watched} does not exist." in kb("watch", "list").stderr
    assert len(paths(engine, tag)) == 2, "nothing was deleted"
    (away / "new.md").write_text(f"New in {tag}.")
    away.rename(watched)
    eventually("all is well", lambda: row(kb, tag)["watch"], lambda watch: watch["state"] == "watching")
    eventually("it has come", lambda: "new.md" in paths(engine, tag))


@pytest.mark.rare
def test_a_moved_folder_keeps_its_name_and_its_documents(kb, engine, watched, tag):
    until_synced(kb, tag, files=2)
    before = {each["source_path"]: each["id"] for each in documents_below(engine, f"{tag}/")}
    moved = watched.rename(watched.with_name("moved"))
    assert kb("watch", "add", moved, "--as", tag, "--delete").returncode == 0
    (moved / "rust.md").write_text(f"Rust in another place, {tag}.")
    eventually(
        "it is followed", lambda: row(kb, tag)["watch"]["result"] or {}, lambda result: result.get("changed") == 1
    )
    assert {each["source_path"]: each["id"] for each in documents_below(engine, f"{tag}/")} == before
    assert row(kb, tag)["path"] == str(moved)


def test_a_folder_that_is_suddenly_empty_keeps_its_documents_until_somebody_says_yes(kb, engine, watched, tag):
    until_synced(kb, tag, files=2)
    for file in (watched / "rust.md", watched / "deep/cat.txt"):
        file.unlink()
    eventually("it is said", lambda: row(kb, tag)["watch"], lambda watch: "has no files" in (watch["error"] or ""))
    assert len(paths(engine, tag)) == 2
    assert kb("watch", "now", tag).returncode == 2
    assert kb("watch", "now", tag, "--yes").returncode == 0
    assert paths(engine, tag) == []
    assert row(kb, tag)["watch"]["error"] is None


@pytest.mark.slow
def test_many_deletions_at_once_are_kept_and_the_reason_is_listed(kb, engine, watched, tag):
    for number in range(10):
        (watched / f"{number}.md").write_text(f"Number {number} of {tag}.")
    until_synced(kb, tag, files=12)
    eventually("all have come", lambda: len(paths(engine, tag)) == 12)
    for number in range(10):
        (watched / f"{number}.md").unlink()
    result = eventually("it is said", lambda: row(kb, tag)["watch"]["result"], lambda result: result["kept"])
    assert "If you deleted these files, add --yes." in result["kept"][0]
    assert len(paths(engine, tag)) > 2


def test_the_same_folder_again_changes_its_options(kb, watched, tag):
    first = row(kb, tag)["watch"]["id"]
    link = watched.with_name("link")
    link.symlink_to(watched)
    for place in (watched, link):
        assert kb("watch", "add", place, "--tags", f"of-{tag}").returncode == 0
        changed = row(kb, tag)["watch"]
        assert (changed["id"], changed["tags"], changed["delete"]) == (first, [f"of-{tag}"], False)
    other = kb("watch", "add", watched, "--as", f"{tag}-2")
    assert (other.returncode, f"already watching {watched} as {tag}" in other.stderr) == (2, True)


@pytest.mark.rare
def test_two_commands_at_once_leave_one_record_that_can_be_removed(kb, folder, tag):
    both = [kb.start("watch", "add", folder, "--as", tag) for _ in range(2)]
    assert [command.wait() for command in both] == [0, 0]
    assert [each["path"] for each in kb.json("watch", "list")["unknown"] if each["path"] == str(folder)] == []
    assert row(kb, tag)
    kb("watch", "remove", tag)
    assert row(kb, tag) is None


@pytest.mark.rare
def test_the_folder_of_another_engine_with_the_same_name_stays(kb, home, watched, tag):
    other = Path(home[1]["XDG_CONFIG_HOME"]) / "kb" / "watched" / f"{'0' * 32}.json"
    other.write_text(json.dumps({"path": "/elsewhere", "prefix": f"{tag}/", "engine_url": "http://10.0.0.9:8000"}))
    try:
        assert kb("watch", "remove", tag).stdout == f"kb no longer watches {watched}. Its documents stay.\n"
        assert other.exists()
        assert row(kb, tag) is None
    finally:
        other.unlink()


def test_a_folder_in_or_around_a_watched_one_is_refused(kb, watched, tag):
    inside, around = kb("watch", "add", watched / "deep"), kb("watch", "add", watched.parent)
    assert (inside.returncode, f"as part of {watched}" in inside.stderr) == (2, True)
    assert (around.returncode, f"'kb watch remove {tag}'" in around.stderr) == (2, True)


@pytest.mark.rare
def test_a_second_program_waits_for_the_first(kb, watched, tag):
    until_synced(kb, tag, files=2)
    with kb.start("watch", "run", stderr=PIPE, encoding="utf-8") as second:
        assert "is already watching the folders" in second.stderr.readline()
        assert second.poll() is None
        second.kill()


@pytest.mark.rare
def test_what_is_removed_in_the_engine_is_followed_no_more(kb, engine, watched, tag):
    id_ = row(kb, tag)["watch"]["id"]
    httpx2.delete(f"{engine.url}/api/v1/folders/watches/{id_}", headers={"Authorization": f"Bearer {KEY}"})
    assert row(kb, tag) is None
    listed = kb("watch", "list")
    assert f"{watched} was added to " in listed.stderr
    assert kb("watch", "add", watched, "--as", tag).returncode == 0
    until_synced(kb, tag, files=2)


@pytest.mark.rare
def test_a_child_that_is_killed_is_started_again_and_one_whose_engine_is_killed_ends(
    outside, folder, tag, start_server
):
    places = {"HOME": str(outside.folder), "XDG_CONFIG_HOME": str(outside.folder / "config")}
    with start_server(outside.folder / "data", **places) as server:
        kb = Shell(outside.folder, outside.environment | {"KB_ENGINE_URL": server.url})
        assert kb("watch", "add", folder, "--as", tag).returncode == 0
        first = eventually("it has begun", lambda: child_of(server.process.pid))
        os.kill(first, signal.SIGKILL)
        second = eventually(
            "there is another", lambda: child_of(server.process.pid), lambda pid: pid not in (None, first)
        )
        server.kill()
        eventually("it has ended", lambda: not is_running(second))


@pytest.mark.rare
def test_folders_commands_and_bridges_of_this_machine_go_on_with_the_first_key(outside, folder, tag, start_server):
    places = {"HOME": str(outside.folder), "XDG_CONFIG_HOME": str(outside.folder / "config")}
    data = outside.folder / "data"
    with start_server(data, **places | {"KB_ALLOW_OPEN": "1", "KB_APPS": "api,mcp"}) as server:
        kb = Shell(outside.folder, outside.environment | {"KB_DATA_DIR": str(data)})
        assert kb("watch", "add", folder, "--as", tag).returncode == 0
        child = eventually("it has begun", lambda: child_of(server.process.pid))
        eventually("it is synced", lambda: len(documents_below_of(server, tag)) == 2)
        with kb.start("stdio", stdin=PIPE, stdout=PIPE, encoding="utf-8") as bridge:
            assert "tools" in ask_for_tools(bridge)["result"]
            key = httpx2.post(f"{server.url}/api/v1/first-key").json()["key"]
            assert httpx2.get(f"{server.url}/api/v1/documents").status_code == 401
            (folder / "late.md").write_text(f"Written after the first key was made, {tag}.")
            eventually("the late one has come", lambda: len(documents_below_of(server, tag, key)) == 3)
            assert child_of(server.process.pid) == child
            assert "tools" in ask_for_tools(bridge)["result"]
            bridge.kill()
        assert kb("status").returncode == 0


def ask_for_tools(bridge):
    """The answer of a bridge to a request for its tools."""
    bridge.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}) + "\n")
    bridge.stdin.flush()
    return json.loads(bridge.stdout.readline())


@pytest.mark.rare
def test_an_engine_that_is_away_is_waited_for_and_another_one_gets_nothing(
    outside, folder, tag, start_server, tmp_path
):
    """Another engine of the same home folder, at the same address: it does not know the folder."""
    kb = Shell(outside.folder, outside.environment | {"KB_PORT": str(port := free_port())})
    elsewhere = {"HOME": str(tmp_path / "elsewhere"), "XDG_CONFIG_HOME": str(tmp_path / "elsewhere")}
    with start_server(tmp_path / "one", port=port, **elsewhere) as server:
        added = kb("watch", "add", folder, "--as", tag, "--json")
        assert json.loads(added.stdout)["is_watched"] is False
        program = kb.start("watch", "run")
        eventually("it is synced", lambda: len(paths(server, tag)) == 2)
        before = {each["id"] for each in documents_below_of(server, tag)}
    try:
        (folder / "late.md").write_text(f"Written while the engine was away, {tag}.")
        with start_server(tmp_path / "other", port=port, **elsewhere) as server:
            eventually("it is asked", lambda: "unknown" in kb("watch", "list", "--json").stdout)
            assert f"{folder} was added to " in kb("watch", "list").stderr
            assert paths_of(server) == []
        with start_server(tmp_path / "one", port=port, **elsewhere) as server:
            eventually(
                "the late one has come",
                lambda: "late.md" in [each["source_path"][-7:] for each in documents_below_of(server, tag)],
            )
            assert before < {each["id"] for each in documents_below_of(server, tag)}
    finally:
        program.kill()
        program.wait()


def documents_below_of(server, name, key=""):
    """The documents below a name, of an engine without a key or with this one."""
    url, headers = f"{server.url}/api/v1/documents", {"Authorization": f"Bearer {key}"} if key else {}
    return httpx2.get(url, params={"source_prefix": f"{name}/"}, headers=headers).json()["documents"]


def paths_of(server):
    return [each["source_path"] for each in httpx2.get(f"{server.url}/api/v1/documents").json()["documents"]]


def child_of(pid):
    """The process that watches for a server; None without one."""
    for process in filter(is_running, map(int, filter(str.isdigit, (path.name for path in Path("/proc").iterdir())))):
        with suppress(OSError):
            words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
            if b"--child" in words and int(stat_of(process)[1]) == pid:
                return process
    return None


def stat_of(pid):
    """The state, the parent and more of a process."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def is_running(pid):
    with suppress(OSError):
        return stat_of(pid)[0] != "Z"
    return False


def test_a_key_that_is_limited_watches_within_its_limit(kb, engine, folder, tag):
    made = {"name": tag, "right": "write", "tags": [f"only-{tag}"], "path": f"{tag}/"}
    token = kb_api(engine, "keys", made)["key"]
    limited = replace(kb, environment=kb.environment | {"KB_API_KEY": token})
    outside = limited("watch", "add", folder, "--as", f"not-{tag}")
    assert outside.returncode != 0
    assert f"not-{tag}" not in limited("watch", "list").stdout
    assert limited("watch", "add", folder, "--as", f"{tag}/in").returncode == 0
    eventually(
        "the key sees them", lambda: len(limited.json("list", "--all", "--under", f"{tag}/in")["documents"]) == 2
    )
    assert limited("watch", "remove", f"{tag}/in").returncode == 0


def kb_api(engine, path, body):
    answer = httpx2.post(f"{engine.url}/api/v1/{path}", json=body, headers={"Authorization": f"Bearer {KEY}"})
    return answer.raise_for_status().json()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "Missing argument"),
        (("add",), "Use 'add', 'now' or 'remove' with one folder"),
        (("add", "a", "b"), "Use 'add', 'now' or 'remove' with one folder"),
        (("follow", "x"), "Use 'add'"),
        (("list", "x"), "Use 'add'"),
        (("list", "--delete"), "only work with 'add'"),
        (("list", "--yes"), "--yes only works with 'now'"),
        (("add", ".", "--as", " "), "The name after --as is empty"),
        (("add", "nowhere"), "does not exist"),
        (("add", "file.txt"), "is a file. To add it, use 'kb add'"),
        (("now", "nowhere"), "is not watching nowhere"),
        (("remove", "nowhere"), "is not watching nowhere"),
    ],
)
def test_what_makes_no_sense_is_refused(kb, words, said):
    (kb.folder / "file.txt").write_text("A file.")
    refused = kb("watch", *words)
    assert (refused.returncode, said in refused.stderr) == (2, True), refused.stderr


def test_a_damaged_record_is_said_and_the_others_are_followed(kb, watched, tag):
    place = Path(kb.environment["XDG_CONFIG_HOME"], "kb/watched")
    damaged = place / f"{'0' * 32}.json"
    damaged.write_text('{"path": "relative", "prefix": "x/", "engine_url": "http://x"}')
    (place / "notes (conflict).json").write_text("not a record")
    listed = kb("watch", "list")
    damaged.unlink()
    assert f"{damaged}: kb cannot read this record of a watched folder: path must be absolute" in listed.stderr
    assert tag in listed.stdout
