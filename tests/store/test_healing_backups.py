"""A damaged file in the backup folder is noticed, and copied again as long as kb has it."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace

import apsw
import pytest
from pydantic import SecretStr

import kb.backup.objects as objects_module
from kb.api.errors import StoreError
from kb.backup.make import back_up
from kb.backup.record import BackupRecord
from kb.backup.restore import restore_backup, verify_backups
from kb.backup.storage import BackupManifest, OpenBackup, backup_folders, made_at, object_name
from kb.repair.doctor import advice, check_data, is_well
from kb.store.sqlite.schema import SCHEMA_VERSION
from tests.store.test_backup import Data
from tests.support.blobs import kept_at
from tests.support.documents import content
from tests.support.rare_cases import mostly_rare

LEDGER = "a ledger of patient clerks"
LETTER = "a letter about the ledger"


@pytest.fixture
def data(tmp_path):
    data = Data(tmp_path / "data")
    with data.open() as store:
        data.add_file(store, LEDGER)
        data.add_file(store, LETTER)
        data.wait(store, "what waits")
    return data


@pytest.fixture
def backups(tmp_path):
    return tmp_path / "backups"


def stored(backups, text):
    return backups / object_name(content(text).content_hash)


def longer(path):
    with path.open("ab") as file:
        file.write(b"x")


def flipped(path):
    raw = bytearray(path.read_bytes())
    raw[3] ^= 1
    path.write_bytes(raw)


def cut(path):
    path.write_bytes(path.read_bytes()[:3])


def emptied(path):
    path.write_bytes(b"")


@pytest.mark.parametrize("damage", [longer, flipped, *mostly_rare([cut, emptied], 0)])
def test_a_damaged_file_is_copied_again_for_all_backups(data, backups, damage):
    back_up(data.settings, backups, keep=7)
    damage(stored(backups, LEDGER))
    made = back_up(data.settings, backups, keep=7)
    assert made.healed == {content(LEDGER).content_hash}
    assert any("copied again" in warning for warning in made.warnings)
    assert list(verify_backups(backups)) == []
    assert not back_up(data.settings, backups, keep=7).healed


def rotten(path):
    """Bit rot: nothing wrote the file, so that it has the time of before."""
    before = path.stat()
    flipped(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_each_file_is_read_when_its_turn_comes(data, backups, monkeypatch):
    made = back_up(data.settings, backups, keep=7)
    rotten(stored(backups, LEDGER))
    assert not back_up(data.settings, backups, keep=7).healed
    earlier = objects_module.made_at(made.path).replace(year=2020)
    monkeypatch.setattr(objects_module, "made_at", lambda _: earlier)
    assert back_up(data.settings, backups, keep=7).healed == {content(LEDGER).content_hash}


def test_one_turn_comes_every_day_and_all_turns_within_a_month(backups, monkeypatch):
    seen = []
    for day in range(objects_module.DAYS):
        moment = objects_module.clock.own.now().replace(year=2026, month=3, day=1 + day)
        monkeypatch.setattr(objects_module, "made_at", lambda _, moment=moment: moment)
        monkeypatch.setattr(objects_module, "backup_folders", lambda _: [backups])
        monkeypatch.setattr(objects_module.clock.own, "now", lambda moment=moment: moment.replace(day=moment.day + 1))
        seen += objects_module._turns(backups)
    assert sorted(seen) == list(range(objects_module.DAYS))


def test_a_verification_finds_bit_rot_names_the_remedy_and_lets_the_next_backup_heal_it(data, backups):
    back_up(data.settings, backups, keep=7)
    rotten(stored(backups, LEDGER))
    [damaged, *_] = verify_backups(backups, files=data.settings.files_dir)
    assert "'kb backup' copies it again" in damaged
    assert not stored(backups, LEDGER).exists()
    assert back_up(data.settings, backups, keep=7).added == 1
    assert list(verify_backups(backups)) == []
    assert not list(backups.rglob("*.damaged"))


def test_a_damaged_file_that_kb_no_longer_has_is_named_and_set_aside_but_not_thrown_away(data, backups):
    back_up(data.settings, backups, keep=7)
    kept_at(data.originals, content(LEDGER).content_hash).unlink()
    flipped(stored(backups, LEDGER))
    [fault, *_] = verify_backups(backups, files=data.settings.files_dir)
    assert "--without-damaged" in fault
    made = back_up(data.settings, backups, keep=7)
    assert made.absent == 1
    assert [path.name for path in backups.rglob("*.damaged")] == [f"{content(LEDGER).content_hash}.damaged"]


@pytest.mark.parametrize("target", ["backups", "backup.tar"])
def test_everything_but_the_damaged_files_comes_back_on_request(data, tmp_path, target):
    back_up(data.settings, tmp_path / target, keep=7)
    if target == "backups":
        flipped(stored(tmp_path / target, LEDGER))
        stored(tmp_path / target, "what waits").unlink()
    else:
        raw = (tmp_path / target).read_bytes()
        (tmp_path / target).write_bytes(raw.replace(LEDGER.encode(), LEDGER.encode().upper(), 1))
    place = Data(tmp_path / "other")
    with pytest.raises(StoreError, match="--without-damaged"):
        restore_backup(place.settings, tmp_path / target)
    assert not place.settings.database_path.exists()
    restored = restore_backup(place.settings, tmp_path / target, without_damaged=True)
    assert any(LEDGER in name and name.startswith("document ") for name in restored.left_out)
    assert any(name.startswith("queued job ") for name in restored.left_out) == (target == "backups")
    assert kept_at(place.originals, content(LETTER).content_hash).read_text() == LETTER
    assert not kept_at(place.originals, content(LEDGER).content_hash).exists()


def test_a_damaged_database_is_never_left_out_and_the_error_says_what_to_name(data, backups):
    back_up(data.settings, backups, keep=7)
    newest = back_up(data.settings, backups, keep=7).path
    flipped(newest / "kb.db")
    with pytest.raises(StoreError, match="Choose another backup"):
        restore_backup(Data(backups.parent / "other").settings, backups, without_damaged=True)
    (newest / "manifest.json").write_text("{}")
    with pytest.raises(StoreError, match=f"name it: {backup_folders(backups)[0]}"):
        restore_backup(Data(backups.parent / "other").settings, backups)


def test_a_sealed_backup_needs_its_key_unless_somebody_accepts_that(data, backups, tmp_path):
    sealing = data.settings.model_copy(update={"backup_key": SecretStr("k" * 32)})
    back_up(sealing, backups, keep=7)
    place = Data(tmp_path / "other")
    with pytest.raises(StoreError, match="--unverified"):
        restore_backup(place.settings, backups)
    assert restore_backup(place.settings, backups, unverified=True).seal == "unchecked"
    assert restore_backup(sealing, backups).seal == "sealed"


@pytest.mark.parametrize("version", [SCHEMA_VERSION + 1, 20])
def test_backups_that_this_kb_cannot_restore_push_no_good_one_out(data, backups, version):
    good = back_up(data.settings, backups, keep=2).path
    with apsw.Connection(str(data.settings.database_path)) as connection:
        connection.pragma("user_version", version)
    made = [back_up(data.settings, backups, keep=2) for _ in range(4)]
    assert backup_folders(backups) == [good, *(each.path for each in made[-2:])]
    assert any("does not replace earlier ones" in warning for warning in made[-1].warnings)


def test_backups_of_an_empty_database_push_no_good_one_out(data, backups, tmp_path):
    good = back_up(data.settings, backups, keep=2).path
    empty = Data(tmp_path / "empty")
    with empty.open():
        pass
    for _ in range(3):
        back_up(empty.settings, backups, keep=2)
    assert backup_folders(backups)[0] == good
    assert list(verify_backups(good)) == []


def test_a_backup_with_a_damaged_manifest_does_not_count_as_one_of_the_kept(data, backups):
    first, second, third = (back_up(data.settings, backups, keep=3).path for _ in range(3))
    (third / "manifest.json").write_text("{}")
    fourth = back_up(data.settings, backups, keep=3).path
    assert backup_folders(backups) == [first, second, third, fourth]
    assert OpenBackup(first).manifest


def test_the_doctor_says_whether_there_are_backups(data, backups):
    assert advice(data.settings)["newest backup"].startswith("no backup is configured")
    assert is_well(check_data(data.settings))
    with_backups = data.settings.model_copy(update={"backup_dir": backups})
    findings = check_data(with_backups)
    assert "has no backup from the last 48 hours" in findings["newest backup"][0][0]
    assert not is_well(findings)
    back_up(with_backups, backups, keep=7)
    assert check_data(with_backups)["newest backup"][0] == []
    assert "newest backup" not in advice(with_backups)


def test_the_record_knows_the_newest_backup_that_can_be_restored(data, backups):
    settings = data.settings.model_copy(update={"backup_dir": backups})
    record = BackupRecord()
    assert record.facts(settings).good_at == 0
    good = back_up(settings, backups, keep=7)
    record.succeeded()
    at = record.facts(settings).good_at
    assert at == pytest.approx(objects_module.made_at(good.path).timestamp())
    newest = back_up(settings, backups, keep=7).path
    (newest / "manifest.json").write_text("{}")
    assert record.facts(settings).good_at == at
    record.failed("no space")
    assert (record.facts(settings).failure, record.facts(settings).failures) == ("no space", 1)
    shutil.rmtree(backups)
    assert record.facts(settings).good_at == 0


@pytest.mark.parametrize("place", ["files", "files/b", "staging/b.tar"])
def test_a_backup_is_not_written_among_the_files_of_kb(data, place):
    before = sorted(data.settings.data_dir.rglob("*"))
    with pytest.raises(StoreError, match="keeps its own files"):
        back_up(data.settings, data.settings.data_dir / place, keep=7)
    assert sorted(data.settings.data_dir.rglob("*")) == before


def test_two_data_folders_with_one_folder_for_backups_keep_each_others(data, backups, tmp_path):
    other = Data(tmp_path / "other")
    with other.open() as store:
        other.add_file(store, "a diary of another person")
    first = back_up(data.settings, backups, keep=1).path
    for _ in range(2):
        last = back_up(other.settings, backups, keep=1).path
    assert backup_folders(backups) == [first, last]
    assert list(verify_backups(backups)) == []
    with_backups = data.settings.model_copy(update={"backup_dir": backups})
    assert BackupRecord().facts(with_backups).good_at == pytest.approx(made_at(first).timestamp())


def test_a_restore_takes_the_backup_of_its_own_data_folder_and_else_wants_a_name(data, backups, tmp_path):
    other = Data(tmp_path / "other")
    with other.open() as store:
        other.add_file(store, "a diary of another person")
    first, last = (back_up(each.settings, backups, keep=1).path for each in (data, other))
    assert restore_backup(data.settings, backups).name == str(first)
    fresh = Data(tmp_path / "fresh")
    with pytest.raises(StoreError, match="has backups of 2 data folders") as refused:
        restore_backup(fresh.settings, backups)
    assert str(first) in refused.value.detail
    assert restore_backup(fresh.settings, last).name == str(last)


def test_a_backup_of_an_earlier_kb_that_names_no_data_folder_counts_as_ones_own(data, backups):
    made = back_up(data.settings, backups, keep=7)
    manifest = BackupManifest.load(
        made.manifest.dump().replace(b',\n "source": "%s"' % made.manifest.source.encode(), b"")
    )
    assert manifest == replace(made.manifest, source="")
