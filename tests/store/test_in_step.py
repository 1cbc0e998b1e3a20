"""After any changes in any order, tables, full text, vectors and memory agree."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import apsw
import numpy as np
import pytest
import sqlite_vec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule

from kb.documents.write_document import write_document
from kb.store.rows import ChunkPosition, Content, Filter, NewChunk
from tests.store.test_store import look
from tests.support.examples import examples
from tests.support.stores import Database

DIMENSIONS = 8
WORDS = ("apple", "pear", "cherry", "plum", "fig")

texts = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join), min_size=1, max_size=4)
tags = st.sets(st.sampled_from(("red", "green", "blue")), max_size=3)
paths = st.none() | st.sampled_from(("/a", "/b"))


def vector(text):
    numbers = np.array([text.count(word) + 0.1 * len(text) for word in WORDS] + [1, 2, 3], np.float32)
    return numbers / np.linalg.norm(numbers)


def content(chunks):
    start, written = 0, []
    for text in chunks:
        written.append(NewChunk(text, "", ChunkPosition(1, 1, start, start + len(text))))
        start += len(text)
    return Content("note", chunks[0], "|".join(chunks), written, np.stack([vector(text) for text in chunks]))


@dataclass
class Known:
    """The expected state of a document."""

    path: str | None
    chunks: list[str]
    tags: set[str] = field(default_factory=set)


class Documents(RuleBasedStateMachine):
    """A store, and a model of its expected content."""

    kind = "sqlite"
    ids = Bundle("ids")

    @initialize()
    def open(self):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.database = Database(Path(self.folder.name), self.kind)
        self.open_store()
        self.model: dict[int, Known] = {}
        self.used: set[int] = set()

    def open_store(self):
        self.opened = ExitStack()
        self.store = self.opened.enter_context(self.database(dimensions=DIMENSIONS))

    @rule(target=ids, chunks=texts, path=paths, names=tags)
    def add(self, chunks, path, names):
        expected = self._known(chunks, path)
        with self.store.write() as tx:
            document_id, _ = write_document(tx, content(chunks), path, sorted(names))
        if expected is not None:
            assert document_id == expected
            self.model[document_id].chunks = chunks
            self.model[document_id].tags |= names
            return multiple()
        assert document_id not in self.used
        self.model[document_id] = Known(path, chunks, set(names))
        self.used.add(document_id)
        return document_id

    @rule(document_id=ids, chunks=texts)
    def update(self, document_id, chunks):
        with self.store.write() as tx:
            tx.documents.replace(document_id, content(chunks))
        self.model[document_id].chunks = chunks

    @rule(document_id=ids, chunks=texts)
    def fail_to_update(self, document_id, chunks):
        def fail():
            with self.store.write() as tx:
                tx.documents.replace(document_id, content(chunks))
                tx.documents.delete(document_id)
                raise KeyError

        with pytest.raises(KeyError):
            fail()

    @rule(document_id=ids, more=tags, fewer=tags)
    def retag(self, document_id, more, fewer):
        with self.store.write() as tx:
            tx.documents.change_tags(document_id, add=more, remove=fewer)
        self.model[document_id].tags = (self.model[document_id].tags - fewer) | more

    @rule(document_id=consumes(ids))
    def delete(self, document_id):
        with self.store.write() as tx:
            tx.documents.delete(document_id)
        del self.model[document_id]

    @rule()
    def reopen(self):
        self.opened.close()
        self.open_store()

    @invariant()
    def documents_are_as_they_should_be(self):
        with self.store.read() as tx:
            listed = tx.documents.page(Filter(), sort="id", limit=500, cursor=None)
            found = {
                document.id: Known(
                    document.source_path, [chunk.text for chunk in tx.documents.chunks(document.id)], set(document.tags)
                )
                for document in listed
            }
            counted = dict(tx.documents.tags())
        assert found == self.model
        in_use = set().union(*(known.tags for known in self.model.values()))
        assert counted == {tag: sum(tag in known.tags for known in self.model.values()) for tag in in_use}

    @invariant()
    def every_leg_finds_each_chunk_and_no_other(self):
        expected = sorted((id_, text) for id_, known in self.model.items() for text in known.chunks)
        with self.store.read() as tx:
            by_vector = look(tx, (), vector("apple"), Filter(), 500)
            hits = tx.index.hits(by_vector.ids.tolist())
            assert sorted((hit.document_id, hit.text) for hit in hits) == expected
            for hit, cosine in zip(hits, by_vector.vec, strict=True):
                assert cosine == pytest.approx(float(vector(hit.text) @ vector("apple")), abs=1e-5)
            for word in WORDS:
                found = tx.index.hits(look(tx, (word,), None, Filter(), 500).ids.tolist())
                assert sorted((hit.document_id, hit.text) for hit in found) == [
                    (id_, text) for id_, text in expected if word in text
                ]

    def teardown(self):
        self.opened.close()
        self.folder.cleanup()

    def _known(self, chunks, path):
        """The document that holds this content, or is at this path."""
        same = (id_ for id_, known in self.model.items() if known.path == path and known.chunks == chunks)
        there = (id_ for id_, known in self.model.items() if path is not None and known.path == path)
        return min(same, default=min(there, default=None))


class DocumentsInFile(Documents):
    """The same in a file, of which the tables are looked at as well."""

    @invariant()
    def the_tables_agree(self):
        connection = apsw.Connection(str(Path(self.folder.name, "kb.db")))
        connection.set_busy_timeout(10_000)
        connection.enable_load_extension(True)  # noqa: FBT003 - it has no keyword
        connection.load_extension(sqlite_vec.loadable_path())
        connection.execute("INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('integrity-check', 1)")
        chunks = connection.execute("SELECT id FROM chunks ORDER BY id").fetchall()
        vectors = connection.execute("SELECT chunk_id, embedding FROM chunks_vec ORDER BY chunk_id").fetchall()
        texts = dict(connection.execute("SELECT id, text FROM chunks"))
        assert [(id_,) for id_, _ in vectors] == chunks
        for id_, embedding in vectors:
            assert embedding == vector(texts[id_]).tobytes()
        used = connection.execute(
            "SELECT DISTINCT section_id FROM chunks WHERE section_id IS NOT NULL ORDER BY 1"
        ).fetchall()
        assert connection.execute("SELECT id FROM sections ORDER BY id").fetchall() == used
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        connection.close()


class DocumentsInPostgres(Documents):
    """The same in PostgreSQL."""

    kind = "postgres"


TestInFile = pytest.mark.sqlite(
    pytest.mark.requirement("D-1")(pytest.mark.requirement("E-11")(DocumentsInFile.TestCase))
)
TestInFile.settings = settings(max_examples=examples(30, fast=5), stateful_step_count=25)
TestInPostgres = pytest.mark.postgres(DocumentsInPostgres.TestCase)
TestInPostgres.settings = settings(max_examples=examples(10), stateful_step_count=25)
