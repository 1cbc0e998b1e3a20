"""Remote blobs as local files while they are read."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from kb.api.errors import DiskFull
from kb.blobs.protocol import OpenBlob


class Blocks:
    """The blocks of a blob as a `kb.blobs.protocol.Readable`."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._rest = b""

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, at most one block; empty at the end."""
        block = self._rest or next(self._blocks, b"")
        self._rest = block[size:]
        return block[:size]


@contextmanager
def as_file(blob: OpenBlob, scratch: Path) -> Iterator[Path]:
    """Provide a blob as a file in a folder, and remove the file afterwards.

    Raises:
        DiskFull: the disk has no room for the file.
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
