"""Vectors of all precisions of a model in one database, which counts them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kb.documents.delete import delete
from kb.documents.write_document import write_document
from kb.ingest.draft import draft_note, embed_draft
from kb.store.rows import NOBODY
from tests.store.test_history_model import ORIGINALS
from tests.support.spaces import space


def add(store, embedder, text, precision):
    """Add a note as an engine of this precision does."""
    draft = replace(draft_note(text, None, embedder), space=space(precision=precision))
    with store.write() as tx:
        return write_document(tx, embed_draft(draft, embedder), None, [])[0]


def precisions(store):
    with store.read() as tx:
        return tx.counts().precisions


@pytest.mark.requirement("E-8")
def test_the_database_says_how_many_vectors_were_made_in_each_precision(make_store, embedder):
    with make_store() as store:
        assert precisions(store) == {}
        for number in range(3):
            add(store, embedder, f"The lamp of house {number} is lit.", "int8")
        first = add(store, embedder, "The key is under the mat.", "fp32")
        assert precisions(store) == {"int8": 3, "fp32": 1}
        delete(store, ORIGINALS, first, NOBODY)
        assert precisions(store) == {"int8": 3, "fp32": 1}
    with make_store(precision="fp16") as store:
        assert precisions(store) == {"int8": 3, "fp32": 1}
        add(store, embedder, "The boat leaves at dawn.", "fp16")
        assert precisions(store) == {"int8": 3, "fp16": 1, "fp32": 1}


def test_vectors_of_another_precision_are_not_made_again_and_those_of_another_model_are_counted_anew(
    make_store, embedder
):
    with make_store() as store:
        add(store, embedder, "The key is under the mat.", "int8")
        other = replace(store_space(store), model="other", precision="fp16")
        with store.write() as tx:
            tx.second.begin(other)
            [missing] = tx.second.missing(0, 9)
            tx.second.add([missing.chunk_id], embedder.embed_passages([missing.text]))
        with store.write() as tx:
            assert tx.second.switch()
        assert precisions(store) == {"fp16": 1}


def store_space(store):
    with store.read() as tx:
        return tx.space
