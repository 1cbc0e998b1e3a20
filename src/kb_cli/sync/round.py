"""One sync round for a folder."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from stat import S_ISDIR
from typing import Final

from kb.api.errors import NotFound
from kb.client.client import EngineClient
from kb.folders.deletions import ITSELF, Judge, remembered
from kb.folders.disk_view import DiskView, describe_mounts
from kb.folders.timed_reads import forget_silent
from kb_cli.runtime.engine_call import run_parallel
from kb_cli.runtime.exit_codes import UsageError
from kb_cli.sync.digests import DigestCache
from kb_cli.sync.file_item import FileItem
from kb_cli.sync.file_selection import FileSelection
from kb_cli.sync.folder import Folder
from kb_cli.sync.folder_claim import Claim, claim, look_up
from kb_cli.sync.moves import find_moves, move_documents, plan_moves
from kb_cli.sync.remote_files import RemoteFile, fetch_files_below, fetch_rejected, wholes
from kb_cli.sync.report import SyncResult, unreadable_items
from kb_cli.sync.upload import Uploader
from kb_cli.sync.zip_archive import is_archive_name

MAX_DELETIONS: Final = 4
"""Concurrent deletions."""
SETTLE_SECONDS: Final = 1.0
"""A file in a watched folder must be missing for this long: programs move a file away briefly when they save it."""


@dataclass(frozen=True, slots=True)
class Round:
    """The state at the beginning of a round.

    Args:
        folder: the options of the sync.
        mounts: its current devices.
        items: its files, as items to send.
        remote: the engine's files below its prefix.
    """

    folder: Folder
    claim: Claim
    mounts: str
    selection: FileSelection
    items: list[FileItem]
    remote: dict[str, RemoteFile]

    @classmethod
    async def begin(cls, client: EngineClient, folder: Folder, digests: DigestCache) -> Round:
        """Read the state of the folder and of the engine.

        Raises:
            UsageError: the folder does not exist, or its name belongs to another one.
        """
        forget_silent()
        folder.check()
        claim = await look_up(client, folder)
        mounts = describe_mounts(folder.path)
        selection, items = await folder.select(client, claim.left_out)
        this = cls(folder, claim, mounts, selection, items, await fetch_files_below(client, folder.prefix))
        if claim.doubt and not this.is_same(digests):
            raise claim.doubt
        return this

    def is_same(self, digests: DigestCache) -> bool:
        """Return whether at least half of the documents match local files in path and content."""
        remote = self.remote
        whole = [path for path in remote if whole_in(remote, path) == path and not self._archives_above(path)]
        files = {item.source_path: item.path for item in self.items}
        same = 0
        for path in filter(files.__contains__, whole):
            with suppress(OSError):
                same += remote[path].content_hash == digests.digest(files[path])
        return 0 < same >= len(whole) / 2

    @property
    def refusal(self) -> UsageError | None:
        """The error for an empty folder: an unmounted disk is more likely than the deletion of everything."""
        folder = self.folder
        if not folder.delete or folder.is_sure or self.selection.files or not (paths := self.deletable(self.remote)):
            return None
        documents = "1 document" if len(paths) == 1 else f"{len(paths)} documents"
        return UsageError(
            f"{folder.path} has no files, and {documents} would be deleted. Is its disk connected? If so, add --yes."
        )

    @property
    def judge(self) -> Judge:
        """A judge of deletions for the current state of the folder."""
        folder = self.folder
        unread = [folder.place(item.source_path) for item in self.items if item.is_unread]
        total = sum(whole_in(self.remote, path) == path for path in self.remote)
        mounts = self.claim.mounts, describe_mounts(folder.path)
        return Judge(DiskView(folder.path), mounts, unread, total, is_sure=folder.is_sure)

    def moved(self) -> dict[str, int]:
        """Return the documents whose file may have moved, by source path."""
        known = ((path, self.remote[path].document_id) for path in self.missing(self.remote))
        left = {path: number for path, number in known if number is not None}
        here = set(self.judge.keep_away(map(self.folder.place, left)))
        return {path: number for path, number in left.items() if self.folder.place(path) in here}

    def result(self) -> SyncResult:
        return SyncResult(self.selection, self.items + unreadable_items(self.selection))

    def devices(self, deleted: Iterable[str], emptied: Iterable[str]) -> str:
        """Return the devices and suddenly empty folders to remember, after documents were deleted."""
        paths = set(self.deletable(self.remote)) - set(deleted)
        return remembered(self.claim.mounts, self.mounts, [*map(self.folder.place, paths)], emptied)

    def allowed(self, result: SyncResult, remote: Mapping[str, RemoteFile]) -> list[str]:
        """Return the source paths whose documents may be deleted; record the others in the result, with reasons."""
        judge = self.judge
        paths = self.deletable(remote)
        whole_of = {path: whole_in(remote, path) for path in paths}
        allowed = set(judge.allow(map(self.folder.place, sorted(set(whole_of.values())))))
        result.withheld, result.emptied = judge.withheld, judge.emptied
        return [path for path in paths if self.folder.place(whole_of[path]) in allowed]

    def deletable(self, remote: Mapping[str, RemoteFile]) -> list[str]:
        """Return the source paths to delete, except those from archives, which no round would add again."""
        return [path for path in self.missing(remote) if not self._is_from_archive(path)]

    def missing(self, remote: Mapping[str, RemoteFile]) -> list[str]:
        """Return the source paths whose file is gone; unreadable and skipped files are not gone."""
        unreadable = [self.folder.source_path(path) for path in self.selection.unreadable]
        below, disk = tuple(f"{path}/" for path in unreadable), DiskView(self.folder.path)
        local = {*unreadable, *(item.source_path for item in self.items)}
        return [
            path
            for path, file in remote.items()
            if not path.startswith(below)
            and not any(
                possible_file in local or self._is_on_disk(possible_file, disk)
                for possible_file in possible_files(path, file)
            )
        ]

    def _is_from_archive(self, path: str) -> bool:
        """Return whether a source path is in an archive, even a missing one: by its suffix, unless it is a folder."""
        return any(not is_folder(self.folder.path / archive) for archive in self._archives_above(path))

    def _archives_above(self, path: str) -> list[PurePosixPath]:
        """Return the paths, relative to the folder, of the archives that may contain a source path."""
        return [parent for parent in PurePosixPath(self.folder.place(path)).parents if is_archive_name(parent)]

    def _is_on_disk(self, path: str, disk: DiskView) -> bool:
        """Return whether the file of a source path or the archive around it exists, even if it is skipped."""
        return any(map(disk.has_file, (PurePosixPath(self.folder.place(path)), *self._archives_above(path))))


def is_folder(path: Path) -> bool:
    """Return whether a path is a folder or a link to one; False if unknown."""
    try:
        return S_ISDIR(path.stat().st_mode)
    except (OSError, ValueError):
        return False


def possible_files(path: str, file: RemoteFile) -> Iterator[str]:
    """Yield a source path and the paths of the files that may contain it."""
    yield path
    yield from wholes(path) if file.is_part else ()


def whole_in(remote: Mapping[str, RemoteFile], path: str) -> str:
    """Return the path of the file that contains the one at a path, such as a mail; the path itself if none does."""
    inside = wholes(path) if remote[path].is_part else ()
    return max(filter(remote.__contains__, inside), key=len, default=path)


async def sync_folder(client: EngineClient, folder: Folder, digests: DigestCache, *, quiet: bool) -> SyncResult:
    """Send new and changed files, wait until they are searchable, then delete documents whose file is gone."""
    this = await Round.begin(client, folder, digests)
    items, remote = this.items, this.remote
    if refusal := this.refusal:
        if this.claim.mounts:
            await claim(client, folder, this.devices([], [ITSELF]), this.claim.owner)
        raise refusal
    await claim(client, folder, this.claim.mounts or this.mounts, this.claim.owner)
    await move_documents(client, find_moves(items, this.moved(), remote, digests), remote)
    uploader = Uploader(client, remote, await fetch_rejected(client), digests, quiet=quiet)
    await uploader.upload_all(items)
    await uploader.wait_all(items)
    result = this.result()
    if folder.delete:
        result.deleted = await delete_missing(client, this, result)
    await claim(client, folder, this.devices(result.deleted, result.emptied))
    return result


async def plan_sync(client: EngineClient, folder: Folder, digests: DigestCache) -> SyncResult:
    this = await Round.begin(client, folder, digests)
    items, remote = this.items, this.remote
    if this.refusal:
        raise this.refusal
    left = this.moved()
    plan_moves(find_moves(items, left, remote, digests), left, remote)
    await Uploader(client, remote, await fetch_rejected(client), digests, quiet=True, is_dry=True).upload_all(items)
    result = this.result()
    if folder.delete:
        result.deleted = sorted(this.allowed(result, remote))
    return result


async def delete_missing(client: EngineClient, this: Round, result: SyncResult) -> list[str]:
    """Delete the documents whose file is gone, including those with pending jobs; return their paths."""
    folder = this.folder
    for file in this.remote.values():
        if file.job_id is not None:
            await client.wait_for_job(file.job_id)
    left = await fetch_files_below(client, folder.prefix)
    paths = this.allowed(result, left)
    if paths and folder.is_watched:
        await asyncio.sleep(SETTLE_SECONDS)
        paths = this.allowed(result, left)
    documents = {path: number for path in paths if (number := left[path].document_id) is not None}

    async def delete(path: str) -> None:
        try:
            await client.delete_document(documents[path])
        except NotFound:
            documents.pop(path)

    await run_parallel(delete, list(documents), MAX_DELETIONS)
    return sorted(documents)
