"""A document's file has another place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kb.api.errors import PathTaken
from kb.documents.lookup import existing_document
from kb.store.rows import NOBODY

if TYPE_CHECKING:
    from kb.store.protocol import Store
    from kb.store.rows import Author, Document


def move(store: Store, document_id: int, source_path: str, author: Author = NOBODY) -> Document:
    """Set where a document comes from; it stays the same document, of a new version. Return it.

    Raises:
        NotFound: there is no such document.
        PathTaken: another document comes from there.
    """
    with store.write() as tx:
        document = existing_document(tx, document_id)
        if document.source_path == source_path:
            return document
        there = tx.documents.at_path(source_path)
        if there is not None:
            raise PathTaken(f"Document {there.id} comes from {source_path}.")
        tx.history.keep(document_id, author)
        tx.documents.move(document_id, source_path)
        return existing_document(tx, document_id)
