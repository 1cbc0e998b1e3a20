"""The files that documents came from. PDFs with pages that were skipped without OCR are read again."""

import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Final
from uuid import uuid4

from kb.api.errors import DiskFull, FilesUnavailable, NotFound
from kb.api.fields import NOTE
from kb.blobs.protocol import KEPT, Blobs, OpenBlob, kept_as, kept_names, staged_as
from kb.documents.staging import STRAY_SECONDS, remove_while
from kb.documents.thumbnails import Thumbnails
from kb.formats.ocr_text import BEGINNING, lacks_ocr
from kb.store.protocol import Store, Transaction
from kb.store.rows import Document, NewJob

logger = logging.getLogger(__name__)

OURS = re.compile(KEPT + r"([0-9a-f]{2})/\1[0-9a-f]{62}((\.[0-9a-f]{32})?\.part)?")
"""The names of kept files and of their unfinished copies."""

PDF: Final = "pdf"


class Originals:
    """Files named by the SHA-256 of their content: the `content_hash` of their documents.

    The store records which files no document needs any more, in the transaction that makes it so; `sweep` removes them
    afterwards. So a file exists as long as its document, even after a failure in between.

    Args:
        blobs: the storage of kept and staged files.
        thumbnails: what kb keeps of them in small, which goes when they do.
        keep: whether to keep new files.
    """

    def __init__(self, blobs: Blobs, thumbnails: Thumbnails | None = None, *, keep: bool) -> None:
        self.blobs = blobs
        self.thumbnails = thumbnails or Thumbnails()
        self._keep = keep

    def open(self, document: Document) -> OpenBlob:
        """Open the file that a document came from.

        Raises:
            NotFound: the document is a note, or its file was not kept or is lost.
        """
        try:
            if document.doc_type == NOTE:
                raise FileNotFoundError
            return self.blobs.open(kept_as(document.content_hash))
        except FileNotFoundError:
            raise _no_original(document) from None

    def check(self, document: Document) -> None:
        """Check that the file exists. Raises the same errors as `open`."""
        if document.doc_type == NOTE or not self.has(document.content_hash):
            raise _no_original(document)

    def has(self, content_hash: str) -> bool:
        """Return whether the file with this content is kept."""
        return any(self.blobs.size(name) is not None for name in kept_names([content_hash]))

    def local(self, content_hash: str) -> AbstractContextManager[Path]:
        """Provide the file with this content at a local path for the duration of the block.

        Raises:
            FileNotFoundError: the file is not kept.
        """
        return self.blobs.local(kept_as(content_hash))

    def add(self, staged: str, content_hash: str) -> None:
        """Keep a durable copy of a staged file, which stays because its job may have to restart.

        Raises:
            DiskFull: the disk has no room for the file.
        """
        name = kept_as(content_hash)
        if self._keep and self.blobs.size(name) is None:
            self.blobs.copy({staged_as(staged): name})

    def add_ahead(self, content_hashes: Mapping[str, str]) -> None:
        """Keep staged files before the transaction that needs them, so that it only checks and blocks others less.

        Args:
            content_hashes: the SHA-256 of each staged file.
        """
        if self._keep:
            names = {staged_as(staged): kept_as(digest) for staged, digest in content_hashes.items()}
            with suppress(FileNotFoundError):  # another engine has ended the job, which the transaction detects
                self.blobs.copy(
                    {staged: kept_name for staged, kept_name in names.items() if self.blobs.size(kept_name) is None}
                )

    def sweep_strays(self, store: Store) -> None:
        """Remove files, and parts of files, that were kept for documents that were then not written.

        Call it only while nothing is being written. If other engines also write, only old files are removed. With an
        empty database, nothing is removed, because the files may belong to another database.
        """
        least = STRAY_SECONDS if self.blobs.is_shared else 0
        old = {blob.name for blob in self.blobs.list(KEPT) if blob.age >= least and OURS.fullmatch(blob.name)}
        with store.read() as tx:
            suspects = old - _needed(tx)
        if not suspects:
            return
        with store.write() as tx:  # a document written in the meantime may need one
            if not any(tx.counts().documents.values()):
                return
            strays = suspects - _needed(tx)
            remove_while(tx, strays, self.blobs)
        if strays:
            logger.info("removed %s files that no document needs", len(strays))

    def sweep(self, store: Store) -> None:
        """Remove the files that no document needs. If the storage does not respond, the next call removes them."""
        try:
            with store.write() as tx:
                unneeded = [*tx.documents.take_unneeded_files()]
                remove_while(tx, kept_names(unneeded), self.blobs)
                self.thumbnails.forget(unneeded)  # before the end: after a crash, the next call does both again
        except FilesUnavailable as error:
            logger.warning(
                "files that no document needs could not be removed; kb will try again later: %s", error.detail
            )


def _no_original(document: Document) -> NotFound:
    return NotFound(
        f"kb has no file of document {document.id}: it is a note, KB_KEEP_FILES was off, or the file is lost."
    )


def _needed(tx: Transaction) -> set[str]:
    return set(kept_names(tx.documents.file_hashes()))


def queue_unread(store: Store, blobs: Blobs) -> None:
    """Queue PDFs with pages that were skipped as pictures. Call it before anything else is queued.

    If jobs are already waiting, they may be newer, so the PDFs are left for the next start. They are also left if the
    disk is full or the storage does not answer.
    """
    queued = 0
    with store.write() as tx, suppress(DiskFull, FilesUnavailable):
        for document in () if tx.jobs.pending() else [*_with_scans(tx)]:
            queued += _queue(tx, document, blobs)
    if queued:
        logger.info("reading %s files again because some of their pages were skipped", queued)


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
