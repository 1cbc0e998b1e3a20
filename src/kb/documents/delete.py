"""A document goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kb.api.models import NOTE
from kb.documents.lookup import existing_document

if TYPE_CHECKING:
    from kb.documents.originals import Originals
    from kb.store.protocol import Store
    from kb.store.rows import Document


def delete(store: Store, originals: Originals, document_id: int) -> Document:
    """Delete a document for good, with its original and the attachments that came in it; return what it was.

    Raises:
        NotFound: there is no such document.
    """
    with store.write() as tx:
        document = existing_document(tx, document_id)
        tx.documents.delete(document_id)
    if document.doc_type != NOTE:
        originals.sweep(store)
    return document
