"""A whole knowledge base goes from a file to PostgreSQL and back, and is what it was."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import string
import subprocess
import sys
import time
import tracemalloc
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import psycopg
import pytest

from kb.api.errors import DiskFull, Invalid, StoreError, StoreUnavailable
from kb.blobs.folder import PART, KeptFiles
from kb.blobs.protocol import KEPT, STAGED
from kb.documents.blob_place import blobs_apart
from kb.maintenance import migrate_store as module
from kb.maintenance.backup import back_up
from kb.maintenance.migrate_store import migrate_store
from kb.search.query import Query
from kb.search.retrieve import Retriever
from kb.search.service import best_passages
from kb.settings import Settings
from kb.store.postgres.opening import origin
from kb.store.postgres.store import WRITING, PostgresStore
from kb.store.rows import Content, Filter, NewChunk, NewJob, Place
from kb.store.sqlite.connection import connect
from kb.store.sqlite.store import SqliteStore
from kb.telemetry.instruments import Instruments
from tests.support.cut_off import cut_off_restore
from tests.support.disks import small_disk
from tests.support.eventually import eventually
from tests.support.library import Library
from tests.support.postgres import database_url
from tests.support.spaces import space

pytestmark = pytest.mark.postgres
DIMENSIONS = 16
COUNT = 300
LONG = int(os.environ.get("KB_TEST_DOCUMENTS", "50000"))
EVERY = Filter()
NO_NUMBER = "0000c07f" * DIMENSIONS

KILLED = """
import os, signal, sys, threading, time
from kb.maintenance import migrate_store as module
from kb.settings import Settings

module.BATCH, module.WRITTEN = 40, 1 << 16
source, target, data_dir, steps, pause, doing, blob_url = sys.argv[1:]
left = int(steps)

def end():
    time.sleep(float(pause))
    os.kill(os.getpid(), signal.SIGKILL)

ending = threading.Thread(target=end)

def show(now, *_):
    global left
    left -= now == doing if doing else now != "copying files"
    if left == 0 and float(pause):
        ending.start()
    elif left == 0:
        end()

settings = Settings(data_dir=data_dir, blob_url=blob_url or None)
one, other = (settings.model_copy(update={"database_url": url}) for url in (source, target))
module.migrate_store(one, other, show, verify_only=False)
if ending.is_alive():  # it was through before
    ending.join()
"""
"""Ends itself so long after it has told so many times how far it is with something, or with all but files."""


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """The folder of a knowledge base in a file."""
    folder = tmp_path_factory.mktemp("library")
    with closing(SqliteStore(folder / "kb.db", space(DIMENSIONS))) as store:
        Library(store, Settings(data_dir=folder), DIMENSIONS).fill(COUNT)
    return folder


@pytest.fixture
def filled(template, tmp_path):
    """The settings of one that a test may change."""
    return Settings(data_dir=shutil.copytree(template, tmp_path, dirs_exist_ok=True))


def with_url(settings, url):
    return settings.model_copy(update={"database_url": url})


@pytest.fixture
def in_postgres(filled, tmp_path):
    return with_url(filled, database_url(tmp_path))


@pytest.fixture
def in_file(filled, tmp_path):
    return with_url(filled, f"sqlite:///{tmp_path / 'back.db'}")


def open_store(settings, dimensions=DIMENSIONS):
    if str(settings.database_url).startswith("postgres"):
        return closing(PostgresStore(settings.database_url, space(dimensions)))
    return closing(SqliteStore(Path(settings.database.removeprefix("sqlite:///")), space(dimensions)))


def migrated(source, target, *, verify_only=False):
    return migrate_store(source, target, lambda *_: None, verify_only=verify_only)


def equal(source, target):
    assert migrated(source, target, verify_only=True).differences == []


def found(store, question, **how):
    text, numbers = question
    vector = Future()
    vector.set_result(numbers)
    query = Query.parse(text, EVERY, **how)
    with store.read() as tx:
        passages = best_passages(Retriever(tx.index, query, vector, Instruments()), 10)
    return {passage.chunk_id: passage.score for passage in passages}


def questions(settings, dimensions, count):
    library = Library(None, settings, dimensions)
    library.chance.seed(11)
    return [library.question() for _ in range(count)]


def test_all_of_it_goes_to_postgresql_and_back_and_is_found_alike(filled, in_postgres, in_file):
    there, back = migrated(filled, in_postgres), migrated(in_postgres, in_file)
    for each in (there, back):
        assert each.differences == []
        assert each.written == each.documents > COUNT / 2
        assert each.files > COUNT / 20
    equal(filled, in_file)
    with open_store(filled) as one, open_store(in_postgres) as other, open_store(in_file) as last:
        for question in questions(filled, DIMENSIONS, 40):
            before, meanwhile, after = (found(store, question) for store in (one, other, last))
            assert list(before) == list(meanwhile) == list(after)
            np.testing.assert_allclose(list(before.values()), list(meanwhile.values()), rtol=1e-9)
            assert before == after


def test_what_comes_later_gets_ids_above_all_that_were_given(filled, in_postgres, in_file):
    migrated(filled, in_postgres)
    migrated(in_postgres, in_file)
    added = []
    for settings in (filled, in_postgres, in_file):
        with open_store(settings) as store:
            library = Library(store, settings, DIMENSIONS)
            with store.write() as tx:
                document_id = library.add(tx, 1)
                [chunk, *_] = tx.documents.chunks(document_id)
                job_id = tx.jobs.add(NewJob("note", text="text"))
                [line] = tx.audit.page(limit=1, before=None, document_id=None, by=None)
                added.append((document_id, chunk.id, job_id, line.id))
    assert added[0] == added[1] == added[2]


def test_a_second_copy_takes_over_what_changed_and_nothing_else(filled, in_postgres):
    first = migrated(filled, in_postgres)
    with open_store(filled) as store, store.write() as tx:
        library = Library(store, filled, DIMENSIONS)
        library.there = [each.id for each in tx.documents.page(EVERY, sort="id", limit=99, cursor=None)]
        [binned, *_] = tx.history.bin(limit=1)
        library.add(tx, 1)
        library.change(tx, 10)
        tx.documents.delete(binned.document.id)
        job_id = tx.jobs.add(NewJob("note", text="text"))
        tx.jobs.delete(1)
    assert migrated(filled, in_postgres, verify_only=True).differences
    second = migrated(filled, in_postgres)
    assert second.differences == []
    assert 1 <= second.written < 30 < first.written
    assert second.removed >= 1
    assert migrated(filled, in_postgres).written == 0
    with open_store(in_postgres) as store, store.read() as tx:
        assert (tx.jobs.get(1), tx.jobs.get(job_id).text) == (None, "text")


def test_an_engine_may_write_to_the_source_meanwhile_and_none_may_use_the_target(filled, in_postgres, in_file):
    migrated(filled, in_postgres)
    for source, target in ((in_postgres, in_file), (filled, with_url(filled, f"{in_file.database_url}.other"))):
        with open_store(source) as store:
            library = Library(store, source, DIMENSIONS)

            def write(doing, *_, store=store, library=library, target=target):
                if doing == "copying documents":
                    with store.write() as tx:
                        library.there.append(library.add(tx, 1))
                    with pytest.raises(StoreError, match="unfinished copy"), open_store(target):
                        pass

            first = migrate_store(source, target, write, verify_only=False)
            assert first.differences == []
            assert library.there
            second = migrated(source, target)
            assert (second.differences, second.written) == ([], len(library.there))


@pytest.mark.parametrize("way", ["to PostgreSQL", "to a file"])
def test_it_may_be_killed_at_any_moment_and_goes_on(filled, in_postgres, in_file, way):
    source, target = filled, in_postgres
    if way == "to a file":
        migrated(filled, in_postgres)
        source, target = in_postgres, in_file
    for steps, pause in ((1, 0), (2, 0.01), (4, 0.003), (6, 0.05), (9, 0.02), (14, 0)):
        kill(source, target, steps, pause)
        if steps == 4:
            with pytest.raises(StoreError, match="unfinished copy"), open_store(target):
                pass
    last = eventually_migrated(source, target)
    assert last.differences == []
    assert last.written < last.documents
    equal(source, target)
    with open_store(target) as store, store.read() as tx:
        assert tx.documents.count(EVERY)


@pytest.mark.parametrize("place", ["database", "folder"])
def test_it_may_be_killed_amid_files_and_copies_the_others(filled, in_postgres, in_file, place, tmp_path):
    if place == "folder":
        (tmp_path / "srv").mkdir()
        update = {"blob_url": f"file://{tmp_path}/srv"}
        filled, in_postgres, in_file = (each.model_copy(update=update) for each in (filled, in_postgres, in_file))
    for source, target in ((filled, in_postgres), (in_postgres, in_file)):
        for steps in (1, 5):
            kill(source, target, steps, 0, "copying files")
            with pytest.raises(StoreError, match="unfinished copy"), open_store(target):
                pass
        last = eventually_migrated(source, target)
        assert last.differences == []
        assert last.files > COUNT / 20
    copied = contents(in_file)
    assert copied.items() <= contents(filled).items()
    assert len(copied) == last.files


def kill(source, target, steps, pause, doing=""):
    command = [sys.executable, "-c", KILLED, source.database_url or source.database]
    arguments = [str(target.database_url), str(target.data_dir), str(steps), str(pause), doing, source.blob_url or ""]
    ended = subprocess.run([*command, *arguments], check=False, capture_output=True, text=True)
    # What went on from so far on that there were not so many steps left came to its end.
    assert ended.returncode in (-signal.SIGKILL, 0), ended.stderr


def contents(settings):
    """What is in the files of a database in a file, by their names. Parts are removed by the next engine that starts."""
    paths = (path for folder in (settings.files_dir, settings.staging_dir) for path in folder.rglob("*"))
    return {path.name: path.read_bytes() for path in paths if path.is_file() and path.suffix != PART}


def eventually_migrated(source, target):
    """Migrate as soon as the server knows that the one who was killed is gone."""
    while True:
        try:
            return migrated(source, target)
        except StoreError as error:
            if "Another" not in str(error):
                raise
            time.sleep(0.1)


def test_an_unfinished_copy_is_no_source(filled, in_postgres, in_file):
    class CutOffError(Exception):
        pass

    def end(*_):
        raise CutOffError

    with pytest.raises(CutOffError):
        migrate_store(filled, in_postgres, end, verify_only=False)
    with pytest.raises(StoreError, match="unfinished copy"):
        migrated(in_postgres, in_file)
    assert migrated(filled, in_postgres, verify_only=True).differences
    assert migrated(filled, in_postgres).differences == []


def test_a_file_that_waited_comes_over_although_its_job_is_done_meanwhile(filled, in_postgres):
    with open_store(filled) as store:

        def finish(doing, *_):
            if doing == "copying documents":
                for file in filled.staging_dir.iterdir():
                    file.unlink()

        with store.read() as tx:
            waiting = tx.jobs.staged()
        assert waiting
        assert migrate_store(filled, in_postgres, finish, verify_only=False).differences == []
    with blobs_apart(in_postgres.database_url, None, in_postgres.files_dir.parent) as blobs:
        assert {blob.name.removeprefix(STAGED) for blob in blobs.list(STAGED)} == waiting


def test_an_engine_that_starts_when_a_copy_begins_keeps_its_database(filled, in_postgres):
    with open_store(in_postgres):
        pass
    with closing(psycopg.connect(in_postgres.database_url)) as writer, ThreadPoolExecutor() as pool:
        writer.execute("SELECT pg_advisory_xact_lock(%s)", (WRITING,))
        starting = pool.submit(PostgresStore, in_postgres.database_url, space(DIMENSIONS))
        await_waiting(writer, 1)
        copying = pool.submit(migrated, filled, in_postgres)
        await_waiting(writer, 2)
        writer.commit()
        with closing(starting.result()) as store:
            with pytest.raises(StoreError, match="An engine uses the target"):
                copying.result()
            with store.read() as tx:
                assert tx.documents.count(EVERY) == 0
    with open_store(in_postgres):
        pass


def test_a_copy_that_an_engine_uses_when_another_run_begins_is_not_overwritten(filled, in_postgres):
    migrated(filled, in_postgres)
    with closing(psycopg.connect(in_postgres.database_url)) as engine, ThreadPoolExecutor() as pool:
        engine.execute("SELECT pg_advisory_xact_lock(%s)", (WRITING,))
        copying = pool.submit(migrated, filled, in_postgres)
        await_waiting(engine, 1)
        engine.execute("DROP TABLE kb.arrival")
        engine.commit()
        with pytest.raises(StoreError, match="an engine has used it since"):
            copying.result()


def await_waiting(connection, count):
    """Wait until so many wait to write."""
    waiting = "SELECT count(*) FROM pg_locks WHERE objid = %s AND NOT granted"
    eventually(f"{count} wait to write", lambda: connection.execute(waiting, (WRITING,)).fetchone() == (count,))


def test_a_server_that_ends_idle_transactions_leaves_the_source_open(filled, in_postgres, in_file):
    migrated(filled, in_postgres)
    with psycopg.connect(in_postgres.database_url, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {connection.info.dbname} SET idle_in_transaction_session_timeout = 100")
    slept = []

    def show(doing, *_):
        if doing == "copying documents" and not slept:
            slept.append(time.sleep(1))

    assert migrate_store(in_postgres, in_file, show, verify_only=False).differences == []
    assert slept


def test_a_target_that_holds_something_else_is_refused_and_stays(filled, in_postgres, tmp_path):
    with open_store(in_postgres) as store, store.write() as tx:
        Library(store, in_postgres, DIMENSIONS).add(tx, 1)
    with pytest.raises(StoreError, match="not copied from there"):
        migrated(filled, in_postgres)
    with open_store(in_postgres) as store, store.read() as tx:
        assert tx.documents.count(EVERY) == 1


def test_a_copy_that_an_engine_has_used_is_not_overwritten(filled, in_postgres):
    migrated(filled, in_postgres)
    with open_store(in_postgres):
        pass
    with pytest.raises(StoreError, match="an engine has used it since"):
        migrated(filled, in_postgres)


@pytest.mark.parametrize("kind", ["in_postgres", "in_file"])
def test_a_copy_that_an_engine_with_another_model_refused_is_a_copy_still(filled, request, kind):
    copy = request.getfixturevalue(kind)
    migrated(filled, copy)
    with pytest.raises(StoreError, match="holds vectors of"), open_store(copy, DIMENSIONS // 2):
        pass
    assert migrated(filled, copy).differences == []


def test_a_copy_of_another_database_or_of_what_is_no_more_is_refused(filled, in_postgres, tmp_path):
    migrated(filled, in_postgres)
    other = with_url(filled, f"sqlite:///{tmp_path / 'other.db'}")
    with open_store(other):
        pass
    with pytest.raises(StoreError, match=r"is a copy of sqlite:///.*kb\.db"):
        migrated(other, in_postgres)
    for ending in ("", "-wal", "-shm"):
        (tmp_path / f"kb.db{ending}").unlink(missing_ok=True)
    with open_store(filled):
        pass
    with pytest.raises(StoreError, match="what the source held once"):
        migrated(filled, in_postgres)


def test_a_target_that_an_engine_uses_is_refused(filled, in_postgres, in_file):
    with open_store(in_postgres), pytest.raises(StoreError, match="An engine uses the target"):
        migrated(filled, in_postgres)
    from kb.store.lock import sole_user
    from kb.store.open import database_lock

    with sole_user(database_lock(filled.data_dir / "back.db")), pytest.raises(StoreError, match="stop it first"):
        migrated(filled, in_file)


def test_a_source_that_is_not_there_or_is_the_target_is_refused(filled, in_postgres, tmp_path):
    with pytest.raises(StoreError, match="There is no database"):
        migrated(with_url(filled, f"sqlite:///{tmp_path / 'none.db'}"), in_postgres)
    with pytest.raises(StoreError, match="none of kb"):
        migrated(in_postgres, filled)
    with pytest.raises(StoreError, match="the same database"):
        migrated(filled, with_url(filled, f"sqlite:///{tmp_path / 'kb.db'}"))
    assert not (tmp_path / "none.db").exists()


def test_vectors_of_another_model_are_refused(filled, in_postgres, tmp_path):
    migrated(filled, in_postgres)
    with closing(connect(tmp_path / "kb.db")) as connection:
        connection.execute("UPDATE vector_space SET digest = ?", ("0" * 64,))
    with pytest.raises(StoreError, match="holds vectors of"):
        migrated(filled, in_postgres)


def make_others(store, other):
    """Make vectors of another model."""
    chance = np.random.default_rng(3)
    with store.write() as tx:
        tx.second.begin(other)
        while rows := tx.second.missing(0, 1000):
            vectors = chance.normal(size=(len(rows), other.dimensions)).astype(np.float32)
            tx.second.add([row.chunk_id for row in rows], vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def switch(store):
    """Let them take the place of those in use."""
    with store.write() as tx:
        assert tx.second.switch()


def test_of_two_sets_of_vectors_that_in_use_goes_from_whichever_table_to_whichever(
    filled, in_postgres, in_file, tmp_path
):
    other = space(2 * DIMENSIONS, model="wide")
    target = with_url(filled, database_url(tmp_path / "target"))
    migrated(filled, in_postgres)
    with open_store(in_postgres) as source, open_store(target) as empty:
        for store in (source, empty):
            make_others(store, other)
            switch(store)
    for there in (in_file, target):
        assert migrated(in_postgres, there).differences == []
    with psycopg.connect(target.database_url) as connection:
        indexes = (
            "SELECT tablename, indexdef FROM pg_indexes WHERE schemaname = 'kb' AND indexdef LIKE '%hnsw%' ORDER BY 1"
        )
        made = dict(connection.execute(indexes).fetchall())
        assert list(made) == ["vectors_a", "vectors_b"]
        assert all("ef_construction='128'" in each for each in made.values())
        counts = (
            "SELECT (SELECT count(*) FROM kb.vectors_a), (SELECT count(*) FROM kb.vectors_b), count(*) FROM kb.chunks"
        )
        [(none, some, every)] = connection.execute(counts).fetchall()
        assert (none, some) == (0, every)


def test_vectors_that_the_source_deletes_meanwhile_are_in_the_copy(filled, in_postgres, in_file):
    migrated(filled, in_postgres)
    refused = []

    def finish(doing, *_):
        if doing == "copying files" and not refused:
            switch(store)
            with pytest.raises(StoreUnavailable, match="Somebody reads the vectors") as refusal, store.write() as tx:
                tx.second.discard()
            refused.append(refusal.value)

    with open_store(in_postgres) as store:
        make_others(store, space(2 * DIMENSIONS, model="wide"))
        assert migrate_store(in_postgres, in_file, finish, verify_only=False).differences == []
    assert refused
    with closing(connect(Path(in_file.database.removeprefix("sqlite:///")))) as connection:
        [counts] = connection.execute("SELECT (SELECT count(*) FROM chunks_vec), (SELECT count(*) FROM chunks)")
        assert counts[0] == counts[1] > 0


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE former_contents SET chunks = x'00' WHERE document_id = {id}",
        "UPDATE former_contents SET vectors = x'00' WHERE document_id = {id}",
        "UPDATE documents SET own_tags = 'none' WHERE id = {id}",
        "UPDATE documents SET created_at = 'once' WHERE id = {id}",
        "UPDATE chunks SET chunk_index = 9 WHERE document_id = {id}",
        f"UPDATE chunks_vec SET embedding = x'{NO_NUMBER}'"
        " WHERE chunk_id = (SELECT min(id) FROM chunks WHERE document_id = {id})",
    ],
)
def test_a_damaged_document_is_named_and_nothing_of_it_is_written(filled, in_postgres, tmp_path, damage):
    with closing(connect(tmp_path / "kb.db")) as connection:
        [(document_id,)] = connection.execute(
            "SELECT max(former_contents.document_id) FROM former_contents JOIN documents ON documents.id = document_id"
        ).fetchall()
        connection.execute(damage.format(id=document_id))
    with pytest.raises(StoreError, match=rf"\b{document_id}\b.*cannot be read"):
        migrated(filled, in_postgres)
    with psycopg.connect(in_postgres.database_url) as connection:
        for table, key in (("documents", "id"), ("chunks", "document_id"), ("versions", "document_id")):
            assert connection.execute(f"SELECT 1 FROM kb.{table} WHERE {key} = {document_id}").fetchall() == []


def test_a_path_that_postgresql_holds_in_no_index_is_named_with_its_document(filled, in_postgres):
    path = "".join(random.Random(7).choices(string.ascii_letters + string.digits, k=4096))
    with open_store(filled) as store, store.write() as tx:
        tx.documents.move(9, path)
    with pytest.raises(Invalid, match=r"too long.*document 9\."):
        migrated(filled, in_postgres)


def test_a_former_content_may_have_the_id_of_one_that_went(filled, in_file, tmp_path, monkeypatch):
    migrated(filled, in_file)
    monkeypatch.setattr(module, "WRITTEN", 1)  # each document by itself
    with closing(connect(tmp_path / "kb.db")) as connection:
        first, last = (
            connection.execute(f"SELECT {end}(document_id) FROM former_contents").fetchall()[0][0]
            for end in ("min", "max")
        )
        connection.execute("UPDATE former_contents SET document_id = 0 WHERE document_id = ?", (last,))
        connection.execute("UPDATE versions SET document_id = 0 WHERE document_id = ?", (last,))
        connection.execute("DELETE FROM bin WHERE document_id = ?", (last,))
        connection.execute("UPDATE former_contents SET document_id = ? WHERE document_id = 0", (first,))
        connection.execute("UPDATE versions SET document_id = ?, number = number + 99 WHERE document_id = 0", (first,))
    assert migrated(filled, in_file).differences == []


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("UPDATE kb.documents SET title = 'other' WHERE id = 9", "document 9: fields, rows, versions"),
        ("UPDATE kb.chunks SET text = text || '.' WHERE document_id = 9 AND chunk_index = 0", "document 9: chunks"),
        ("UPDATE kb.vectors_a SET embedding = -1 * embedding WHERE document_id = 9", "document 9: vectors"),
        ("DELETE FROM kb.vectors_a WHERE document_id = 9", "document 9: vectors"),
        ("UPDATE kb.versions SET part_of = 1 WHERE document_id = 9 AND number = 1", "document 9: rows"),
        ("UPDATE kb.jobs SET idempotency_key = 'other' WHERE id = 4", "job 4: idempotency_key"),
        ("DELETE FROM kb.audit WHERE id = 4", "audit line 4: "),
        ("DELETE FROM kb.postings WHERE document_id = 9 AND term_id % 2 = 0", "document 9: words"),
        ("UPDATE kb.postings SET places = places || 90 WHERE document_id = 9", "document 9: words"),
        ("UPDATE kb.postings SET document_id = 999999 WHERE document_id = 9", "document 9: words"),
        ("UPDATE kb.postings SET chunk_id = chunk_id + 999999 WHERE document_id = 9", "document 9: words"),
        (
            "INSERT INTO kb.postings SELECT 999999, 9, min(id), 1, 1, '{0}' FROM kb.terms",
            "document 9: words",
        ),
        ("UPDATE kb.terms SET chunks = chunks + 1", "full text: "),
        ("DELETE FROM kb.terms WHERE id % 2 = 0", "document "),
        ("UPDATE kb.statistics SET words = 1", "full text: 1 counts"),
        ("UPDATE kb.history SET begins = now()", "database: history"),
    ],
)
def test_what_differs_is_named(filled, in_postgres, change, named):
    migrated(filled, in_postgres)
    change = change.replace("-1 * embedding", "(SELECT embedding FROM kb.vectors_a WHERE document_id = 10 LIMIT 1)")
    with psycopg.connect(in_postgres.database_url) as connection:
        assert connection.execute(change).rowcount > 0
    [told, *_] = migrated(filled, in_postgres, verify_only=True).differences
    assert told.startswith(named)


def test_the_words_of_a_long_text_are_compared_in_little_memory_and_told_once(tmp_path):
    url, vector = database_url(tmp_path), np.full(DIMENSIONS, DIMENSIONS**-0.5, np.float32)
    text = " ".join(f"word{number}" for number in range(150))
    chunks = [NewChunk(text, "Header", Place(1, 1, 0, 1))] * 400
    with open_store(Settings(database_url=url)) as store, store.write() as tx:
        content = Content("text", "Long", "ab" * 32, chunks, np.tile(vector, (len(chunks), 1)))
        long = tx.documents.add(content, None, [])
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE kb.postings SET places = places || 90 WHERE chunk_id % 2 = 0")
    with origin(url, "--to") as copy:
        tracemalloc.start()
        try:
            assert list(copy.full_text_faults()) == [f"document {long}: words"]
            assert tracemalloc.get_traced_memory()[1] < 4 << 20
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO chunks_fts (rowid, text, header) SELECT max(id), 'other', '' FROM chunks",
        "INSERT INTO chunks_fts (chunks_fts) VALUES ('delete-all')",
    ],
)
def test_words_that_a_file_finds_otherwise_are_named(filled, in_file, change):
    migrated(filled, in_file)
    equal(filled, in_file)
    with closing(connect(Path(in_file.database.removeprefix("sqlite:///")))) as connection:
        connection.execute(change)
    assert any("word" in each for each in migrated(filled, in_file, verify_only=True).differences)


def test_a_copy_without_some_of_its_words_is_given_to_no_engine(filled, in_postgres):
    migrated(filled, in_postgres)
    with psycopg.connect(in_postgres.database_url) as connection:
        connection.execute("DELETE FROM kb.postings WHERE document_id = 9")
    assert migrated(filled, in_postgres).differences[0] == "document 9: words"
    with pytest.raises(StoreError, match="unfinished copy"), open_store(in_postgres):
        pass


def test_a_restore_that_was_cut_off_is_finished_before_its_database_is_copied(filled, in_postgres, tmp_path_factory):
    backups = tmp_path_factory.mktemp("backups")
    back_up(filled, backups, keep=1)
    with open_store(filled) as store, store.write() as tx:
        late = Library(store, filled, DIMENSIONS).add(tx, 1)
    cut_off_restore(filled.data_dir, backups)
    assert migrated(filled, in_postgres).differences == []
    with open_store(in_postgres) as store, store.read() as tx:
        assert tx.documents.get(late) is None
    assert list(filled.data_dir.glob("before-restore-*"))


def test_a_restore_that_was_cut_off_makes_a_database_that_is_not_copied_over(filled, in_postgres, tmp_path_factory):
    migrated(filled, in_postgres)
    backups = tmp_path_factory.mktemp("backups")
    back_up(filled, backups, keep=1)
    (filled.data_dir / "kb.db").unlink()
    cut_off_restore(filled.data_dir, backups)
    with pytest.raises(StoreError, match="not copied from there"):
        migrated(in_postgres, filled)


def test_files_that_are_not_there_are_counted(filled, in_postgres):
    kept = KeptFiles(filled.files_dir)
    [lost, *_] = kept.digests()
    kept.path(lost).unlink()
    (filled.staging_dir / "staged-8").unlink()
    came = migrated(filled, in_postgres)
    assert (came.absent, came.differences) == (2, [])


def test_a_file_that_is_not_copied_is_named(filled, in_postgres):
    migrated(filled, in_postgres)
    with blobs_apart(in_postgres.database_url, None, in_postgres.files_dir.parent) as blobs:
        name = next(blob.name for blob in blobs.list(KEPT))
        blobs.remove([name])
    [told] = migrated(filled, in_postgres, verify_only=True).differences
    assert name in told
    assert migrated(filled, in_postgres).differences == []


def test_on_a_full_disk_it_says_so_and_goes_on_when_there_is_room(filled, in_file, tmp_path):
    with small_disk(tmp_path / "disk", 1) as folder:
        small = with_url(filled, f"sqlite:///{folder / 'kb.db'}")
        with pytest.raises(Exception, match="disk is full"):
            migrated(filled, small)
        subprocess.run(["mount", "-o", "remount,size=64m", folder], check=True)
        assert migrated(filled, small).differences == []
        with sqlite3.connect(folder / "kb.db") as connection:
            assert connection.execute("PRAGMA quick_check").fetchall() == [("ok",)]


def test_where_there_is_no_room_for_files_it_says_so_and_goes_on_when_there_is(filled, in_postgres, tmp_path):
    with small_disk(tmp_path / "small", 1) as folder:
        in_postgres = in_postgres.model_copy(update={"blob_url": f"file://{folder}"})
        with (folder / "other").open("wb") as other, suppress(OSError):
            other.write(bytes(2 << 20))
        with pytest.raises(DiskFull):
            migrated(filled, in_postgres)
        (folder / "other").unlink()
        subprocess.run(["mount", "-o", "remount,size=64m", folder], check=True)
        assert migrated(filled, in_postgres).differences == []


def test_the_command_copies_and_compares(filled, in_postgres, tmp_path):
    def kb(*words):
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "KB_DATA_DIR": str(tmp_path)}
        command = [sys.executable, "-m", "kb_cli.main", "migrate-store", *words]
        return subprocess.run(command, check=False, capture_output=True, text=True, env=environment)

    ended = kb("--to", in_postgres.database_url)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith(f"from {filled.database} to {in_postgres.database}\n")
    assert ended.stdout.endswith("they are equal\n")
    with psycopg.connect(in_postgres.database_url) as connection:
        connection.execute("DELETE FROM kb.audit WHERE id = 1")
    differ = kb("--to", in_postgres.database_url, "--verify-only")
    assert (differ.returncode, differ.stdout.endswith("they differ\n")) == (1, True)
    assert "audit line 1: " in differ.stderr
    unreadable = kb("--to", "postgresql://anna:bar/secret@127.0.0.1/kb")
    assert (unreadable.returncode, "secret" in unreadable.stdout + unreadable.stderr) == (2, False)
    refused = kb()
    assert (refused.returncode, refused.stderr) == (8, "kb: Source and target are the same database.\n")


@pytest.mark.long
@pytest.mark.timeout(0)
def test_a_large_one_goes_there_and_back(tmp_path, capsys):
    dimensions, asked = 384, 200
    settings = Settings(data_dir=tmp_path)
    with closing(SqliteStore(tmp_path / "kb.db", space(dimensions))) as store:
        Library(store, settings, dimensions).fill(LONG)
    there, back = with_url(settings, database_url(tmp_path)), with_url(settings, f"sqlite:///{tmp_path / 'back.db'}")
    lines = []
    for source, target in ((settings, there), (there, back)):
        begun, spent = time.monotonic(), {}

        def show(doing, *_, begun=begun, spent=spent):
            spent[doing] = time.monotonic() - begun

        came = migrate_store(source, target, show, verify_only=False)
        assert came.differences == []
        ends = ", ".join(f"{doing} done after {seconds:.0f} s" for doing, seconds in spent.items())
        lines.append(f"{came.documents:,} documents, {came.files:,} files: equal; {ends}")
    equal(settings, back)
    with (
        open_store(settings, dimensions) as one,
        open_store(there, dimensions) as other,
        open_store(back, dimensions) as last,
    ):
        for how in ({"exact": True}, {}):
            overlaps = {"PostgreSQL": [], "the file": []}
            for question in questions(settings, dimensions, asked):
                before = found(one, question, **how)
                for name, store in (("PostgreSQL", other), ("the file", last)):
                    after = found(store, question, **how)
                    assert list(before) == list(after) or not how
                    overlaps[name].append(len(before.keys() & after.keys()) / len(before))
            means = ", ".join(f"{sum(each) / asked:.3f} in {name}" for name, each in overlaps.items())
            lines.append(f"of the 10 best of {asked} questions{', each vector looked at' if how else ''}: {means}")
    with capsys.disabled():
        print("", *lines, sep="\n")
