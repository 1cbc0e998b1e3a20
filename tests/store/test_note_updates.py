"""A note that several callers change at once keeps all changes."""

from __future__ import annotations

import pytest

from kb.documents.edit import Edit
from kb.documents.note_change import NoteChange
from kb.documents.save import save
from kb.documents.update import update_note
from kb.ingest.draft import draft_note, embed_draft
from tests.support.note_vectors import at_once


@pytest.fixture
def store(make_store):
    with make_store() as opened:
        yield opened


@pytest.mark.parametrize("edit", [Edit(append="A crane was added."), Edit("Another text.")])
def test_a_title_given_while_the_text_is_edited_is_kept(store, embedder, edit):
    content = embed_draft(draft_note("The harbour has no crane.", None, embedder), embedder)
    with store.write() as tx:
        note, _ = save(tx, content, None, [])
    others = [NoteChange(title="Harbour log")]

    def meanwhile():
        if others:
            update_note(store, at_once(embedder), note, others.pop())

    document, chunks = update_note(store, at_once(embedder), note, NoteChange(edit), checkpoint=meanwhile)
    assert (document.title, document.title_given) == ("Harbour log", True)
    assert chunks[-1].text.endswith(edit.text or edit.append)
