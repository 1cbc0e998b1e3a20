"""The uploaded files, by what is in them."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from kb.store.base import Transaction


class KeptFiles:
    """A folder of files named by the SHA-256 of their content: the `content_hash` of the documents they became.

    Args:
        folder: where they are.
        keep: whether new ones are kept.
    """

    def __init__(self, folder: Path, *, keep: bool) -> None:
        self._folder = folder
        self._keep = keep

    def path(self, content_hash: str) -> Path:
        """Where the file with this content is, if it is kept."""
        return self._folder / content_hash[:2] / content_hash

    def add(self, staged: Path, content_hash: str) -> None:
        """Keep a staged file, which stays where it is: its job may have to begin again."""
        path = self.path(content_hash)
        if not self._keep or path.exists():
            return
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            os.link(staged, path)
        except OSError:  # a filesystem without hard links
            partial = path.with_suffix(".part")
            shutil.copyfile(staged, partial)
            partial.replace(path)

    def forget(self, tx: Transaction, content_hash: str) -> None:
        """Remove a file that no document of this transaction came from any more.

        If the transaction fails after it, the document is still whole; only the copy of its file is gone.
        """
        if not tx.documents.has_content(content_hash):
            self.path(content_hash).unlink(missing_ok=True)

    def tidy(self, hashes: set[str]) -> None:
        """Remove what no document has: the remains of a crash."""
        for path in self._folder.glob("*/*"):
            if path.name not in hashes:
                path.unlink()
