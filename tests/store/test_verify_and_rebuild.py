"""Damage to a database is detected, and everything derived from its texts is rebuilt."""

from __future__ import annotations

import os
import shutil
from contextlib import closing, suppress
from hashlib import sha256

import numpy as np
import pytest

from kb.api.errors import StoreError
from kb.documents.write_document import write_document
from kb.ingest.chunk import Chunker
from kb.ingest.draft import draft_note, embed_draft
from kb.repair.doctor import check_data
from kb.repair.reindex import reindex
from kb.settings import Settings
from kb.store.engine_lock import database_lock, sole_user
from kb.store.sqlite.backup import Snapshot
from kb.store.sqlite.rebuild import rebuild
from kb.store.sqlite.store import SqliteStore
from kb.store.sqlite.vector_space import recorded_space
from kb.store.sqlite.verify import is_unit
from tests.support.disks import filled, small_disk
from tests.support.documents import DIMENSIONS, content
from tests.support.rare_cases import mostly_rare
from tests.support.spaces import space
from tests.support.store_v2 import connect

LONG = "The clerks of the counting house kept their ledgers in good order. " * 60


@pytest.fixture
def settings(tmp_path, model_files):
    return Settings(data_dir=tmp_path, model_dir=model_files.onnx.parent)


@pytest.fixture
def database(tmp_path, embedder):
    """One with notes and a file, whose documents came and went."""
    path = tmp_path / "kb.db"
    with closing(SqliteStore(path, space())) as store:
        for title, text in (("Mat", "The key is under the mat."), (None, LONG), ("Gone", "Nothing of this stays.")):
            content = embed_draft(draft_note(text, title, embedder), embedder, lambda: None)
            with store.write() as tx:
                write_document(tx, content, f"/{title}", ["tag"])
        with store.write() as tx:
            tx.documents.delete(3)
    return path


def faults(settings):
    """The faults found without the model, whose start takes longer than the rest."""
    without_model = settings.model_copy(update={"model_dir": None})
    return {name: found for name, (found, _) in check_data(without_model).items() if found}


def change(path, *statements):
    connection = connect(path)
    for sql in statements:
        connection.execute(sql)
    connection.close()


def overwrite(path, marker, *, after=0):
    """Damage the page that contains some bytes."""
    raw = bytearray(path.read_bytes())
    page = raw.index(marker, after) // 4096 * 4096
    raw[page : page + 4096] = os.urandom(4096)
    path.write_bytes(raw)


def test_a_whole_database_is_found_whole_and_not_written_to(settings, database):
    before = database.read_bytes()
    assert faults(settings) == {}
    assert database.read_bytes() == before


def test_a_database_in_use_is_looked_at_as_it_is(settings, database):
    with closing(SqliteStore(database, space())) as store, store.write() as tx:
        tx.documents.delete(1)
        assert faults(settings) == {}


@pytest.mark.parametrize(
    ("statement", "name", "words"),
    mostly_rare(
        [
            ("DELETE FROM chunks_vec WHERE chunk_id = 1", "vectors", "1 passages have no vector, such as passage 1"),
            (
                "UPDATE chunks_vec SET embedding = zeroblob(1536) WHERE chunk_id = 2",
                "vectors",
                "1 passages have an empty vector, such as a passage of document 2",
            ),
            (
                "UPDATE chunks_vec SET embedding = vec_add(embedding, embedding) WHERE chunk_id = 2",
                "vectors",
                "passage 2 does not have length",
            ),
            (
                "DROP TRIGGER chunks_au; UPDATE chunks SET text = 'x' WHERE id = 1",
                "keyword index",
                "differ from the words of the texts",
            ),
            (
                "DROP TRIGGER chunks_ad; DELETE FROM chunks WHERE id = 1",
                "keyword index",
                "1 passages in the keyword index do not exist",
            ),
            ("UPDATE chunks SET text = 'other' WHERE id = 1", "note texts", "the text of note 1 does not match"),
            (
                "PRAGMA foreign_keys = 0; DELETE FROM documents WHERE id = 1",
                "references",
                "of chunks refers to a missing row",
            ),
            ("INSERT INTO jobs (created_at, staged) VALUES ('2026', 'a')", "queued files", "is missing"),
        ],
        4,
    ),
)
def test_each_fault_is_found_and_said(settings, database, statement, name, words):
    change(database, *statement.split("; "))
    assert words in "\n".join(faults(settings)[name])


def test_a_kept_file_that_is_not_what_it_was_is_found(settings, database):
    digest = sha256(b"a file").hexdigest()
    change(database, f"UPDATE documents SET doc_type = 'text', content_hash = '{digest}' WHERE id = 1")
    assert "kept files" not in faults(settings)
    kept = settings.files_dir / digest[:2] / digest
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"a file")
    assert faults(settings) == {}
    kept.write_bytes(b"another")
    assert "the file of document 1 was changed or is damaged" in faults(settings)["kept files"][0]


def test_bytes_that_are_no_number_are_no_vector():
    signaling_nan = bytes.fromhex("0100a07f")
    assert not is_unit(signaling_nan * 384)


def test_vectors_on_a_damaged_page_are_made_again(settings, database):
    connection = connect(database)
    whole = dict(connection.execute("SELECT chunk_id, embedding FROM chunks_vec").fetchall())
    connection.close()
    overwrite(database, whole[2][:400])
    assert "vectors" in faults(settings) or "database pages" in faults(settings)
    seen = []
    reindex(settings, lambda *progress: seen.append(progress), recompute_all=False)
    assert seen[-1] == (len(whole), len(whole))
    assert faults(settings) == {}
    connection = connect(database)
    again = dict(connection.execute("SELECT chunk_id, embedding FROM chunks_vec").fetchall())
    assert again.keys() == whole.keys()
    for chunk_id, raw in again.items():
        assert np.frombuffer(raw, np.float32) @ np.frombuffer(whole[chunk_id], np.float32) > 0.9999


def test_vectors_that_cannot_be_read_stop_the_start_in_one_line_that_says_what_to_do(database):
    change(database, "DELETE FROM chunks_vec_rowids WHERE rowid = 1", "DELETE FROM chunks_vec_vector_chunks00")
    with pytest.raises(StoreError, match=r"Run 'kb doctor' to see the damage\. 'kb doctor --repair'") as refused:
        SqliteStore(database, space())
    assert "\n" not in refused.value.detail


def test_a_database_made_anew_says_the_same_and_gives_space_back(settings, database):
    change(database, "PRAGMA auto_vacuum = 0", "VACUUM")
    before = contents(database)
    reindex(settings, lambda *_: None, recompute_all=False)
    assert contents(database) == before
    assert faults(settings) == {}
    connection = connect(database)
    assert (connection.pragma("auto_vacuum"), connection.pragma("freelist_count")) == (2, 0)
    connection.close()
    with closing(SqliteStore(database, space())) as store, store.read() as tx:
        assert [hit.document_id for hit in tx.index.hits([2])] == [2]
    assert sorted(path.name for path in database.parent.glob("kb.db*")) == ["kb.db", "kb.db.lock"]


def contents(path):
    connection = connect(path)
    declared = set(connection.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall())
    tables = ("documents", "tags", "document_tags", "chunks", "jobs", "last_ids", "generation", "vector_space")
    rows = {table: connection.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall() for table in tables}
    return declared, rows, connection.pragma("user_version")


def test_an_interrupted_rebuild_leaves_the_old_database_and_nothing_else(settings, database):
    before = contents(database)

    def interrupt(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reindex(settings, interrupt, recompute_all=True)
    assert contents(database) == before
    assert not database.with_name("kb.db.new").exists()


def test_texts_that_are_damaged_are_not_made_up(settings, database):
    change(database, "PRAGMA wal_checkpoint(TRUNCATE)")
    overwrite(database, b"The key is under the mat.")
    before = database.read_bytes()
    assert faults(settings)
    with pytest.raises(StoreError, match="Restore a backup"):
        reindex(settings, lambda *_: None, recompute_all=False)
    assert database.read_bytes() == before


def test_what_the_model_reads_of_a_chunk_is_found_again(embedder):
    chunker = Chunker(embedder)
    draft = draft_note(LONG, "A title " * 60, embedder)
    again = [chunker.passage(chunk.header, chunk.text) for chunk in draft.chunks]
    assert again == list(draft.inputs)


def test_it_needs_a_database_that_nobody_uses(settings, database):
    with sole_user(database_lock(database)), pytest.raises(StoreError, match="Another kb engine is using"):
        reindex(settings, lambda *_: None, recompute_all=False)


def test_a_disk_that_becomes_full_at_any_moment_leaves_a_whole_database(tmp_path, database):
    before = contents(database)  # which also brings the log into the database
    size = database.stat().st_size
    with small_disk(tmp_path / "disk", 16) as disk:
        for share in (0.5, 1.1, 1.5):
            path = disk / "kb.db"
            shutil.copyfile(database, path)
            with filled(disk, but=int(share * size)), suppress(StoreError):
                assert not rebuild(path, lambda *_: None)
            assert contents(path) == before


def test_a_database_made_anew_is_where_it_was_and_readable_to_whom_it_was(tmp_path, database):
    database.chmod(0o600)
    elsewhere = tmp_path / "link"
    elsewhere.symlink_to(database)
    rebuild(elsewhere, lambda *_: None)
    assert elsewhere.is_symlink()
    assert database.stat().st_mode & 0o777 == 0o600


def test_a_database_that_another_program_reads_is_not_made_anew(tmp_path):
    path = tmp_path / "kb.db"
    with closing(SqliteStore(path, space(DIMENSIONS))) as store, store.write() as tx:
        id_ = tx.documents.add(content("first"), None, ())
    with closing(Snapshot(path)) as moment:
        with moment.taken():
            pass
        with pytest.raises(StoreError, match="Another program"):
            rebuild(path, lambda *_: None)
    assert not path.with_name("kb.db.new").exists()
    rebuild(path, lambda *_: None)
    with closing(SqliteStore(path, space(DIMENSIONS))) as store, store.read() as tx:
        assert tx.documents.get(id_)


def test_a_database_that_was_made_anew_is_not_removed_where_there_is_no_other(tmp_path):
    path, made = tmp_path / "kb.db", tmp_path / "kb.db.new"
    path.touch()
    made.write_bytes(b"all of it")
    with pytest.raises(StoreError, match="may be its only copy"):
        rebuild(path, lambda *_: None)
    assert made.read_bytes() == b"all of it"


@pytest.mark.slow
def test_vectors_made_anew_with_another_model_are_its_from_then_on(settings, database, other_model):
    for _ in range(2):  # also with the model that they are of
        reindex(settings.model_copy(update={"model_dir": other_model}), lambda *_: None, recompute_all=True)
        assert faults(settings) == {}
        assert recorded_space(database).model == "other"
        assert connect(database).execute("SELECT * FROM second_space").fetchall() == []
