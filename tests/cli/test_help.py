"""Each command's help, as it was when someone last read it: `KB_GOLDEN=1 pytest tests/cli/test_help.py` writes it anew."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kb_cli.main import COMMANDS

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.requirement("L-2")
@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_reads_as_it_was_read(outside, command):
    ended = outside(*command.split(), "--help", env={"COLUMNS": "80", "TERM": "dumb"})
    assert (ended.returncode, ended.stderr) == (0, "")
    assert max(map(len, ended.stdout.splitlines())) <= 80
    golden = GOLDEN / f"kb {command}".strip()
    if os.environ.get("KB_GOLDEN"):
        GOLDEN.mkdir(exist_ok=True)
        golden.with_name(f"{golden.name}.txt").write_text(ended.stdout)
    assert golden.with_name(f"{golden.name}.txt").read_text() == ended.stdout
