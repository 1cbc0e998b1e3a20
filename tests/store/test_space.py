"""A database keeps to the model that it was made with, until its vectors are made again; precisions share one."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace

import apsw
import pytest

from kb.api.errors import StoreError
from kb.documents.write_document import write_document
from kb.embed.artifact import DIMENSIONS, FP32, NAME, WEIGHTS
from kb.embed.models.fetch import SOURCES
from kb.ingest.draft import draft_note, embed_draft
from kb.store.default_space import DEFAULT_SPACE
from kb.store.sqlite.backup import Snapshot
from kb.store.sqlite.store import SqliteStore
from tests.support import store_v2
from tests.support.eventually import SECONDS
from tests.support.spaces import space


@pytest.fixture
def database(tmp_path, embedder):
    """One with a note, made by the default model."""
    path = tmp_path / "kb.db"
    store = SqliteStore(path, space())
    content = embed_draft(draft_note("The key is under the mat.", None, embedder), embedder)
    with store.write() as tx:
        write_document(tx, content, None, [])
    store.close()
    return path


def forget(path):
    """Make the database one of before the record was kept."""
    connection = apsw.Connection(str(path))
    connection.execute("DELETE FROM vector_space")
    connection.close()


def test_what_was_not_recorded_is_the_default_model():
    found = (DIMENSIONS, NAME, FP32, SOURCES[WEIGHTS])
    assert found == tuple(getattr(DEFAULT_SPACE, name) for name in ("dimensions", "model", "precision", "digest"))


@pytest.mark.requirement("S-8")
def test_it_opens_with_what_made_it(database):
    SqliteStore(database, space()).close()


@pytest.mark.requirement("D-2")
def test_one_of_before_the_record_opens_with_the_default_model_and_then_has_it(database):
    forget(database)
    SqliteStore(database, space()).close()
    [row] = apsw.Connection(str(database)).execute("SELECT model, precision FROM vector_space")
    assert row == ("all-MiniLM-L6-v2", "fp32")


@pytest.mark.requirement("D-2")
@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"model": "other", "digest": "ab" * 32},
            "of other (weights abababababab). While the engine is stopped, run 'kb reembed'",
        ),
        ({"digest": "ab" * 32}, "which recomputes all vectors, or unset KB_MODEL_DIR"),
        (
            {"passage_prefix": "passage: "},
            "(weights 53aa51172d14, passage prefix 'passage: '). While the engine is stopped, run 'kb reembed'",
        ),
        (
            {"query_prefix": "query:\n"},
            "(weights 53aa51172d14, query prefix 'query:\\n'). While the engine is stopped, run 'kb reembed'",
        ),
        ({"dimensions": 128}, "run 'kb reembed'"),
        (
            {"dimensions": 512, "model": "wide"},
            "of wide (weights 53aa51172d14). While the engine is stopped, run 'kb reembed'",
        ),
    ],
)
def test_another_model_or_prefix_is_refused_in_one_line_that_says_what_to_do(database, recorded, changes, words):
    if not recorded:
        forget(database)
    with pytest.raises(StoreError) as refused:
        SqliteStore(database, space(**changes))
    assert words in refused.value.detail
    assert "\n" not in refused.value.detail
    SqliteStore(database, space()).close()


def test_one_of_an_exported_model_names_it(tmp_path, database):
    apsw.Connection(str(database)).execute("UPDATE vector_space SET model = 'mine', digest = 'ab'")
    with pytest.raises(StoreError, match="set KB_MODEL_DIR to the folder of mine"):
        SqliteStore(database, space())


@pytest.mark.requirement("D-2")
def test_one_of_version_2_opens_with_the_default_model(tmp_path):
    database = tmp_path / "kb.db"
    store_v2.build(database)
    with pytest.raises(StoreError, match="unset KB_MODEL_DIR"):
        SqliteStore(database, space(passage_prefix="passage: "))
    SqliteStore(database, space()).close()
    [row] = apsw.Connection(str(database)).execute("SELECT model, query_prefix, passage_prefix FROM vector_space")
    assert row == ("all-MiniLM-L6-v2", None, None)


def test_one_of_a_model_with_prefixes_opens_with_them_and_not_without(database):
    prefixes = {"query_prefix": "query: ", "passage_prefix": "passage: "}
    apsw.Connection(str(database)).execute(
        "UPDATE vector_space SET model = 'e5', query_prefix = 'query: ', passage_prefix = 'passage: '"
    )
    SqliteStore(database, space(model="e5", **prefixes)).close()
    with pytest.raises(StoreError, match="set KB_MODEL_DIR to the folder of e5, which computed them"):
        SqliteStore(database, space(model="e5"))


def test_an_empty_one_takes_the_model_it_is_opened_with(tmp_path):
    SqliteStore(tmp_path / "kb.db", space()).close()
    SqliteStore(tmp_path / "kb.db", space(precision="fp16", query_prefix="query: ")).close()
    SqliteStore(tmp_path / "kb.db", space(precision="fp16")).close()


@pytest.mark.requirement("D-2")
@pytest.mark.parametrize("precision", ["fp16", "bf16", "int8"])
def test_every_precision_opens_it_and_it_goes_on_saying_in_which_it_began(database, embedder, precision):
    with closing(SqliteStore(database, space(precision=precision, folder="/elsewhere"))) as store:
        draft = replace(draft_note("The lamp is in the shed.", None, embedder), space=space(precision=precision))
        with store.write() as tx:
            write_document(tx, embed_draft(draft, embedder), None, [])
            assert tx.counts().documents == {"note": 2}
    [row] = apsw.Connection(str(database)).execute("SELECT precision, folder FROM vector_space")
    assert row == ("fp32", "/elsewhere")
    SqliteStore(database, space()).close()


def test_a_start_waits_for_a_backup_that_takes_its_moment(database, monkeypatch):
    """A backup keeps writers out while it looks at the files."""
    would_write = threading.Event()

    def trace(cursor, sql, bindings):
        if sql == "BEGIN IMMEDIATE":
            would_write.set()
        return True

    with closing(Snapshot(database)) as moment, ThreadPoolExecutor(1) as pool:
        hooks = [*apsw.connection_hooks, lambda connection: connection.set_exec_trace(trace)]
        monkeypatch.setattr(apsw, "connection_hooks", hooks)
        with moment.taken():
            opening = pool.submit(lambda: SqliteStore(database, space()).close())
            assert would_write.wait(SECONDS)
            assert not opening.done()
        opening.result(60)
