"""The crash suite's loss of power is realistic: unsynced writes are gone, and synced ones stay."""

from __future__ import annotations

import subprocess
import sys

import apsw
import pytest

from tests.conftest import without_settings
from tests.crash.unsynced import PowerLoss

FILES = """
import os, sys
from pathlib import Path
from kb.filesystem import sync
root = Path(sys.argv[1])
for name in ("kept", "changed", "moved", "removed"):
    (root / name).write_text(name)
    sync(root / name)
sync(root)
(root / "changed").write_text("something else, and longer")
(root / "new").write_text("new")
(root / "moved").rename(root / "kept")
(root / "removed").unlink()
(root / "folder").mkdir()
os.kill(os.getpid(), 9)
"""
ROWS = """
import os, sys, apsw
connection = apsw.Connection(sys.argv[1] + "/kb.db")
connection.pragma("journal_mode", "WAL")
connection.pragma("synchronous", sys.argv[2])
connection.execute("CREATE TABLE numbers (number)")
for number in range(20):
    connection.execute("INSERT INTO numbers VALUES (?)", (number,))
os.kill(os.getpid(), 9)
"""


@pytest.fixture
def power(shim, tmp_path):
    loss = PowerLoss(shim, tmp_path / "data", tmp_path / "log")
    loss.root.mkdir()
    loss.logs.mkdir()
    return loss


def run(power, program, *words):
    command = [sys.executable, "-c", program, str(power.root), *words]
    assert subprocess.run(command, env=without_settings() | power.environment, check=False).returncode == -9
    power.strike()


def test_files_and_names_are_as_they_were_when_they_were_synced(power):
    run(power, FILES)
    assert {path.name: path.read_text() for path in power.root.iterdir()} == {
        name: name for name in ("kept", "changed", "moved", "removed")
    }


@pytest.mark.parametrize(("synchronous", "rows"), [("FULL", 20), ("OFF", None)])
def test_rows_that_a_database_synced_stay_and_others_do_not(power, synchronous, rows):
    run(power, ROWS, synchronous)
    connection = apsw.Connection(str(power.root / "kb.db"))
    try:
        assert connection.execute("SELECT count(*) FROM numbers").get == rows
    except apsw.SQLError:
        assert rows is None
    finally:
        connection.close()
