"""Thumbnails of files, each kept in a file by the SHA-256 of the content it shows."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from kb.blobs.protocol import DIGEST

MOST: Final = 64
"""The most thumbnails in each of 256 folders, which makes about 100 MB in all; the oldest give way."""


class Thumbnails:
    """See above. An empty thumbnail says that there is none.

    Args:
        folder: where they are kept; None keeps none, because several engines could not delete each other's.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def get(self, content_hash: str) -> bytes | None:
        """Return a kept thumbnail."""
        with suppress(OSError):
            return file.read_bytes() if (file := self._file(content_hash)) else None
        return None

    def put(self, content_hash: str, content: bytes) -> None:
        """Keep a thumbnail, unless the disk is full or faulty."""
        file = self._file(content_hash)
        if file is None:
            return
        with suppress(OSError):
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            others = sorted(file.parent.iterdir(), key=lambda each: each.stat().st_mtime)
            for old in others[: max(0, len(others) - MOST + 1)]:
                old.unlink(missing_ok=True)
            part = file.with_suffix(".part")
            part.write_bytes(content)
            part.replace(file)

    def forget(self, content_hashes: Iterable[str]) -> None:
        """Delete the thumbnails of files that are deleted."""
        for file in filter(None, map(self._file, content_hashes)):
            with suppress(OSError):
                file.unlink(missing_ok=True)

    def _file(self, content_hash: str) -> Path | None:
        if self._folder is None or not DIGEST.fullmatch(content_hash):
            return None
        return self._folder / content_hash[:2] / content_hash
