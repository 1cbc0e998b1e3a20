"""Files of which pages were not read for want of OCR are read again, from what was kept of them."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from kb.api.errors import DiskFull, FilesUnavailable
from kb.blobs.protocol import kept_as, staged_as
from kb.formats.pictures import BEGINNING, lacks_ocr
from kb.store.rows import NewJob

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kb.blobs.protocol import Blobs
    from kb.store.protocol import Store, Transaction
    from kb.store.rows import Document

logger = logging.getLogger(__name__)

PDF: Final = "pdf"


def queue_unread(store: Store, blobs: Blobs) -> None:
    """Queue PDFs of which some pages were passed over as pictures. To be called before anything else is queued.

    What waits already may be newer than these files: then it is left for the next start, and likewise those for which
    there is no room, or whose place does not answer.
    """
    queued = 0
    with store.write() as tx, suppress(DiskFull, FilesUnavailable):
        for document in () if tx.jobs.pending() else [*_with_scans(tx)]:
            queued += _queue(tx, document, blobs)
    if queued:
        logger.info("reading %s files again, of which pages were not read", queued)


def _with_scans(tx: Transaction) -> Iterator[Document]:
    for document_id in tx.documents.beginning_with(PDF, BEGINNING):
        [first, *_] = tx.documents.chunks(document_id, limit=1)
        document = tx.documents.get(document_id)
        if document and lacks_ocr(first.text):
            yield document


def _queue(tx: Transaction, document: Document, blobs: Blobs) -> bool:
    staged = uuid4().hex
    try:
        blobs.copy({kept_as(document.content_hash): staged_as(staged)})
    except FileNotFoundError:
        return False
    name = document.filename or (document.source_path or "").rpartition("/")[2] or "document.md"
    title = document.title if document.title_given else None
    tx.jobs.add(
        NewJob("file", title, document.source_path, staged=staged, filename=name, content_hash=document.content_hash)
    )
    return True
