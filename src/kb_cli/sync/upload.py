"""Upload files, a few at a time: skip files that the engine has, and continue if one fails."""

import asyncio
import io
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final, TypeVar, cast

from kb.api.errors import KbError
from kb.client.client import EngineClient
from kb.client.transport import BodyUnreadable
from kb.folders.timed_reads import TimedReader, ask, listening, open_file
from kb_cli.runtime import exit_codes
from kb_cli.runtime.engine_call import run_parallel
from kb_cli.runtime.progress import progress_bar
from kb_cli.sync.digests import DigestCache
from kb_cli.sync.file_item import FileItem
from kb_cli.sync.remote_files import RemoteFile

T = TypeVar("T")

MAX_UPLOADS: Final = 4
"""Concurrent uploads."""

DRY: Final = {"status": "dry run"}
"""Replaces the engine's receipt in a dry run."""


@dataclass
class Uploader:
    """Uploads files.

    Args:
        remote: the engine's files, by source path.
        rejected: the digest and error of files that the engine could not read, by source path.
        digests: the cache of file digests.
        title: the title, if there is only one file.
        quiet: whether to hide the progress bar.
        is_dry: whether to record only the files that would be sent.
    """

    client: EngineClient
    remote: Mapping[str, RemoteFile]
    rejected: Mapping[str, tuple[str, str]]
    digests: DigestCache
    title: str | None = None
    quiet: bool = False
    is_dry: bool = False

    async def upload_all(self, items: Sequence[FileItem]) -> None:
        total = sum(file_size(Path(item.path)) for item in items)
        with progress_bar("sending", total, is_bytes=True, quiet=self.quiet) as advance:
            await run_parallel(lambda item: self.upload(item, advance), items, MAX_UPLOADS)

    async def upload(self, item: FileItem, advance: Callable[[int], None]) -> None:
        """Send a file. Record an error of this file; raise an error that would also affect the others."""
        if item.error:
            return
        try:
            item.source_path.encode()
            remote = self.remote.get(item.source_path)
            item.is_new = remote is None or remote.is_new
            item.is_empty = item.is_new and not item.is_named and is_empty(item.path)
            if item.is_empty:
                return
            if await self._is_stored(item) or (not item.is_named and await self._is_rejected(item)):
                advance(file_size(Path(item.path)))
                return
            if self.is_dry:
                item.job = DRY
                return
            with ProgressFile(item.path, advance) as content:
                item.job = await self.client.add_file(
                    Path(item.path).name,
                    cast("BinaryIO", content),
                    source_path=item.source_path,
                    tags=item.tags,
                    title=self.title,
                )
        except (OSError, BodyUnreadable) as error:
            cause = error if isinstance(error, OSError) else error.__cause__
            item.error, item.is_unread = (cause.strerror if isinstance(cause, OSError) else None) or str(error), True
        except UnicodeEncodeError:
            item.error = "its name is not UTF-8"
        except KbError as error:
            if exit_codes.exit_code_for(error) != exit_codes.REFUSED:
                raise
            item.error = error.detail

    async def _is_stored(self, item: FileItem) -> bool:
        remote = self.remote.get(item.source_path)
        if remote is None or self.title not in (None, remote.title) or has_other_name(item, remote):
            return False
        if remote.content_hash != await asyncio.to_thread(self.digests.digest, item.path):
            return False
        if missing := [tag for tag in item.tags if tag not in remote.tags]:
            if remote.document_id is None:
                return False
            if not self.is_dry:
                await self.client.change_tags(remote.document_id, add=missing)
        item.document_id = remote.document_id
        item.job = None if remote.job_id is None else {"job_id": remote.job_id, "status": "queued"}
        return True

    async def _is_rejected(self, item: FileItem) -> bool:
        digest, reason = self.rejected.get(item.source_path, (None, None))
        if digest is None or digest != await asyncio.to_thread(self.digests.digest, item.path):
            return False
        item.error, item.is_known_error = reason, True
        return True

    async def wait_all(self, items: Sequence[FileItem]) -> None:
        """Wait until the sent files are searchable, or record their errors."""
        pending = [item for item in items if item.job]
        with progress_bar("adding", len(pending), is_bytes=False, quiet=self.quiet) as advance:
            for item in pending:
                await self.wait(item)
                advance(1)

    async def wait(self, item: FileItem) -> None:
        """Wait until the file's document is searchable, or record its error."""
        if item.job:
            item.finish(await self.client.wait_for_job(item.job["job_id"]))


def has_other_name(item: FileItem, remote: RemoteFile) -> bool:
    """Return whether a document's title is the previous name of its file."""
    before = PurePosixPath(item.moved_from or item.source_path).stem
    return remote.title == before != PurePosixPath(item.source_path).stem


class ProgressFile(io.RawIOBase):
    """A file that reports the bytes read, and ends at the length that it had when it was opened.

    Otherwise a log that grows during the upload would exceed the announced length. An unresponsive file raises an
    OSError.
    """

    def __init__(self, path: str, advance: Callable[[int], None]) -> None:
        self.name = path
        self._patient = TimedReader()
        self._descriptor = self._call(open_file, path)
        self._left = os.fstat(self._descriptor).st_size
        self._advance = advance

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def tell(self) -> int:
        return os.lseek(self._descriptor, 0, os.SEEK_CUR)

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Move the position, for example to the start before a retry, and adjust the progress."""
        before, position = self.tell(), os.lseek(self._descriptor, offset, whence)
        self._left += before - position
        self._advance(position - before)
        return position

    def read(self, size: int | None = -1, /) -> bytes:
        count = self._left if size is None or size < 0 else min(size, self._left)
        data = self._call(os.read, self._descriptor, count)
        self._left -= len(data)
        self._advance(len(data))
        return data

    def _call(self, function: Callable[..., T], *arguments: object) -> T:
        with listening(self.name, self._patient):
            return self._patient.call(function, *arguments)

    def close(self) -> None:
        if not self.closed and not self._patient.is_stuck:
            os.close(self._descriptor)
            self._patient.end()
        super().close()


def is_empty(file: str) -> bool:
    """Return whether a file is empty.

    Raises:
        OSError: the file cannot be read.
    """
    return ask(file, os.stat, file).st_size == 0


def file_size(file: Path) -> int:
    """Return the length of a file in bytes; 0 if unknown."""
    try:
        return ask(file, os.stat, file).st_size
    except OSError:
        return 0
