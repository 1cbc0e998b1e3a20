"""Delete a document: to the bin, or for good."""

from collections.abc import Callable

from kb.api.errors import NotInBin
from kb.api.fields import NOTE
from kb.blobs.protocol import Blobs
from kb.documents.lookup import existing_document
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
    *,
    leave_out: bool = False,
) -> Document:
    """Move a document and the attachments that came with it to the bin; return it as it was.

    If the bin is off, the document and its original are deleted for good. `check` may raise before the deletion. With
    `leave_out`, its file stays where it is, and no folder adds it again.

    Raises:
        NotFound: the document does not exist.
    """
    with store.write() as tx:
        document = existing_document(tx, document_id)
        check(tx)
        _leave_out(tx, document, wanted=leave_out)
        tx.history.discard(document_id, author)
    if document.doc_type != NOTE:
        originals.sweep(store)
    return document


def _leave_out(tx: Transaction, document: Document, *, wanted: bool) -> None:
    """Record it with the deletion: a folder that kb writes to removes the files of deleted documents at any moment."""
    if wanted and document.source_path is not None:
        tx.folders.leave_out(document.source_path)


def purge(
    store: Store,
    originals: Originals,
    blobs: Blobs,
    document_id: int,
    *,
    leave_out: bool = False,
    only_binned: bool = False,
) -> Document:
    """Delete a document for good, even from the bin, with its versions, originals and attachments; return it.

    Attachments that are still queued are also deleted.

    Raises:
        NotFound: the document does not exist.
        NotInBin: with `only_binned`, the document is not in the bin.
    """
    with store.write() as tx:
        binned = tx.history.binned(document_id)
        if only_binned and not binned:
            raise NotInBin(f"Document {document_id} is not in the bin.")
        document = binned.document if binned else existing_document(tx, document_id)
        waiting = tx.jobs.staged()
        _leave_out(tx, document, wanted=leave_out)
        tx.documents.delete(document_id)
        waiting -= tx.jobs.staged()
    for name in waiting:
        discard(name, blobs)
    originals.sweep(store)
    return document
