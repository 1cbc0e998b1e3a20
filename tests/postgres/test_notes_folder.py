"""Several engines over one database name a notes folder: one of them keeps it, and another one follows it."""

from __future__ import annotations

from contextlib import closing

import pytest

from kb.api.errors import NotesFolderElsewhere
from kb.ingest import vectors_at_once
from kb.notes_folder import folder as folder_module
from kb.notes_folder import incoming, outgoing
from kb.store.default_space import DEFAULT_SPACE
from kb.store.postgres.store import PostgresStore
from tests.support.notes_folder import KeptFolder
from tests.support.postgres import database_url

pytestmark = pytest.mark.postgres


@pytest.fixture
def engines(tmp_path, embedder, monkeypatch):
    """Two engines with the same notes folder."""
    monkeypatch.setattr(incoming, "DELETE_SECONDS", 0.0)
    monkeypatch.setattr(outgoing, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(vectors_at_once, "PATIENCE_SECONDS", 60.0)
    (tmp_path / "data" / "staging").mkdir(parents=True)
    url = database_url(tmp_path)
    with closing(PostgresStore(url, DEFAULT_SPACE)) as one, closing(PostgresStore(url, DEFAULT_SPACE)) as other:
        yield [KeptFolder(store, embedder, tmp_path / "notes", tmp_path / "data") for store in (one, other)]


def test_one_engine_keeps_the_folder_and_another_one_follows_when_it_stops(engines):
    one, other = engines
    note = one.add("text", source_path="x.md")
    assert one.settle().held
    assert not other.settle().held
    with pytest.raises(NotesFolderElsewhere):
        other.folder.act("restore")
    other.edit(note, "changed by the other")
    one.settle()
    assert one.file(note).read_text().endswith("changed by the other")
    one.folder.release()
    one.file(note).write_text(one.file(note).read_text().replace("changed", "edited"))
    other.settle()
    assert other.folder.status().held
    assert other.notes() == {note: "edited by the other"}


def test_the_folder_of_an_engine_that_was_killed_is_free_after_a_while(engines, monkeypatch):
    one, other = engines
    one.add("text", source_path="x.md")
    one.settle()
    monkeypatch.setattr(folder_module, "LEASE_SECONDS", 0.001)
    other.settle()
    assert other.folder.status().held
    assert list(other.files()) == ["x.md"]
    assert len(other.notes()) == 1
