"""A database of version 2 opens as the newest, with everything in it, and code of version 2 can still read it."""

from __future__ import annotations

import itertools
import re
from unicodedata import normalize

import apsw
import numpy as np
import pytest

import kb.store.sqlite.store as store_module
from kb.api.errors import StoreError
from kb.store.migrations import FIRST
from kb.store.rows import ChunkPosition, Content, Filter, NewChunk, NewJob
from kb.store.sqlite.schema import SCHEMA_VERSION
from kb.store.sqlite.store import SqliteStore
from tests.store.test_store import look
from tests.support import store_v2
from tests.support.interrupted import killed_at_each_statement
from tests.support.spaces import space
from tests.support.store_v2 import DIMENSIONS, DOCUMENTS, vector


@pytest.fixture(params=store_v2.SCHEMAS)
def schema(request):
    return store_v2.SCHEMAS[request.param]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "kb.db"


def opened(path):
    return SqliteStore(path, space(DIMENSIONS))


def migrated(path):
    opened(path).close()
    return store_v2.connect(path)


def a_note(text, seed=1000):
    chunk = NewChunk(text, "", ChunkPosition(1, 1, 0, len(text)))
    return Content("note", "A note", f"hash of {text}", [chunk], np.stack([vector(seed)]))


@pytest.mark.requirement("S-8")
@pytest.mark.requirement("D-2")
def test_everything_in_it_is_there_under_its_id(path, schema):
    chunks = store_v2.build(path, schema)
    store = opened(path)
    with store.read() as tx:
        documents = tx.documents.page(Filter(), sort="id", limit=10, cursor=None)
        found = {document.id: (document.title, set(document.tags)) for document in documents}
        texts = {id_: {chunk.id: chunk.text for chunk in tx.documents.chunks(id_)} for id_ in DOCUMENTS}
    store.close()
    assert found == {id_: (title, set(tags)) for id_, (title, _, tags) in DOCUMENTS.items()}
    for id_, (_, expected, _) in DOCUMENTS.items():
        assert texts[id_] == dict(zip(chunks[id_], expected, strict=True))
    assert {document.created_at[:19] for document in documents} == {"2023-11-14T22:13:20"}
    assert {document.updated_at for document in documents} == {None}


@pytest.mark.requirement("S-8")
def test_its_chunks_are_found_by_words_and_by_their_old_vectors(path, schema):
    chunks = store_v2.build(path, schema)
    store = opened(path)
    with store.read() as tx:
        by_words = look(tx, ("lights", "lighthouse"), None, Filter(), 10)
        for chunk_id in itertools.chain(*chunks.values()):
            near = look(tx, (), vector(chunk_id), Filter(), 1)
            assert (near.ids.tolist(), near.vec.tolist()) == ([chunk_id], pytest.approx([1.0]))
    store.close()
    assert set(chunks[3] + chunks[9][2:]) <= set(by_words.ids.tolist())


def test_it_is_known_which_of_its_chunks_have_no_vector_yet(path, schema):
    chunks = store_v2.build(path, schema)
    store = opened(path)
    with store.write() as tx:
        assert [tx.documents.ids_without_vectors(document_id) for document_id in DOCUMENTS] == [set()] * len(DOCUMENTS)
        tx.documents.write_vectors(3, {chunks[3][0]: np.zeros(DIMENSIONS, np.float32)})
        assert tx.documents.ids_without_vectors(3) == {chunks[3][0]}
    store.close()


def test_places_follow_each_other_from_the_first_character_to_the_last(path, schema):
    store_v2.build(path, schema)
    store = opened(path)
    with store.read() as tx:
        for document_id in DOCUMENTS:
            chunks = tx.documents.chunks(document_id)
            assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
            text, end, line = "".join(chunk.text for chunk in chunks), 0, 1
            for chunk in chunks:
                place = chunk.place
                assert (place.char_start, text[place.char_start : place.char_end]) == (end, chunk.text)
                assert place.line_start == line <= place.line_end
                end, line = place.char_end, line + chunk.text.count("\n")
            assert end == len(text)
    store.close()


@pytest.mark.requirement("D-2")
def test_code_of_version_2_reads_on_what_version_3_left_and_what_it_wrote(path, schema):
    chunks = store_v2.build(path, schema)
    connection = store_v2.connect(path)
    answers = (store_v2.words(connection, "lamp OR sums"), store_v2.nearest(connection, vector(15)))
    before = {table: store_v2.rows(connection, table) for table in ("documents", "chunks", "tags", "document_tags")}
    connection.close()
    connection = migrated(path)
    assert (store_v2.words(connection, "lamp OR sums"), store_v2.nearest(connection, vector(15))) == answers
    assert store_v2.tagged(connection, "sea") == [3, 9]
    for table, rows in before.items():
        for old, new in zip(rows, store_v2.rows(connection, table), strict=True):
            known = {name: value for name, value in old.items() if value is not None and name != "created_at"}
            assert known.items() <= new.items()
    store = opened(path)
    with store.write() as tx:
        tx.documents.replace(9, a_note("A new harbour"))
        tx.documents.delete(4)
        added = tx.documents.add(a_note("Another harbour", seed=2000), None, ["sea"])
        [harbour], [another] = tx.documents.chunks(9), tx.documents.chunks(added)
    store.close()
    found = {row[0]: row[3] for row in store_v2.words(connection, "harbour")}
    assert found == {harbour.id: "A new harbour", another.id: "Another harbour"}
    assert store_v2.words(connection, "lighthouses OR ledger") == store_v2.words(connection, "lighthouse")
    assert store_v2.nearest(connection, vector(2000), 1) == [another.id]
    assert chunks[4][0] not in store_v2.nearest(connection, vector(chunks[4][0]), 9)
    assert store_v2.tagged(connection, "sea") == [3, 9, added]
    connection.close()


@pytest.mark.requirement("D-2")
def test_code_of_version_2_can_go_back_to_work_where_the_tables_were_only_altered(path):
    store_v2.build(path)
    connection = migrated(path)
    store_v2.insert(connection, "documents", id=50, title="Late", doc_type="note", content_hash="late")
    store_v2.write_chunk(connection, 70, 50, 0, "Written by the old program")
    connection.execute("UPDATE chunks SET text = 'changed by the old program' WHERE id = 11")
    connection.execute("DELETE FROM chunks WHERE id = 13")
    connection.execute("DELETE FROM chunks_vec WHERE chunk_id = 13")
    assert sorted(row[0] for row in store_v2.words(connection, "old AND program")) == [11, 70]
    connection.close()
    store = opened(path)
    with store.read() as tx:
        assert tx.documents.get(50).title == "Late"
        assert look(tx, ("program",), vector(70), Filter(), 1).ids.tolist()[-1] == 70
    with store.write() as tx:
        assert tx.documents.add(a_note("and the new one goes on"), None, []) == 51
        assert tx.documents.chunks(51)[0].id == 71
    store.close()


@pytest.mark.requirement("D-2")
def test_nothing_is_taken_away_and_the_new_column_is_there(path, schema):
    store_v2.build(path, schema)
    connection = store_v2.connect(path)
    tables = ("documents", "chunks", "tags", "document_tags", "jobs", "chunks_vec")
    before = {table: set(store_v2.names(connection, table)) for table in tables}
    connection.close()
    connection = migrated(path)
    for table in tables:
        assert before[table] <= set(store_v2.names(connection, table))
    assert "updated_at" in store_v2.names(connection, "documents")
    assert connection.pragma("user_version") == SCHEMA_VERSION
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    connection.execute("INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('integrity-check', 1)")
    connection.close()


@pytest.mark.requirement("D-2")
def test_plain_tables_are_altered_and_nothing_else(path):
    store_v2.build(path)
    connection = store_v2.connect(path)
    before = {
        table: store_v2.definition(connection, table) for table in ("documents", "chunks", "tags", "document_tags")
    }
    connection.close()
    connection = migrated(path)
    for table, sql in before.items():
        assert store_v2.definition(connection, table).startswith(sql[:-2])
    assert ", updated_at TEXT, date TEXT, own_tags TEXT NOT NULL DEFAULT '[]', part_of INTEGER," in store_v2.definition(
        connection, "documents"
    )
    connection.close()


def objects(connection, kind):
    """What the schema declares of a kind, without the spaces and the comments that an added column lacks."""
    rows = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = ? AND sql IS NOT NULL", (kind,))
    return {name: re.sub(r"\s*([(),])\s*", r"\1", " ".join(sql.split())) for name, sql in rows}


@pytest.mark.requirement("D-1")
def test_an_empty_one_ends_as_a_new_one_begins(path, tmp_path, schema):
    store_v2.build(path, schema, filled=False)
    connection, new = migrated(path), migrated(tmp_path / "new.db")
    for kind in ("trigger", "index", "view"):
        assert objects(new, kind).items() <= objects(connection, kind).items()
    for table in ("chunks_fts", "generation", "last_ids"):
        assert objects(connection, "table")[table] == objects(new, "table")[table]
    for table in ("documents", "chunks", "tags", "document_tags", "jobs"):
        assert set(store_v2.names(new, table)) <= set(store_v2.names(connection, table))
    for table in ("chunks_fts_config", "generation", "history", "last_ids", "reanalysis", "vector_precisions"):
        assert store_v2.rows(connection, table) == store_v2.rows(new, table)
    connection.close()
    new.close()


def test_ids_of_what_was_deleted_are_not_given_again(path, schema):
    store_v2.build(path, schema)
    store = opened(path)
    with store.write() as tx:
        tx.documents.delete(9)
    with store.write() as tx:
        document_id = tx.documents.add(a_note("new"), None, [])
        [chunk] = tx.documents.chunks(document_id)
        tx.documents.delete(document_id)
    assert (document_id, chunk.id) == (10, 22)
    store.close()
    store = opened(path)
    with store.write() as tx:
        assert tx.documents.add(a_note("newer"), None, []) == 11
        assert tx.jobs.add(NewJob("note", text="text")) == 25
    store.close()


@pytest.mark.requirement("S-8")
def test_jobs_keep_their_ids_and_what_waited_goes_on_or_says_why_not(path):
    for name in ("plain", "strict"):
        file = path.with_name(name)
        store_v2.build(file, store_v2.SCHEMAS[name])
        store = opened(file)
        with store.write() as tx:
            jobs = {job.id: job for job in tx.jobs.page(status=None, limit=10, before=None)}
            assert {id_: (job.status, job.kind) for id_, job in jobs.items() if id_ != 24} == {
                21: ("done", "note"), 22: ("queued", "note"), 23: ("failed", "file"),
            }  # fmt: skip
            assert (jobs[21].document_id, jobs[21].progress) == (3, 1)
            assert (jobs[22].text, jobs[22].tags) == ("A waiting note", ("sea", "b"))
            assert "Add the content again" in jobs[23].error
            assert (jobs[24].status, jobs[24].error) == ("failed", "it broke")
            assert [job.id for job in tx.jobs.claim(10)] == [22]
        store.close()


def filled_with(path, *statements, schema=store_v2.PLAIN):
    """A database of version 2, after some more statements."""
    store_v2.build(path, schema)
    connection = store_v2.connect(path)
    connection.execute("PRAGMA foreign_keys = OFF")
    for sql in statements:
        connection.execute(sql)
    connection.close()


def test_jobs_of_documents_that_are_gone_say_no_more_what_they_were(path):
    filled_with(path, "UPDATE jobs SET filename = 'secret.txt', tags = 'secret', document_id = 99 WHERE id = 21")
    store = opened(path)
    with store.read() as tx:
        job = tx.jobs.get(21)
    store.close()
    assert (job.status, job.title, job.filename, job.tags) == ("done", None, None, ())


def test_the_name_of_its_file_and_whether_its_title_was_given_stand_with_a_document(path):
    filled_with(
        path,
        "INSERT INTO jobs (id, status, filename, document_id) VALUES (30, 'done', 'C:\\up\\first.pdf', 4)",
        "INSERT INTO jobs (id, status, filename, document_id) VALUES (31, 'done', '/up/second.pdf', 4)",
        "INSERT INTO documents (id, title, doc_type) VALUES (30, 'A note without a text', 'note')",
    )
    store = opened(path)
    with store.read() as tx:
        found = [tx.documents.get(id_) for id_ in (3, 4, 30)]
    store.close()
    assert [each.title_given for each in found] == [True, False, False]
    assert [each.filename for each in found] == [None, "second.pdf", None]


def test_tags_that_are_written_in_two_ways_become_one(path):
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    filled_with(
        path,
        f"INSERT INTO tags (id, name) VALUES (70, '{composed}'), (71, '{decomposed}'), (72, 'Zu\u0308rich')",
        "INSERT INTO document_tags VALUES (3, 70), (3, 71), (4, 71), (4, 72)",
        f"UPDATE jobs SET tags = '{decomposed}' WHERE id = 22",
    )
    store = opened(path)
    with store.read() as tx:
        assert {tag for tag in tx.documents.get(3).tags if "caf" in tag} == {composed}
        assert {composed, "Z\u00fcrich"} <= set(tx.documents.get(4).tags)
        assert not {decomposed, "Zu\u0308rich"} & {tag for tag, _ in tx.documents.tags()}
        assert tx.jobs.get(22).tags == (composed,)
    store.close()


def test_paths_are_composed_as_those_that_come_later_but_for_one_that_is_taken(path):
    apart, taken = normalize("NFD", "/notés/ü.md"), normalize("NFD", "/é.md")
    filled_with(
        path,
        f"UPDATE documents SET source_path = '{apart}' WHERE id = 3",
        f"UPDATE documents SET source_path = '{taken}' WHERE id = 4",
        "UPDATE documents SET source_path = '/é.md' WHERE id = 9",
    )
    store = opened(path)
    with store.read() as tx:
        paths = [tx.documents.get(id_).source_path for id_ in DOCUMENTS]
    store.close()
    assert paths == [normalize("NFC", apart), taken, "/é.md"]


def test_scripts_without_spaces_are_found_by_parts_of_what_stands_together(path):
    filled_with(
        path,
        "UPDATE documents SET title = 'แมวกินปลา' WHERE id = 3",
        "UPDATE chunks SET text = '明天的天气预报' WHERE id = 15",
        f"UPDATE chunks SET text = '{normalize('NFD', 'Чайник и йогурт')}' WHERE id = 21",
    )
    store = opened(path)
    with store.read() as tx:
        for word, ids in (("天气", [15]), ("天气预报", [15]), ("กินปลา", [11, 13]), ("йогурт", [21])):
            assert tx.index.select(Filter()).full_text((word,), 10).ids.tolist() == ids
            assert not set(ids) & set(tx.index.select(Filter(lacking=(word,))).full_text((word,), 10).ids.tolist())
        assert [chunk.text for chunk in tx.documents.chunks(4)] == ["明天的天气预报"]
    store.close()
    connection = store_v2.connect(path)
    connection.execute("INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('integrity-check', 1)")
    connection.close()


def test_all_its_vectors_are_of_the_precision_that_version_2_had(path, schema):
    store_v2.build(path, schema)
    store = opened(path)
    with store.read() as tx:
        assert tx.counts().precisions == {"fp32": 6}
    store.close()


@pytest.mark.requirement("S-8")
def test_other_forms_of_words_and_names_are_found_when_it_was_looked_through_again(path):
    filled_with(path, "UPDATE chunks SET text = 'Łódź tram, def getUserById(key)' WHERE id = 15")
    store = opened(path)
    while store.renew_words(50):
        pass
    with store.read() as tx:
        for word in ("lodz", "user by id"):
            assert tx.index.select(Filter()).full_text((word,), 10).ids.tolist() == [15]
        assert [each.document_id for each in tx.documents.named(["ledger"], 10, 10)] == [4]
        assert tx.documents.get(3).language == "en"
    assert not store.renew_words(50)
    store.close()


COLUMNS_OF_LATER = store_v2.PLAIN.replace(
    "content_hash TEXT,\n", "content_hash TEXT, version TEXT, omitted TEXT, own_tags TEXT DEFAULT 'a, b', date TEXT,\n"
).replace(
    "chunk_index INTEGER NOT NULL, text TEXT NOT NULL",
    "chunk_index INTEGER NOT NULL, text TEXT NOT NULL, header TEXT, heading TEXT DEFAULT 'One', section_id TEXT",
).replace("tags TEXT, error TEXT,", "tags TEXT, error TEXT, depth TEXT, limits TEXT DEFAULT 'few', omitted TEXT,")  # fmt: skip


@pytest.mark.requirement("D-2")
def test_columns_that_mean_something_else_now_do_no_harm(path):
    filled_with(path, schema=COLUMNS_OF_LATER)
    store = opened(path)
    with store.read() as tx:
        ledger, [chunk] = tx.documents.get(4), tx.documents.chunks(4)
        assert (ledger.own_tags, dict(ledger.omitted), chunk.header) == ((), {}, "Ledgers")
        assert (tx.jobs.get(22).depth, dict(tx.jobs.get(22).omitted)) == (0, {})
        [hit] = tx.index.hits([chunk.id])
        assert hit.document_id == 4
    store.close()


def test_a_table_with_a_name_that_is_taken_now_is_not_touched(path):
    filled_with(path, "CREATE TABLE history (id INTEGER)")
    with pytest.raises(
        StoreError, match=r"kb cannot migrate the database .* from version 2: table history already exists"
    ):
        opened(path)
    assert version_of(path) == 2


def test_jobs_whose_ids_are_no_numbers_are_set_aside(path):
    store_v2.build(path, store_v2.PLAIN.replace(
        "CREATE TABLE jobs (\n  id INTEGER PRIMARY KEY AUTOINCREMENT", "CREATE TABLE jobs (\n  id TEXT PRIMARY KEY"
    ), filled=False)  # fmt: skip
    connection = store_v2.connect(path)
    connection.execute("INSERT INTO jobs (id, status) VALUES ('5f2d', 'done')")
    connection.close()
    store = opened(path)
    with store.write() as tx:
        assert tx.jobs.add(NewJob("note", text="text")) == 6
    store.close()
    connection = store_v2.connect(path)
    assert connection.execute("SELECT id FROM jobs_v2").get == "5f2d"
    connection.close()


def test_what_belongs_to_no_document_is_left_in_the_backup_only(path):
    store_v2.build(path)
    connection = store_v2.connect(path)
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute("DELETE FROM documents WHERE id = 9")
    connection.execute("INSERT INTO chunks_vec VALUES (99, ?)", (vector(99).tobytes(),))
    connection.close()
    store = opened(path)
    with store.read() as tx:
        found = look(tx, ("lighthouses", "lamp"), vector(99), Filter(), 10)
        assert sorted({hit.document_id for hit in tx.index.hits(found.ids.tolist())}) == [3, 4]
        assert [name for name, _ in tx.documents.tags()] == ["a", "money", "sea"]
    store.close()


def test_a_chunk_that_has_no_vector_is_found_by_its_words(path):
    store_v2.build(path)
    connection = store_v2.connect(path)
    connection.execute("DELETE FROM chunks_vec WHERE chunk_id IN (13, 21)")
    connection.close()
    store = opened(path)
    with store.read() as tx:
        found = look(tx, ("lamp", "lighthouses"), vector(15), Filter(), 10)
        assert {13, 21} <= set(found.ids.tolist())
        assert found.ids[np.isnan(found.vec)].tolist() == [13, 21]
    with store.write() as tx:
        tx.documents.delete(9)
        tx.documents.delete(3)
    with store.read() as tx:
        assert look(tx, (), vector(15), Filter(), 10).ids.tolist() == [15]
    store.close()


def test_a_copy_of_the_old_file_is_kept_once(path):
    store_v2.build(path)
    opened(path).close()
    backup = path.with_name("kb.db.v2-backup")
    connection = store_v2.connect(backup)
    assert connection.pragma("user_version") == 2
    assert len(store_v2.rows(connection, "documents")) == 3
    assert "updated_at" not in store_v2.names(connection, "documents")
    connection.close()
    written = backup.stat().st_mtime_ns
    opened(path).close()
    assert backup.stat().st_mtime_ns == written
    assert sorted(file.name for file in path.parent.iterdir()) == ["kb.db", "kb.db.v2-backup"]


def test_without_room_for_the_copy_nothing_is_migrated(path):
    store_v2.build(path)
    path.with_name("kb.db.v2-backup.part").mkdir()
    with pytest.raises(StoreError, match=r"not migrate .* backup"):
        opened(path)
    connection = store_v2.connect(path)
    assert connection.pragma("user_version") == 2
    connection.close()


@pytest.mark.parametrize(
    ("version", "schema", "words"),
    [
        (SCHEMA_VERSION + 1, store_v2.PLAIN, f"kb supports {SCHEMA_VERSION}. Use a newer version"),
        (1, store_v2.PLAIN, "schema version 1, which kb cannot read"),
        (0, "CREATE TABLE documents (id INTEGER PRIMARY KEY)", "schema version 0, which kb cannot read"),
        (2, "CREATE TABLE documents (id INTEGER PRIMARY KEY)", "schema version 2, which kb cannot read"),
        (2, store_v2.PLAIN.replace("chunk_index INTEGER NOT NULL, text TEXT", "chunk_index INTEGER NOT NULL, words TEXT"),
         "chunks has no column text"),
    ],
)  # fmt: skip
@pytest.mark.requirement("D-2")
def test_what_cannot_be_migrated_is_refused_in_one_line_and_left_alone(path, version, schema, words):
    store_v2.build(path, schema, version=version, filled=False)
    with pytest.raises(StoreError) as refused:
        opened(path)
    assert words in refused.value.detail
    assert "\n" not in refused.value.detail
    connection = store_v2.connect(path)
    assert connection.pragma("user_version") == version
    assert not {"generation", "last_ids"} & {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
    connection.close()


def test_one_that_forgot_to_say_its_version_is_known_by_its_tables(path):
    store_v2.build(path, version=0)
    store = opened(path)
    with store.read() as tx:
        assert tx.documents.get(9).title == DOCUMENTS[9][0]
    store.close()


@pytest.mark.slow
@pytest.mark.requirement("D-2")
@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", store_v2.SCHEMAS)
def test_killed_before_any_statement_it_is_of_one_version_or_the_other(tmp_path, name, every):
    database = tmp_path / "whole" / "kb.db"
    database.parent.mkdir()
    store_v2.build(database, store_v2.SCHEMAS[name])
    *killed, finished = killed_at_each_statement("migrate", database, tmp_path / "killed", every)
    assert len(killed) > 100 // every
    versions = [version_of(path) for path in killed]
    assert versions == sorted(versions)
    assert version_of(finished) == SCHEMA_VERSION
    assert {2, SCHEMA_VERSION} <= set(versions) <= {2, *range(FIRST, SCHEMA_VERSION + 1)}
    for path in killed[:: 20 // every]:
        store = opened(path)
        with store.read() as tx:
            assert tx.counts().chunks == 6
            assert look(tx, ("lamp",), vector(13), Filter(), 1).ids.tolist() == [13]
        store.close()


def version_of(path):
    """The version of a database that is wholly of that version."""
    connection = store_v2.connect(path)
    version = connection.pragma("user_version")
    new = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")} & {"generation", "last_ids"}
    assert (version, len(new), "updated_at" in store_v2.names(connection, "documents")) in [
        (2, 0, False),
        *((number, 2, True) for number in range(FIRST, SCHEMA_VERSION + 1)),
    ]
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert store_v2.words(connection, "lamp") == [(13, 3, DOCUMENTS[3][0], DOCUMENTS[3][1][1])]
    assert store_v2.nearest(connection, vector(19), 1) == [19]
    connection.close()
    return version


class Full(apsw.Error):
    """There is no room."""


class Failing:
    """Connects; the writer fails before its nth statement."""

    def __init__(self, connect, last):
        self._connect, self._last = connect, last

    def __call__(self, path, **options):
        connection = self._connect(path, **options)
        if not options:
            connection.exec_trace = self._before
        return connection

    def _before(self, cursor, sql, bindings):
        self._last -= 1
        if self._last == 0:
            raise Full("no room")
        return True


@pytest.mark.slow
@pytest.mark.requirement("D-2")
def test_an_error_before_any_statement_leaves_it_as_it_was(path, monkeypatch):
    store_v2.build(path, store_v2.STRICT)
    real, failed = store_module.connect, 0
    while version_of(path) == 2:
        monkeypatch.setattr(store_module, "connect", Failing(real, failed + 1))
        try:
            SqliteStore(path, space(DIMENSIONS)).close()
        except (StoreError, Full):
            failed += 1
    assert failed > 60
    monkeypatch.undo()
    opened(path).close()
    assert version_of(path) == SCHEMA_VERSION
