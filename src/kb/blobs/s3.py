"""Blobs in a bucket of Amazon S3, or of what speaks its protocol."""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from obstore.exceptions import BaseError
from obstore.store import S3Store

from kb.api.errors import FilesUnavailable, SettingError
from kb.blobs.protocol import BLOCK_SIZE, Blob, OpenBlob, Readable
from kb.blobs.scratch import as_file

if TYPE_CHECKING:
    from obstore import GetResult

PART_SIZE: Final = 8 << 20
PARTS_AT_ONCE: Final = 2
"""An upload holds so many parts in memory."""

logger = logging.getLogger(__name__)

CONNECT_SECONDS, READ_SECONDS, REQUEST_SECONDS = 3, 30, 6 * 3600
"""The last is for a whole file, which may be read as slowly as who asked for it does."""

RETRY_SECONDS: Final = 5
"""For how long a request is tried again that a server refused for the moment."""

SHOWN: Final = 300
"""How much of an error is logged."""


class S3Blobs:
    """See `kb.blobs.protocol.Blobs`.

    Args:
        url: `s3://bucket/prefix`. Where it is, and the keys to it, are in the usual variables: `AWS_ACCESS_KEY_ID`,
            `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT_URL`.
        scratch: a folder for blobs while they are read as files.

    Raises:
        SettingError: it is no such URL.
    """

    is_shared = True
    is_outside = True

    def __init__(self, url: str, scratch: Path) -> None:
        self._scratch = scratch
        try:
            self._store = S3Store.from_url(
                url,
                virtual_hosted_style_request=False,
                client_options={
                    "allow_http": True,
                    "connect_timeout": timedelta(seconds=CONNECT_SECONDS),
                    "read_timeout": timedelta(seconds=READ_SECONDS),
                    "timeout": timedelta(seconds=REQUEST_SECONDS),
                },
                retry_config={"max_retries": 3, "retry_timeout": timedelta(seconds=RETRY_SECONDS)},
            )
        except (BaseError, ValueError) as error:
            raise SettingError("KB_BLOB_URL: it is no s3://bucket/prefix") from error

    def put(self, name: str, content: Readable) -> None:
        """Write a blob, in parts if it is large; the bucket has it whole or not at all."""
        with _reaching(is_there=True):
            blocks = iter(partial(content.read, BLOCK_SIZE), b"")
            self._store.put(name, blocks, chunk_size=PART_SIZE, max_concurrency=PARTS_AT_ONCE)

    def copy(self, names: Mapping[str, str]) -> None:
        """Give blobs other names also: the server copies them."""
        with _reaching():
            for name, to in names.items():
                self._store.copy(name, to)

    def open(self, name: str) -> OpenBlob:
        """Read a blob."""
        with _reaching():
            reply = self._store.get(name)
            return OpenBlob(reply.meta["size"], _blocks(reply))

    @contextmanager
    def local(self, name: str) -> Iterator[Path]:
        """Have a blob as a file, which is fetched."""
        with as_file(self.open(name), self._scratch) as path:
            yield path

    def size(self, name: str) -> int | None:
        """Return how many bytes a blob has; None if there is none."""
        try:
            with _reaching():
                return self._store.head(name)["size"]
        except FileNotFoundError:
            return None

    def remove(self, names: Iterable[str]) -> None:
        """Remove those that are there."""
        if batch := list(names):
            with _reaching():
                self._store.delete(batch)

    def list(self, prefix: str) -> Iterator[Blob]:
        """Yield the blobs whose names begin so."""
        now = datetime.now(UTC)
        with _reaching(is_there=True):
            for part in self._store.list(prefix):
                for meta in part:
                    yield Blob(meta["path"], meta["size"], (now - meta["last_modified"]).total_seconds())


def _blocks(reply: GetResult) -> Generator[bytes]:
    with _reaching():
        for block in reply.stream(min_chunk_size=BLOCK_SIZE):
            yield bytes(block)


@contextmanager
def _reaching(*, is_there: bool = False) -> Iterator[None]:
    """Say what went wrong in the words of a place for files; where a bucket alone is asked for, that it is absent, too.

    What the server said may tell where it is: that goes to the log, not to who asked.
    """
    try:
        yield
    except (BaseError, OSError) as error:
        if isinstance(error, FileNotFoundError) and not is_there:
            raise
        logger.warning("S3: %s", str(error).partition("\n")[0][:SHOWN])
        raise FilesUnavailable from error
