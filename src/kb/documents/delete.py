"""A document goes: to the bin, or for good."""

from __future__ import annotations

from collections.abc import Callable

from kb.api.models import NOTE
from kb.blobs.protocol import Blobs
from kb.documents.existing import existing_document
from kb.documents.originals import Originals
from kb.documents.staging import discard
from kb.store.protocol import Store, Transaction
from kb.store.rows import NOBODY, Author, Document


def delete(
    store: Store,
    originals: Originals,
    document_id: int,
    author: Author = NOBODY,
    check: Callable[[Transaction], None] = lambda _: None,
) -> Document:
    """Move a document to the bin with the attachments that came in it; return what it was.

    Where nothing is kept in the bin, it is deleted for good, with its original. `check` may raise before it goes.

    Raises:
        NotFound: there is no such document.
    """
    with store.write() as tx:
        document = existing_document(tx, document_id)
        check(tx)
        tx.history.discard(document_id, author)
    if document.doc_type != NOTE:
        originals.sweep(store)
    return document


def purge(store: Store, originals: Originals, blobs: Blobs, document_id: int) -> Document:
    """Delete a document for good, from the bin, too, with versions, originals and attachments, read or not; return it.

    Raises:
        NotFound: there is no such document.
    """
    with store.write() as tx:
        binned = tx.history.binned(document_id)
        document = binned.document if binned else existing_document(tx, document_id)
        waiting = tx.jobs.staged()
        tx.documents.delete(document_id)
        waiting -= tx.jobs.staged()
    for name in waiting:
        discard(name, blobs)
    originals.sweep(store)
    return document
