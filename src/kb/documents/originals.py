"""The files that documents came from."""

from __future__ import annotations

import logging
import os
import re
import shutil
from typing import TYPE_CHECKING, BinaryIO

from kb.api.errors import DiskFull, NotFound
from kb.api.models import NOTE
from kb.filesystem import sync

if TYPE_CHECKING:
    from pathlib import Path

    from kb.store.protocol import Store
    from kb.store.rows import Document


logger = logging.getLogger(__name__)

OURS = re.compile(r"[0-9a-f]{64}(\.part)?")
"""What a kept file is called, and one that is being copied."""


class Originals:
    """A folder of files named by the SHA-256 of their content: the `content_hash` of the documents they became.

    The store notes which of them no document needs any more, in the transaction that makes it so; `sweep` removes them
    after it. So a file is there as long as its document is, whatever fails in between.

    Args:
        folder: where they are.
        keep: whether new ones are kept.
    """

    def __init__(self, folder: Path, *, keep: bool) -> None:
        self._folder = folder
        self._keep = keep

    def path(self, content_hash: str) -> Path:
        """Return where the file with this content is, if it is kept."""
        return self._folder / content_hash[:2] / content_hash

    def digests(self) -> set[str]:
        """Return the hashes of the files that are kept."""
        return {path.name for path in self._folder.glob("??/*") if _is_ours(path) and not path.suffix}

    def open(self, document: Document) -> BinaryIO:
        """Open the file that a document came from.

        Raises:
            NotFound: it came from none, or files were not kept.
        """
        try:
            if document.doc_type == NOTE:
                raise FileNotFoundError
            return self.path(document.content_hash).open("rb")
        except FileNotFoundError:
            raise NotFound(
                f"No file is kept for document {document.id}: it is a note, or KB_KEEP_FILES was off."
            ) from None

    def add(self, staged: Path, content_hash: str) -> None:
        """Keep a staged file, which stays where it is: its job may have to begin again. It is on disk afterwards.

        Raises:
            DiskFull: there is no room for it.
        """
        path = self.path(content_hash)
        if not self._keep or path.exists():
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            link_or_copy(staged, path)
            sync(path.parent)
            sync(self._folder)
        except OSError as error:
            if DiskFull.is_why(error):
                raise DiskFull from error
            raise

    def sweep_strays(self, store: Store) -> None:
        """Remove the files, and parts of files, that were kept for documents that then were not written.

        For when nothing is being written. In an empty database, which may stand in the place of another, nothing goes.
        """
        with store.read() as tx:
            needed = tx.documents.file_hashes() if any(tx.counts().documents.values()) else None
        if needed is None:
            return
        strays = [path for path in self._folder.glob("??/*") if _is_ours(path) and path.name not in needed]
        for path in strays:
            path.unlink(missing_ok=True)
        if strays:
            logger.info("removed %s files that no document needs", len(strays))

    def sweep(self, store: Store) -> None:
        """Remove the files that no document needs any more."""
        with store.write() as tx:
            for content_hash in tx.documents.take_unneeded_files():
                self.path(content_hash).unlink(missing_ok=True)


def _is_ours(path: Path) -> bool:
    return bool(OURS.fullmatch(path.name)) and path.name.startswith(path.parent.name) and not path.is_dir()


def link_or_copy(staged: Path, path: Path) -> None:
    """Let a file, which is never written again, be at `path` too."""
    partial = path.with_suffix(".part")
    try:
        os.link(staged, path)
    except OSError:  # a filesystem without hard links, or a full one: copying tells
        shutil.copyfile(staged, partial)
        sync(partial)
        partial.replace(path)
