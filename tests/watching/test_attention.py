"""Trouble with backups shows wherever somebody looks: status, page and metrics; a gateway without its engine says so."""

from __future__ import annotations

import httpx2
import pytest
import yaml

from tests.conftest import KEY, MCP_KEY, ROOT, free_port
from tests.support.eventually import eventually
from tests.watching.test_metrics import samples

pytestmark = pytest.mark.sqlite
HEADERS = {"Authorization": f"Bearer {KEY}"}


def attention(server, headers=HEADERS):
    return httpx2.get(f"{server.url}/api/v1/status", headers=headers).json()["attention"]


def test_a_backup_that_fails_is_seen_everywhere_until_it_succeeds(start_server, tmp_path):
    backups = tmp_path / "backups"
    backups.mkdir()
    (backups / "lock").touch()
    (backups / "objects").touch()  # where a folder must be
    settings = {"KB_APPS": "api,metrics,web", "KB_API_KEY": KEY, "KB_BACKUP_DIR": str(backups)}
    with start_server(tmp_path / "data", **settings) as server, httpx2.Client(base_url=server.url) as http:
        http.headers.update(HEADERS)
        [item] = eventually("it fails", lambda: attention(server), lambda found: "failed" in str(found))
        assert (item["name"], item["is_urgent"]) == ("newest backup", True)
        assert str(backups) in item["says"]
        assert item["remedy"]
        seen = samples(server, **HEADERS)
        assert seen["kb_backup_failures_total",] >= 1
        assert seen["kb_backup_last_success_timestamp_seconds",] == 0
        assert seen["kb_attention", "yes"] == 1
        assert seen["kb_disk_free_bytes", str(tmp_path / "data")] > 0
        assert seen["kb_files_bytes",] == 0
        (backups / "objects").unlink()
        assert http.post("/api/v1/jobs?wait=30", json={"text": "a ledger"}).status_code < 300
        http.post("/api/v1/maintenance", json={"action": "back-up"})
        eventually("it succeeds", lambda: attention(server), lambda found: not found)
        assert samples(server, **HEADERS)["kb_backup_last_success_timestamp_seconds",] > 1_700_000_000
        key = http.post("/api/v1/keys", json={"name": "limited", "tags": ["a"]}).json()["key"]
        assert attention(server, {"Authorization": f"Bearer {key}"}) == []


def test_a_backup_folder_of_something_else_is_refused_at_the_start(start_server, tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "one.jpg").touch()
    with (
        pytest.raises(Exception, match="contains other files"),
        start_server(tmp_path / "data", KB_BACKUP_DIR=str(tmp_path / "photos")),
    ):
        pass


def test_a_gateway_is_ready_only_while_its_engine_is(start_server, tmp_path):
    port = free_port()
    gateway = {
        "KB_APPS": "mcp",
        "KB_API_KEY": KEY,
        "KB_MCP_API_KEY": MCP_KEY,
        "KB_ENGINE_URL": f"http://127.0.0.1:{port}",
    }
    with (
        start_server(tmp_path / "engine", port=port, KB_API_KEY=KEY) as engine,
        start_server(tmp_path / "gateway", **gateway) as running,
    ):
        assert httpx2.get(f"{running.url}/readyz").text == "ready"
        engine.stop()
        gone = httpx2.get(f"{running.url}/readyz")
        assert (gone.status_code, gone.text) == (503, "the engine does not answer")
        assert httpx2.get(f"{running.url}/healthz").status_code == 200


def test_every_alert_has_a_severity_and_a_metric_that_exists_says_what_it_watches():
    rules = [
        rule
        for group in yaml.safe_load((ROOT / "compose/alerts.yaml").read_text())["groups"]
        for rule in group["rules"]
    ]
    assert all(rule["labels"]["severity"] in ("critical", "warning") for rule in rules)
    text = str([rule["expr"] for rule in rules])
    for metric in (
        "kb_backup_last_success_timestamp_seconds",
        "kb_backup_failures_total",
        "kb_disk_free_bytes",
        "kb_files_bytes",
        "kb_queue_age_seconds",
        "kb_refused_requests_total",
        "kb_folders_in_trouble",
        "kb_attention",
        "absent(up{job=",
    ):
        assert metric in text
