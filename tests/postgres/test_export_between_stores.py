"""A complete knowledge base moves from a file to PostgreSQL and back without a change."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import string
import subprocess
import sys
import time
from concurrent.futures import Future
from contextlib import closing

import numpy as np
import psycopg
import pytest

from kb.access.keyring import FILE, KeyFile
from kb.api.errors import StoreError
from kb.api.rights import Caller
from kb.backup.verify import verify_data
from kb.blobs.folder import KeptFiles
from kb.documents.undo import Scope, find_operation, plan
from kb.exchange import export as export_module
from kb.exchange.export import export
from kb.exchange.importing import import_folder
from kb.ingest.chunk import Chunker
from kb.search.query import Query
from kb.search.retrieve import Retriever
from kb.search.service import best_passages
from kb.settings import Settings
from kb.store.open import open_store as opened
from kb.store.postgres import opening
from kb.store.postgres.store import PostgresStore
from kb.store.rows import Author, Filter, NamedKey, NewJob, SyncedFolder
from kb.store.sqlite.connection import connect
from kb.store.sqlite.store import SqliteStore
from kb.telemetry.instruments import Instruments
from tests.support.library import Library
from tests.support.postgres import database_url
from tests.support.spaces import space

pytestmark = pytest.mark.postgres
DIMENSIONS = 16
COUNT = 200
EVERY = Filter()
NO_NUMBER = "0000c07f" * DIMENSIONS
KEY = NamedKey("anna", "write", ("red",), "/letters/", "ab" * 32, "2026-01-31T12:00:00.000Z")

KILLED = """
import os, signal, sys, threading, time
from pathlib import Path
from kb.exchange import importing
from kb.settings import Settings

importing.READY_MADE, importing.AT_ONCE = 20, 3
folder, data_dir, url, steps, pause = sys.argv[1:]
left = int(steps)

def end():
    time.sleep(float(pause))
    os.kill(os.getpid(), signal.SIGKILL)

ending = threading.Thread(target=end)

def show(done):
    global left
    left -= 1
    if left == 0:
        ending.start() if float(pause) else end()

importing.import_folder(Settings(data_dir=data_dir, database_url=url or None), Path(folder), show)
if ending.is_alive():  # it was through before
    ending.join()
"""
"""Ends itself so long after it has told so many times how far it is."""


FOLDER = SyncedFolder(
    "vault/",
    "one",
    "lamp",
    "/home/ada/vault",
    "{}",
    "2026-01-01T00:00:00.000Z",
    f'{{"id":"{"a" * 32}","tags":[],"delete":true}}',
)
"""A folder that a program watches."""


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """The folder of a knowledge base in a file."""
    settings = Settings(data_dir=tmp_path_factory.mktemp("library"))
    with open_store(settings) as store:
        Library(store, settings, DIMENSIONS).fill(COUNT)
        with store.write() as tx:
            tx.history.keep(9, Author("anna", operation_key="tidy"))
            tx.documents.change_tags(9, add=["tidied"], remove=[])
            tx.folders.leave_out("/letters/draft.md")
            tx.folders.put(FOLDER)
            tx.folders.set_watch(FOLDER.prefix, FOLDER.watch)
    KeyFile(settings.data_dir / FILE).add(KEY)
    return settings.data_dir


@pytest.fixture
def filled(template, tmp_path):
    """The settings of one that a test may change."""
    return Settings(data_dir=shutil.copytree(template, tmp_path / "filled"))


@pytest.fixture
def in_postgres(tmp_path):
    return Settings(data_dir=tmp_path / "there", database_url=database_url(tmp_path))


@pytest.fixture
def in_file(tmp_path):
    return Settings(data_dir=tmp_path / "back")


def open_store(settings):
    if settings.database_url:
        return closing(PostgresStore(settings.database_url, space(DIMENSIONS)))
    return closing(SqliteStore(settings.data_dir / "kb.db", space(DIMENSIONS)))


def exported(settings, folder):
    export(settings, folder, as_notes=False, with_vectors=True)
    return folder


def imported(settings, folder):
    return import_folder(settings, folder, lambda _: None)


def moved(source, target, folder):
    return imported(target, exported(source, folder))


def header(folder):
    """The description of an export, without its time."""
    about = json.loads((folder / "kb-export.json").read_text("utf-8"))
    return about | {"made_at": None}, sorted(path.name for path in folder.glob("files/*/*"))


def found(store, question):
    text, numbers = question
    vector = Future()
    vector.set_result(numbers)
    with store.read() as tx:
        passages = best_passages(Retriever(tx.index, Query.parse(text, EVERY), vector, Instruments()), 10)
    return {passage.chunk_id: passage.score for passage in passages}


def test_all_of_it_goes_to_postgresql_and_back_and_is_found_alike(filled, in_postgres, in_file, tmp_path):
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    there = moved(filled, in_postgres, first)
    back = moved(in_postgres, in_file, second)
    assert there == back
    assert there.added > COUNT / 2
    assert (there.keys, there.compared > COUNT) == (1, True)
    exported(in_file, third)
    assert header(first) == header(second) == header(third)
    assert KeyFile(in_file.data_dir / FILE).all() == [KEY]
    assert list(verify_data(in_file)) == []
    library = Library(None, filled, DIMENSIONS)
    with open_store(filled) as one, open_store(in_postgres) as other, open_store(in_file) as last:
        for question in [library.question() for _ in range(30)]:
            before, meanwhile, after = (found(store, question) for store in (one, other, last))
            assert list(before) == list(meanwhile) == list(after)
            np.testing.assert_allclose(list(before.values()), list(meanwhile.values()), rtol=1e-9)
        plans = [plan(store, Scope(find_operation(store, None, Caller("anna")))).steps for store in (one, other, last)]
        assert len(plans[0]) == 1
        assert plans[0] == plans[1] == plans[2]
        for store in (one, other, last):
            with store.read() as tx:
                assert FOLDER in tx.folders.all()


def test_what_comes_later_gets_ids_above_all_that_were_given(filled, in_postgres, in_file, tmp_path):
    moved(filled, in_postgres, tmp_path / "first")
    moved(in_postgres, in_file, tmp_path / "second")
    added = []
    for settings in (filled, in_postgres, in_file):
        with open_store(settings) as store, store.write() as tx:
            document_id = Library(store, settings, DIMENSIONS).add(tx, 1)
            [chunk, *_] = tx.documents.chunks(document_id)
            job_id = tx.jobs.add(NewJob("note", text="text"))
            [line] = tx.audit.page(limit=1, before=None, document_id=None, by=None)
            tx.history.keep(document_id, Author("anna", operation_key="later"))
            [operation] = tx.operations.page(limit=1)
            added.append((document_id, chunk.id, job_id, line.id, operation.id))
    assert added[0] == added[1] == added[2]


@pytest.mark.parametrize("way", ["to PostgreSQL", "to a file"])
def test_an_import_may_be_killed_at_any_moment_and_goes_on(filled, in_postgres, in_file, tmp_path, way):
    folder, target = exported(filled, tmp_path / "export"), in_postgres if way == "to PostgreSQL" else in_file
    for steps, pause in ((1, 0), (4, 0.003), (9, 0.05), (20, 0.2)):
        command = [sys.executable, "-c", KILLED, folder, target.data_dir, target.database_url or ""]
        ended = subprocess.run([*command, str(steps), str(pause)], check=False, capture_output=True, text=True)
        # What went on from so far on that there were not so many steps left came to its end.
        assert ended.returncode in (-signal.SIGKILL, 0), ended.stderr
    last = eventually_imported(target, folder)
    assert last.there > 0
    exported(target, tmp_path / "again")
    assert header(tmp_path / "again") == header(folder)
    again = imported(target, folder)
    assert (again.added, again.there) == (0, last.added + last.there)


def eventually_imported(target, folder):
    """Import as soon as the server knows that the one who was killed is gone."""
    while True:
        try:
            return imported(target, folder)
        except StoreError as error:
            if "An engine is using" not in str(error):
                raise
            time.sleep(0.1)


def test_no_engine_starts_on_half_an_import_into_postgresql(filled, in_postgres, tmp_path):
    folder = exported(filled, tmp_path / "export")
    command = [sys.executable, "-c", KILLED, folder, in_postgres.data_dir, in_postgres.database_url, "1", "0"]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    with pytest.raises(StoreError, match="An import into this database was interrupted"), started(in_postgres):
        pass
    assert eventually_imported(in_postgres, folder).there > 0
    with started(in_postgres) as store, store.write() as tx:
        assert Library(store, in_postgres, DIMENSIONS).add(tx, 1) > COUNT


def test_an_engine_that_starts_while_an_import_begins_is_found(filled, in_postgres, tmp_path, monkeypatch):
    folder = exported(filled, tmp_path / "export")
    monkeypatch.setattr(opening, "refuse_engines", lambda _: None)  # it looked a moment too early
    with started(in_postgres), pytest.raises(StoreError, match="An engine is using the database"):
        imported(in_postgres, folder)
    assert imported(in_postgres, folder).there == 0


def started(settings):
    """The store as an engine opens it."""
    return opened(settings, space(DIMENSIONS))


def test_without_vectors_they_are_made_anew(in_file, in_postgres, tmp_path, model_files, embedder):
    in_file.data_dir.mkdir()
    with open_store(in_file) as store:
        Library(store, in_file, DIMENSIONS).fill(3)
    export(in_file, tmp_path / "export", as_notes=False)
    target = in_postgres.model_copy(update={"model_dir": model_files.onnx.parent})
    imported(target, tmp_path / "export")
    with closing(PostgresStore(target.database_url, space())) as store, store.read() as tx:
        [document, *_] = tx.documents.page(EVERY, sort="id", limit=1, cursor=None)
        chunk = tx.documents.chunks(document.id)[0]
        [vector] = tx.transfer.vectors([chunk.id])
    [made] = embedder.embed_passages([Chunker(embedder).passage(chunk.header, chunk.text)])
    assert vector @ made > 0.99  # of a precision that this machine is fast in


def test_an_export_of_a_running_engine_is_one_moment(filled, in_postgres, in_file, tmp_path, monkeypatch):
    moved(filled, in_postgres, tmp_path / "first")
    with open_store(in_postgres) as store:
        copy_files = export_module._copy_files

        def write_meanwhile(*arguments):
            with store.write() as tx:
                tx.documents.change_tags(9, add=["late"], remove=[])
                tx.history.discard(10, Author())
                tx.jobs.add(NewJob("note", text="late"))
            return copy_files(*arguments)

        monkeypatch.setattr(export_module, "_copy_files", write_meanwhile)
        exported(in_postgres, tmp_path / "second")
    (first, _), (second, _) = header(tmp_path / "first"), header(tmp_path / "second")
    assert second["files"] == first["files"]


def test_a_target_that_holds_something_else_or_has_an_engine_is_refused_and_stays(filled, in_postgres, tmp_path):
    folder = exported(filled, tmp_path / "export")
    with open_store(in_postgres) as store:
        with store.write() as tx:
            Library(store, in_postgres, DIMENSIONS).add(tx, 1)
        with pytest.raises(StoreError, match="An engine is using the database"):
            imported(in_postgres, folder)
    with pytest.raises(StoreError, match="is not empty"):
        imported(in_postgres, folder)
    with open_store(in_postgres) as store, store.write() as tx:
        assert tx.documents.count(EVERY) == 1
        tx.documents.delete(1)
    with pytest.raises(StoreError, match="is not empty"):  # its id was given
        imported(in_postgres, folder)


def test_a_database_that_is_none_of_kb_is_not_exported(in_postgres, tmp_path):
    with pytest.raises(StoreError, match="kb did not create this PostgreSQL database"):
        exported(in_postgres, tmp_path / "export")
    assert not list(tmp_path.glob("export*"))


def test_what_comes_otherwise_into_the_target_is_named(filled, in_postgres, tmp_path):
    folder = exported(filled, tmp_path / "export")
    with open_store(in_postgres), psycopg.connect(in_postgres.database_url, autocommit=True) as connection:
        connection.execute(
            "CREATE FUNCTION kb.spoil() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN NEW.title := 'other'; RETURN NEW; END $$"
        )
        connection.execute("CREATE TRIGGER spoil BEFORE INSERT ON kb.jobs FOR EACH ROW EXECUTE FUNCTION kb.spoil()")
    with pytest.raises(StoreError, match=r"differs from the export \(jobs.jsonl, line 1\)"):
        imported(in_postgres, folder)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE former_contents SET chunks = x'00' WHERE document_id = {id}",
        "UPDATE documents SET own_tags = 'none' WHERE id = {id}",
        "UPDATE documents SET created_at = 'once' WHERE id = {id}",
        "UPDATE chunks SET chunk_index = 9 WHERE document_id = {id}",
        f"UPDATE chunks_vec SET embedding = x'{NO_NUMBER}'"
        " WHERE chunk_id = (SELECT min(id) FROM chunks WHERE document_id = {id})",
        "DELETE FROM chunks_vec WHERE chunk_id = (SELECT min(id) FROM chunks WHERE document_id = {id})",
    ],
)
def test_a_damaged_document_is_named_and_no_export_is_left(filled, tmp_path, damage):
    with closing(connect(filled.data_dir / "kb.db")) as connection:
        document_id = connection.execute(
            "SELECT max(former_contents.document_id) FROM former_contents JOIN documents ON documents.id = document_id"
        ).get
        connection.execute(damage.format(id=document_id))
    with pytest.raises(
        StoreError, match=rf"cannot read document {document_id}:|\b{document_id}: .*(cannot read|missing or damaged)"
    ):
        exported(filled, tmp_path / "export")
    assert not list(tmp_path.glob("export*"))


def test_a_path_that_postgresql_holds_in_no_index_is_named_with_its_document(filled, in_postgres, tmp_path):
    path = "".join(random.Random(7).choices(string.ascii_letters + string.digits, k=4096))
    with open_store(filled) as store, store.write() as tx:
        tx.documents.move(9, path)
    with pytest.raises(StoreError, match="refused document 9: index row size"):
        moved(filled, in_postgres, tmp_path / "export")


def test_files_that_are_not_there_are_in_neither(filled, in_postgres, tmp_path):
    kept = KeptFiles(filled.files_dir)
    [lost, *_] = kept.digests()
    kept.path(lost).unlink()
    (filled.staging_dir / "staged-8").unlink()
    moved(filled, in_postgres, tmp_path / "first")
    exported(in_postgres, tmp_path / "second")
    assert header(tmp_path / "first") == header(tmp_path / "second")


def test_the_commands_move_it(filled, in_postgres, tmp_path):
    def kb(*words, **environment):
        environment |= {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
        command = [sys.executable, "-m", "kb_cli.main", *words]
        return subprocess.run(command, check=False, capture_output=True, text=True, env=environment)

    ended = kb("export", "--vectors", str(tmp_path / "export"), KB_DATA_DIR=str(filled.data_dir))
    assert (ended.returncode, ended.stderr) == (0, "")
    there = {"KB_DATA_DIR": str(tmp_path / "there"), "KB_DATABASE_URL": in_postgres.database_url}
    ended = kb("import", str(tmp_path / "export"), **there)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "1 keys with rights added" in ended.stdout
    assert "lines of the export with the database" in ended.stdout
    unreadable = kb("import", str(tmp_path / "export"), **there | {"KB_DATABASE_URL": "postgresql://a:bar/secret@h/kb"})
    assert (unreadable.returncode, "secret" in unreadable.stdout + unreadable.stderr) == (2, False)
