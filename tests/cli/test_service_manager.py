"""systemd learns that kb is ready, stops, and is not stuck."""

from __future__ import annotations

import socket

import pytest

from kb_cli.runtime.service_manager import READY, Watchdog, notify


@pytest.fixture
def manager(tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(tmp_path / "notify"))
        listener.settimeout(5)
        yield listener


def test_a_state_reaches_the_manager(manager, tmp_path):
    notify(READY, {"NOTIFY_SOCKET": str(tmp_path / "notify")})
    assert manager.recv(100) == b"READY=1"


def test_a_state_reaches_an_abstract_address():
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind("\0kb-test-notify")
        listener.settimeout(5)
        notify(READY, {"NOTIFY_SOCKET": "@kb-test-notify"})
        assert listener.recv(100) == b"READY=1"


@pytest.mark.parametrize("environment", [{}, {"NOTIFY_SOCKET": "/nowhere/notify"}, {"NOTIFY_SOCKET": ""}])
def test_without_a_manager_nothing_happens(environment):
    notify(READY, environment)


def test_the_watchdog_speaks_twice_in_each_interval(manager, tmp_path):
    now = 100.0
    environment = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "60000000"}
    watchdog = Watchdog(environment, lambda: now)
    heard = []
    manager.settimeout(0)
    for _ in range(1200):
        now += 0.1
        watchdog.tick()
        try:
            heard.append(manager.recv(100))
        except BlockingIOError:
            continue
    assert heard == [b"WATCHDOG=1"] * 4


@pytest.mark.parametrize("usec", ["", "soon"])
def test_without_an_interval_the_watchdog_is_silent(manager, tmp_path, usec):
    watchdog = Watchdog({"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": usec}, lambda: 1e9)
    watchdog.tick()
    manager.settimeout(0)
    with pytest.raises(BlockingIOError):
        manager.recv(100)
