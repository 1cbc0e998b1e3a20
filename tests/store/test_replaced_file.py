"""A file that is copied over the database is used as it is or refused, and never mixed with the log of the earlier one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import closing

import apsw
import pytest

from kb.api.errors import DiskFault, StoreError
from kb.backup.make import back_up
from kb.backup.restore import restore_backup
from kb.repair.doctor import check_data
from kb.settings import Settings
from kb.store.open import open_store
from kb.store.sqlite.file_identity import note
from tests.support.documents import DIMENSIONS, content
from tests.support.spaces import space

KILLED = """
import os, sys
from pathlib import Path
from kb.settings import Settings
from kb.store.open import open_store
from tests.support.documents import DIMENSIONS, content
from tests.support.spaces import space

with open_store(Settings(data_dir=Path(sys.argv[1])), space(DIMENSIONS)) as store:
    with store.write() as tx:
        tx.documents.add(content("only in the log"), "/late", [])
    os._exit(0)
"""


def texts(settings):
    with open_store(settings, space(DIMENSIONS)) as store, store.read() as tx:
        return {tx.documents.get(id_).source_path for id_ in range(1, 4) if tx.documents.get(id_)}


@pytest.fixture
def settings(tmp_path):
    settings = Settings(data_dir=tmp_path / "data")
    with open_store(settings, space(DIMENSIONS)) as store, store.write() as tx:
        tx.documents.add(content("the first text"), "/first", [])
    return settings


@pytest.fixture
def old(settings, tmp_path):
    """A copy of the file from an earlier day."""
    shutil.copy(settings.database_path, tmp_path / "old.db")
    return tmp_path / "old.db"


@pytest.fixture
def killed(settings, old):
    subprocess.run([sys.executable, "-c", KILLED, settings.data_dir], check=True)
    log = settings.database_path.with_name("kb.db-wal")
    assert log.stat().st_size
    return settings


def folder(settings):
    return {path.name: path.read_bytes() for path in settings.data_dir.iterdir() if path.name.startswith("kb.db")}


@pytest.mark.parametrize("put", [shutil.copyfile, os.replace], ids=["copied over", "moved"])
def test_an_old_file_over_the_database_of_a_killed_engine_is_refused_by_every_command(killed, old, put, tmp_path):
    put(old, killed.database_path)
    before = folder(killed)
    for use in (texts, check_data, lambda each: back_up(each, tmp_path / "backups", keep=7)):
        with pytest.raises(StoreError, match=r"was replaced, but .*-wal still has changes"):
            use(killed)
    assert folder(killed) == before


def test_after_the_remedy_the_old_file_is_used_as_it_is(killed, old):
    shutil.copyfile(old, killed.database_path)
    for ending in ("-wal", "-shm"):
        killed.database_path.with_name(f"kb.db{ending}").unlink(missing_ok=True)
    assert texts(killed) == {"/first"}


def test_without_a_replacement_the_log_of_a_killed_engine_is_used(killed):
    assert texts(killed) == {"/first", "/late"}
    assert not note(killed.database_path).exists()


def test_a_note_that_a_power_cut_left_empty_does_not_keep_the_log_from_being_used(killed):
    note(killed.database_path).write_text("")
    assert texts(killed) == {"/first", "/late"}


def test_the_database_of_a_backup_copied_over_a_killed_one_is_refused_too(settings, tmp_path):
    made = back_up(settings, tmp_path / "backups", keep=7)
    subprocess.run([sys.executable, "-c", KILLED, settings.data_dir], check=True)
    shutil.copyfile(made.path / "kb.db", settings.database_path)
    with pytest.raises(StoreError, match="was replaced"):
        texts(settings)
    restore_backup(settings, tmp_path / "backups")
    assert texts(settings) == {"/first"}


@pytest.mark.parametrize("put", [shutil.copyfile, os.replace], ids=["copied over", "moved"])
def test_a_file_put_over_the_database_of_a_running_engine_gets_nothing_of_its_changes(settings, old, put):
    expected = old.read_bytes()
    with open_store(settings, space(DIMENSIONS)) as store:
        with store.write() as tx:
            tx.documents.add(content("only in the log"), "/late", [])
        put(old, settings.database_path)
        with pytest.raises(DiskFault, match="was replaced, moved or removed while kb was running"), store.write():
            pass
        with pytest.raises(StoreError, match="was replaced, moved or removed while kb was running"):
            store.check()
    assert settings.database_path.read_bytes() == expected
    if put is shutil.copyfile:
        with pytest.raises(StoreError, match="was replaced, but"):
            texts(settings)


def test_a_running_engine_takes_no_changes_while_its_folder_is_elsewhere(settings, tmp_path):
    with open_store(settings, space(DIMENSIONS)) as store:
        settings.data_dir.rename(tmp_path / "elsewhere")
        with pytest.raises(DiskFault, match="If you moved it, move it back"), store.write():
            pass
        with pytest.raises(StoreError, match="moved or removed"):
            store.check()
        (tmp_path / "elsewhere").rename(settings.data_dir)
        with store.write() as tx:
            tx.documents.add(content("after the move"), "/after", [])
        shutil.rmtree(settings.data_dir)
        with pytest.raises(DiskFault, match="kb backup restore"), store.write():
            pass


def test_a_folder_that_was_moved_from_under_a_running_engine_has_all_that_it_accepted(settings, tmp_path):
    with open_store(settings, space(DIMENSIONS)) as store:
        with store.write() as tx:
            tx.documents.add(content("only in the log"), "/late", [])
        settings.data_dir.rename(tmp_path / "elsewhere")
    assert not settings.data_dir.exists()
    assert texts(Settings(data_dir=tmp_path / "elsewhere")) == {"/first", "/late"}


def test_an_engine_that_starts_while_another_program_reads_starts_all_the_same(settings):
    with closing(apsw.Connection(str(settings.database_path))) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM documents").fetchall()
        assert texts(settings) == {"/first"}
