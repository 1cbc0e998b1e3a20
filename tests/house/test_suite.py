"""The suite runs anywhere: the same tests in every process, and a Ctrl-C that arrives."""

from __future__ import annotations

import subprocess
import sys

import httpx2
import pytest

from kb.client.client import EngineClient
from tests.conftest import ROOT
from tests.support.eventually import SECONDS, eventually, eventually_async

PYTEST = (sys.executable, "-m", "pytest", "-q")

pytestmark = pytest.mark.timeout(1200)  # whole runs of pytest, beside the one that they are part of


@pytest.mark.slow
def test_a_suite_that_a_shell_starts_in_its_background_can_interrupt_what_it_starts():
    in_background = ["sh", "-c", 'trap "" INT; exec "$@"', "sh"]
    ctrl_c = "tests/cli/test_ends.py::test_ctrl_c_ends_quietly"
    ended = subprocess.run([*in_background, *PYTEST, "-n", "1", ctrl_c], cwd=ROOT, capture_output=True, check=False)
    assert ended.returncode == 0, ended.stdout.decode()


async def test_who_waits_in_vain_is_told_for_what_and_what_there_was_instead(monkeypatch):
    monkeypatch.setattr("tests.support.eventually.SECONDS", 0.01)
    with pytest.raises(pytest.fail.Exception, match=r"0.01 seconds: high tide; last seen: 'ebb'"):
        eventually("high tide", lambda: "ebb", until=lambda tide: tide == "flood")
    with pytest.raises(pytest.fail.Exception, match=r"0.01 seconds: high tide; last seen: 'ebb'"):
        await eventually_async("high tide", lambda: "ebb", until=lambda tide: tide == "flood")


def test_no_client_of_a_test_gives_up_before_the_test_does():
    limits = httpx2.Client().timeout
    assert {limits.connect, limits.read, limits.write, limits.pool} == {SECONDS}
    assert EngineClient("http://127.0.0.1:9")._timeout == SECONDS
