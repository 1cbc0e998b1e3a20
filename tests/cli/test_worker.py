"""Where workers of their own make no sense, they are refused before anything begins."""

from __future__ import annotations

import sys

import pytest

from tests.conftest import without_settings
from tests.support.fork_server import run


@pytest.mark.parametrize(
    ("command", "settings", "reason"),
    [
        ("worker", {}, "KB_DATABASE_URL: 'kb worker' is for PostgreSQL"),
        ("serve", {"KB_WORKERS": "0"}, "KB_WORKERS: 0 is for PostgreSQL"),
        ("serve", {"KB_WORKERS": "2"}, "KB_WORKERS: "),
    ],
)
def test_a_database_in_a_file_has_the_worker_of_its_engine(tmp_path, command, settings, reason):
    environment = without_settings() | settings
    arguments = [sys.executable, "-m", "kb_cli.main", command, "--port", "0", "--data-dir", str(tmp_path / "data")]
    ended = run(arguments, env=environment)
    assert ended.returncode == 2
    assert reason in ended.stderr.splitlines()[-1]
    assert not (tmp_path / "data" / "kb.db").exists()
