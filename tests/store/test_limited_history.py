"""The history of a document as a limited key sees it: the versions that were within its limit, and no more is read."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import pytest

from kb.access.restricted_store import PAGE, CallerStore
from kb.api.rights import Caller, Limit
from kb.documents.lookup import author_of
from kb.store.rows import Author, ChunkPosition, Content, NewChunk
from kb.store.sqlite.store import SqliteStore
from tests.support.spaces import space

CHUNK = NewChunk("x", "", ChunkPosition(1, 1, 0, 1, (), None))
CONTENT = Content("note", "title", "ab" * 32, [CHUNK], np.ones((1, 16), np.float32))
COUNT = 2 * PAGE + 10


@pytest.fixture
def limited(tmp_path):
    """A store that a key sees, with a document that every second time was not within the key's limit."""
    with closing(SqliteStore(tmp_path / "kb.db", space(16))) as store:
        with store.write() as tx:
            document_id = tx.documents.add(CONTENT, None, ["red"])
        with store.write() as tx:
            for number in range(COUNT):
                tx.history.keep(document_id, Author(f"by {number}"))
                add, remove = (["blue"], ["red"]) if number % 2 == 0 else (["red"], ["blue"])
                tx.documents.change_tags(document_id, add=add, remove=remove)
        yield CallerStore(store, Caller("anna", "read", Limit(("red",))))


def test_a_limited_key_sees_the_versions_that_were_its_own_newest_first(limited):
    with limited.read() as tx:
        numbers = [version.number for version in tx.history.versions(1, limit=COUNT)]
        assert numbers == list(range(COUNT + 1, 0, -2))
        assert [version.number for version in tx.history.versions(1, limit=3, before=8)] == [7, 5, 3]


def test_who_made_a_document_what_it_is_is_told_without_reading_its_history(limited, monkeypatch):
    asked = []
    with limited.read() as tx:
        versions = tx.history.inner.versions
        monkeypatch.setattr(
            tx.history.inner,
            "versions",
            lambda *ids, limit, before: asked.append(limit) or versions(*ids, limit=limit, before=before),
        )
        assert author_of(tx, 1).by == f"by {COUNT - 1}"
    assert asked == [1]
