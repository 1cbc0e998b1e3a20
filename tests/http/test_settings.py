"""Settings over HTTP: changed while the engine runs, kept over a restart, and only by keys with all rights."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest
from fastmcp import Client

from tests.conftest import ALL_APPS, KEY, without_settings
from tests.support.eventually import eventually
from tests.support.stores import TRIED

OPEN = {"KB_ALLOW_OPEN": "1", "KB_APPS": "api,mcp,metrics"}


def api(server, key=None):
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return httpx2.Client(base_url=f"{server.url}/api/v1/", headers=headers)


def titles(engine):
    return {each["title"] for each in engine.get("documents").json()["documents"]}


def values(engine):
    return {each["name"]: each["value"] for each in engine.get("settings").json()["settings"]}


@pytest.mark.slow
def test_an_inbox_is_turned_on_kept_over_a_restart_and_turned_off(start_server, tmp_path):
    inbox, data = tmp_path / "inbox", tmp_path / "data"
    inbox.mkdir()
    with start_server(data) as server, api(server) as engine:
        engine.patch("settings", json={"inbox_dir": str(inbox)}).raise_for_status()
        (inbox / "one.md").write_text("# One")
        eventually("the file is added", lambda: "One" in titles(engine))
    with start_server(data) as server, api(server) as engine:
        assert values(engine)["inbox_dir"] == str(inbox)
        (inbox / "two.md").write_text("# Two")
        eventually("the file is added", lambda: "Two" in titles(engine))
        engine.patch("settings", json={"inbox_dir": None}).raise_for_status()
        assert values(engine)["inbox_dir"] is None
        assert json.loads((data / "settings.json").read_text()) == {}
        threads = {file.read_text().strip() for file in Path(f"/proc/{server.process.pid}/task").glob("*/comm")}
        assert "kb-inbox" not in threads


@pytest.mark.sqlite
def test_backups_begin_at_once_and_another_folder_gets_them_from_then_on(start_server, tmp_path):
    with start_server(tmp_path / "data") as server, api(server) as engine:
        assert engine.get("maintenance").json()["backup_dir"] is None
        assert engine.get("storage").json()["backups"] is None
        for name in ("one", "two"):
            engine.patch("settings", json={"backup_dir": str(tmp_path / name)}).raise_for_status()
            eventually("there is a backup", lambda: engine.get("maintenance").json()["backups"])
            assert engine.get("maintenance").json()["backup_dir"] == str(tmp_path / name)
        engine.patch("settings", json={"backup_keep": 2, "backup_hours": 0.5}).raise_for_status()
        state = engine.get("maintenance").json()
        assert (state["backup_keep"], state["backup_hours"]) == (2, 0.5)


def test_only_a_key_with_all_rights_sees_and_changes_settings(server, tmp_path):
    with api(server, KEY) as engine:
        made = engine.post("keys", json={"name": "settings-writer", "right": "write"}).json()["key"]
        try:
            with api(server, made) as limited:
                assert limited.get("settings").status_code == 403
                assert limited.patch("settings", json={"inbox_dir": str(tmp_path)}).status_code == 403
                assert limited.post("first-key").status_code == 403
        finally:
            engine.delete("keys/settings-writer")
    with api(server) as nobody:
        assert nobody.get("settings").status_code == 401
        assert nobody.patch("settings", json={}).status_code == 401


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"data_dir": "/tmp"}, "data_dir"),
        ({"backup_hours": 0}, "backup_hours"),
        ({"backup_hours": "12"}, "backup_hours"),
        ({"backup_hours": 0.0001}, "backup_hours"),
        ({"backup_hours": 1e300}, "backup_hours"),
        ({"backup_keep": 0}, "backup_keep"),
        ({"backup_keep": 1.5}, "backup_keep"),
        ({"backup_keep": True}, "backup_keep"),
        ({"ocr": 1}, "ocr"),
        ({"ocr": "x" * 1001}, "ocr"),
        ({"inbox_dir": "relative"}, "KB_INBOX_DIR"),
        ([], ""),
    ],
)
def test_a_wrong_change_is_refused_with_the_setting_named(server, body, words):
    with api(server, KEY) as engine:
        answer = engine.patch("settings", json=body)
        assert answer.status_code == 422
        assert words in answer.text


def test_a_change_is_in_the_audit_log(server):
    with api(server, KEY) as engine:
        engine.patch("settings", json={"backup_keep": None}).raise_for_status()
        newest = engine.get("audit", params={"limit": 1}).json()["lines"][0]
        assert newest["action"] == "settings-change"
        assert newest["by"]
        engine.patch("settings", json={"backup_keep": 0})
        assert engine.get("audit", params={"limit": 1}).json()["lines"][0]["id"] == newest["id"]


def test_a_setting_in_the_environment_is_not_changed(start_server, tmp_path):
    with start_server(tmp_path / "data", KB_OCR="0") as server, api(server) as engine:
        answer = engine.patch("settings", json={"ocr": "1"})
        assert answer.status_code == 409
        assert answer.json()["type"].endswith("setting-fixed")
        assert "KB_OCR is set in the environment" in answer.json()["detail"]
        [shown] = [each for each in engine.get("settings").json()["settings"] if each["name"] == "ocr"]
        assert (shown["value"], shown["source"]) == ("0", "environment")


def mcp_status(server, key=None):
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return httpx2.post(f"{server.url}/mcp", json={}, headers=headers).status_code


def test_the_first_key_guards_a_kb_whose_agents_have_a_key_already(start_server, tmp_path):
    agents = OPEN | {"KB_MCP_API_KEY": "the-agents-key"}
    with start_server(tmp_path, **agents) as server, api(server) as engine:
        key = engine.post("first-key").json()["key"]
        assert (mcp_status(server, key), mcp_status(server, "the-agents-key")) == (401, 400)
    with start_server(tmp_path, **agents) as server, api(server) as nobody, api(server, key) as engine:
        assert (nobody.get("status").status_code, engine.get("status").status_code) == (401, 200)
        assert (mcp_status(server, key), mcp_status(server, "the-agents-key")) == (401, 400)


@pytest.mark.slow
def test_the_first_key_guards_people_agents_and_commands_at_once_and_from_the_next_start(start_server, tmp_path):
    data = tmp_path / "data"
    with start_server(data, **OPEN) as server, api(server) as engine:
        assert (mcp_status(server), metrics_status(server)) == (400, 200)
        made = engine.post("first-key")
        assert made.status_code == 201
        key = made.json()["key"]
        assert (data / "api.key").stat().st_mode & 0o077 == 0
        check_guarded(server, data, key)
        (data / "api.key").unlink()
        assert (engine.get("status").status_code, mcp_status(server)) == (401, 401), "a lost file opens nothing"
        (data / "api.key").write_text(f"{key}\n")
    with start_server(data, **OPEN | {"KB_ALLOW_OPEN": ""}) as server:
        check_guarded(server, data, key)


def check_guarded(server, data, key):
    with api(server) as nobody:
        assert nobody.get("status").status_code == 401
        assert nobody.post("first-key").status_code == 401
    assert (mcp_status(server), mcp_status(server, "a-wrong-key"), mcp_status(server, key)) == (401, 401, 400)
    assert (metrics_status(server), metrics_status(server, key)) == (401, 200)
    with api(server, key) as engine:
        [shown] = [each for each in engine.get("settings").json()["settings"] if each["name"] == "api_key_file"]
        assert (shown["source"], shown["value"]) == ("saved", str(data / "api.key"))
        assert engine.post("first-key").status_code == 409
        agent = engine.post("keys", json={"name": "agent"}).raise_for_status().json()["key"]
        assert mcp_status(server, agent) == 400
        engine.delete("keys/agent").raise_for_status()
        assert mcp_status(server, agent) == 401
    command = [sys.executable, "-m", "kb_cli.main", "status"]
    environment = without_settings() | {"KB_DATA_DIR": str(data)}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def metrics_status(server, key=None):
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return httpx2.get(f"{server.url}/metrics", headers=headers).status_code


async def test_agents_use_kb_with_the_first_key_that_was_made_while_it_runs(start_server, tmp_path):
    with start_server(tmp_path / "data", **OPEN) as server, api(server) as engine:
        async with Client(f"{server.url}/mcp") as agent:
            await agent.call_tool("kb_status", {})
        key = engine.post("first-key").json()["key"]
        async with Client(f"{server.url}/mcp", auth=key) as agent:
            reply = await agent.call_tool("kb_status", {})
            assert not reply.is_error


@pytest.mark.rare
def test_of_first_keys_made_at_once_one_is_valid_and_the_others_are_refused(start_server, tmp_path):
    data = tmp_path / "data"
    with start_server(data, **OPEN) as server, api(server) as engine, ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: engine.post("first-key"), range(16)))
        [made] = [answer.json()["key"] for answer in answers if answer.status_code == 201]
        assert {answer.status_code for answer in answers} <= {201, 401, 409}
        assert (data / "api.key").read_text().strip() == made
        with api(server, made) as owner:
            assert owner.get("status").status_code == 200


@pytest.mark.rare
def test_an_empty_file_of_the_first_key_opens_nothing_and_the_log_says_why(start_server, tmp_path):
    data = tmp_path / "data"
    with start_server(data, **OPEN) as server, api(server) as engine:
        (data / "api.key").touch()
        assert (engine.get("status").status_code, mcp_status(server)) == (401, 401)
        (data / "api.key").write_text("a-key-of-enough-characters\n")
        with api(server, "a-key-of-enough-characters") as owner:
            assert owner.get("status").status_code == 200


def test_a_key_in_the_environment_is_used_instead_of_the_first_key(start_server, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    (data / "api.key").write_text("a-key-that-kb-made-once\n")
    with start_server(data, KB_API_KEY=KEY, KB_MCP_API_KEY="the-agents-key", KB_APPS=ALL_APPS) as server:
        with api(server, "a-key-that-kb-made-once") as other:
            assert other.get("status").status_code == 401
        with api(server, KEY) as engine:
            assert engine.get("status").status_code == 200


@pytest.mark.slow
def test_changes_at_once_leave_one_of_them_whole(start_server, tmp_path):
    folders = [tmp_path / f"inbox {number}" for number in range(8)]
    with start_server(tmp_path / "data") as server, api(server) as engine, ThreadPoolExecutor() as pool:
        for folder in folders:
            folder.mkdir()
        asked = [{"inbox_dir": str(folder), "ocr": "0"} for folder in folders]
        answers = list(pool.map(lambda body: engine.patch("settings", json=body).status_code, asked * 3))
        assert set(answers) == {200}
        last = values(engine)["inbox_dir"]
        assert json.loads((tmp_path / "data/settings.json").read_text()) == {"inbox_dir": last, "ocr": "0"}
        (Path(last) / "one.md").write_text("# One")
        eventually("the file is added", lambda: "One" in titles(engine))


@pytest.mark.skipif(TRIED[-1] != "sqlite", reason="backups by kb are of SQLite")
def test_ocr_is_turned_on_and_off(start_server, tmp_path):
    with start_server(tmp_path / "data") as server, api(server) as engine:
        answer = engine.patch("settings", json={"ocr": "1"})
        if "not installed" in answer.text:
            assert answer.status_code == 422
            assert values(engine)["ocr"] is None
            pytest.skip("Tesseract is not installed here")
        answer.raise_for_status()
        refused = engine.patch("settings", json={"ocr": "eng+xyz"})
        assert refused.status_code == 422
        assert "Tesseract has no language xyz" in refused.json()["detail"]
        assert values(engine)["ocr"] == "1"
        engine.patch("settings", json={"ocr": None}).raise_for_status()
        assert values(engine)["ocr"] is None
