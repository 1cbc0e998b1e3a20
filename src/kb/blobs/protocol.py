"""The storage of files: a folder, S3, or the database."""

import re
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, Protocol

BLOCK_SIZE: Final = 1 << 20
"""The number of bytes held in memory at a time."""

STAGED: Final = "staging/"
KEPT: Final = "files/"
DIGEST: Final = re.compile("[0-9a-f]{64}")
"""A SHA-256 in hex. A row written by another program may hold something else, which names no file."""


def staged_as(name: str) -> str:
    return f"{STAGED}{name}"


def kept_as(content_hash: str) -> str:
    """Return the name of the blob of a kept file, by the SHA-256 of its content.

    Raises:
        FileNotFoundError: the hash is not a SHA-256, so no file can have it.
    """
    if not DIGEST.fullmatch(content_hash):
        raise FileNotFoundError(f"not a SHA-256: {content_hash!r}")
    return f"{KEPT}{content_hash[:2]}/{content_hash}"


def kept_names(content_hashes: Iterable[str]) -> Iterator[str]:
    """Yield the names of the kept files with these hashes; skip values that are not a SHA-256."""
    return map(kept_as, filter(DIGEST.fullmatch, content_hashes))


class Readable(Protocol):
    """A source of blocks of bytes."""

    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Blob:
    """A listed blob; `age` is the time in seconds since it was written."""

    name: str
    size: int
    age: float


class OpenBlob(NamedTuple):
    """A blob being read: its size in bytes, and its blocks. Close it unless all blocks are read."""

    size: int
    blocks: Generator[bytes]
    file: BinaryIO | None = None

    def close(self) -> None:
        self.blocks.close()
        if self.file:  # in case no block was read
            self.file.close()


class Blobs(Protocol):
    """Files by name, which never change. Safe to use from several threads and, if shared, from several engines.

    Every method raises `FilesUnavailable` if the storage does not answer, and `DiskFull` if it is full.
    """

    @property
    def is_shared(self) -> bool:
        """Whether other engines also write there."""

    @property
    def is_outside(self) -> bool:
        """Whether the storage is separate from the database, so that it must record which database it belongs to."""

    def put(self, name: str, content: Readable) -> None:
        """Write a blob, whole or not at all. The blob and its name are durable when this returns."""

    def copy(self, names: Mapping[str, str]) -> None:
        """Give each of these blobs a second name, durably; an existing blob of that name may be overwritten.

        Raises:
            FileNotFoundError: a blob does not exist. The blobs before it have their new names.
        """

    def open(self, name: str) -> OpenBlob:
        """Read a blob. Raises the same errors as `copy`."""

    def local(self, name: str) -> AbstractContextManager[Path]:
        """Provide a blob as a local file for the duration of the block. Raises the same errors as `copy`."""

    def size(self, name: str) -> int | None:
        """Return the size of a blob in bytes; None if it does not exist."""

    def remove(self, names: Iterable[str]) -> None:
        """Remove these blobs; missing ones are ignored."""

    def list(self, prefix: str) -> Iterator[Blob]:
        """Yield the blobs whose names have this prefix."""
