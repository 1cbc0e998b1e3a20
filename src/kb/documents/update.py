"""A note changes in place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kb.api.errors import NotANote
from kb.api.models import NOTE
from kb.documents.lookup import check_match, existing_document
from kb.ingest.draft import draft_note, embed_draft
from kb.store.rows import NOBODY

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from kb.embed.protocol import Embedder
    from kb.store.protocol import Store, Transaction
    from kb.store.rows import Author, Chunk, Document


def update_note(
    store: Store,
    embedder: Embedder,
    document_id: int,
    text: str,
    if_match: Collection[str] | None,
    checkpoint: Callable[[], None] = lambda: None,
    author: Author = NOBODY,
) -> tuple[Document, list[Chunk]]:
    """Replace a note's text in place (requirements N-1 to N-6); return what was written.

    The slow part, embedding, comes before the transaction; what it was based on is checked again inside. `checkpoint`
    is called again and again meanwhile, and may end the work by raising.

    Raises:
        NotFound: there is no such document.
        NotANote: it is another kind of document.
        Changed: its content_hash is none of `if_match`.
    """
    with store.read() as tx:
        note = _matching(tx, document_id, if_match)
    title = note.title if note.title_given else None
    content = embed_draft(draft_note(text, title, embedder, checkpoint=checkpoint), embedder, checkpoint)
    with store.write() as tx:
        _matching(tx, document_id, if_match)
        tx.history.keep(document_id, author)
        tx.documents.replace(document_id, content)
        return existing_document(tx, document_id), tx.documents.chunks(document_id)


def _matching(tx: Transaction, document_id: int, if_match: Collection[str] | None) -> Document:
    document = existing_document(tx, document_id)
    if document.doc_type != NOTE:
        raise NotANote(f"Document {document_id} is of type {document.doc_type}: only notes can be updated.")
    check_match(document, if_match)
    return document
