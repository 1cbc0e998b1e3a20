"""A backup that somebody changed: its declarations have no effect later, and kb takes nothing from it."""

import io
import json
import os
import tarfile
from hashlib import sha256

import apsw
import pytest
from pydantic import SecretStr

from kb.api.errors import StoreError
from kb.backup.make import back_up
from kb.backup.restore import restore_backup, seals, verify_backups
from kb.backup.storage import MANIFEST, SEAL, backup_folders
from kb.repair.doctor import check_data, repair
from kb.settings import Settings
from kb.store.sqlite.foreign_objects import foreign_parts, known, plain
from kb.store.sqlite.integrity_rules import missing_parts
from kb.store.sqlite.store import SqliteStore
from tests.store.test_backup import Data
from tests.support import store_v2
from tests.support.documents import content
from tests.support.rare_cases import mostly_rare
from tests.support.spaces import space

SPY = "CREATE TRIGGER spy AFTER INSERT ON chunks BEGIN UPDATE documents SET source_path = '/public'; END"
FOREIGN = {
    "a trigger": [SPY],
    "a trigger named like a table of the full text": [SPY.replace(" spy ", " chunks_fts_spy ")],
    "a view named like a table of vectors": ["CREATE VIEW chunks_vec_x AS SELECT * FROM documents"],
    "an index named like one": ["CREATE UNIQUE INDEX chunks_fts_one ON audit (action)"],
    "a table named like one of the full text": ["CREATE TABLE chunks_fts_x (id INTEGER REFERENCES documents (id))"],
    "a trigger of kb's own name": ["DROP TRIGGER chunks_ad_vectors", SPY.replace(" spy ", " chunks_ad_vectors ")],
    "a trigger that empties the audit log": ["CREATE TRIGGER hush AFTER INSERT ON audit BEGIN DELETE FROM audit; END"],
    "a trigger that never lets go": ["CREATE TRIGGER keep BEFORE DELETE ON documents BEGIN SELECT RAISE(IGNORE); END"],
    "a trigger in capitals and comments": ["create/**/Trigger [spy] AFTER INSERT ON chunks BEGIN SELECT 1; END"],
    "a view": ["CREATE VIEW everything AS SELECT * FROM documents"],
    "a view for a table": ["ALTER TABLE audit RENAME TO log", "CREATE VIEW audit AS SELECT * FROM log WHERE 0"],
    "a changed view": [
        "DROP VIEW chunk_texts",
        "CREATE VIEW chunk_texts AS SELECT id, text, 'x' AS header FROM chunks",
    ],
    "a table that refuses": ["CREATE TABLE more (id INTEGER CHECK (id > 5))"],
    "a table whose rows hold documents": [
        "CREATE TABLE more (id INTEGER REFERENCES documents (id) ON DELETE SET NULL)"
    ],
    "a column that is computed": ["ALTER TABLE documents ADD COLUMN shown AS (title || source_path)"],
    "a column with a computed default": ["CREATE TABLE more (id INTEGER DEFAULT (abs(random())))"],
    "an index that refuses": ["CREATE UNIQUE INDEX one ON audit (action)"],
    "an index over what is computed": ["CREATE INDEX one ON documents (upper(title))"],
    "another full text": ["CREATE VIRTUAL TABLE other USING fts5 (text, content = 'documents')"],
}


@pytest.fixture
def data(tmp_path):
    data = Data(tmp_path / "data")
    with data.open() as store, store.write() as tx:
        tx.documents.add(content("The lighthouse keeper counts ships"), "/note", ["a"])
    return data


@pytest.fixture
def backups(tmp_path, data):
    back_up(data.settings, tmp_path / "backups", keep=7)
    return tmp_path / "backups"


def database_of(settings):
    return settings.data_dir / "kb.db"


def change(path, statements):
    connection = apsw.Connection(str(path))
    connection.enable_load_extension(True)  # noqa: FBT003 - as apsw has it
    for sql in statements:
        connection.execute(sql)
    connection.pragma("wal_checkpoint(TRUNCATE)")
    connection.close()


def tampered(backups, statements, **changes):
    """The newest backup after somebody changed its database, or its manifest, and made the digests fit."""
    [folder] = backup_folders(backups)
    change(folder / "kb.db", statements)
    fields = json.loads((folder / MANIFEST).read_bytes())
    fields["database"] = sha256((folder / "kb.db").read_bytes()).hexdigest()
    raw = json.dumps(fields | changes).encode()
    (folder / MANIFEST).write_bytes(raw)
    (folder / "manifest.json.sha256").write_text(f"{sha256(raw).hexdigest()}  manifest.json\n")
    return folder


@pytest.mark.parametrize("declared", mostly_rare(FOREIGN, 5))
def test_a_backup_that_declares_what_kb_never_does_is_neither_restored_nor_called_whole(backups, tmp_path, declared):
    tampered(backups, FOREIGN[declared])
    with pytest.raises(StoreError, match=r"Another program changed .*objects that kb does not create"):
        restore_backup(Settings(data_dir=tmp_path / "other"), backups)
    assert not database_of(Settings(data_dir=tmp_path / "other")).exists()
    assert any("objects that kb does not create" in fault for fault in verify_backups(backups))


@pytest.mark.parametrize("declared", mostly_rare(FOREIGN, 5))
def test_the_doctor_finds_it_in_a_database_that_is_in_use_and_takes_out_what_is_no_table(data, declared):
    change(database_of(data.settings), FOREIGN[declared])
    found = check_data(data.settings)
    assert found["schema"][0] or found["tables"][0]
    if any("TABLE" in sql for sql in FOREIGN[declared]):
        return
    repair(data.settings, found, lambda *_: None)
    assert not list(foreign_parts(apsw.Connection(str(database_of(data.settings)))))


@pytest.mark.parametrize("declared", mostly_rare(FOREIGN, 5))
def test_a_backup_leaves_out_what_is_foreign_and_can_be_restored_and_foreign_tables_are_refused(
    data, tmp_path, caplog, declared
):
    change(database_of(data.settings), FOREIGN[declared])
    if any("TABLE" in sql for sql in FOREIGN[declared]):
        with pytest.raises(StoreError, match="Run 'kb doctor'"):
            back_up(data.settings, tmp_path / "late", keep=7)
        return
    back_up(data.settings, tmp_path / "late", keep=7)
    assert "the backup omits objects that kb did not create" in caplog.text
    assert not list(verify_backups(tmp_path / "late"))
    restore_backup(Settings(data_dir=tmp_path / "other"), tmp_path / "late")
    restored = apsw.Connection(str(database_of(Settings(data_dir=tmp_path / "other"))))
    assert not list(foreign_parts(restored))
    assert not list(missing_parts(restored))


def test_a_start_says_what_is_foreign(data, caplog):
    change(database_of(data.settings), [SPY])
    with data.open():
        pass
    assert "contains objects that kb did not create (trigger spy)" in caplog.text


@pytest.mark.parametrize("schema", store_v2.SCHEMAS)
def test_a_database_of_version_2_declares_nothing_foreign_once_it_is_migrated(tmp_path, schema):
    store_v2.build(tmp_path / "kb.db", store_v2.SCHEMAS[schema])
    SqliteStore(tmp_path / "kb.db", space(store_v2.DIMENSIONS)).close()
    assert not list(foreign_parts(apsw.Connection(str(tmp_path / "kb.db"))))


def test_a_new_database_declares_nothing_foreign(tmp_path):
    SqliteStore(tmp_path / "new.db", space()).close()
    assert not list(foreign_parts(apsw.Connection(str(tmp_path / "new.db"))))


def test_declarations_are_the_same_in_any_spelling_but_not_with_other_texts():
    assert plain('CREATE  TABLE "a"( b\n TEXT ) -- as it is') == plain("create table a (b text)")
    assert plain("SELECT 'A b'") != plain("SELECT 'a b'")
    assert len(known()) > 50


KEY = SecretStr("a secret that is kept elsewhere")


@pytest.fixture
def sealed(tmp_path, data):
    settings = data.settings.model_copy(update={"backup_key": KEY})
    for target in ("backups", "backup.tar"):
        back_up(settings, tmp_path / target, keep=7)
    return tmp_path / "backups"


def with_key(folder, key=KEY):
    return Settings(data_dir=folder, backup_key=key)


def test_a_sealed_backup_is_restored_and_says_so(sealed, tmp_path, data):
    for number, source in enumerate((sealed, tmp_path / "backup.tar")):
        assert restore_backup(with_key(tmp_path / f"other{number}"), source).seal == "sealed"
        assert Data(tmp_path / f"other{number}").state() == data.state()
        assert not list(verify_backups(source, key=KEY))


def test_a_sealed_backup_that_somebody_changed_is_refused_whatever_digests_say(sealed, tmp_path):
    tampered(sealed, ["UPDATE documents SET title = 'another'"])
    with pytest.raises(StoreError, match="seal does not match KB_BACKUP_KEY: it was changed"):
        restore_backup(with_key(tmp_path / "other"), sealed)
    [fault] = verify_backups(sealed, key=KEY)
    assert "seal does not match KB_BACKUP_KEY" in fault


def test_a_key_that_was_changed_leaves_the_newer_backups_of_the_folder_usable(sealed, tmp_path, data):
    settings = data.settings.model_copy(update={"backup_key": SecretStr("the next")})
    back_up(settings, sealed, keep=7)
    old, _ = backup_folders(sealed)
    assert restore_backup(with_key(tmp_path / "other", SecretStr("the next")), sealed).seal == "sealed"
    faults = list(verify_backups(sealed, key=SecretStr("the next")))
    assert [(old.name in fault, "seal does not match KB_BACKUP_KEY" in fault) for fault in faults] == [(True, True)]
    assert [seal for _, seal in seals(sealed, SecretStr("the next"))] == ["sealed"]
    assert len(list(verify_backups(sealed, key=KEY))) == 1


def test_a_damaged_manifest_of_an_old_backup_stops_no_restore_of_a_newer_one(backups, tmp_path, data):
    [old] = backup_folders(backups)
    (old / MANIFEST).write_bytes(b"{")
    back_up(data.settings, backups, keep=7)
    assert restore_backup(Settings(data_dir=tmp_path / "other"), backups).seal == "unsealed"
    assert [old.name in fault for fault in verify_backups(backups)] == [True]


def test_a_backup_with_another_key_is_refused(sealed, tmp_path):
    with pytest.raises(StoreError, match="or sealed with another key"):
        restore_backup(with_key(tmp_path / "other", SecretStr("guessed")), sealed)


def test_a_backup_whose_seal_was_removed_is_restored_only_when_told_so_and_says_it(sealed, tmp_path):
    [folder] = backup_folders(sealed)
    (folder / SEAL).unlink()
    assert [seal for _, seal in seals(sealed, KEY)] == ["unsealed"]
    with pytest.raises(StoreError, match="has no seal, although KB_BACKUP_KEY is set"):
        restore_backup(with_key(tmp_path / "other"), sealed)
    assert restore_backup(with_key(tmp_path / "other"), sealed, unsealed=True).seal == "unsealed"


def test_without_the_key_a_sealed_backup_is_refused_unless_somebody_accepts_that(sealed, tmp_path):
    with pytest.raises(StoreError, match="--unverified"):
        restore_backup(Settings(data_dir=tmp_path / "other"), sealed)
    assert restore_backup(Settings(data_dir=tmp_path / "other"), sealed, unverified=True).seal == "unchecked"


def test_a_seal_is_of_the_manifest_and_cannot_be_moved_to_another_backup(sealed, tmp_path, data):
    with data.open() as store, store.write() as tx:
        tx.documents.add(content("another"), "/other", [])
    back_up(data.settings, sealed, keep=7)  # without a key
    old, new = backup_folders(sealed)
    (new / SEAL).write_bytes((old / SEAL).read_bytes())
    with pytest.raises(StoreError, match="seal does not match KB_BACKUP_KEY"):
        restore_backup(with_key(tmp_path / "other"), sealed)


def archive(path, *members):
    """An archive of such members: a name, and content or what to set of the member."""
    with tarfile.open(path, "w") as tar:
        for name, made in members:
            member = tarfile.TarInfo(name)
            for field, value in ({} if isinstance(made, bytes) else made).items():
                setattr(member, field, value)
            data = made if isinstance(made, bytes) else b""
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return path


def signed(raw):
    return (MANIFEST, raw), ("manifest.json.sha256", f"{sha256(raw).hexdigest()}  manifest.json\n".encode())


FIELDS = {
    "kb-backup": 1, "made_at": "2026", "kb": "3", "schema": 15, "database": "0" * 64, "counts": {}, "originals": [],
    "staged": {}, "missing": [],
}  # fmt: skip
LINK = {"type": tarfile.SYMTYPE, "linkname": "manifest.json"}
ARCHIVES = {
    "a manifest that is a link to itself": [(MANIFEST, LINK)],
    "a manifest that is a hard link to itself": [(MANIFEST, LINK | {"type": tarfile.LNKTYPE})],
    "a manifest that is a pipe": [(MANIFEST, {"type": tarfile.FIFOTYPE})],
    "a manifest that is a folder": [(MANIFEST, {"type": tarfile.DIRTYPE})],
    "deep brackets": signed(b"[" * 200_000),
    "a list": signed(b"[1]"),
    "a number": signed(b"1"),
    "not text": signed(b"\xff\xfe"),
    "a version that is a text": signed(json.dumps(FIELDS | {"schema": "15"}).encode()),
    "counts that are a list": signed(json.dumps(FIELDS | {"counts": [1]}).encode()),
    "originals that are numbers": signed(json.dumps(FIELDS | {"originals": [1]}).encode()),
    "staged files that are a list": signed(json.dumps(FIELDS | {"staged": ["a"]}).encode()),
    "a field more": signed(json.dumps(FIELDS | {"more": 1}).encode()),
    "a field less": signed(b'{"kb-backup": 1}'),
    "a staged file elsewhere": signed(json.dumps(FIELDS | {"staged": {"../../a": "0" * 64}}).encode()),
    "a database that is a link to itself": [*signed(json.dumps(FIELDS).encode()), ("kb.db", LINK | {"linkname": "kb.db"})],
    "a database that is a device": [*signed(json.dumps(FIELDS).encode()), ("kb.db", {"type": tarfile.CHRTYPE})],
    "no database": [*signed(json.dumps(FIELDS).encode())],
}  # fmt: skip


@pytest.mark.parametrize("kind", ARCHIVES)
def test_a_hostile_archive_is_refused_in_words_and_nothing_of_it_stays(tmp_path, kind):
    path = archive(tmp_path / "hostile.tar", *ARCHIVES[kind])
    with pytest.raises(StoreError, match="hostile"):
        restore_backup(Settings(data_dir=tmp_path / "other"), path)
    assert not [each for each in (tmp_path / "other").rglob("*") if each.is_file() and each.suffix != ".lock"]


def test_an_archive_that_claims_more_than_it_has_is_refused_before_it_is_unpacked(tmp_path):
    path = tmp_path / "sparse.tar"
    with path.open("wb") as file, tarfile.open(fileobj=file, mode="w") as tar:
        headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": MANIFEST, "GNU.sparse.realsize": str(20 << 30)}  # fmt: skip
        member = tarfile.TarInfo("GNUSparseFile.0/manifest.json")
        member.pax_headers = headers
        member.size = 512
        tar.addfile(member, io.BytesIO(b"1\n0\n1\n".ljust(512, b"\0")))
    with pytest.raises(StoreError, match=r"cannot use .*sparse\.tar"):
        restore_backup(Settings(data_dir=tmp_path / "other"), path)


def test_a_part_of_a_backup_that_is_a_device_a_link_or_endless_is_not_read(backups, tmp_path):
    [folder] = backup_folders(backups)
    (folder / "kb.db").unlink()
    (folder / "kb.db").symlink_to("/dev/zero")
    with pytest.raises(StoreError, match="is a link, not a file"):
        restore_backup(Settings(data_dir=tmp_path / "other"), backups)
    (folder / "kb.db").unlink()
    os.mkfifo(folder / "kb.db")
    with pytest.raises(StoreError, match="is not a file"):
        restore_backup(Settings(data_dir=tmp_path / "other"), backups)
    (folder / "kb.db").unlink()
    with (folder / "kb.db").open("wb") as file:
        file.truncate(1 << 43)
    with pytest.raises(StoreError, match="the disk has no space"):
        restore_backup(Settings(data_dir=tmp_path / "other"), backups)


def test_an_original_of_an_import_that_is_a_link_is_not_followed(tmp_path):
    from kb.exchange.export_folder import _opened

    (tmp_path / "endless").symlink_to("/dev/zero")
    with pytest.raises(StoreError, match="cannot read"):
        _opened(tmp_path / "endless")
