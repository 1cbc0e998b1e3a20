"""Faults of a database and its files are found, repaired if possible, and never searched as if all were well."""

from __future__ import annotations

import os
import shutil
from contextlib import closing
from hashlib import sha256

import apsw
import pytest

from kb.api.errors import StoreError
from kb.documents.write_document import write_document
from kb.index.vectors.coded_index import CodedIndex
from kb.ingest.draft import draft_note, embed_draft
from kb.repair import doctor
from kb.repair.doctor import check_data, is_well, repair, repair_files
from kb.settings import Settings
from kb.store.rows import NOBODY, Filter, NewJob
from kb.store.sqlite.store import SqliteStore
from tests.support.eventually import eventually
from tests.support.rare_cases import mostly_rare
from tests.support.spaces import space
from tests.support.store_v2 import connect

LONG = "\n\n".join(
    f"The clerks of counting house {number} kept their ledgers in good order. " * 12 for number in range(9)
)
NOTES = (
    ("Mat", "The key is under the mat."),
    ("Lighthouse", "The walrus sleeps by the lighthouse."),
    ("Ledgers", LONG),
)
ORIGINAL = b"The file that document 2 came from."
DIGEST = sha256(ORIGINAL).hexdigest()


@pytest.fixture(scope="session")
def well(tmp_path_factory, embedder):
    """A sound data folder: two notes and a file, and another file that waits for its job."""
    folder = tmp_path_factory.mktemp("well")
    settings = Settings(data_dir=folder)
    settings.staging_dir.mkdir()
    original = settings.files_dir / DIGEST[:2] / DIGEST
    original.parent.mkdir(parents=True)
    original.write_bytes(ORIGINAL)
    (settings.staging_dir / "waiting").write_bytes(b"x")
    with closing(SqliteStore(folder / "kb.db", space())) as store, store.write() as tx:
        for title, text in NOTES:
            write_document(
                tx, embed_draft(draft_note(text, title, embedder), embedder, lambda: None), f"/{title}", [title]
            )
        gone = embed_draft(draft_note("What is in the bin.", None, embedder), embedder, lambda: None)
        tx.history.discard(write_document(tx, gone, "/gone", ["gone"])[0], NOBODY)
        tx.jobs.add(NewJob("file", staged="waiting", content_hash="0"))
    coded(folder / "kb.db")
    change(folder, f"UPDATE documents SET doc_type = 'text', content_hash = '{DIGEST}' WHERE id = 2")
    return folder


def coded(path):
    """Let there be codes of the vectors, as there are of many."""
    with closing(SqliteStore(path, space(), flat_limit=2)) as store:
        eventually("there are codes of all vectors", lambda: isinstance(store._vectors.index, CodedIndex))


@pytest.fixture
def settings(well, tmp_path, model_files):
    shutil.copytree(well, tmp_path / "data")
    return Settings(data_dir=tmp_path / "data", model_dir=model_files.onnx.parent)


def change(folder, *statements):
    """Do something that no program of ours does."""
    with closing(connect(folder / "kb.db")) as connection:
        connection.pragma("foreign_keys", 0)
        for sql in statements:
            connection.execute(sql)
        connection.pragma("wal_checkpoint(TRUNCATE)")


def sql(*statements):
    return lambda folder: change(folder, *statements)


def overwrite(marker):
    """Damage the page that contains some bytes."""

    def damage(folder):
        path = folder / "kb.db"
        raw = bytearray(path.read_bytes())
        page = raw.index(marker) // 4096 * 4096
        raw[page : page + 4096] = os.urandom(4096)
        path.write_bytes(raw)

    return damage


def write(name, content=b"x"):
    def written(folder):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)

    return written


def remove(name):
    return lambda folder: (folder / name).unlink()


WORDS = "INSERT INTO chunks_fts (rowid, text, header) VALUES"
UNWORDS = "INSERT INTO chunks_fts (chunks_fts, rowid, text, header) SELECT 'delete', id, text, header FROM chunk_texts"

REPAIRED = {
    "a vector is missing": ("vectors", sql("DELETE FROM chunks_vec WHERE chunk_id = 1")),
    "a vector is zero": ("vectors", sql("UPDATE chunks_vec SET embedding = zeroblob(1536) WHERE chunk_id = 2")),
    "a vector is no number": (
        "vectors",
        sql(f"UPDATE chunks_vec SET embedding = x'{'0000c07f' * 384}' WHERE chunk_id = 2"),
    ),
    "a vector has no chunk": (
        "vectors",
        sql("INSERT INTO chunks_vec SELECT 999, embedding FROM chunks_vec WHERE chunk_id = 1"),
    ),
    "no vector can be read": ("vectors", sql("DELETE FROM chunks_vec_vector_chunks00")),
    "a vector is of another text": (
        "model",
        sql(
            "CREATE TEMP TABLE one AS SELECT embedding FROM chunks_vec WHERE chunk_id = 1",
            "UPDATE chunks_vec SET embedding = (SELECT embedding FROM one) WHERE chunk_id > 1",
        ),
    ),
    "a code is damaged": (
        "vector codes",
        sql("UPDATE vector_codes SET code = zeroblob(length(code)) WHERE chunk_id = 2"),
    ),
    "a vector is another one": (
        "changed vectors",
        sql(
            "CREATE TEMP TABLE one AS SELECT embedding FROM chunks_vec WHERE chunk_id = 1",
            "UPDATE chunks_vec SET embedding = (SELECT embedding FROM one) WHERE chunk_id = 2",
        ),
    ),
    "what codes are centred on is damaged": (
        "vector codes",
        sql("UPDATE vector_mean SET mean = randomblob(length(mean))"),
    ),
    "a code is of no chunk": ("consistency", sql("INSERT INTO vector_codes VALUES (999, x'00')")),
    "words of a chunk are missing": ("keyword index", sql(f"{UNWORDS} WHERE id = 1")),
    "words are of no chunk": ("keyword index", sql(f"{WORDS} (999, 'ghost', '')")),
    "words are of another text": ("keyword index", sql(f"{UNWORDS} WHERE id = 1", f"{WORDS} (1, 'ghost', '')")),
    "the index of words is damaged": (
        "keyword index",
        sql("UPDATE chunks_fts_data SET block = randomblob(30) WHERE id > 10"),
    ),
    "pairs of letters are of another text": ("keyword index", sql("UPDATE chunks SET segmented = '天气' WHERE id = 1")),
    "pairs of letters are of another title": (
        "keyword index",
        sql("UPDATE sections SET segmented = '天气' WHERE id = 1"),
    ),
    "lengths of texts are missing": ("keyword index", sql("DELETE FROM chunks_fts_docsize WHERE id = 1")),
    "a trigger is missing": ("schema", sql("DROP TRIGGER chunks_ai")),
    "an index is missing": ("schema", sql("DROP INDEX documents_source_path")),
    "the view of the texts is missing": ("schema", sql("DROP VIEW chunk_texts")),
    "a tag is of no document": ("consistency", sql("INSERT INTO document_tags VALUES (999, 1)")),
    "a tag has no name": ("consistency", sql("INSERT INTO document_tags VALUES (1, 999)")),
    "a tag is of nothing": ("consistency", sql("INSERT INTO tags (name) VALUES ('nobody')")),
    "a section is of no document": (
        "consistency",
        sql("INSERT INTO sections (document_id, header, heading) VALUES (9, '', '')"),
    ),
    "an id could be given twice": ("consistency", sql("UPDATE last_ids SET id = 0")),
    "ids are not counted": ("consistency", sql("DELETE FROM last_ids")),
    "moments are not counted": ("consistency", sql("DELETE FROM generation")),
    "a document came in none": ("consistency", sql("UPDATE documents SET part_of = 999 WHERE id = 1")),
    "a document's own tags are no list": ("consistency", sql("UPDATE documents SET own_tags = '[' WHERE id = 1")),
    "ids of what is in the bin could be given again": (
        "consistency",
        sql("UPDATE last_ids SET id = 3 WHERE name = 'documents'"),
    ),
    "tags of a former version cannot be read": ("consistency", sql("UPDATE versions SET tags = 'x'")),
    "it is not known where history begins": ("consistency", sql("DELETE FROM history")),
    "the size of history is wrong": ("consistency", sql("UPDATE history SET size = 1 << 40")),
    "another vector is of no chunk": ("consistency", sql("INSERT INTO second_vectors VALUES (999, x'00')")),
    "another vector is of no model": ("consistency", sql("INSERT INTO second_vectors VALUES (1, x'00')")),
    "another vector is cut": (
        "consistency",
        sql(
            "INSERT INTO second_space (only, state, dimensions, model, precision, digest)"
            " VALUES (1, 'stopped', 384, 'other', 'fp32', 'ab')",
            "INSERT INTO second_vectors VALUES (1, x'00')",
        ),
    ),
    "a reindex was cut off": ("leftovers", write("kb.db.new")),
    "a restore was cut off": ("leftovers", write("restoring-kb.db-20260101T000000000000.part/kb.db")),
}
UNSEEN = {
    "a vector is missing",
    "a vector is of another text",
    "a vector is another one",
    "words are of another text",
    "pairs of letters are of another text",
    "pairs of letters are of another title",
}
"""A chunk without a vector is found by its words; the others only who reads everything finds."""
UNSEEN_LOSSES = {"a text was changed"}
"""It is found with the text that it has now. A search that meets what is left of a missing document fails."""
FOUND = {
    "a text was changed": ("note texts", sql("UPDATE chunks SET text = 'Nothing is under the mat.' WHERE id = 1")),
    "a chunk is missing": (
        "documents and jobs",
        sql(
            "DELETE FROM chunks WHERE document_id = 3 AND chunk_index = 0", "DELETE FROM chunks_vec WHERE chunk_id = 3"
        ),
    ),
    "a hash is a path": ("documents and jobs", sql("UPDATE documents SET content_hash = './../kb.db' WHERE id = 2")),
    "a hash of a former version is a path": (
        "documents and jobs",
        sql("UPDATE versions SET content_hash = './../kb.db'"),
    ),
    "a document is missing": ("references", sql("DELETE FROM documents WHERE id = 1")),
    "a table is damaged": ("database pages", overwrite(b"The key is under the mat.")),
    "a file is not what it was": ("kept files", write(f"files/{DIGEST[:2]}/{DIGEST}")),
    "a file is not there": ("missing files", remove(f"files/{DIGEST[:2]}/{DIGEST}")),
    "a file is of no document": ("unused files", write(f"files/{'ab' * 1}/{'ab' * 32}")),
    "a file that waits is not there": ("queued files", remove("staging/waiting")),
    "a job waits with nothing": ("documents and jobs", sql("UPDATE jobs SET staged = NULL")),
    "a job is in no state": ("documents and jobs", sql("UPDATE jobs SET status = 'lost'")),
    "a former content is not there": ("documents and jobs", sql("DELETE FROM former_contents")),
    "a former content cannot be read": ("documents and jobs", sql("UPDATE former_contents SET chunks = x'00'")),
    "a former version has no content": ("documents and jobs", sql("UPDATE versions SET content_id = NULL")),
    "a version of what is in the bin is not there": ("documents and jobs", sql("DELETE FROM versions")),
    "a former version is of no document": ("documents and jobs", sql("DELETE FROM bin")),
    "a clock was set back": ("dates", sql("UPDATE documents SET created_at = '2999-01-01 00:00:00.000' WHERE id = 1")),
}


def found(settings):
    return {name: faults for name, (faults, _) in check_data(settings).items() if faults}


def answers(settings, query):
    """What searches find by words and by vectors, the text with each document; or None if they are refused."""
    try:
        with closing(SqliteStore(settings.data_dir / "kb.db", space(), flat_limit=2)) as store, store.read() as tx:
            every = tx.index.select(Filter())
            return [
                [(hit.document_id, hit.text) for hit in tx.index.hits(leg.ids.tolist()[:1])]
                for leg in (every.full_text(["mat"], 1), every.full_text(["ghost"], 1), every.nearest(query, 1))
            ]
    except (StoreError, apsw.Error):
        return None


@pytest.fixture(scope="session")
def query(embedder):
    return embedder.embed_queries(["the key under the mat"])[0]


def test_in_a_well_place_nothing_is_found(settings, query):
    before = (settings.data_dir / "kb.db").read_bytes()
    assert found(settings) == {}
    assert (settings.data_dir / "kb.db").read_bytes() == before
    mat = [(1, NOTES[0][1])]
    assert answers(settings, query) == [mat, [], mat]


@pytest.mark.parametrize(("status", "is_fault"), [("queued", False), ("running", False), ("failed", True)])
def test_vectors_that_a_job_will_make_are_no_fault_until_it_has_failed(settings, status, is_fault):
    job = f"INSERT INTO jobs (status, text, document_id, created_at) VALUES ('{status}', 'text', 3, '2026-01-01 00:00:00')"
    zeros = "UPDATE {} SET {} = {} WHERE chunk_id IN (SELECT id FROM chunks WHERE document_id = 3)"
    change(
        settings.data_dir,
        "INSERT OR REPLACE INTO last_ids VALUES ('jobs', 9)",
        job,
        zeros.format("chunks_vec", "embedding", "zeroblob(1536)"),
    )
    found = {name for name, (faults, _) in check_data(settings).items() if faults}
    assert found == ({"vectors"} if is_fault else set())


@pytest.mark.parametrize("fault", mostly_rare(REPAIRED, 7))
def test_what_can_be_repaired_is_found_and_repaired(settings, query, fault):
    right = answers(settings, query)
    check, inject = REPAIRED[fault]
    inject(settings.data_dir)
    settings_of_check = settings if check == "model" else settings.model_copy(update={"model_dir": None})
    assert check in found(settings_of_check)
    if fault not in UNSEEN:
        assert answers(settings, query) in (right, None)
    repair(settings, check_data(settings_of_check), lambda *_: None)
    assert found(settings_of_check) == {}
    assert answers(settings, query) == right
    assert (settings.files_dir / DIGEST[:2] / DIGEST).read_bytes() == ORIGINAL


@pytest.mark.parametrize("fault", mostly_rare(FOUND, 5))
def test_what_only_a_backup_has_is_found_and_nothing_is_removed(settings, query, fault):
    right = answers(settings, query)
    check, inject = FOUND[fault]
    inject(settings.data_dir)
    settings = settings.model_copy(update={"model_dir": None})
    assert check in found(settings)
    notices = {"missing files", "unused files", "dates"}
    assert is_well(check_data(settings)) is (check in notices)
    assert check in found(settings)
    if fault == "a document is missing":
        with pytest.raises(KeyError):
            answers(settings, query)
    elif fault not in UNSEEN_LOSSES:
        assert answers(settings, query) in (right, None)


@pytest.mark.skipif(os.name == "nt", reason="modes of files")
def test_what_a_link_among_waiting_files_leads_to_stays_as_it_is(settings, tmp_path, monkeypatch):
    monkeypatch.setattr(doctor, "is_exposed", lambda _: True)  # the folders of tests are closed to others
    foreign, link = tmp_path / "foreign", settings.staging_dir / "scratch" / "link"
    foreign.touch()
    foreign.chmod(0o644)
    link.parent.mkdir()
    link.symlink_to(foreign)
    repair_files(settings)
    assert foreign.stat().st_mode & 0o777 == 0o644


def test_a_job_that_ends_while_it_is_looked_at_misses_no_file(settings):
    def end_job(check):
        if check == "queued files":
            with closing(connect(settings.data_dir / "kb.db")) as connection:
                connection.execute("UPDATE jobs SET staged = NULL, status = 'done'")
            (settings.staging_dir / "waiting").unlink()

    looked_at = settings.model_copy(update={"model_dir": None})
    assert check_data(looked_at, end_job)["queued files"][0] == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: b"This is no database." * 500,
        lambda raw: raw[: len(raw) // 2],
        lambda raw: raw[:100] + os.urandom(8000) + raw[8100:],
    ],
    ids=["something else", "cut", "overwritten"],
)
def test_a_damaged_database_is_refused_in_one_line_with_the_way_out_and_not_touched(settings, damage):
    path = settings.data_dir / "kb.db"
    path.write_bytes(damage(path.read_bytes()))
    before = path.read_bytes()
    with pytest.raises(StoreError, match="'kb backup restore'") as refused:
        SqliteStore(path, space())
    assert "\n" not in refused.value.detail
    assert str(path) in refused.value.detail
    del refused
    assert path.read_bytes() == before
