"""Actions on a disk that fails (`failing_disk.py`): what each does, and what must be there afterwards."""

from __future__ import annotations

import io
import os
from contextlib import closing
from functools import cache
from pathlib import Path
from time import monotonic, sleep

from kb.access.keyring import KeyFile, Keyring
from kb.api.job_models import FileRequest
from kb.api.rights import Limit
from kb.backup.make import back_up
from kb.backup.restore import restore_backup, verify_backups
from kb.backup.storage import backup_folders
from kb.backup.swap import finish_restore
from kb.backup.verify import verify_data
from kb.blobs.folder import FolderBlobs
from kb.documents.job_queue import retry, submit_file
from kb.documents.write_document import write_document
from kb.embed.artifact import load_model
from kb.embed.onnx.embedder import OnnxEmbedder
from kb.exchange.export import export
from kb.exchange.importing import import_folder
from kb.store.rows import Filter
from kb.store.sqlite.schema import SCHEMA_VERSION
from kb.store.sqlite.store import SqliteStore
from tests.store.test_backup import Data
from tests.store.test_migration import version_of
from tests.store.test_store import look
from tests.support import store_v2
from tests.support.documents import content
from tests.support.eventually import SECONDS
from tests.support.spaces import space
from tests.support.workers import working

BEFORE, FILE = "The lighthouse keeper counts ships.", "a ledger of patient clerks"
PATIENCE = 2
"""How many seconds jobs may take while the disk fails."""

LATER, NEW, SECOND = "What came after the backup.", "A shepherd tells of snow.", "What comes after the fault."


class Action:
    """What is done to a data folder with a note, a file and a backup. Each is done again when the disk works."""

    def prepare(self, place):
        data = Data(place / "data")
        with data.open() as store:
            write(store, BEFORE)
            data.add_file(store, FILE)
        back_up(data.settings, place / "backups", keep=7)

    def check(self, place, acknowledged):
        """Assert that everything from before is there, and everything that was acknowledged."""
        texts = whole(Data(place / "data"))
        assert {BEFORE, FILE, *acknowledged} <= texts <= {BEFORE, FILE, NEW, SECOND}, texts
        assert list(verify_backups(place / "backups")) == []


def write(store, text):
    with store.write() as tx:
        write_document(tx, content(text), f"/{text}", [])
    return text


def whole(data):
    """The texts of a data folder, each with all that belongs to it: its words, its vectors and its file."""
    with data.open() as store:
        _, texts, files, waiting = data.state(store)
    assert {id_: "".join(texts[id_]).encode() for id_ in files} == files
    assert not waiting
    assert list(verify_data(data.settings)) == []
    return {"".join(text) for text in texts.values()}


class Note(Action):
    """A note, and another one by the same process when the disk works again."""

    def act(self, place, disk):
        with Data(place / "data").open() as store:
            with disk.failing():
                yield write(store, NEW)
            yield write(store, SECOND)


class Large(Data):
    """Data with the vectors of the model."""

    def __init__(self, folder):
        super().__init__(folder)
        self.settings = self.settings.model_copy(update={"model_dir": Path(os.environ["KB_MODEL_DIR"])})

    def open(self):
        return closing(SqliteStore(self.settings.database_path, space()))


class Sync(Action):
    """Files that come by the queue: one is new, one replaces what is there."""

    OLD, NEW = ("/old.txt", BEFORE), ("/new.txt", FILE)

    def prepare(self, place):
        (place / "data").mkdir()
        with self._opened(place) as store:
            self._send(store, place, *self.OLD)
            self._work_off(store, place)

    def act(self, place, disk):
        with self._opened(place) as store, working(store, embedder(), place / "data"):
            with disk.failing():
                for path, text in ((self.OLD[0], NEW), self.NEW):
                    yield self._send(store, place, path, text)
                wait_for_jobs(store, PATIENCE)  # on a disk that stays full, they do not end
            wait_for_jobs(store, SECONDS)

    def check(self, place, acknowledged):
        """A job that the fault ended can be retried; then everything is there."""
        acknowledged = dict([self.OLD, *acknowledged])
        data = Large(place / "data")
        with self._opened(place) as store:
            self._work_off(store, place)
            with store.read() as tx:
                failed = tx.jobs.page(status="failed", limit=9, before=None)
            for job in failed:
                retry(store, job.id)
            self._work_off(store, place)
            documents, texts, files, waiting = data.state(store)
        found = {document.source_path: files[id_].decode() for id_, document in documents.items()}
        assert acknowledged.items() <= found.items() | {self.OLD}, (acknowledged, found)
        assert found[self.OLD[0]] in (acknowledged[self.OLD[0]], NEW)
        assert {id_: "".join(texts[id_]).encode() for id_ in files} == files
        assert not waiting
        assert list(verify_data(data.settings)) == []

    def _opened(self, place):
        return closing(SqliteStore(place / "data" / "kb.db", space()))

    def _send(self, store, place, path, text):
        submit_file(store, FolderBlobs(place / "data"), io.BytesIO(text.encode()), path, FileRequest(source_path=path))
        return path, text

    def _work_off(self, store, place):
        with working(store, embedder(), place / "data"):
            wait_for_jobs(store, SECONDS)


def wait_for_jobs(store, seconds):
    """Wait until all jobs have ended, but not longer than this."""
    end = monotonic() + seconds
    while pending(store) and monotonic() < end:
        sleep(0.02)


def pending(store):
    with store.read() as tx:
        return tx.jobs.pending()


@cache
def embedder():
    return OnnxEmbedder(load_model(Path(os.environ["KB_MODEL_DIR"])), "cpu", threads=1)


class Backup(Action):
    """A backup of data that has changed since the last one."""

    def prepare(self, place):
        super().prepare(place)
        data = Data(place / "data")
        with data.open() as store:
            data.add_file(store, LATER)

    def act(self, place, disk):
        with disk.failing():
            yield str(back_up(Data(place / "data").settings, place / "backups", keep=7).path)

    def check(self, place, acknowledged):
        """All finished backups are whole, and the next one is."""
        data = Data(place / "data")
        assert whole(data) == {BEFORE, FILE, LATER}
        folders = backup_folders(place / "backups")
        assert set(acknowledged) <= set(map(str, folders))
        oldest, *later = [restored(folder, place / folder.name) for folder in folders]
        assert oldest == {BEFORE, FILE}
        assert all(texts == {BEFORE, FILE, LATER} for texts in later)
        back_up(data.settings, place / "backups", keep=7)
        assert list(verify_backups(place / "backups")) == []


def restored(backup, folder):
    data = Data(folder)
    restore_backup(data.settings, backup)
    return whole(data)


class Restore(Backup):
    """A restore of a backup over data that has changed since."""

    def act(self, place, disk):
        with disk.failing():
            restore_backup(Data(place / "data").settings, place / "backups")
            yield "restored"

    def check(self, place, acknowledged):
        """The data is wholly the backup or wholly what it was; that is still there, and a restore works."""
        data, old = Data(place / "data"), {BEFORE, FILE, LATER}
        finish_restore(data.settings)
        texts = whole(data)
        assert texts in ([{BEFORE, FILE}] if acknowledged else [{BEFORE, FILE}, old])
        if texts != old:
            [aside] = (place / "data").glob("before-restore-*")
            assert whole(Data(aside)) == old
        restore_backup(data.settings, place / "backups")
        assert whole(data) == {BEFORE, FILE}
        assert list(verify_backups(place / "backups")) == []


class Migration(Action):
    """The migration of a database of version 2."""

    def prepare(self, place):
        store_v2.build(place / "kb.db", store_v2.STRICT)

    def act(self, place, disk):
        with disk.failing():
            SqliteStore(place / "kb.db", space()).close()
            yield "migrated"

    def check(self, place, acknowledged):
        """It is wholly of one version, and the next start finishes."""
        version_of(place / "kb.db")
        with closing(SqliteStore(place / "kb.db", space())) as store, store.read() as tx:
            assert tx.counts().chunks == 6
            assert look(tx, ("lamp",), store_v2.vector(13), Filter(), 1).ids.tolist() == [13]
        assert version_of(place / "kb.db") == SCHEMA_VERSION


class Import(Sync):
    """An export that comes into data."""

    def prepare(self, place):
        super().prepare(place)
        other = place / "other"
        other.mkdir()
        super().prepare(other)
        with self._opened(other) as store:
            self._send(store, other, *self.NEW)
            self._work_off(store, other)
        export(Large(other / "data").settings, place / "export", as_notes=False)

    def act(self, place, disk):
        as_it_is = {"precision": "fp32"}  # nothing to convert
        settings = Large(place / "data").settings.model_copy(update=as_it_is)
        with disk.failing():
            import_folder(settings, place / "export", lambda _: None)
            yield self.NEW


class Keys(Action):
    """Keys that are made."""

    def act(self, place, disk):
        keyring = Keyring(KeyFile(place / "data" / "keys.json"))
        yield keyring.make("first", "read", Limit())[0].name
        with disk.failing():
            yield keyring.make("second", "read", Limit())[0].name
        yield keyring.make("third", "read", Limit())[0].name

    def check(self, place, acknowledged):
        found = {key.name for key in KeyFile(place / "data" / "keys.json").all()}
        assert {"first", *acknowledged} <= found <= {"first", "second", "third"}, found


ACTIONS = {each.__name__.lower(): each for each in (Note, Sync, Backup, Restore, Migration, Import, Keys)}
