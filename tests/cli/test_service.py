"""kb as a service of the user."""

from __future__ import annotations

import json
import os
import shlex
import socket
import time

import pytest


@pytest.fixture
def systemd(outside):
    """A systemctl that only notes what it was told."""
    program = outside.folder / "bin" / "systemctl"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\necho "$@" >> {outside.folder}/told\n[ "$2" = status ] && echo "active (running)"\nexit 0\n'
    )
    program.chmod(0o755)
    return {"PATH": f"{program.parent}:{os.environ['PATH']}"}


def test_a_service_is_installed_shown_stopped_and_removed(outside, systemd):
    installed = outside(
        "service", "install", env=systemd | {"KB_PORT": "8751", "KB_API_KEY": "a key", "KB_PROFILE": "w"}
    )
    assert (installed.returncode, installed.stderr) == (0, "")
    assert "journalctl --user -u kb.service" in installed.stdout
    unit = (outside.folder / "config/systemd/user/kb.service").read_text()
    settings = outside.folder / "config/kb/service.env"
    assert f"EnvironmentFile=-{settings}\n" in unit
    assert " serve\n" in unit
    assert settings.read_text() == "KB_API_KEY='a key'\nKB_PORT=8751\nKB_PRECISION=fp32\n"
    assert settings.stat().st_mode & 0o777 == 0o600
    assert outside("service", "status", env=systemd).stdout == "active (running)\n"
    assert outside("service", "stop", env=systemd).returncode == 0
    assert outside("service", "uninstall", env=systemd).returncode == 0
    assert not (outside.folder / "config/systemd/user/kb.service").exists()
    assert not settings.exists()
    assert (outside.folder / "told").read_text().splitlines() == [
        "--user daemon-reload",
        "--user enable kb.service",
        "--user restart kb.service",
        "--user status --no-pager kb.service",
        "--user stop kb.service",
        "--user disable --now kb.service",
        "--user daemon-reload",
    ]


def test_where_there_is_no_systemd_it_says_so(outside):
    refused = outside("service", "install", env={"PATH": "/nowhere"})
    assert refused.returncode == 8
    assert "systemctl is not installed" in refused.stderr


def test_what_is_not_installed_is_gone_already(outside, systemd):
    assert outside("service", "uninstall", env=systemd).stdout == "kb is not installed as a service on this machine.\n"


def test_the_settings_go_too_where_the_unit_was_removed_by_hand(outside, systemd):
    outside("service", "install", env=systemd | {"KB_API_KEY": "a key"})
    (outside.folder / "config/systemd/user/kb.service").unlink()
    assert outside("service", "uninstall", env=systemd).returncode == 0
    assert not (outside.folder / "config/kb/service.env").exists()


def test_installing_again_keeps_the_settings_and_a_copy_of_a_unit_that_someone_changed(outside, systemd):
    first = outside("service", "install", env=systemd | {"KB_API_KEY": "it's a key", "KB_DATA_DIR": "data"})
    assert "before-kb" not in first.stdout
    unit = outside.folder / "config/systemd/user/kb.service"
    unit.write_text("[Service]\n# by hand\n")
    again = outside("service", "install", env=systemd | {"KB_PORT": "8751"})
    assert "kb.service.before-kb" in again.stdout
    assert "by hand" in unit.with_name("kb.service.before-kb").read_text()
    words = shlex.split((outside.folder / "config/kb/service.env").read_text())
    assert words == ["KB_API_KEY=it's a key", f"KB_DATA_DIR={outside.folder}/data", "KB_PORT=8751", "KB_PRECISION=fp32"]
    assert "before-kb" not in outside("service", "install", env=systemd).stdout


def test_no_service_starts_beside_an_engine_that_runs(outside, systemd):
    data = outside.folder / "data"
    data.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        (data / "kb.lock").write_text(json.dumps({"pid": os.getpid(), "url": url, "since": time.time()}))
        refused = outside("service", "install", env=systemd | {"KB_DATA_DIR": str(data)})
        assert url in outside("config", env={"KB_DATA_DIR": str(data)}).stdout
        assert url not in outside("config", env={"KB_DATA_DIR": str(data), "KB_PORT": "8751"}).stdout
    assert refused.returncode == 8
    assert f"Another engine is using this data folder: {url}" in refused.stderr
    assert not (outside.folder / "config/systemd/user/kb.service").exists()
    assert url not in outside("config", env={"KB_DATA_DIR": str(data)}).stdout


def test_a_login_without_a_bus_is_told_how_to_get_one(outside, systemd):
    program = outside.folder / "bin/systemctl"
    fault = "Failed to connect to bus: No medium found"
    program.write_text(program.read_text().replace("exit 0", f'echo "{fault}" >&2 && exit 1\nexit 0'))
    refused = outside("service", "install", env=systemd)
    assert refused.returncode == 8
    assert f"{fault}. systemd isn't running for this login" in refused.stderr
    assert "machinectl shell" in refused.stderr


@pytest.mark.parametrize("step", ["daemon-reload", "enable", "restart"])
def test_an_installation_that_fails_half_way_leaves_everything_as_it_was(outside, systemd, step):
    program = outside.folder / "bin/systemctl"
    works = program.read_text()
    fails = works.replace("exit 0", f'[ "$2" = {step} ] && echo "no bus" >&2 && exit 1\nexit 0')
    unit, settings = outside.folder / "config/systemd/user/kb.service", outside.folder / "config/kb/service.env"
    program.write_text(fails)
    refused = outside("service", "install", env=systemd | {"KB_PORT": "8751"})
    assert (refused.returncode, "no bus" in refused.stderr) == (8, True)
    assert (unit.exists(), settings.exists()) == (False, False)
    program.write_text(works)
    assert outside("service", "install", env=systemd | {"KB_PORT": "8751"}).returncode == 0
    unit.write_text("[Service]\n# by hand\n")
    before = unit.read_text(), settings.read_text()
    program.write_text(fails)
    assert outside("service", "install", env=systemd | {"KB_PORT": "8752"}).returncode == 8
    assert (unit.read_text(), settings.read_text()) == before
    assert not list(unit.parent.glob("*before-kb*"))
