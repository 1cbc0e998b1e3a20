"""A document's file has another place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kb.api.errors import PathTaken
from kb.documents.lookup import existing_document

if TYPE_CHECKING:
    from kb.store.protocol import Store
    from kb.store.rows import Document


def move(store: Store, document_id: int, source_path: str) -> Document:
    """Set where a document comes from; it stays the same document. Return it.

    Raises:
        NotFound: there is no such document.
        PathTaken: another document comes from there.
    """
    with store.write() as tx:
        existing_document(tx, document_id)
        there = tx.documents.at_path(source_path)
        if there is not None and there.id != document_id:
            raise PathTaken(f"Document {there.id} comes from {source_path}.")
        tx.documents.move(document_id, source_path)
        return existing_document(tx, document_id)
