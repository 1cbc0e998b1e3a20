"""kb doctor and kb reindex, which work on a database whose engine may not run."""

from __future__ import annotations

import json
import os
import re
from contextlib import closing

import pytest

from kb.backup.storage import backup_folders
from kb.client.client import EngineClient
from tests.http.conftest import added
from tests.support.cut_off import is_killed_after
from tests.support.eventually import eventually_async
from tests.support.store_v2 import connect

pytestmark = pytest.mark.sqlite


def verdicts(checks):
    """What checks of the doctor say, apart from the newest backup: none is configured here."""
    return {line.partition(": ")[2] for line in checks if not line.startswith("newest backup: ")}


@pytest.mark.slow
async def test_a_fault_is_shown_and_repaired(outside, here, start_server, tmp_path):
    with start_server(tmp_path / "data") as server:
        async with EngineClient(server.url) as client:
            await added(client, "The key is under the mat.")
        looked = outside("doctor", env=here)
        assert (looked.returncode, looked.stderr) == (0, "")
        *checks, conclusion = looked.stdout.splitlines()
        assert verdicts(checks) == {"no fault"}
        assert conclusion == f"{len(checks)} checks found nothing to repair"
        refused = outside("reindex", env=here)
        assert (refused.returncode, refused.stdout) == (8, "")
        assert "Another kb engine is using" in refused.stderr
        server.stop()
    connection = connect(tmp_path / "data" / "kb.db")
    connection.execute("DELETE FROM chunks_vec")
    connection.close()
    found = outside("doctor", "--json", env=here)
    assert found.returncode == 1
    report = json.loads(found.stdout)
    [fault] = report["found"]["vectors"]
    assert not report["well"]
    assert re.fullmatch(r"1 passages have no vector, such as passage [12]", fault)  # 2 if its vector came late
    assert outside("doctor", "--fix", env=here).returncode == 0, "the name of before"
    assert outside("doctor", env=here).returncode == 0
    assert outside("reindex", env=here).returncode == 0


@pytest.mark.slow
async def test_the_doctor_finishes_a_restore_that_was_killed_and_repairs_what_that_brought(
    outside, here, start_server, tmp_path
):
    data, backups = tmp_path / "data", tmp_path / "backups"
    with start_server(data) as server:
        async with EngineClient(server.url) as client:
            await added(client, "The key is under the mat.")
        server.stop()
    with closing(connect(data / "kb.db")) as connection:
        connection.execute("DELETE FROM chunks_vec")
    assert outside("backup", backups, env=here).returncode == 0
    assert is_killed_after(4, data, backups)
    assert not (data / "kb.db").exists()
    told = outside("doctor", env=here)
    assert (told.returncode, told.stderr) == (1, "")
    assert told.stdout == (
        "interrupted restore: a restore was interrupted; the next start of the engine also finishes it"
        " (stop the engine and run 'kb doctor --repair')\n"
        "1 of 1 checks found a fault. To repair it, stop the engine and run 'kb doctor --repair'.\n"
    )
    repaired = outside("doctor", "--repair", env=here)
    assert (repaired.returncode, repaired.stderr) == (0, "")
    assert verdicts(repaired.stdout.splitlines()[:-1]) == {"no fault"}
    with closing(connect(data / "kb.db")) as connection:
        assert connection.execute("SELECT count(*) FROM chunks_vec").get == 1


def test_where_there_is_no_database_doctor_says_so_and_makes_none(outside, here, tmp_path):
    ended = outside("doctor", env=here)
    assert (ended.returncode, ended.stdout) == (8, "")
    assert ended.stderr == (
        f"kb: The database {tmp_path / 'data' / 'kb.db'} is missing. If it was lost, restore a backup with 'kb backup restore'.\n"
    )
    assert not (tmp_path / "data").exists()


@pytest.mark.slow
async def test_a_backup_beside_a_running_engine_comes_back_in_another_place(outside, here, start_server, tmp_path):
    backups = tmp_path / "backups"
    with start_server(tmp_path / "data", KB_BACKUP_DIR=str(backups), KB_BACKUP_HOURS="1000") as server:
        async with EngineClient(server.url) as client:
            await eventually_async("the engine has made a backup by itself", lambda: backup_folders(backups))
            await added(client, "The key is under the mat.")
            made = outside("backup", backups, env=here)
            assert (made.returncode, made.stderr) == (0, "")
            assert made.stdout.endswith(": 1 documents, 0 files (0 copied), not sealed (KB_BACKUP_KEY is not set)\n")
            refused = outside("backup", "restore", backups, env=here)
            assert (refused.returncode, refused.stdout) == (8, "")
            assert "Another kb engine is using" in refused.stderr
    verified = outside("backup", "verify", backups, env=here)
    assert verified.returncode == 0
    assert verified.stdout.startswith(f"{backups}: no fault\n")
    assert verified.stdout.count(": not sealed: anyone with write access may have changed it\n") == 2
    there = here | {"KB_DATA_DIR": str(tmp_path / "other")}
    assert outside("backup", "restore", backups, env=there).returncode == 0
    with start_server(tmp_path / "other") as server:
        async with EngineClient(server.url) as client:
            [found] = (await client.search(query="key"))["results"]
            assert found["text"] == "The key is under the mat."
    again = outside("restore", backups, env=there)
    assert "use 'kb backup restore'" in again.stderr
    assert f"the previous data is in {tmp_path / 'other'}/before-restore-" in again.stdout


@pytest.mark.slow
async def test_an_import_says_what_became_of_documents_that_were_there(outside, here, start_server, tmp_path):
    for folder, tag, lodging in (("data", "theirs", "hotel"), ("other", "ours", "hostel")):
        with start_server(tmp_path / folder) as server:
            async with EngineClient(server.url) as client:
                await added(client, "The key is under the mat.", source_path="/key", tags=[tag])
                await added(client, f"The {lodging} is booked.", source_path="/lodging")
    assert outside("export", str(tmp_path / "export"), env=here).returncode == 0
    there = here | {"KB_DATA_DIR": str(tmp_path / "other")}
    assert outside("import", str(tmp_path / "export"), env=there).stdout.splitlines() == [
        "0 documents added, 2 already existed",
        "1 of these now have new content; their history contains the old content",
        "1 of these now also have the tags from the export",
    ]
    again = outside("import", str(tmp_path / "export"), env=there)
    assert again.stdout == "0 documents added, 2 already existed\n"


def test_a_place_without_a_backup_is_said_to_have_none(outside, here, tmp_path):
    for words in (("backup", "verify", tmp_path), ("backup", "restore", tmp_path)):
        ended = outside(*words, env=here)
        assert (ended.returncode, ended.stdout) == (8, "")
        assert "contains no backup" in ended.stderr
    assert outside("backup", env=here).returncode == 2


@pytest.mark.rare
@pytest.mark.skipif(os.name == "nt", reason="modes of files")
async def test_what_commands_write_is_for_its_owner_alone(outside, here, start_server, tmp_path):
    with start_server(tmp_path / "data") as server:
        async with EngineClient(server.url) as client:
            await added(client, "The key is under the mat.")
        server.stop()
    assert outside("export", str(tmp_path / "export"), env=here).returncode == 0
    assert outside("backup", str(tmp_path / "backups"), env=here).returncode == 0
    commands = {
        "imported": ["import", str(tmp_path / "export")],
        "restored": ["backup", "restore", str(tmp_path / "backups")],
    }
    before = os.umask(0o022)
    try:
        for folder, command in commands.items():
            done = outside(*command, env=here | {"KB_DATA_DIR": str(tmp_path / folder)})
            assert done.returncode == 0, done.stderr
        done = outside("reindex", env=here | {"KB_DATA_DIR": str(tmp_path / "imported")})
        assert done.returncode == 0, done.stderr
    finally:
        os.umask(before)
    made = [path for folder in ("export", *commands) for path in [tmp_path / folder, *(tmp_path / folder).rglob("*")]]
    assert {path.name for path in made} >= {"kb.db", "imported", "restored", "keys.jsonl"}
    assert [path for path in made if path.stat().st_mode & 0o077] == []
