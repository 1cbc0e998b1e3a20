"""Files that arrive in pieces (requirements G-7 to G-10)."""

from __future__ import annotations

import shutil
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast
from uuid import uuid4

import pybase64

from kb.contract.errors import Invalid, NotFound, TooLarge

if TYPE_CHECKING:
    from collections.abc import Callable

LIFETIME_SECONDS = 600
"""How long an upload may take (requirement G-10)."""

MAX_CHUNK = 3 << 20
"""The most bytes of a chunk: with base64 and JSON around them they still fit the 4 MiB of an MCP request."""

MAX_CHUNKS = 100_000


@dataclass(slots=True)
class Upload:
    """A file on its way in; `sizes` has the bytes of each chunk that is there."""

    id: str
    filename: str
    total_size: int
    tags: list[str]
    folder: Path
    expires: float
    sizes: dict[int, int] = field(default_factory=dict)

    def path(self, index: int) -> Path:
        """Where a chunk is kept."""
        return self.folder / str(index)


class Uploads:
    """The uploads in progress, in a temporary folder that only this process can read. A restart loses them.

    Args:
        max_size: the most bytes of a file.
        clock: seconds that never go back.
    """

    def __init__(self, max_size: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="kb-uploads-"))
        self._max_size = max_size
        self._clock = clock
        self._uploads: dict[str, Upload] = {}

    def start(self, filename: str, total_size: int, tags: list[str]) -> str:
        """Make room for a file; answers its upload_id.

        Raises:
            TooLarge: the file is larger than this gateway takes.
        """
        if total_size > self._max_size:
            raise TooLarge(f"total_size: at most {self._max_size} bytes (KB_MCP_MAX_UPLOAD_MB).")
        upload_id = str(uuid4())
        folder = self._folder / upload_id
        folder.mkdir(mode=0o700)
        expires = self._clock() + LIFETIME_SECONDS
        self._uploads[upload_id] = Upload(upload_id, filename, total_size, tags, folder, expires)
        return upload_id

    def add_chunk(self, upload_id: str, index: int, data: str) -> Upload:
        """Keep a chunk; one sent again replaces itself.

        Raises:
            NotFound: there is no such upload.
            Invalid: `data` is not base64, or more than was announced.
        """
        upload = self._get(upload_id)
        raw = _decoded(data)
        size = sum(upload.sizes.values()) - upload.sizes.get(index, 0) + len(raw)
        if size > upload.total_size:
            raise Invalid(f"data: with this chunk there are {size} bytes, but total_size was {upload.total_size}.")
        upload.path(index).write_bytes(raw)
        upload.sizes[index] = len(raw)
        return upload

    def take(self, upload_id: str) -> tuple[Upload, BinaryIO]:
        """The upload, which is over then, and the whole file, complete and in order; `discard` removes it.

        Raises:
            NotFound: there is no such upload.
            Invalid: a chunk is missing, or the sizes do not add up; nothing of it is left.
        """
        self._get(upload_id)
        upload = self._uploads.pop(upload_id)
        try:
            _check_complete(upload)
            return upload, _assembled(upload)
        except BaseException:
            self.discard(upload)
            raise

    def discard(self, upload: Upload) -> None:
        """Remove an upload's files."""
        shutil.rmtree(upload.folder, ignore_errors=True)

    def expire(self) -> None:
        """Remove what took too long."""
        now = self._clock()
        for upload in [upload for upload in self._uploads.values() if upload.expires <= now]:
            self._uploads.pop(upload.id, None)
            self.discard(upload)

    def close(self) -> None:
        """Remove everything."""
        self._uploads.clear()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _get(self, upload_id: str) -> Upload:
        self.expire()
        upload = self._uploads.get(upload_id)
        if upload is None:
            raise NotFound(
                f"upload_id: there is no upload {upload_id!r}. It was finished, took more than ten minutes, or the"
                " gateway restarted: begin again with kb_upload_start."
            )
        return upload


def _decoded(data: str) -> bytes:
    try:
        raw = pybase64.b64decode(data, validate=True)
    except ValueError:
        raise Invalid("data: not valid base64; encode the chunk's bytes again and resend it.") from None
    if len(raw) > MAX_CHUNK:
        raise Invalid(f"data: a chunk holds at most {MAX_CHUNK} bytes; 1 MiB is a good size.")
    return raw


def _check_complete(upload: Upload) -> None:
    missing = sorted(set(range(max(upload.sizes, default=0) + 1)) - set(upload.sizes))
    if missing:
        raise Invalid(f"upload_id: chunk {missing[0]} is missing; begin again with kb_upload_start.")
    size = sum(upload.sizes.values())
    if size != upload.total_size:
        raise Invalid(
            f"upload_id: {size} bytes arrived, but total_size was {upload.total_size};"
            " begin again with kb_upload_start."
        )


def _assembled(upload: Upload) -> BinaryIO:
    file = cast("BinaryIO", tempfile.TemporaryFile(dir=upload.folder))  # noqa: SIM115 - the caller closes it
    for index in sorted(upload.sizes):
        file.write(upload.path(index).read_bytes())
    file.seek(0)
    return file
