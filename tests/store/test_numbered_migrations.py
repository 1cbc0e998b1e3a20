"""A database of an earlier version is brought to the newest by number, each step whole or not at all."""

from __future__ import annotations

import re
from contextlib import closing
from importlib.resources import files
from unicodedata import normalize

import pytest

from kb.api.errors import StoreError
from kb.store.rows import Filter, NewJob
from kb.store.sqlite import migrate
from kb.store.sqlite.migrate import OLDEST_NUMBERED, migrations
from kb.store.sqlite.schema import SCHEMA_VERSION
from kb.store.sqlite.store import SqliteStore
from tests.store.test_store import look
from tests.support import store_v3
from tests.support.documents import DIMENSIONS, content
from tests.support.interrupted import killed_at_each_statement
from tests.support.spaces import space
from tests.support.store_v2 import connect, vector

ALIAS = "ALTER TABLE documents ADD COLUMN filename GENERATED ALWAYS AS (title) VIRTUAL"
SEGMENTS = files("kb.store.sqlite").joinpath("migrations", "0012_segments.sql").read_text("utf-8")
LEADS_BACK = {
    14: ("ALTER TABLE jobs DROP COLUMN existed",),
    15: tuple(f"ALTER TABLE {table} DROP COLUMN omitted" for table in ("documents", "versions", "jobs")),
    16: (
        *(f"DROP TABLE {table}" for table in ("operations", "folders", "left_out")),
        *(f"DROP INDEX {table}_operation" for table in ("documents", "versions", "bin", "jobs")),
        "DROP INDEX versions_source_path",
        *(f"DROP INDEX jobs_{name}" for name in ("queued_path", "failed_path", "new_notes")),
        *(f"ALTER TABLE {table} DROP COLUMN operation" for table in ("documents", "versions", "bin")),
        "ALTER TABLE jobs DROP COLUMN operation_key",
    ),
    17: (
        *(f"DROP TABLE {table}" for table in ("names", "unnamed", "reanalysis")),
        *(f"DROP TRIGGER {name}" for name in ("documents_ai_names", "documents_au_names")),
        *(f"DROP TRIGGER {name}" for name in ("chunks_ai", "chunks_ad", "chunks_au")),
        "DROP VIEW chunk_texts",
        *(f"ALTER TABLE {table} DROP COLUMN variants" for table in ("chunks", "sections")),
        SEGMENTS[SEGMENTS.index("CREATE VIEW chunk_texts") : SEGMENTS.index("-- As they were written.")],
        SEGMENTS[SEGMENTS.index("CREATE TRIGGER chunks_ai") :],
    ),
    18: ("DROP TABLE vector_precisions",),
    19: (
        "DROP INDEX documents_language",
        *(f"ALTER TABLE {table} DROP COLUMN language" for table in ("documents", "versions")),
    ),
}
"""What leads back to a version from the one after it."""

EARLY = (
    "ALTER TABLE documents DROP COLUMN date",
    "ALTER TABLE documents DROP COLUMN own_tags",
    "ALTER TABLE jobs DROP COLUMN content_hash",
    "DROP TABLE vector_space",
    "DROP INDEX jobs_document",
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "kb.db"


def opened(path):
    return closing(SqliteStore(path, space()))


def migrated(path):
    with opened(path):
        pass
    return connect(path)


def objects(connection):
    """All that the schema declares, without the spaces and the comments that a migration writes otherwise."""
    rows = connection.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL")
    return {name: re.sub(r"\s*([(),])\s*", r"\1", " ".join(sql.split())) for name, sql in rows}


def test_the_numbers_go_from_the_oldest_to_the_newest():
    numbers = [number for number, _ in migrations(after=0)]
    assert numbers == sorted(set(numbers))
    assert (numbers[0], numbers[-1]) == (OLDEST_NUMBERED + 1, SCHEMA_VERSION)


@pytest.mark.requirement("D-1")
@pytest.mark.parametrize("changes", [(), EARLY])
def test_what_migrations_lead_to_is_what_a_new_database_begins_with(path, tmp_path, changes):
    store_v3.build(path, *changes)
    old, new = migrated(path), migrated(tmp_path / "new.db")
    assert old.pragma("user_version") == new.pragma("user_version") == SCHEMA_VERSION
    if changes:  # what was added late stands at the end
        for table in ("documents", "jobs"):
            assert columns(old, table) == columns(new, table)
        assert objects(old).keys() == objects(new).keys()
    else:
        assert objects(old) == objects(new)


def columns(connection, table):
    return set(connection.execute(f"SELECT name, type, \"notnull\", dflt_value, pk FROM pragma_table_xinfo('{table}')"))


@pytest.mark.requirement("S-8")
@pytest.mark.requirement("D-2")
def test_all_that_stood_in_it_stands_there_still(path):
    store_v3.build(path)
    connection = connect(path)
    before = store_v3.answers(connection)
    connection.close()
    after = store_v3.answers(migrated(path))
    for table, rows in before.items():
        assert len(rows) == len(after[table])
        for old, new in zip(rows, after[table], strict=True):
            assert old.items() <= (new | {"status": old.get("status")}).items()


def test_what_chunks_stand_under_is_kept_once_and_found_as_before(path):
    store_v3.build(path)
    connection = connect(path)
    ranked = "SELECT rowid, bm25(chunks_fts, 1.0, 2.0) FROM chunks_fts WHERE chunks_fts MATCH ? ORDER BY rowid"
    words = {
        word for (text,) in connection.execute("SELECT header || ' ' || text FROM chunks") for word in text.split()
    }
    queries = [f'"{word}"' for word in sorted(words) if '"' not in word]
    before = [connection.execute(ranked, (query,)).fetchall() for query in queries]
    under = set(connection.execute("SELECT document_id, header, heading FROM chunks WHERE header <> ''"))
    connection.close()
    connection = migrated(path)
    assert any(before)
    assert [connection.execute(ranked, (query,)).fetchall() for query in queries] == before
    sections = connection.execute("SELECT document_id, header, heading FROM sections").fetchall()
    assert len(sections) == len(set(sections))
    assert under <= set(sections)
    assert_in_step(connection)


def assert_in_step(connection):
    """The full text is that of the chunks, and no section is without one."""
    connection.execute("INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('integrity-check', 1)")
    assert not connection.execute(
        "SELECT 1 FROM sections WHERE id NOT IN (SELECT section_id FROM chunks WHERE section_id > 0)"
    ).get


def test_scripts_without_spaces_are_found_by_parts_of_what_stands_together(path):
    columns = "id, document_id, chunk_index, text, header, line_start, line_end, char_start, char_end"
    store_v3.build(
        path,
        f"INSERT INTO chunks ({columns}) VALUES (90, 1, 90, '明天的天气预报', '', 1, 1, 0, 7)",
        f"INSERT INTO chunks ({columns}) VALUES (91, 1, 91, 'Eat.', 'แมวกินปลา', 1, 1, 0, 7)",
        f"INSERT INTO chunks ({columns}) VALUES (92, 1, 92, 'A lamp.', '', 1, 1, 0, 7)",
    )
    connection = migrated(path)
    assert_in_step(connection)
    assert connection.execute("SELECT id FROM chunks WHERE segmented IS NOT NULL").fetchall() == [(90,)]
    assert connection.execute("SELECT text FROM source_texts WHERE id = 90").get == "明天的天气预报"
    connection.close()
    with opened(path) as store, store.read() as tx:
        for word, chunk_id in (("天气", 90), ("天气预报", 90), ("กินปลา", 91)):
            assert tx.index.select(Filter()).full_text((word,), 10).ids.tolist() == [chunk_id]
            assert not tx.index.select(Filter(lacking=(word,))).full_text((word,), 10).ids.size


def test_letters_that_were_indexed_as_they_were_written_are_found_without_their_marks(path):
    columns = "id, document_id, chunk_index, text, line_start, line_end, char_start, char_end"
    with opened(path):
        pass
    connection = connect(path)
    connection.execute(
        "INSERT INTO documents (id, title, doc_type, content_hash, created_at, updated_at)"
        " VALUES (1, 'A title', 'note', 'hash', '2026-01-01', '2026-01-01')"
    )
    connection.execute("INSERT INTO sections (id, document_id, header, heading) VALUES (7, 1, 'Мёд', '[]')")
    for id_, text in enumerate((normalize("NFD", "Чайник и йогурт"), "зелёный чай", "A lamp."), 90):
        connection.execute(
            f"INSERT INTO chunks ({columns}, section_id) VALUES (?, 1, ?, ?, 1, 1, 0, 7, 7)", (id_, id_, text)
        )
    go_back(connection, 13)
    connection = migrated(path)
    assert_in_step(connection)
    matching = "SELECT rowid FROM chunks_fts WHERE chunks_fts MATCH ?"
    for word, found in (("йогурт", [90]), ("зеленый", [91]), ("мед", [90, 91, 92]), ("lamp", [92])):
        assert [id_ for (id_,) in connection.execute(matching, (word,))] == found
    connection.close()


def test_paths_of_documents_and_jobs_are_composed_as_those_that_come_later(path):
    with opened(path) as store, store.write() as tx:
        tx.jobs.add(NewJob("file", source_path="/notes/b.md", staged="x"))
    connection = connect(path)
    connection.execute(
        "INSERT INTO documents (id, title, source_path, doc_type, content_hash, created_at)"
        " VALUES (1, 'A title', '/notes/b.md', 'note', 'hash', '2026-01-01')"
    )
    apart = normalize("NFD", "/notés/ü.md")
    for table in ("documents", "jobs"):
        connection.execute(f"UPDATE {table} SET source_path = ?", (apart,))
    go_back(connection, 16)
    connection = migrated(path)
    for table in ("documents", "jobs"):
        assert connection.execute(f"SELECT source_path FROM {table}").fetchall() == [(normalize("NFC", apart),)]
    connection.close()


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM chunks_fts_data WHERE id > 10",
        "UPDATE chunks_fts_data SET block = zeroblob(length(block)) WHERE id > 10",
        "UPDATE chunks_fts_data SET block = zeroblob(2) WHERE id = 10",
        "DELETE FROM chunks_fts_data WHERE id = 1",
    ],
)
def test_a_full_text_of_which_nothing_can_be_taken_out_is_made_anew_from_the_texts(path, monkeypatch, damage):
    columns = "id, document_id, chunk_index, text, header"
    store_v3.build(path, f"INSERT INTO chunks ({columns}) VALUES (90, 1, 90, '明天的天气预报', '')")
    until_11 = [step for step in migrations(after=0) if step[0] <= 11]
    with monkeypatch.context() as patched, closing(connect(path)) as connection:
        patched.setattr(migrate, "migrations", lambda after: [step for step in until_11 if step[0] > after])
        migrate.prepare_schema(connection, path, space().dimensions)
        connection.execute(damage)
    assert_in_step(migrated(path))
    with opened(path) as store, store.read() as tx:
        for word, chunk_id in (("天气", 90), ("lamp", 1)):
            assert chunk_id in tx.index.select(Filter()).full_text((word,), 10).ids


@pytest.mark.parametrize("changes", [(), (ALIAS,)])
def test_what_was_told_by_other_means_stands_in_columns(path, changes):
    store_v3.build(path, *changes)
    with opened(path) as store, store.read() as tx:
        documents = tx.documents.page(Filter(), sort="id", limit=10, cursor=None)
        assert {document.id: document.title_given for document in documents} == store_v3.TITLES_GIVEN
        assert {document.id: document.filename for document in documents} == store_v3.FILENAMES
        assert {id_: tx.jobs.get(id_).depth for id_ in store_v3.DEPTHS} == store_v3.DEPTHS
        assert tx.jobs.with_key("key1").request_hash == "request1"
        found = look(tx, ("lamp",), vector(5), Filter(), 1)
        assert set(found.ids.tolist()) == {1, 5}


@pytest.mark.requirement("D-2")
def test_a_program_of_version_2_can_still_write(path):
    store_v3.build(path)
    connection = migrated(path)
    connection.execute(
        "INSERT INTO documents (title, doc_type, content_hash, created_at) VALUES ('x', 'note', 'h', '2026-01-01')"
    )
    connection.execute("INSERT INTO jobs (created_at) VALUES ('2026-01-01')")
    connection.close()
    with opened(path) as store, store.write() as tx:
        assert (tx.documents.get(9).filename, tx.documents.get(9).title_given) == (None, False)
        assert (tx.jobs.get(12).depth, tx.jobs.get(12).existed) == (0, False)
        assert tx.jobs.expire(1, 100) == 8


@pytest.mark.slow
@pytest.mark.requirement("D-2")
@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.long)])
def test_killed_before_any_statement_it_is_of_one_version_or_the_next(tmp_path, every):
    database = tmp_path / "whole" / "kb.db"
    database.parent.mkdir()
    store_v3.build(database)
    *killed, finished = killed_at_each_statement("migrate", database, tmp_path / "killed", every)
    versions = [version_of(path) for path in killed]
    assert versions == sorted(versions)
    assert (versions[0], version_of(finished)) == (3, SCHEMA_VERSION)
    assert versions.count(3) > 8 // every
    for path in killed:
        with opened(path) as store, store.read() as tx:
            assert tx.documents.get(3).filename == "second.txt"


def version_of(path):
    """The version of a database that is wholly of that version."""
    connection = connect(path)
    version = connection.pragma("user_version")
    names = {name for table in ("documents", "jobs") for name, *_ in columns(connection, table)}
    new = {"uploaded_as", "title_given", "depth"}
    assert names & new == (new if version > 3 else set())
    named = not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'jobs_document'").get
    assert named == (3 < version < 6)
    has_sections = bool(connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'sections'").get)
    headers = {"header", "heading"} & {name for name, *_ in columns(connection, "chunks")}
    assert (has_sections, not headers) == (version > 4, version > 4)
    if has_sections:
        assert_in_step(connection)
    if version > 3:
        assert connection.execute("SELECT uploaded_as FROM documents WHERE id = 3").get == "second.txt"
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
    return version


def test_one_that_fails_leaves_the_version_before_it_and_says_which(path):
    store_v3.build(path, "ALTER TABLE jobs ADD COLUMN depth TEXT")
    connection = connect(path)
    before = objects(connection)
    with pytest.raises(StoreError, match=r"cannot be migrated to version 4: .*duplicate column"):
        migrated(path)
    assert objects(connection) == before
    assert connection.pragma("user_version") == 3


def test_one_of_the_newest_version_is_not_written_to_when_it_opens(path):
    migrated(path).close()
    changed = path.read_bytes()
    migrated(path).close()
    assert path.read_bytes() == changed


def test_tags_that_are_written_in_two_ways_become_one(path):
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    store_v3.build(
        path,
        f"INSERT INTO tags VALUES (70, '{composed}'), (71, '{decomposed}'), (72, 'Zu\u0308rich')",
        "INSERT INTO document_tags VALUES (1, 70), (1, 71), (2, 71), (2, 72)",
        f"UPDATE documents SET own_tags = '[\"{decomposed}\"]' WHERE id = 2",
    )
    with opened(path) as store, store.read() as tx:
        first, second = tx.documents.get(1), tx.documents.get(2)
        assert {tag for tag in first.tags if "caf" in tag} == {composed}
        assert {composed, "Z\u00fcrich"} <= set(second.tags)
        assert second.own_tags == (composed,)
        assert not {decomposed, "Zu\u0308rich"} & {tag for tag, _ in tx.documents.tags()}


def test_jobs_of_documents_that_are_gone_say_no_more_what_they_were(path):
    store_v3.build(
        path,
        "UPDATE jobs SET title = 'secret', filename = 'secret.txt', tags = '[\"secret\"]', status = 'done',"
        " document_id = 99 WHERE idempotency_key = 'key1'",
    )
    with opened(path) as store, store.read() as tx:
        job = tx.jobs.with_key("key1")
    assert (job.title, job.filename, job.tags, job.content_hash, job.request_hash) == (None, None, (), None, "request1")


def go_back(connection, version):
    """Make of a database of the newest version one of an earlier one, as far as its tables go, and close it."""
    for earlier, statements in sorted(LEADS_BACK.items(), reverse=True):
        if earlier >= version:
            connection.execute("; ".join(statements)).fetchall()
    connection.pragma("user_version", version)
    connection.close()


def test_jobs_of_before_say_of_no_document_that_it_was_there_and_later_ones_do(path):
    with opened(path) as store, store.write() as tx:
        old, new = (tx.jobs.add(NewJob("note", text="text")) for _ in range(2))
        tx.jobs.finish(old, 1)
    connection = connect(path)
    go_back(connection, 14)
    with opened(path) as store, store.write() as tx:
        tx.jobs.finish(new, 1, existed=True)
        assert [(tx.jobs.get(each).status, tx.jobs.get(each).existed) for each in (old, new)] == [
            ("done", False),
            ("done", True),
        ]


def test_documents_and_jobs_of_before_say_of_nothing_that_it_was_not_read_and_later_ones_do(path):
    with opened(path) as store, store.write() as tx:
        old, new = (tx.jobs.add(NewJob("note", text="text")) for _ in range(2))
        tx.jobs.finish(old, 1)
    connection = connect(path)
    connection.execute(
        "INSERT INTO documents (id, title, doc_type, content_hash, created_at)"
        " VALUES (1, 'A title', 'note', 'hash', '2026-01-01')"
    )
    go_back(connection, 15)
    with opened(path) as store, store.write() as tx:
        tx.jobs.finish(new, 1, omitted={"files": 2})
        assert [dict(tx.jobs.get(each).omitted) for each in (old, new)] == [{}, {"files": 2}]
        assert tx.documents.get(1).omitted == {}


def test_documents_of_an_older_kb_are_indexed_again_while_searches_go_on(path):
    """Requirement S-8: names and other forms of words are found in them, and the full text is in step."""
    words = ("Łódź tram depot", "def getUserById(key)", "Course on C# and C++")
    with closing(SqliteStore(path, space(dimensions=DIMENSIONS))) as store, store.write() as tx:
        for number in range(120):
            tx.documents.add(content(words[number % 3]), f"folder/Vannevar {number}.md", ())
    connection = connect(path)
    for text in words:
        connection.execute("UPDATE chunks SET segmented = NULL, variants = NULL WHERE text = ?", (text,))
    connection.execute("DELETE FROM names")
    go_back(connection, 17)
    with closing(connect(path)) as connection:
        connection.execute("INSERT INTO chunks_fts (chunks_fts) VALUES ('rebuild')")
    with closing(SqliteStore(path, space(dimensions=DIMENSIONS))) as store:
        found = []
        while store.reanalyse():
            with store.read() as tx:
                found.append(tx.index.select(Filter()).full_text(("tram",), 200).ids.size)
        assert set(found) == {40}
        assert store.reanalysed() == (120, 120)
        with store.read() as tx:
            for word in ("lodz", "user by id", "csharp"):
                assert tx.index.select(Filter()).full_text((word,), 200).ids.size == 40
            assert len(tx.documents.named(["vannevar"], 500, 200)) == 120
    connection = connect(path)
    assert_in_step(connection)
    connection.close()


def test_vectors_of_before_precisions_were_counted_are_all_of_the_one_that_was_recorded(path):
    store_v3.build(path, "UPDATE vector_space SET precision = 'fp16'")
    with opened(path) as store, store.read() as tx:
        assert tx.counts().precisions == {"fp16": tx.counts().chunks}
