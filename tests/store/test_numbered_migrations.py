"""A database is brought to the newest version by number, each step whole or not at all."""

from __future__ import annotations

from contextlib import closing
from importlib.resources import files

import pytest

from kb.api.errors import StoreError
from kb.store import migrations as numbered
from kb.store.backfill import Backfill
from kb.store.migrations import FIRST, migrations
from kb.store.rows import Filter, NoteFile, NotesFolderState
from kb.store.sqlite import schema
from kb.store.sqlite.schema import SCHEMA_VERSION
from kb.store.sqlite.store import SqliteStore
from tests.conftest import ROOT
from tests.store.test_migration import objects
from tests.support import store_v2
from tests.support.eventually import eventually
from tests.support.spaces import space
from tests.support.store_v2 import DIMENSIONS, DOCUMENTS, connect

PACKAGE = "kb.store.sqlite"
LATER = [
    (SCHEMA_VERSION + 1, "ALTER TABLE documents ADD COLUMN colour TEXT; UPDATE documents SET colour = 'grey'"),
    (SCHEMA_VERSION + 2, "CREATE INDEX documents_colour ON documents (colour)"),
]
TABLES_OF_2 = ("documents", "chunks", "tags", "document_tags", "jobs", "chunks_vec")
BROKEN = [LATER[0], (SCHEMA_VERSION + 2, "CREATE TABLE more (id INTEGER); CREATE TABLE documents (id INTEGER)")]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "kb.db"


def opened(path):
    return closing(SqliteStore(path, space(DIMENSIONS)))


def migrated(path):
    with opened(path):
        pass
    return connect(path)


def followed_by(monkeypatch, later):
    """Let the migrations that there are be followed by others."""
    every = [*migrations(PACKAGE, after=0), *later]
    monkeypatch.setattr(schema, "migrations", lambda _, after: [step for step in every if step[0] > after])


def test_the_numbers_go_from_the_first_to_the_newest():
    numbers = [number for number, _ in migrations(PACKAGE, after=0)]
    assert numbers == list(range(FIRST, SCHEMA_VERSION + 1))
    assert [number for number, _ in migrations(PACKAGE, after=FIRST)] == numbers[1:]


@pytest.mark.requirement("D-1")
@pytest.mark.parametrize("begins", ["new", "version 2", "the version before"])
def test_every_database_ends_with_the_schema_that_a_new_one_has(path, tmp_path, monkeypatch, begins):
    if begins == "version 2":
        store_v2.build(path)
    if begins == "the version before":
        migrated(path).close()
    followed_by(monkeypatch, LATER)
    old, new = migrated(path), connect(tmp_path / "new.db")
    schema.create(new, DIMENSIONS)
    assert old.pragma("user_version") == new.pragma("user_version") == SCHEMA_VERSION + 2
    for kind in ("table", "index", "trigger", "view"):
        declared = objects(old, kind)
        if begins == "version 2":  # its own tables are altered, and may declare more
            declared = {name: declared[name] for name in objects(new, kind)}
            for table in TABLES_OF_2 if kind == "table" else ():
                assert set(store_v2.names(new, table)) <= set(store_v2.names(old, table))
                declared[table] = objects(new, kind)[table]
        assert declared == objects(new, kind)
    old.close()
    new.close()


@pytest.mark.requirement("S-8")
@pytest.mark.requirement("D-2")
def test_what_stands_in_it_stands_there_after_the_later_ones(path, monkeypatch):
    store_v2.build(path)
    followed_by(monkeypatch, LATER)
    with opened(path) as store, store.read() as tx:
        documents = tx.documents.page(Filter(), sort="id", limit=10, cursor=None)
        assert {document.id: document.title for document in documents} == {
            id_: one[0] for id_, one in DOCUMENTS.items()
        }
    connection = connect(path)
    assert connection.execute("SELECT DISTINCT colour FROM documents").fetchall() == [("grey",)]
    connection.close()


def test_the_links_of_a_database_of_version_2_are_read_after_its_migration(path):
    store_v2.build(path)
    with opened(path) as store:
        with store.read() as tx:
            assert not tx.links.is_complete
        with Backfill(store):
            eventually("all links are read", lambda: is_linked(store))
        with store.read() as tx:
            assert tx.links.is_complete
            assert {id_ for (id_,) in tx.connection.execute("SELECT document_id FROM link_names")} == {*DOCUMENTS}


def is_linked(store):
    with store.read() as tx:
        return tx.links.is_complete


def with_copies(path, monkeypatch):
    """Give the database large blocks of vectors and a copy of each, as it once had, and let it be migrated again."""
    names = ("vector_copies", "vector_blocks")
    scripts = [file for name in names for file in files(PACKAGE).joinpath("migrations").glob(f"*_{name}.sql")]
    followed_by(monkeypatch, enumerate((script.read_text("utf-8") for script in scripts), SCHEMA_VERSION + 1))
    vectors = vectors_in(path)
    connection = connect(path)
    connection.execute(
        f"DROP TABLE chunks_vec; CREATE VIRTUAL TABLE chunks_vec"
        f" USING vec0 (chunk_id INTEGER PRIMARY KEY, embedding FLOAT[{DIMENSIONS}]);"
        " CREATE TABLE vector_copies (chunk_id INTEGER PRIMARY KEY, vector BLOB NOT NULL);"
        " DROP TRIGGER chunks_ad_vectors; CREATE TRIGGER chunks_ad_vectors AFTER DELETE ON chunks BEGIN"
        " DELETE FROM vector_codes WHERE chunk_id = old.id; DELETE FROM vector_copies WHERE chunk_id = old.id; END"
    )
    connection.executemany("INSERT INTO chunks_vec VALUES (?, ?)", vectors.items())
    connection.executemany("INSERT INTO vector_copies VALUES (?, ? || zeroblob(8))", vectors.items())
    connection.close()
    return vectors


def vectors_in(path):
    connection = connect(path)
    vectors = dict(connection.execute("SELECT chunk_id, embedding FROM chunks_vec").fetchall())
    connection.close()
    return vectors


def test_vectors_with_copies_stay_as_they_are_and_their_copies_go(path, tmp_path, monkeypatch):
    store_v2.build(path)
    migrated(path).close()
    new = connect(tmp_path / "new.db")
    schema.create(new, DIMENSIONS)
    before = with_copies(path, monkeypatch)
    connection = migrated(path)
    assert vectors_in(path) == before != {}
    for name in ("chunks_vec", "chunks_ad_vectors"):
        [declared] = {
            one.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (name,)).get for one in (connection, new)
        }
        assert declared
    assert not {name for name in objects(connection, "table") if "former_vec" in name or name == "vector_copies"}
    assert store_v2.nearest(connection, store_v2.vector(19), 1) == [19]
    connection.close()
    new.close()


def test_a_trigger_of_another_program_still_deletes_vectors_after_the_migration(path, monkeypatch):
    store_v2.build(path)
    migrated(path).close()
    with_copies(path, monkeypatch)
    connection = connect(path)
    connection.execute(
        "CREATE TRIGGER other AFTER DELETE ON chunks BEGIN DELETE FROM chunks_vec WHERE chunk_id = old.id; END"
    )
    connection.close()
    connection = migrated(path)
    connection.execute("DELETE FROM chunks WHERE id = 13")
    connection.close()
    assert 13 not in vectors_in(path)


def test_one_that_fails_leaves_the_version_before_it_and_says_which(path, monkeypatch):
    migrated(path).close()
    followed_by(monkeypatch, BROKEN)
    failing = SCHEMA_VERSION + 2
    with pytest.raises(
        StoreError, match=rf"cannot migrate the database .* to version {failing}: table documents already exists"
    ):
        migrated(path)
    connection = connect(path)
    assert connection.pragma("user_version") == SCHEMA_VERSION + 1
    assert "more" not in objects(connection, "table")
    connection.close()


def test_one_of_the_newest_version_is_not_written_to_when_it_opens(path):
    migrated(path).close()
    changed = path.read_bytes()
    migrated(path).close()
    assert path.read_bytes() == changed


@pytest.mark.parametrize("version", [3, 20, FIRST - 1])
def test_one_of_a_development_build_is_refused_in_one_line_that_says_what_to_do(path, version):
    connection = migrated(path)
    connection.pragma("user_version", version)
    connection.close()
    with pytest.raises(StoreError) as refused:
        migrated(path)
    said = refused.value.detail
    assert "\n" not in said
    for words in (f"schema version {version}", numbered.LAST_DEVELOPMENT_BUILD, "'kb export DIR'", "'kb import DIR'"):
        assert words in said
    connection = connect(path)
    assert connection.pragma("user_version") == version
    connection.close()


@pytest.mark.parametrize("package", [PACKAGE, "kb.store.postgres"])
def test_each_migration_has_a_number_of_its_own(package):
    numbers = [number for number, _ in migrations(package, after=0)]
    assert numbers == list(range(FIRST, FIRST + len(numbers)))


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_no_two_migrations_have_the_same_number(store):
    names = [path.name for path in (ROOT / "src/kb/store" / store / "migrations").glob("*.sql")]
    assert len({name[:4] for name in names}) == len(names), sorted(names)


def test_the_files_of_a_notes_folder_are_known_to_the_kept_folders(path):
    migrated(path).close()
    with closing(connect(path)) as older:
        older.execute("""
            DROP TABLE kept_folders; DROP TABLE note_files; ALTER TABLE folders DROP COLUMN is_kept;
        """)
        numbered = dict(migrations(PACKAGE, after=0))
        older.execute(numbered[33])
        older.execute("""
            INSERT INTO notes_folder VALUES (1, 'an engine', '2026-11-29', '/notes', 'a session', '{}');
            INSERT INTO note_files VALUES (7, 'a.md', NULL, 3, '1 2 3 4', 'digest', x'01');
            INSERT INTO note_files VALUES (8, 'b.png', 'b.png', 1, '5 6 7 8', 'file digest', x'');
        """)
        older.execute(numbered[40])
    with opened(path) as store, store.read() as tx:
        assert tx.note_files("").folder() == NotesFolderState("/notes", "a session", "{}")
        assert tx.note_files("").all() == [NoteFile(7, "a.md", None, 3, "1 2 3 4", "digest")]
        assert tx.note_files("").attachments() == [NoteFile(8, "b.png", "b.png", 1, "5 6 7 8", "file digest")]
        assert (tx.note_files("").base(7), tx.note_files("vault/").all()) == (b"\x01", [])
