"""Blobs in a bucket of Amazon S3 or a compatible service."""

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
"""The number of parts that an upload holds in memory."""

logger = logging.getLogger(__name__)

CONNECT_SECONDS, READ_SECONDS, REQUEST_SECONDS = 3, 30, 6 * 3600
"""The last one limits the read of a whole file, which may be as slow as the client."""

RETRY_SECONDS: Final = 5
"""The time for which a temporarily refused request is repeated."""

SHOWN: Final = 300
"""The number of logged characters of an error."""


class S3Blobs:
    """See `kb.blobs.protocol.Blobs`.

    Args:
        url: `s3://bucket/prefix`. The address and keys come from the usual variables: `AWS_ACCESS_KEY_ID`,
            `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT_URL`.
        scratch: a folder for blobs while they are read as files.

    Raises:
        SettingError: the URL has another form.
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
            raise SettingError("KB_BLOB_URL is not a URL of the form s3://bucket/prefix.") from error

    def put(self, name: str, content: Readable) -> None:
        """Write a blob, in parts if it is large; the bucket gets all of it or nothing."""
        with _reaching(is_there=True):
            blocks = iter(partial(content.read, BLOCK_SIZE), b"")
            self._store.put(name, blocks, chunk_size=PART_SIZE, max_concurrency=PARTS_AT_ONCE)

    def copy(self, names: Mapping[str, str]) -> None:
        with _reaching():
            for name, to in names.items():
                self._store.copy(name, to)

    def open(self, name: str) -> OpenBlob:
        with _reaching():
            reply = self._store.get(name)
            return OpenBlob(reply.meta["size"], _blocks(reply))

    @contextmanager
    def local(self, name: str) -> Iterator[Path]:
        """Download a blob to a local file for the duration of the block."""
        with as_file(self.open(name), self._scratch) as path:
            yield path

    def size(self, name: str) -> int | None:
        try:
            with _reaching():
                return self._store.head(name)["size"]
        except FileNotFoundError:
            return None

    def remove(self, names: Iterable[str]) -> None:
        if batch := list(names):
            with _reaching():
                self._store.delete(batch)

    def list(self, prefix: str) -> Iterator[Blob]:
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
    """Translate errors of S3; with `is_there`, a missing object also means an unavailable bucket.

    The server's message may reveal its address, so it goes to the log, not to the client.
    """
    try:
        yield
    except (BaseError, OSError) as error:
        if isinstance(error, FileNotFoundError) and not is_there:
            raise
        logger.warning("S3: %s", str(error).partition("\n")[0][:SHOWN])
        raise FilesUnavailable from error
