"""Backups and examinations that someone asks the engine for, and what it remembers of the last hour."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import httpx2
import pytest

from kb.api.errors import AtWork
from kb.maintenance.archive import backup_folders
from kb.maintenance.tasks import MaintenanceTasks
from kb.settings import Settings
from tests.conftest import KEY
from tests.support.eventually import eventually


def api(server):
    return httpx2.Client(base_url=f"{server.url}/api/v1/", timeout=60)


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
    with start_server(data, KB_BACKUP_DIR=str(backups)) as server, api(server) as engine:
        engine.post("jobs", params={"wait": 30}, json={"text": "The keeper lights the lamp at six."})
        eventually("the first backup is made by itself", lambda: backup_folders(backups))
        yield engine, data, backups


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


def test_a_damaged_backup_is_told_apart(cared):
    engine, _, backups = cared
    victim = backup_folders(backups)[-1]
    with (victim / "kb.db").open("r+b") as file:
        file.seek(5000)
        file.write(b"damage")
    faults = done(engine, "verify")["faults"]
    assert any(victim.name in fault for fault in faults)
    (victim / "manifest.json").write_text("{}")
    assert "cannot be used" in done(engine, "verify")["error"]
    shutil.rmtree(victim)
    assert victim.name not in {each["name"] for each in engine.get("maintenance").json()["backups"]}


def test_what_the_doctor_finds_is_told_and_what_can_be_is_mended_while_the_engine_runs(cared):
    engine, data, _ = cared
    (data / "kb.db.new").touch()
    found = {each["check"]: each for each in done(engine, "examine")["findings"]}
    assert len(found) > 15
    assert any("kb.db.new" in fault for fault in found["leftovers"]["faults"])
    assert found["leftovers"]["is_mendable"]
    assert not found["rows"]["is_mendable"], "the engine must not run for that"
    mended = {each["check"]: each["faults"] for each in done(engine, "mend")["findings"]}
    assert mended["leftovers"] == []
    assert not (data / "kb.db.new").exists()
    assert engine.post("search", json={"query": "lamp"}).json()["results"]


def test_one_thing_is_done_at_a_time(cared):
    engine, _, _ = cared

    def second():
        begin(engine, "examine")
        return begin(engine, "verify")

    eventually("the second is refused", lambda: second().json().get("type") == f"urn:kb:problem:{AtWork.code}")
    ended(engine, "examine")


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


def test_the_last_hour_counts_searches_and_documents_with_their_times(cared):
    engine, _, _ = cared
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
