"""Recomputing vectors continues after a disk was full or failed for a time."""

from __future__ import annotations

from contextlib import closing

import pytest

from kb.documents.write_document import write_document
from kb.embed.open import open_embedder
from kb.ingest.active_model import ActiveModel
from kb.ingest.draft import draft_note, embed_draft
from kb.settings import Settings
from kb.store.rows import VectorSpace
from kb.store.sqlite.store import SqliteStore
from kb.worker import reembed
from kb.worker.reembed import Reembedder
from tests.support.eventually import eventually
from tests.support.rare_cases import mostly_rare

pytestmark = pytest.mark.sqlite

NOTES = 40
"""So many that their other vectors find no room in pages that are free."""


@pytest.fixture
def store(tmp_path, embedder):
    with closing(SqliteStore(tmp_path / "kb.db", VectorSpace.of(embedder.spec))) as opened:
        texts = (f"Key {number} is under the mat." for number in range(NOTES))
        notes = [embed_draft(draft_note(text, None, embedder), embedder) for text in texts]
        with opened.write() as tx:
            for note in notes:
                write_document(tx, note, None, ())
        yield opened


def set_pragma(store, name, value):
    """Have the connection that writes fail as it does on a full disk or a read-only one, or do so no more."""
    with store._turns.turn():
        store._writer.pragma(name, value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pragma", "broken", "repaired", "said"),
    mostly_rare(
        [("max_page_count", 1, 1_000_000, "disk is full"), ("query_only", True, False, "disk cannot be written")]
    ),
    ids=["full", "read-only"],
)
def test_a_fault_of_the_disk_is_told_until_the_work_goes_on(
    store, embedder, other_model, tmp_path, monkeypatch, pragma, broken, repaired, said
):
    opened, open_model_of = [], reembed.open_model_for

    def open_and_break(space, settings):
        model = open_model_of(space, settings)
        if not opened:
            set_pragma(store, pragma, broken)
        opened.append(model)
        return model

    monkeypatch.setattr(reembed, "open_model_for", open_and_break)
    monkeypatch.setattr(reembed, "RETRY_SECONDS", 0.01)
    settings = Settings(data_dir=tmp_path, model_dir=other_model)
    wanted = VectorSpace.of(open_embedder(other_model, tmp_path, "cpu", "fp32").spec)
    model = ActiveModel(embedder)
    with closing(Reembedder(store, settings, wanted, model)) as reembedder:
        reembedder.act("start")
        error = eventually("the fault is told", lambda: reembedder.progress().error)
        assert said in error
        assert model.current is embedder
        set_pragma(store, pragma, repaired)
        eventually("they are made", reembedder.progress, lambda progress: progress.in_use == str(wanted))
        eventually("no fault is told", lambda: reembedder.progress().error, lambda error: error is None)
        eventually("the model is in use", lambda: model.current in opened)
