"""Where files are: in a folder, on S3, or in the database."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, Protocol

BLOCK_SIZE: Final = 1 << 20
"""How many bytes are held in memory at a time."""

STAGED: Final = "staging/"
KEPT: Final = "files/"
DIGEST: Final = re.compile("[0-9a-f]{64}")
"""A SHA-256 in hex. What a row holds in its place, as another program may have written it, names no file."""


def staged_as(name: str) -> str:
    """Return the name of the blob of a staged file."""
    return f"{STAGED}{name}"


def kept_as(content_hash: str) -> str:
    """Return the name of the blob of a kept file, which has the SHA-256 of its content.

    Raises:
        FileNotFoundError: it is no SHA-256, so that no file is kept under it.
    """
    if not DIGEST.fullmatch(content_hash):
        raise FileNotFoundError(f"no SHA-256: {content_hash!r}")
    return f"{KEPT}{content_hash[:2]}/{content_hash}"


def kept_names(content_hashes: Iterable[str]) -> Iterator[str]:
    """Yield the names of the kept files with these hashes; what is no SHA-256 has none."""
    return map(kept_as, filter(DIGEST.fullmatch, content_hashes))


class Readable(Protocol):
    """What is read in blocks."""

    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Blob:
    """A blob that is listed; `age` is for how many seconds it has been there."""

    name: str
    size: int
    age: float


class OpenBlob(NamedTuple):
    """A blob that is read: how many bytes it has, and these. To be closed where they are not read to their end."""

    size: int
    blocks: Generator[bytes]
    file: BinaryIO | None = None

    def close(self) -> None:
        """Let go of it."""
        self.blocks.close()
        if self.file:  # no block of which may have been asked for
            self.file.close()


class Blobs(Protocol):
    """Files by name, which never change. Safe to use from several threads, and where shared, from several engines.

    Every method raises `FilesUnavailable` where the place does not answer, and `DiskFull` where there is no room.
    """

    @property
    def is_shared(self) -> bool:
        """Whether other engines put files there, too."""

    @property
    def is_outside(self) -> bool:
        """Whether it is neither in a database nor beside one, so that it must be told whose it is."""

    def put(self, name: str, content: Readable) -> None:
        """Write a blob, whole or not at all. It is durable, and so is its name, when this returns."""

    def copy(self, names: Mapping[str, str]) -> None:
        """Give each of these blobs another name also, durably; a blob of that name may be written again.

        Raises:
            FileNotFoundError: there is no such blob. Those before it have their names.
        """

    def open(self, name: str) -> OpenBlob:
        """Read a blob. Raises as `copy`."""

    def local(self, name: str) -> AbstractContextManager[Path]:
        """Have a blob as a file, to be read while the block lasts. Raises as `copy`."""

    def size(self, name: str) -> int | None:
        """Return how many bytes a blob has; None if there is none."""

    def remove(self, names: Iterable[str]) -> None:
        """Remove those that are there."""

    def list(self, prefix: str) -> Iterator[Blob]:
        """Yield the blobs whose names begin so."""
