"""Behaviour that only the store in SQLite has."""

from __future__ import annotations

import ast
import re
from contextlib import closing
from functools import cache
from pathlib import Path

import apsw
import pytest

import kb.store.sqlite
from kb.store.sqlite.connection import connect
from kb.store.sqlite.schema import create
from kb.store.sqlite.statements import statements
from kb.store.sqlite.store import RECLAIMED_PAGES, SqliteStore
from tests.store.test_store import DIMENSIONS, add, find, ids_of, unit
from tests.support.spaces import space

FOLDER = Path(kb.store.sqlite.__file__).parent
SCRIPTS = sorted([*(FOLDER / "sql").glob("*.sql"), *(FOLDER.parent / "sql").glob("*.sql")])
FILES = sorted({path.stem for path in SCRIPTS} - {"dialect"})
WORDS = {word for path in SCRIPTS for word in re.findall(r"\$(\w+)", path.read_text())}
NAMED = [(file, name) for file in FILES for name in statements(file) if name not in WORDS]
HOLDERS = {"history": "bin JOIN versions USING (document_id, number)"}
PUT_IN = {
    "source": "documents",
    "condition": "id = 1",
    "mark": "?",
    "within": "AND TRUE",
    "table": "documents",
    "columns": "title",
    "first": "id",
    "second": "id",
    "places": "NULL",
    "key": "chunk_id",
    "embedding": "embedding",
    "admitted_only": "AND document_id IN (SELECT id FROM documents WHERE TRUE)",
    "start": "1",
    "most": "1",
}


@pytest.fixture
def store(tmp_path):
    with closing(SqliteStore(tmp_path / "kb.db", space(DIMENSIONS))) as opened:
        yield opened


@pytest.fixture(scope="module")
def strict():
    """The schema, where a text in double quotes is an error."""
    connection = connect(Path(":memory:"))
    create(connection, DIMENSIONS)
    connection.execute("CREATE TEMP TABLE swapped (content_id, vectors)")  # there while vectors change places
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
    return connection


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_each_statement_fits_the_schema_and_says_what_it_does(strict, file, name):
    sql = statements(file)[name]
    assert sql.startswith("-- ")
    if name.startswith("where_"):
        sql = f"SELECT 1 FROM {HOLDERS.get(file, file)} WHERE {sql}"
    sql, prepared = sql.format_map(PUT_IN) if "{" in sql else sql, []
    strict.exec_trace = lambda _, sql, __: bool(prepared.append(sql))  # prepared, and not run
    with pytest.raises(apsw.ExecTraceAbort):
        strict.execute(sql, bindings(sql))
    strict.exec_trace = None
    assert len(prepared) == 1


def bindings(sql):
    return dict.fromkeys(re.findall(r":(\w+)", sql)) or (None,) * sql.count("?")


@pytest.mark.parametrize("file", FILES)
def test_each_statement_is_asked_for_by_its_name(file):
    texts = "".join(path.read_text() for path in SCRIPTS if path.stem == file)
    written = re.findall(r"^-- name: (\w+)$", texts, re.MULTILINE)
    assert len(written) == len(set(written)) == len(statements(file))
    assert set(written) - WORDS <= texts_of_the_store()


@cache
def texts_of_the_store():
    sources = [*FOLDER.glob("*.py"), *(FOLDER.parent / "sql").glob("*.py")]
    return {node.value for path in sources for node in ast.walk(ast.parse(path.read_text())) if is_text(node)}


def is_text(node):
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


@pytest.mark.slow
def test_a_commit_that_fails_while_vectors_are_compacted_leaves_them_right(store):
    documents = [add(store, f"number {number}", seed=number) for number in range(2400)]

    def fail():
        with store.write() as tx:
            for document_id in documents[:1800]:
                tx.documents.delete(document_id)
            tx.connection.set_commit_hook(lambda: True)

    with pytest.raises(apsw.ConstraintError):
        fail()
    with store.write() as tx:
        tx.connection.set_commit_hook(None)
    for number in (0, 1799, 2399):
        found = find(store, (), unit(number), limit=1)
        assert found.ids.tolist() == ids_of(store, documents[number])
    late = add(store, "late", seed=9999)
    assert find(store, (), unit(9999), limit=1).ids.tolist() == ids_of(store, late)


def test_what_is_written_is_in_the_drives_own_memory_on_no_system(store):
    with store.write() as tx:
        assert tx.connection.pragma("synchronous") == 2
        assert tx.connection.pragma("fullfsync") == tx.connection.pragma("checkpoint_fullfsync") == 1


@pytest.mark.slow
def test_space_is_given_back_in_small_steps_and_the_log_cut(store, tmp_path):
    documents = [add(store, *(f"number {number} " * 100 for _ in range(4)), seed=number) for number in range(300)]
    with store.write() as tx:
        for document_id in documents[1:]:
            tx.documents.delete(document_id)
    log, before = tmp_path / "kb.db-wal", (tmp_path / "kb.db").stat().st_size
    with store.read() as tx:
        assert tx.documents.get(documents[0])
        while store.reclaim():
            assert tx.connection.pragma("freelist_count") > RECLAIMED_PAGES
    assert log.stat().st_size > 0
    assert not store.reclaim()
    assert log.stat().st_size == 0
    assert (tmp_path / "kb.db").stat().st_size < before / 2
    assert find(store, (), unit(0), limit=5).ids.size == 4


def test_while_one_connection_writes_no_other_can_begin_to(store, tmp_path):
    with closing(apsw.Connection(str(tmp_path / "kb.db"))) as other:
        with store.write() as tx:
            assert tx.documents.at_path("/p") is None
            with pytest.raises(apsw.BusyError):
                other.execute("BEGIN IMMEDIATE")
        other.execute("BEGIN IMMEDIATE; ROLLBACK")


def test_the_vectors_in_memory_are_counted(store):
    add(store, "one", "two")
    assert store.memory.vectors == 2 * 4 * DIMENSIONS
