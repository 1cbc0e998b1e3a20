"""Before a newer kb changes the tables of a database, it copies the database, so that there is a way back."""

from __future__ import annotations

import os
import stat
import time
from contextlib import closing

import apsw
import pytest

from kb import clock
from kb.api.errors import StoreError
from kb.store.migrations import FIRST
from kb.store.sqlite.connection import connect
from kb.store.sqlite.migrate import COPY_DAYS
from kb.store.sqlite.schema import SCHEMA_VERSION, steps
from kb.store.sqlite.store import SqliteStore
from tests.support.spaces import space

OLDER = SCHEMA_VERSION - 2


@pytest.fixture
def path(tmp_path):
    """A database of an earlier kb 3."""
    path = tmp_path / "kb.db"
    with closing(connect(path)) as connection:
        for number, sql in steps(connection, 4):
            connection.execute(sql).fetchall()
            connection.pragma("user_version", number)
            if number == OLDER:
                break
    return path


@pytest.fixture
def copy(path):
    return path.with_name(f"kb.db.v{OLDER}-backup")


def upgrade(path):
    SqliteStore(path, space(4)).close()


def version(path):
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        return connection.pragma("user_version")


def names(path):
    return {file.name for file in path.parent.iterdir()}


@pytest.mark.requirement("D-2")
def test_the_copy_has_the_old_version_and_only_its_owner_reads_it(path, copy):
    upgrade(path)
    assert (version(path), version(copy)) == (SCHEMA_VERSION, OLDER)
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600


def test_the_copy_in_its_place_is_the_way_back_and_an_upgrade_copies_it_again(path, copy):
    upgrade(path)
    copy.replace(path)
    assert version(path) == OLDER
    upgrade(path)
    assert (version(path), version(copy)) == (SCHEMA_VERSION, OLDER)


def test_a_start_without_a_migration_copies_nothing(path, copy):
    upgrade(path)
    copy.unlink()
    upgrade(path)
    assert names(path) == {"kb.db"}


def test_a_new_database_is_not_copied(tmp_path):
    upgrade(tmp_path / "kb.db")
    assert names(tmp_path / "kb.db") == {"kb.db"}


def test_without_room_for_the_copy_the_database_keeps_its_version(path, copy):
    copy.with_name(f"{copy.name}.part").mkdir()
    with pytest.raises(StoreError, match="cannot write the backup"):
        upgrade(path)
    assert version(path) == OLDER


def test_a_start_deletes_copies_that_are_a_month_old_but_for_one_of_version_2(path, copy):
    upgrade(path)
    version_2 = path.with_name("kb.db.v2-backup")
    version_2.touch()
    for file in (copy, version_2):
        old = time.time() - (COPY_DAYS + 1) * 86_400
        os.utime(file, (old, old))
    upgrade(path)
    assert names(path) == {"kb.db", "kb.db.v2-backup"}


def test_an_incomplete_copy_goes_too_and_what_cannot_be_deleted_keeps_no_start_away(path, copy):
    upgrade(path)
    copy.replace(part := copy.with_name(f"{copy.name}.part"))
    os.utime(part, (0, 0))
    copy.symlink_to("gone")
    (folder := path.with_name("kb.db.v39-backup")).mkdir()
    os.utime(folder, (0, 0))
    upgrade(path)
    assert names(path) == {"kb.db", copy.name, folder.name}


def test_a_clock_that_jumped_deletes_no_copy(path, copy, monkeypatch):
    upgrade(path)
    begin, jumped = clock.own.expiry(), time.time() + 365 * 86_400
    monkeypatch.setattr(time, "time", lambda: jumped)
    monkeypatch.setattr(clock.own, "expiry", lambda: begin)
    upgrade(path)
    assert copy.exists()


def test_an_older_kb_refuses_a_newer_database_and_writes_nothing(path):
    with closing(connect(path)) as connection:
        connection.pragma("user_version", SCHEMA_VERSION + 1)
    before = path.read_bytes(), names(path)
    with pytest.raises(StoreError, match="Use a newer version"):
        upgrade(path)
    assert (path.read_bytes(), names(path)) == before
    assert FIRST < OLDER
