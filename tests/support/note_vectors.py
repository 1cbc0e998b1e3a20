"""Vectors of notes without threads and without a limit of time."""

from __future__ import annotations

from concurrent.futures import Executor, Future

import numpy as np

from kb.documents.vectors_by_job import add_vectors, draft_of
from kb.ingest.draft import embed_draft
from kb.ingest.vectors_at_once import NoteVectors
from kb.store.rows import Filter


class SameThread(Executor):
    """Runs calls at once, in the thread of the caller."""

    def submit(self, function, /, *arguments, **options):
        future = Future()
        try:
            future.set_result(function(*arguments, **options))
        except Exception as error:  # noqa: BLE001 - as any executor
            future.set_exception(error)
        return future


def has_vectors(store, document_id):
    """Whether searches see a vector of each passage."""
    with store.read() as tx:
        ids = np.array(sorted(place.id for place in tx.documents.chunk_places(document_id)), np.int64)
        return bool(tx.index.select(Filter()).vectors(ids).any(axis=1).all())


def at_once(embedder):
    """Makes the vectors of a note while its sender waits, however long that takes."""
    return NoteVectors(embedder, SameThread())


def make_waiting(store, embedder, document_ids):
    """Makes the vectors that documents lack, as the worker does."""
    for document_id in document_ids:
        content = embed_draft(draft_of(store, document_id, embedder), embedder)
        with store.write() as tx:
            add_vectors(tx, document_id, content)
