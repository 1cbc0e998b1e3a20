"""An update for which memory runs out changes nothing."""

from __future__ import annotations

import pytest

from kb.backup.verify import verify_data
from kb.documents.note_edit import Edit, NoteChange
from kb.documents.write_updated_note import update_note
from tests.store.test_export import RealData
from tests.store.test_interrupted_updates import content_of, whole
from tests.support.models import WrappedModel
from tests.support.note_vectors import at_once


class Hungry(WrappedModel):
    """A model that runs out of memory in the middle of a text."""

    def embed_passages(self, *_, **__):
        raise MemoryError


def test_memory_that_runs_out_while_a_note_is_embedded_leaves_it_whole_and_the_next_write_works(
    tmp_path, model_files, embedder
):
    data = RealData(tmp_path / "data", model_files)
    old, new = (content_of(f"# Harbour\n\nThe keeper counts {what}.", embedder) for what in ("ships", "gulls"))
    with data.open() as store:
        with store.write() as tx:
            note = tx.documents.add(old, None, ["sea"])
        change = NoteChange(Edit("# Harbour\n\nThe keeper counts gulls."))
        with pytest.raises(MemoryError):
            update_note(store, at_once(Hungry(embedder)), note, change)
        assert whole(store, note, old)
        update_note(store, at_once(embedder), note, change)
        assert whole(store, note, new)
    assert list(verify_data(data.settings)) == []
