"""Compute again what a database derives from its texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kb.backup.swap import complete_restore
from kb.documents.vectors_by_job import add_vectors, draft_of
from kb.ingest.draft import embed_draft
from kb.repair.named_model import open_named_model
from kb.repair.reembed import opened_reembedder
from kb.running_engine import lock_path
from kb.settings import Settings
from kb.store.engine_lock import database_lock, sole_user
from kb.store.open import open_store
from kb.store.rows import VectorSpace
from kb.store.sqlite.rebuild import rebuild

OnChunks = Callable[[int, int], None]
"""Receives the numbers of chunks with vectors and in total."""


def reindex(settings: Settings, on_chunks: OnChunks, *, recompute_all: bool) -> None:
    """Rebuild a database file from its texts; it stays as it is until the new one is ready.

    Args:
        settings: the settings of the engine, which must not run.
        on_chunks: see `OnChunks`.
        recompute_all: whether to recompute all vectors, not only damaged and missing ones.

    Raises:
        StartError: the engine runs, or the model or the database cannot be used.
    """
    path = settings.database_path
    with sole_user(lock_path(settings.data_dir)):
        with sole_user(database_lock(path)):
            complete_restore(settings)
            missing = rebuild(path, on_chunks)
        if missing and not recompute_all:
            _complete(settings, missing, on_chunks)
    if recompute_all:
        with opened_reembedder(settings, on_chunks) as reembedder:
            reembedder.renew()


def _complete(settings: Settings, missing: Mapping[int, int], on_chunks: OnChunks) -> None:
    """Compute the missing vectors, which are counted by document."""
    embedder = open_named_model(settings)[0]
    with open_store(settings, VectorSpace.of(embedder.spec, settings.model_dir)) as store:
        with store.read() as tx:
            _, total = tx.second.counts()
        done = total - sum(missing.values())
        for document_id, count in missing.items():
            made = embed_draft(draft_of(store, document_id, embedder), embedder)
            with store.write() as tx:
                add_vectors(tx, document_id, made)
            on_chunks(done := done + count, total)
