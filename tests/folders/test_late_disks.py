"""A disk that does not respond holds up nobody for long, and only one thread."""

from __future__ import annotations

import os
import threading

import pytest

from kb.folders.timed_reads import Latest
from tests.support.eventually import eventually

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs a pipe")


def test_one_call_waits_for_a_disk_that_is_gone_and_the_next_ones_do_not(tmp_path):
    pipe, latest = tmp_path / "pipe", Latest(0.05)
    os.mkfifo(pipe)
    for _ in range(3):
        with pytest.raises(OSError, match="does not respond"):
            latest.of(pipe.read_text)
    assert [thread.name for thread in threading.enumerate()].count("kb-look") == 1
    pipe.write_text("it is back")
    eventually("the disk responds", lambda: answer(latest, tmp_path) == ["pipe"])


def answer(latest, folder):
    try:
        return latest.of(lambda: [each.name for each in folder.iterdir()])
    except OSError:
        return None


def test_an_error_of_the_disk_reaches_whoever_asks(tmp_path):
    with pytest.raises(FileNotFoundError):
        Latest(10).of((tmp_path / "absent").read_text)
