"""Blobs that are elsewhere, as files for as long as somebody reads them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from kb.api.errors import DiskFull
from kb.blobs.protocol import OpenBlob


class Blocks:
    """The blocks of a blob as something to read from; see `kb.blobs.protocol.Readable`."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._rest = b""

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, at most those of a block; nothing behind the last."""
        block = self._rest or next(self._blocks, b"")
        self._rest = block[size:]
        return block[:size]


@contextmanager
def as_file(blob: OpenBlob, scratch: Path) -> Iterator[Path]:
    """Have a blob as a file in a folder, which is removed afterwards.

    Raises:
        DiskFull: there is no room for it.
    """
    path = scratch / uuid4().hex
    try:
        try:
            with path.open("xb") as file:
                for block in blob.blocks:
                    file.write(block)
        except OSError as error:
            if DiskFull.is_why(error):
                raise DiskFull from error
            raise
        yield path
    finally:
        blob.close()
        path.unlink(missing_ok=True)
