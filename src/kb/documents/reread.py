"""Files that an older reader took for something else are read again, from what was kept of them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from kb.api.errors import NotFound
from kb.documents.staging import stage
from kb.formats.readers.front_matter import FENCES, front_matter
from kb.store.rows import NewJob

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kb.documents.originals import Originals
    from kb.store.protocol import Store, Transaction
    from kb.store.rows import Document

logger = logging.getLogger(__name__)

MARKDOWN: Final = "markdown"
FIRST_CHUNKS: Final = 20
"""In how many chunks of a document its front matter ends, if it ever does."""


def queue_outdated(store: Store, originals: Originals, staging: Path) -> None:
    """Queue the Markdown files whose front matter was indexed as text. To be called before anything else is queued.

    What waits already may be newer than these files: then it is left for the next start.
    """
    with store.write() as tx:
        outdated = [] if tx.jobs.pending() else list(_with_front_matter(tx))
        queued = sum(_queue(tx, document, originals, staging) for document in outdated)
    if queued:
        logger.info("reading %s Markdown files again, whose front matter was indexed as text", queued)


def _with_front_matter(tx: Transaction) -> Iterator[Document]:
    for document_id in tx.documents.beginning_with(MARKDOWN, [f"{fence}\n" for fence in FENCES]):
        text = "".join(chunk.text for chunk in tx.documents.chunks(document_id, limit=FIRST_CHUNKS))
        front = front_matter(text)
        document = tx.documents.get(document_id)
        if document and front.is_understood and text[front.length :].strip():  # what has nothing else stays as it is
            yield document


def _queue(tx: Transaction, document: Document, originals: Originals, staging: Path) -> bool:
    try:
        with originals.open(document) as file:
            staged, digest = stage(file, staging)
    except NotFound:
        return False
    name = document.filename or (document.source_path or "").rpartition("/")[2] or "document.md"
    title = document.title if document.title_given else None
    tx.jobs.add(NewJob("file", title, document.source_path, staged=staged, filename=name, content_hash=digest))
    return True
