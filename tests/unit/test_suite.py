"""What the suite needs to run anywhere: the same tests in every process, and a Ctrl-C that arrives."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from tests.conftest import ROOT
from tests.support.eventually import eventually, eventually_async

PYTEST = (sys.executable, "-m", "pytest", "-q")

pytestmark = pytest.mark.timeout(1200)  # whole runs of pytest, beside the one that they are part of


def test_every_process_collects_the_same_tests_in_the_same_order():
    def collecting(seed):
        command = [*PYTEST, "--collect-only", "-m", "", "tests", "tests/clients"]
        environment = os.environ | {"PYTHONHASHSEED": str(seed)}
        return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)

    with collecting(1) as first:
        time.sleep(2)  # what holds the time holds another one then
        with collecting(2) as second:
            tests = [[line for line in each.stdout if "::" in line] for each in (first, second)]
    assert (first.returncode, second.returncode) == (0, 0)
    assert len(tests[0]) > 1000
    assert tests[0] == tests[1]


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
