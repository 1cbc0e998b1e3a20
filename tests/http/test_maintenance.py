"""Backups and checks that someone asks the engine for, and what it remembers of the last hour."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from contextlib import closing, suppress
from pathlib import Path

import httpx2
import pytest

from kb.api.errors import MaintenanceRunning, StoreError
from kb.backup import restore
from kb.backup.make import back_up
from kb.backup.storage import backup_folders
from kb.repair import child_process
from kb.repair import tasks as maintenance_tasks
from kb.repair.tasks import MaintenanceTasks
from kb.settings import Settings
from kb.store.sqlite.store import SqliteStore
from tests.conftest import KEY
from tests.support.eventually import eventually
from tests.support.spaces import space


def api(server):
    return httpx2.Client(base_url=f"{server.url}/api/v1/")


def begin(engine, action):
    return engine.post("maintenance", json={"action": action})


def done(engine, action):
    """The task, once it has ended."""
    answer = begin(engine, action)
    assert answer.status_code == 202, answer.text
    return ended(engine, action)


def ended(engine, action):
    found = []

    def has_ended():
        tasks = {each["action"]: each for each in engine.get("maintenance").json()["tasks"]}
        found[:] = [tasks[action]]
        return tasks[action]["ended_at"]

    eventually(f"{action} has ended", has_ended)
    return found[0]


@pytest.fixture(scope="module")
def cared(start_server, tmp_path_factory):
    """A server with a folder for backups, and that folder."""
    data, backups = tmp_path_factory.mktemp("cared"), tmp_path_factory.mktemp("backups")
    with start_server(data, KB_BACKUP_DIR=str(backups), KB_APPS="api,web") as server, api(server) as engine:
        engine.post("jobs", params={"wait": 30}, json={"text": "The keeper lights the lamp at six."})
        eventually("the first backup is made by itself", lambda: backup_folders(backups))
        yield engine, data, backups


@pytest.mark.slow
@pytest.mark.sqlite
def test_a_backup_is_made_listed_and_verified_while_searches_go_on(cared):
    engine, _, backups = cared
    before = len(backup_folders(backups))
    assert begin(engine, "back-up").status_code == 202
    assert engine.post("search", json={"query": "lamp"}).json()["results"]
    made = ended(engine, "back-up")
    assert (made["error"], made["faults"]) == (None, [])
    state = engine.get("maintenance").json()
    assert [each["name"] for each in state["backups"]] == [each.name for each in reversed(backup_folders(backups))]
    assert len(state["backups"]) == before + 1
    assert state["backups"][0]["documents"] == 1
    verified = done(engine, "verify")
    assert (verified["error"], verified["faults"]) == (None, [])


@pytest.mark.rare
@pytest.mark.sqlite
def test_a_damaged_backup_is_told_apart(cared):
    engine, _, backups = cared
    victim = backup_folders(backups)[-1]
    with (victim / "kb.db").open("r+b") as file:
        file.seek(5000)
        file.write(b"damage")
    faults = done(engine, "verify")["faults"]
    assert any(victim.name in fault for fault in faults)
    (victim / "manifest.json").write_text("{}")
    assert any(victim.name in fault and "cannot use" in fault for fault in done(engine, "verify")["faults"])
    shutil.rmtree(victim)
    assert victim.name not in {each["name"] for each in engine.get("maintenance").json()["backups"]}


@pytest.mark.slow
@pytest.mark.sqlite
def test_what_the_doctor_finds_is_told_and_what_can_be_is_repaired_while_the_engine_runs(cared):
    engine, data, _ = cared
    (data / "kb.db.new").touch()
    found = {each["check"]: each for each in done(engine, "check")["findings"]}
    assert len(found) > 15
    assert any("kb.db.new" in fault for fault in found["leftovers"]["faults"])
    assert found["leftovers"]["is_repairable"]
    assert not found["consistency"]["is_repairable"], "the engine must not run for that"
    repaired = {each["check"]: each["faults"] for each in done(engine, "repair")["findings"]}
    assert repaired["leftovers"] == []
    assert not (data / "kb.db.new").exists()
    assert engine.post("search", json={"query": "lamp"}).json()["results"]


@pytest.mark.sqlite
def test_one_thing_is_done_at_a_time(cared):
    engine, _, _ = cared

    def second():
        begin(engine, "check")
        return begin(engine, "verify")

    eventually(
        "the second is refused", lambda: second().json().get("type") == f"urn:kb:problem:{MaintenanceRunning.code}"
    )
    ended(engine, "check")


@pytest.mark.rare
@pytest.mark.sqlite
def test_a_second_click_while_something_is_done_leads_back_to_the_page(cared):
    engine, _, _ = cared
    with httpx2.Client(base_url=engine.base_url.copy_with(path="/")) as browser:
        for _ in range(2):  # the first visit gives the cookie that the form's token belongs to
            token = re.search(r'name="token" value="([^"]+)"', browser.get("/backups").text)[1]

        def click():
            begin(engine, "check")
            answer = browser.post("/backups", data={"action": "verify", "token": token})
            [checked] = [each for each in engine.get("maintenance").json()["tasks"] if each["action"] == "check"]
            return None if checked["ended_at"] else answer

        answer = eventually("something is done while it is clicked", click)
    assert (answer.status_code, answer.headers["location"]) == (303, "./backups")
    ended(engine, "check")


def test_without_a_folder_the_engine_says_how_to_back_up(server):
    with httpx2.Client(base_url=f"{server.url}/api/v1/", headers={"Authorization": f"Bearer {KEY}"}) as engine:
        state = engine.get("maintenance").json()
        assert (state["backup_dir"], state["backups"]) == (None, [])
        refused = begin(engine, "back-up")
        assert refused.status_code == 409
        assert "kb backup DIR" in refused.json()["detail"]


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_what_is_done_ends_with_the_engine_and_leaves_nothing(tmp_path):
    settings = Settings(data_dir=tmp_path, backup_dir=tmp_path / "backups")
    with MaintenanceTasks(settings) as tasks:
        tasks.begin("back-up")
        eventually("the process is there", lambda: tasks._process)
        process = tasks._process.pid
    [task] = tasks.state().tasks
    assert task.ended_at
    assert task.error
    assert not Path(f"/proc/{process}").exists()
    assert not list(tmp_path.glob("backups/*.part"))


def said(monkeypatch, program):
    """Have a program of ours take the process's place."""

    def started(*_):
        return subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, encoding="utf-8")

    monkeypatch.setattr(maintenance_tasks, "_started", started)


@pytest.mark.parametrize("line", ['{"step": "cut', "Warning!", '{"faults": 5}'], ids=["cut", "other", "wrong"])
def test_what_is_said_wrongly_ends_the_task_and_the_next_can_be_begun(tmp_path, monkeypatch, line):
    said(monkeypatch, f"print({line!r})")
    with MaintenanceTasks(Settings(data_dir=tmp_path)) as tasks:
        for _ in range(2):
            tasks.begin("check")
            eventually("it has ended", lambda: tasks.state().tasks[0].ended_at)
            assert tasks.state().tasks[0].error


def test_a_stop_before_the_process_is_there_ends_it_too(tmp_path, monkeypatch):
    begun, processes, start = threading.Event(), [], maintenance_tasks._started

    def started(*arguments):
        begun.set()
        eventually("it is told to stop", lambda: tasks._stopping)
        processes.append(start(*arguments))
        return processes[0]

    monkeypatch.setattr(maintenance_tasks, "_started", started)
    with MaintenanceTasks(Settings(data_dir=tmp_path)) as tasks:
        tasks.begin("check")
        begun.wait()
    assert processes[0].returncode
    assert tasks.state().tasks[0].error


def test_the_process_is_given_no_key_and_loads_nothing_from_the_working_directory(tmp_path, monkeypatch):
    given, start = [], subprocess.Popen

    def started(*arguments, **options):
        given.append(options["env"])
        return start(*arguments, **options)

    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "__init__.py").write_text("raise SystemExit('foreign')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KB_API_KEY", "secret")
    monkeypatch.setattr(maintenance_tasks.subprocess, "Popen", started)
    with MaintenanceTasks(Settings(data_dir=tmp_path)) as tasks:
        tasks.begin("check")
        eventually("it has ended", lambda: tasks.state().tasks[0].ended_at)
    assert "kb.db" in tasks.state().tasks[0].error
    assert "secret" not in given[0].values()


def test_a_backup_that_could_not_be_read_for_a_moment_is_read_again(tmp_path, monkeypatch):
    settings = Settings(data_dir=tmp_path / "data", backup_dir=tmp_path / "backups")
    settings.data_dir.mkdir()
    with closing(SqliteStore(settings.data_dir / "kb.db", space())):
        back_up(settings, settings.backup_dir, 1)
    tasks = MaintenanceTasks(settings)
    with monkeypatch.context() as patched:
        patched.setattr(os, "open", lambda *_, **__: (_ for _ in ()).throw(OSError(5, "Input/output error")))
        assert "Input/output error" in tasks.state().backups[0].fault
    assert tasks.state().backups[0].fault is None


def test_what_is_left_of_a_backup_that_is_tried_lies_where_the_next_start_removes_it(tmp_path, monkeypatch):
    settings = Settings(data_dir=tmp_path / "data", backup_dir=tmp_path / "backups")
    settings.staging_dir.mkdir(parents=True)
    with closing(SqliteStore(settings.data_dir / "kb.db", space())):
        back_up(settings, settings.backup_dir, 1)
    tried = []
    monkeypatch.setattr(restore, "probe", lambda database: tried.append(database) or [])
    assert child_process.verify(settings, lambda _: None) == {"faults": []}
    assert settings.staging_dir in tried[0].parents


def test_of_many_faults_the_first_are_told_and_how_many_there_are(monkeypatch, tmp_path):
    monkeypatch.setattr(
        child_process, "verify_backups", lambda *_: (f"file {number} is not there" for number in range(5000))
    )
    settings = Settings(data_dir=tmp_path, backup_dir=tmp_path)
    faults = child_process.verify(settings, lambda _: None)["faults"]
    assert (len(faults), faults[0], faults[-1]) == (101, "file 0 is not there", "and 4,900 more")


@pytest.mark.rare
@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_where_memory_runs_out_the_process_is_ended_and_not_the_engine():
    program = (
        "from kb.repair import child_process; child_process.give_way(); print(open('/proc/self/oom_score_adj').read())"
    )
    assert int(subprocess.check_output([sys.executable, "-c", program])) == 1000


@pytest.mark.rare
def test_the_last_hour_counts_searches_and_documents_with_their_times(start_server, tmp_path):
    with start_server(tmp_path) as server, api(server) as engine:
        engine.post("jobs", params={"wait": 30}, json={"text": "The keeper lights the lamp at six."})
        before = engine.get("activity").json()
        for number in range(5):
            engine.post("search", json={"query": f"lamp {number}"})
        engine.post("jobs", params={"wait": 30}, json={"text": "Another one came in."})
        after = engine.get("activity").json()
    assert after["searches"]["count"] == before["searches"]["count"] + 5
    assert after["ingestions"]["count"] == before["ingestions"]["count"] + 1
    assert 0 < after["searches"]["p50_ms"] <= after["searches"]["p95_ms"]
    assert sum(each["count"] for each in after["searches"]["minutes"]) == after["searches"]["count"]
    assert len(after["searches"]["minutes"]) == 60


def test_whoever_asks_for_the_backups_does_not_wait_for_a_disk_that_is_gone(tmp_path, monkeypatch):
    back = threading.Event()
    monkeypatch.setattr(maintenance_tasks, "LIST_SECONDS", 0.05)
    monkeypatch.setattr(maintenance_tasks.storage, "backup_folders", lambda _: back.wait() and [])
    tasks = MaintenanceTasks(Settings(data_dir=tmp_path / "data", backup_dir=tmp_path))
    with pytest.raises(StoreError, match="its disk does not respond"):
        tasks.state()
    back.set()
    eventually("the disk responds", lambda: listed(tasks) == [])


def listed(tasks):
    with suppress(StoreError):
        return tasks.state().backups
    return None
