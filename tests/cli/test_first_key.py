"""Commands beside an engine that got its first key, in whatever folder it keeps its data."""

from __future__ import annotations

import httpx2

from tests.cli.conftest import KB, Shell
from tests.conftest import without_settings


def test_commands_find_the_key_and_the_folder_of_the_engine_at_their_address(start_server, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    home = {"HOME": str(tmp_path / "home"), "XDG_DATA_HOME": str(tmp_path / "nothing")}
    with start_server(tmp_path / "data") as server:
        shell = Shell(tmp_path, without_settings() | home | {"KB_ENGINE_URL": server.url}, KB)
        assert shell("status").returncode == 0
        made = httpx2.post(f"{server.url}/api/v1/first-key").raise_for_status().json()
        assert made["key"]
        assert httpx2.get(f"{server.url}/api/v1/status").status_code == 401
        ended = shell("status")
        assert ended.returncode == 0, ended.stderr
        checked = shell("doctor")
        assert "cannot open" not in checked.stderr
        assert checked.returncode == 0, checked.stdout + checked.stderr
    assert list((tmp_path / "run" / "kb" / "engines").iterdir()) == []
