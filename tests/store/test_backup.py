"""A backup has the data of one point in time, can be checked, and can be restored."""

from __future__ import annotations

import io
import json
import os
import shutil
import tarfile
from contextlib import closing, nullcontext
from dataclasses import replace
from itertools import count

import pytest

import kb.backup.make as backup_module
from kb.api.errors import StoreError
from kb.backup.make import back_up
from kb.backup.prune import prune
from kb.backup.restore import restore_backup, verify_backups
from kb.backup.storage import BackupManifest, age_of_newest, backup_folders
from kb.backup.swap import complete_restore
from kb.backup.verify import verify_data
from kb.blobs.folder import FolderBlobs
from kb.documents.delete import purge
from kb.documents.originals import Originals
from kb.documents.staging import stage
from kb.exchange.export import export
from kb.repair.doctor import check_data, repair, repair_files
from kb.repair.reindex import reindex
from kb.settings import Settings
from kb.store.engine_lock import sole_user
from kb.store.rows import Filter, NewJob
from kb.store.sqlite.store import SqliteStore
from tests.support.blobs import kept_at
from tests.support.cut_off import cut_off_restore, is_killed_after
from tests.support.disks import filled, small_disk
from tests.support.documents import DIMENSIONS, content
from tests.support.rare_cases import mostly_rare
from tests.support.spaces import space


class Data:
    """A data folder, and changes of it."""

    def __init__(self, folder, database_url=None):
        self.settings = Settings(data_dir=folder, database_url=database_url)
        for made in (folder, self.settings.files_dir, self.settings.staging_dir):
            made.mkdir(parents=True, exist_ok=True)
        self.originals = Originals(FolderBlobs(self.settings.files_dir.parent), keep=True)

    def open(self):
        path = self.settings.database_path
        path.parent.mkdir(exist_ok=True)
        return closing(SqliteStore(path, space(DIMENSIONS)))

    def add_file(self, store, text, **fields):
        name, digest = stage(io.BytesIO(text.encode()), self.originals.blobs)
        with store.write() as tx:
            document_id = tx.documents.add(replace(content(text, "text"), **fields), f"/{text}", ["tag"])
            self.originals.add(name, digest)
        (self.settings.staging_dir / name).unlink()
        return document_id

    def wait(self, store, text):
        """A file waits for its job."""
        name, digest = stage(io.BytesIO(text.encode()), self.originals.blobs)
        with store.write() as tx:
            return tx.jobs.add(NewJob("file", staged=name, filename=text, content_hash=digest))

    def state(self, store=None):
        """The documents with their files, and the files that wait."""
        with nullcontext(store) if store else self.open() as opened, opened.read() as tx:
            documents = {each.id: each for each in tx.documents.page(Filter(), sort="id", limit=10**6, cursor=None)}
            texts = {id_: [chunk.text for chunk in tx.documents.chunks(id_)] for id_ in documents}
            waiting = {name: (self.settings.staging_dir / name).read_bytes() for name in tx.jobs.staged()}
        files = {
            id_: kept_at(self.originals, each.content_hash).read_bytes()
            for id_, each in documents.items()
            if each.doc_type != "note"
        }
        return documents, texts, files, waiting


@pytest.fixture
def data(tmp_path):
    return Data(tmp_path / "data")


@pytest.fixture
def filled_data(data):
    with data.open() as store:
        with store.write() as tx:
            tx.documents.add(content("The lighthouse keeper counts ships"), "/note", ["a", "b"])
        data.add_file(store, "a ledger of patient clerks")
        data.wait(store, "what waits")
    return data


@pytest.fixture
def backups(tmp_path):
    return tmp_path / "backups"


def restored(backups, folder):
    """The result of a restore into an empty place."""
    place = Data(folder)
    restore_backup(place.settings, backups)
    return place


@pytest.mark.parametrize("target", ["backups", "backup.tar"])
def test_nothing_outside_comes_along_where_a_row_names_it(filled_data, tmp_path, target):
    secret = filled_data.settings.data_dir / "keys.json"
    secret.write_text("secret")
    with filled_data.open() as store, store.write() as tx:
        execute = tx.connection.execute
        execute("UPDATE documents SET content_hash = './../keys.json' WHERE doc_type <> 'note'")
        execute("UPDATE jobs SET staged = '../keys.json', content_hash = './../keys.json'")
    back_up(filled_data.settings, tmp_path / target, keep=7)
    place = Data(tmp_path / "other")
    restore_backup(place.settings, tmp_path / target)
    assert not list(tmp_path.rglob("other/**/keys.json"))
    assert any("content_hash is not a SHA-256" in fault for fault in verify_data(place.settings))
    assert b"secret" not in b"".join(path.read_bytes() for path in tmp_path.glob(f"{target}*/**/*") if path.is_file())


@pytest.mark.parametrize("target", ["backups", "backup.tar"])
def test_what_was_backed_up_comes_back(filled_data, tmp_path, target):
    made = back_up(filled_data.settings, tmp_path / target, keep=7)
    assert made.manifest.missing == []
    assert list(verify_backups(tmp_path / target)) == []
    place = restored(tmp_path / target, tmp_path / "other")
    assert place.state() == filled_data.state()
    assert list(verify_data(place.settings)) == []
    assert not list(tmp_path.rglob("*.part"))


def test_no_file_that_the_moment_knows_of_goes_before_it_is_copied(filled_data, backups, monkeypatch):
    """What is deleted between the look at the files and the copy of the database is in the backup all the same."""
    put = backup_module.Copier._put

    def delete_first(self, path, file, expected):
        path.unlink()
        return put(self, path, file, expected)

    before = filled_data.state()
    monkeypatch.setattr(backup_module.Copier, "_put", delete_first)
    back_up(filled_data.settings, backups, keep=7)
    monkeypatch.undo()
    assert restored(backups, backups.with_name("other")).state() == before


def test_files_that_an_earlier_backup_has_are_not_copied_again_and_old_backups_go_with_theirs(filled_data, backups):
    assert back_up(filled_data.settings, backups, keep=2).added == 2
    assert back_up(filled_data.settings, backups, keep=2).added == 0
    with filled_data.open() as store:
        data_file = kept_at(filled_data.originals, content("a ledger of patient clerks").content_hash)
        purge(store, filled_data.originals, filled_data.originals.blobs, 2)
        filled_data.add_file(store, "another ledger")
    assert not data_file.exists()
    assert back_up(filled_data.settings, backups, keep=2).added == 1
    assert (backups / "objects" / data_file.name[:2] / data_file.name).exists()
    back_up(filled_data.settings, backups, keep=2)
    assert len(backup_folders(backups)) == 2
    assert not (backups / "objects" / data_file.name[:2] / data_file.name).exists()
    assert list(verify_backups(backups)) == []


def test_one_flipped_byte_in_any_file_of_a_backup_is_found(filled_data, backups):
    back_up(filled_data.settings, backups, keep=7)
    files = [path for path in backups.rglob("*") if path.is_file() and path.name != "lock"]
    assert len(files) == 5
    for path in files:
        raw = path.read_bytes()
        for place in {0, len(raw) // 2, len(raw) - 1}:
            path.write_bytes(raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :])
            assert faults_of(backups), (path, place)
            with pytest.raises(StoreError):
                restore_backup(filled_data.settings, backups)
        path.write_bytes(raw)
    assert faults_of(backups) == []


def test_one_flipped_byte_of_what_an_archive_holds_is_found(filled_data, tmp_path):
    archive = tmp_path / "backup.tar"
    back_up(filled_data.settings, archive, keep=7)
    raw = archive.read_bytes()
    with tarfile.open(archive) as tar:
        places = [member.offset_data + member.size // 2 for member in tar]
    assert len(places) == 5
    for place in places:
        archive.write_bytes(raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :])
        assert faults_of(archive), place


def faults_of(path):
    try:
        return list(verify_backups(path))
    except StoreError as error:
        return [error.detail]


def test_an_interrupted_backup_is_never_taken_for_one(filled_data, backups):
    for last in range(1, 4):
        with pytest.raises(KeyboardInterrupt):
            back_up(filled_data.settings, backups / str(last), keep=7, checkpoint=stopping_at(last))
        assert backup_folders(backups / str(last)) == []
    backups = backups / "1"
    (backups / "2026-01-01T00-00-00.000000Z.part").mkdir()
    back_up(filled_data.settings, backups, keep=7)
    assert list(verify_backups(backups)) == []
    assert not list(backups.rglob("*.part"))


def test_a_backup_that_gives_way_to_a_later_one_while_it_is_read_is_not_called_damaged(filled_data, backups):
    for _ in range(2):
        back_up(filled_data.settings, backups, keep=2)
    assert list(verify_backups(backups, lambda _: prune(backups, 1))) == []


def stopping_at(last):
    calls = iter(range(1, last))

    def checkpoint():
        if next(calls, None) is None:
            raise KeyboardInterrupt

    return checkpoint


def test_a_damaged_database_makes_no_backup_and_a_damaged_file_takes_no_place_of_a_sound_one(filled_data, backups):
    back_up(filled_data.settings, backups, keep=1)
    original = kept_at(filled_data.originals, content("a ledger of patient clerks").content_hash)
    original.write_bytes(b"something else")
    assert back_up(filled_data.settings, backups, keep=1).manifest.missing == []
    assert list(verify_backups(backups)) == []
    assert back_up(filled_data.settings, backups.with_name("fresh"), keep=1).manifest.missing == [str(original)]
    database = filled_data.settings.data_dir / "kb.db"
    raw = database.read_bytes()
    database.write_bytes(raw[: 4096 * 3] + os.urandom(4096 * 8) + raw[4096 * 11 :])
    whole = backup_folders(backups)
    with pytest.raises(StoreError, match="damaged"):
        back_up(filled_data.settings, backups, keep=1)
    assert backup_folders(backups) == whole


def test_a_restore_sets_aside_what_was_there_and_is_refused_while_an_engine_runs(filled_data, backups, tmp_path):
    back_up(filled_data.settings, backups, keep=7)
    before = filled_data.state()
    with filled_data.open() as store:
        filled_data.add_file(store, "written after the backup")
    after = filled_data.state()
    with sole_user(filled_data.settings.data_dir / "kb.lock"), pytest.raises(StoreError, match="Another kb engine"):
        restore_backup(filled_data.settings, backups)
    assert filled_data.state() == after
    taken = filled_data.settings.data_dir / "inbox.json"
    taken.write_text("{}")
    [aside] = restore_backup(filled_data.settings, backups).set_aside
    assert not taken.exists()  # what came into the inbox after the backup goes in again
    assert filled_data.state() == before
    assert Data(aside).state() == after


@pytest.fixture
def killed_restores(filled_data, backups, tmp_path):
    """Copies of data that are more than a backup of them, each with a restore that got a rename further."""

    def copies():
        for renames in count():
            folder = tmp_path / f"killed-{renames}"
            shutil.copytree(filled_data.settings.data_dir, folder)
            was_killed = is_killed_after(renames, folder, backups)
            yield folder
            if not was_killed:
                return

    back_up(filled_data.settings, backups, keep=7)
    before = filled_data.state()
    with filled_data.open() as store:
        filled_data.add_file(store, "written after the backup")
    return copies(), before, filled_data.state()


@pytest.mark.slow
def test_a_restore_that_is_killed_is_finished_by_the_next_start_or_has_not_begun(killed_restores):
    folders, before, after = killed_restores
    states = []
    for folder in folders:
        complete_restore(Settings(data_dir=folder))
        states.append(Data(folder).state())
        everything = {path.name for path in folder.rglob("*") if path.is_file()}
        assert content("written after the backup").content_hash in everything
    assert states == [after, *[before] * (len(states) - 1)]
    assert len(states) > 6


@pytest.mark.slow
def test_a_backup_after_a_restore_that_was_killed_is_of_one_moment(killed_restores, tmp_path):
    folders, before, after = killed_restores
    states = []
    for number, folder in enumerate(folders):
        later = tmp_path / f"later-{number}"
        back_up(Settings(data_dir=folder), later, keep=7)
        states.append(restored(later, tmp_path / f"restored-{number}").state())
    assert states == [after, *[before] * (len(states) - 1)]


def test_a_restore_that_was_killed_is_finished_by_who_uses_that_database_alone(backups, tmp_path):
    datas = [Data(tmp_path / name, f"sqlite:///{tmp_path}/databases/{name}.db") for name in ("ours", "ours.db-others")]
    ours, others = (data.settings for data in datas)
    with datas[0].open() as store:
        datas[0].add_file(store, "what is restored")
    back_up(ours, backups, keep=7)
    cut_off_restore(ours.data_dir, backups, ours.database_url)
    [unpacked] = (tmp_path / "databases").glob("restoring-*[0-9]")
    part = unpacked.with_name(f"{unpacked.name}.part")
    part.mkdir()
    for act in (complete_restore, repair_files):
        act(others)
    assert unpacked.exists()
    assert part.exists()
    repair_files(ours)
    assert not part.exists()
    assert len(complete_restore(ours)) == 2


def test_what_is_unpacked_for_one_of_two_folders_when_a_restore_is_killed_is_removed(backups, tmp_path):
    data = Data(tmp_path / "data", f"sqlite:///{tmp_path}/database/kb.db")
    settings, files = data.settings, data.settings.files_dir.parent
    with data.open() as store:
        data.add_file(store, "what is restored")
    back_up(settings, backups, keep=7)
    restore_backup(settings, backups)
    [aside] = files.glob("before-restore-*")
    half = files / aside.name.replace("before-restore", "restoring")
    half.mkdir()
    assert check_data(settings)["leftovers"][0] == [f"{half} is left over from an interrupted command"]
    complete_restore(settings)
    restore_backup(settings, backups)
    assert not half.exists()


@pytest.mark.parametrize(
    ("as_notes", "files"), mostly_rare([(False, 2), (True, 1)])
)  # what waits is no file of a document
def test_an_export_after_a_restore_that_was_killed_is_of_what_was_restored(
    filled_data, backups, tmp_path, as_notes, files
):
    back_up(filled_data.settings, backups, keep=7)
    with filled_data.open() as store:
        filled_data.add_file(store, "written after the backup")
    cut_off_restore(filled_data.settings.data_dir, backups)
    assert export(filled_data.settings, tmp_path / "export", as_notes=as_notes).documents == 2
    assert len([path for path in (tmp_path / "export" / "files").rglob("*") if path.is_file()]) == files


def test_the_doctor_tells_of_a_restore_that_was_killed_and_finishes_it(filled_data, backups):
    back_up(filled_data.settings, backups, keep=7)
    before = filled_data.state()
    with filled_data.open() as store:
        filled_data.add_file(store, "written after the backup")
    cut_off_restore(filled_data.settings.data_dir, backups)
    found = check_data(filled_data.settings)
    assert found["interrupted restore"][0] == [
        "a restore was interrupted; the next start of the engine also finishes it"
    ]
    repair(filled_data.settings, found, lambda *_: None)
    assert check_data(filled_data.settings)["interrupted restore"][0] == []
    assert filled_data.state() == before


def test_what_a_restore_that_was_killed_brings_is_what_is_made_anew(filled_data, backups):
    back_up(filled_data.settings, backups, keep=7)
    before = filled_data.state()
    with filled_data.open() as store:
        filled_data.add_file(store, "written after the backup")
    cut_off_restore(filled_data.settings.data_dir, backups)
    reindex(filled_data.settings, lambda *_: None, recompute_all=False)
    assert not list(filled_data.settings.data_dir.glob("restoring-*"))
    assert filled_data.state() == before


def test_a_disk_without_room_makes_no_backup_and_keeps_those_that_are_there(filled_data, tmp_path):
    with small_disk(tmp_path / "disk", 8) as disk:
        back_up(filled_data.settings, disk / "backups", keep=7)
        with filled_data.open() as store:
            filled_data.add_file(store, "one more " * 1000)
        with filled(disk):
            for target in ("backups", "backup.tar"):
                with pytest.raises(StoreError, match="cannot write"):
                    back_up(filled_data.settings, disk / target, keep=7)
        assert list(verify_backups(disk / "backups")) == []
        assert len(backup_folders(disk / "backups")) == 1
        assert not list(disk.rglob("*.part"))
        back_up(filled_data.settings, disk / "backups", keep=7)
        assert list(verify_backups(disk / "backups")) == []


def test_a_restore_without_room_leaves_what_was_there(filled_data, backups, tmp_path):
    back_up(filled_data.settings, backups, keep=7)
    with small_disk(tmp_path / "disk", 8) as disk:
        place = Data(disk / "data")
        with place.open() as store:
            place.add_file(store, "what was there")
        before = place.state()
        with filled(disk), pytest.raises(StoreError, match="cannot restore"):
            restore_backup(place.settings, backups)
        assert place.state() == before
        restore_backup(place.settings, backups)
        assert place.state() == filled_data.state()


def test_a_file_that_is_lost_stays_in_the_backups_and_is_said_to_be_missing(filled_data, backups, tmp_path):
    before = filled_data.state()
    back_up(filled_data.settings, backups, keep=1)
    lost = kept_at(filled_data.originals, content("a ledger of patient clerks").content_hash)
    lost.unlink()
    for _ in range(2):
        assert back_up(filled_data.settings, backups, keep=1).manifest.missing == [str(lost)]
    assert restored(backups, tmp_path / "restored").state() == before


def test_a_backup_ends_however_many_files_are_missing(filled_data, backups, monkeypatch):
    monkeypatch.setattr(backup_module, "MOST_OPEN", 1)
    with filled_data.open() as store, store.write() as tx:
        for number in range(3):
            tx.jobs.add(NewJob("file", staged=f"{number:032x}", filename="gone", content_hash="0" * 64))
    assert len(back_up(filled_data.settings, backups, keep=1).manifest.missing) == 3


def test_a_backup_removes_nothing_that_is_not_its_own(filled_data, backups):
    back_up(filled_data.settings, backups, keep=1)
    others = [
        backups / "objects/ab/abc",
        backups / "objects/notes.txt",
        backups / "album.part/photo",
        backups / "x.part",
    ]
    for path in others:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("of someone else")
    back_up(filled_data.settings, backups, keep=1)
    assert all(path.read_text() == "of someone else" for path in others)


def test_a_backup_goes_into_no_folder_of_someone_else(filled_data, backups):
    backups.mkdir()
    (backups / "photo").touch()
    with pytest.raises(StoreError, match="no backup"):
        back_up(filled_data.settings, backups, keep=1)
    assert [path.name for path in backups.iterdir()] == ["photo"]


@pytest.mark.parametrize(
    "fields", [{"staged": {"../../planted": "0" * 64}}, {"originals": ["../x"]}, {"database": "x"}, {"staged": []}]
)
def test_a_manifest_that_names_other_files_is_refused(fields):
    whole = {
        "kb-backup": 1, "made_at": "", "kb": "", "schema": 8, "database": "0" * 64, "counts": {}, "originals": ["1" * 64],
        "staged": {"2" * 32: "3" * 64}, "missing": [],
    }  # fmt: skip
    BackupManifest.load(json.dumps(whole).encode())
    with pytest.raises(ValueError, match=r"invalid file names|not a manifest"):
        BackupManifest.load(json.dumps(whole | fields).encode())


def test_a_backup_from_the_future_puts_off_none(filled_data, backups):
    (backups / "2999-01-01T00-00-00.000000Z").mkdir(parents=True)
    assert age_of_newest(backups) == float("inf")
    back_up(filled_data.settings, backups, keep=1)
    assert 0 <= age_of_newest(backups) < 3600


def test_a_file_that_is_nowhere_is_counted(filled_data, backups):
    assert back_up(filled_data.settings, backups, keep=7).absent == 0
    kept_at(filled_data.originals, content("a ledger of patient clerks").content_hash).unlink()
    assert back_up(filled_data.settings, backups, keep=7).absent == 0, "the earlier backup has it"
    assert back_up(filled_data.settings, backups.with_name("new"), keep=7).absent == 1


def test_whoever_backs_up_into_an_archive_that_is_being_written_is_told_so_each_time(filled_data, tmp_path):
    target = tmp_path / "backup.tar"
    refused = []

    def back_up_too():
        for _ in range(2):
            with pytest.raises(StoreError, match="Another backup is being written") as refusal:
                back_up(filled_data.settings, target, keep=7)
            refused.append(refusal.value)

    back_up(filled_data.settings, target, keep=7, checkpoint=back_up_too)
    assert refused
    assert list(verify_backups(target)) == []
    assert not list(tmp_path.glob("*.lock"))


def test_an_archive_removes_nothing_that_is_not_its_own(filled_data, tmp_path):
    other = tmp_path / "backup.tar.part" / "photo"
    other.parent.mkdir()
    other.touch()
    with pytest.raises(StoreError, match="already exists"):
        back_up(filled_data.settings, tmp_path / "backup.tar", keep=7)
    assert other.exists()
