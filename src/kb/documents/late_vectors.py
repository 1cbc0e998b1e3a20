"""The vectors of stored notes that were not ready when the notes were written."""

from __future__ import annotations

from kb.documents.restore import stored_draft
from kb.embed.protocol import Embedder
from kb.ingest.draft import Draft
from kb.store.protocol import Store, Transaction
from kb.store.rows import Content


def draft_of(store: Store, document_id: int, embedder: Embedder) -> Draft | None:
    """Return the draft of a stored document, for its vectors; None if the document is gone."""
    with store.read() as tx:
        document = tx.documents.get(document_id)
        chunks = tx.documents.chunks(document_id) if document else []
    return stored_draft(document, chunks, embedder) if document else None


def add_vectors(tx: Transaction, document_id: int, content: Content) -> None:
    """Give a document its vectors, unless it has some or other chunks by now."""
    note = tx.documents.get(document_id)
    if note is None or note.content_hash != content.content_hash or tx.documents.has_vectors(document_id):
        return
    chunks = [(chunk.header, chunk.text) for chunk in tx.documents.chunks(document_id)]
    if chunks == [(chunk.header, chunk.text) for chunk in content.chunks]:
        tx.documents.set_vectors(document_id, content)
