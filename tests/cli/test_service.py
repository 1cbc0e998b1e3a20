"""kb as a service of the user."""

from __future__ import annotations

import os

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
    assert settings.read_text() == "KB_API_KEY='a key'\nKB_PORT=8751\n"
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
    assert "systemctl is not here" in refused.stderr


def test_what_is_not_installed_is_gone_already(outside, systemd):
    assert outside("service", "uninstall", env=systemd).stdout == "There is no service of kb here.\n"
