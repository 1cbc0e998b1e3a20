"""kb upgrade tells how to get a newer kb, and what its first start does to the database, without changing anything."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import apsw
import pytest

from kb.store.sqlite.schema import SCHEMA_VERSION
from kb.store.sqlite.store import SqliteStore
from kb_cli.commands.upgrade import OTHERWISE, way
from tests.support.spaces import space


@pytest.fixture
def database(outside, tmp_path):
    """A data folder with a database of a version, for the command kb."""
    outside.environment["KB_DATA_DIR"] = str(tmp_path)

    def of(version):
        SqliteStore(tmp_path / "kb.db", space(4)).close()
        with closing(apsw.Connection(str(tmp_path / "kb.db"))) as connection:
            connection.pragma("user_version", version)
        return (tmp_path / "kb.db").read_bytes()

    return of


@pytest.mark.parametrize(
    ("version", "status", "said"),
    [
        (SCHEMA_VERSION, 0, "the next start changes nothing"),
        (SCHEMA_VERSION - 1, 0, f"copies it to kb.db.v{SCHEMA_VERSION - 1}-backup"),
        (2, 0, "copies it to kb.db.v2-backup"),
        (0, 0, "copies it to kb.db.v2-backup"),
        (SCHEMA_VERSION + 1, 1, "this version of kb cannot read"),
        (7, 1, "this version of kb cannot read"),
    ],
)
def test_a_check_says_what_the_next_start_does_and_writes_nothing(outside, database, tmp_path, version, status, said):
    content, files = database(version), sorted(tmp_path.iterdir())
    ended = outside("upgrade", "--check")
    assert (ended.returncode, ended.stderr) == (status, "")
    assert said in ended.stdout
    assert (tmp_path / "kb.db").read_bytes() == content
    assert sorted(tmp_path.iterdir()) == files


def test_without_a_database_nothing_has_to_be_migrated(outside, tmp_path):
    ended = outside("upgrade", "--json", env={"KB_DATA_DIR": str(tmp_path / "none")})
    assert (ended.returncode, '"possible": true' in ended.stdout) == (0, True)
    assert not (tmp_path / "none").exists()


def test_a_file_that_is_no_database_is_named(outside, tmp_path):
    (tmp_path / "kb.db").write_text("no database, but long enough to be read as one " * 100)
    ended = outside("upgrade", env={"KB_DATA_DIR": str(tmp_path)})
    assert ended.returncode != 0
    assert str(tmp_path / "kb.db") in ended.stderr


@pytest.mark.parametrize(
    ("environment", "command"),
    [
        ("/home/anna/.local/share/pipx/venvs/kb-local", "pipx install"),
        ("/home/anna/.local/share/uv/tools/kb-local", "uv tool install"),
        ("/home/anna/.local/lib/kb", "make install"),
        ("/home/anna/kb/.venv", "git pull"),
        ("/opt/homebrew/Cellar/kb/3.0.0/libexec", "brew upgrade"),
        ("/home/anna/environments/notes", OTHERWISE),
    ],
)
def test_the_command_is_the_one_of_the_way_that_kb_was_installed(environment, command):
    assert way(Path(environment)).startswith(command)
