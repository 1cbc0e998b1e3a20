"""One round of keeping a folder and the knowledge base in step."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from stat import S_ISDIR
from typing import TYPE_CHECKING, Final

from kb.api.errors import NotFound
from kb.api.stream_safe import composed
from kb_cli.runtime.call import run_parallel
from kb_cli.runtime.exit_codes import UsageError
from kb_cli.sync.archive import is_archive_name
from kb_cli.sync.claim import Claim, claim, look_up
from kb_cli.sync.deletions import ITSELF, Judge, Withheld, remembered
from kb_cli.sync.disk import DiskView, describe_mounts
from kb_cli.sync.file_item import FileItem
from kb_cli.sync.moves import find_moves, move_documents, plan_moves
from kb_cli.sync.patience import ask_folder, forget_silent
from kb_cli.sync.remote import RemoteFile, fetch_extracted, fetch_files_below, fetch_rejected, wholes
from kb_cli.sync.report import unreadable_items
from kb_cli.sync.selection import LEFT_OUT, Selection, select_files
from kb_cli.sync.upload import Uploader

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path

    from kb.client.client import EngineClient
    from kb_cli.sync.digests import DigestCache

MAX_DELETIONS: Final = 4
"""At once."""
SETTLE_SECONDS: Final = 1.0
"""So long a file must be gone in a folder that is watched: programs that save one move it away for a moment."""

OTHER_SPELLING: Final = "another file here has the same name, its letters written in another way: rename one of them"


@dataclass(frozen=True, slots=True)
class Folder:
    """What to keep in step.

    Args:
        path: the folder.
        prefix: how the source paths of its files begin; empty until `named` has asked for it.
        tags: what its files are tagged with.
        exclude: what is left out.
        delete: whether documents go whose file is gone.
        is_sure: whether they go even when that looks like an accident, as when there are no files at all.
        follow_links: whether links to files outside of the folder count as files.
        take_over: whether the folder may have the name of another one.
        is_watched: whether each change is followed, while programs are still at it.
    """

    path: Path
    prefix: str
    tags: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    delete: bool = False
    is_sure: bool = False
    follow_links: bool = False
    take_over: bool = False
    is_watched: bool = False

    def check(self) -> None:
        """Check that there is such a folder.

        Raises:
            UsageError: there is none.
        """
        try:
            is_file, is_there = ask_folder(self.path, lambda path: (path.is_file(), path.is_dir()))
        except OSError:
            raise UsageError(f"{self.path} gives no answer: is its disk there?") from None
        if is_file:
            raise UsageError(f"{self.path} is a file: 'kb add' adds it.")
        if not is_there:
            raise UsageError(f"There is no folder {self.path}.")

    async def select(self, client: EngineClient, left_out: Collection[str]) -> tuple[Selection, list[FileItem]]:
        """Return what is in the folder now that the engine reads, but for the source paths that are left out.

        Raises:
            UsageError: it is gone.
        """
        self.check()
        selection = select_files([str(self.path)], self.exclude, follow_links=self.follow_links)
        if selection.passed_over:
            selection.take(await fetch_extracted(client))
        items = [FileItem(str(file), self.source_path(file), self.tags) for file in selection.files]
        if ignored := sum(each.source_path in left_out for each in items):
            selection.ignored[LEFT_OUT] = ignored
        return selection, name_twins([each for each in items if each.source_path not in left_out])

    def place(self, source_path: str) -> str:
        """Return where from the folder a source path leads."""
        return source_path.removeprefix(self.prefix)

    def source_path(self, path: Path) -> str:
        """Return the source path of what is below the folder."""
        return self.prefix + composed(path.relative_to(self.path).as_posix())


@dataclass
class SyncResult:
    """What a round did."""

    selection: Selection
    items: list[FileItem]
    deleted: list[str] = field(default_factory=list)
    withheld: list[Withheld] = field(default_factory=list)
    """Documents that stay although their file is gone."""
    emptied: list[str] = field(default_factory=list)
    """Folders that are suddenly empty."""

    @property
    def failed(self) -> list[FileItem]:
        """What did not go in."""
        return [each for each in self.items if each.error]

    @property
    def is_news(self) -> bool:
        """Whether anything was done."""
        return bool(self.deleted) or any(each.is_news for each in self.items)


@dataclass(frozen=True, slots=True)
class Round:
    """What a round begins with.

    Args:
        folder: what to keep in step.
        claim: what is known of it.
        mounts: on which devices it is.
        selection: its files.
        items: likewise, as they are sent.
        remote: what the engine has of them.
    """

    folder: Folder
    claim: Claim
    mounts: str
    selection: Selection
    items: list[FileItem]
    remote: dict[str, RemoteFile]

    @classmethod
    async def begin(cls, client: EngineClient, folder: Folder, digests: DigestCache) -> Round:
        """Look at the folder, and at what the engine has of it.

        Raises:
            UsageError: it is gone, or its name is that of another one.
        """
        forget_silent()
        folder.check()
        claim = await look_up(client, folder)
        mounts = describe_mounts(folder.path)
        selection, items = await folder.select(client, claim.left_out)
        remote = await fetch_files_below(client, folder.prefix)
        if claim.doubt and not are_same(folder, items, remote, digests):
            raise claim.doubt
        return cls(folder, claim, mounts, selection, items, remote)

    @property
    def judge(self) -> Judge:
        """What says which documents go, by how the folder is at this moment."""
        folder = self.folder
        unread = [folder.place(each.source_path) for each in self.items if each.is_unread]
        total = sum(whole_in(self.remote, path) == path for path in self.remote)
        mounts = self.claim.mounts, describe_mounts(folder.path)
        return Judge(DiskView(folder.path), mounts, unread, total, is_sure=folder.is_sure)

    def moved(self) -> dict[str, int]:
        """Return the documents whose file may have moved, by source path."""
        left = gone(self.items, self.selection, self.folder, self.remote)
        here = set(self.judge.keep_away(map(self.folder.place, left)))
        return {path: number for path, number in left.items() if self.folder.place(path) in here}

    def devices(self, items: Iterable[FileItem], deleted: Iterable[str], emptied: Iterable[str]) -> str:
        """Return which devices to remember, and which folders that are suddenly empty, once documents are deleted."""
        paths = set(deletable(items, self.selection, self.folder, self.remote)) - set(deleted)
        return remembered(self.claim.mounts, self.mounts, [*map(self.folder.place, paths)], emptied)

    @property
    def refusal(self) -> UsageError | None:
        """Why nothing is done in an empty folder: more often its disk is away than a person deleted everything."""
        folder = self.folder
        if not folder.delete or folder.is_sure or self.selection.files:
            return None
        if not (paths := deletable(self.items, self.selection, folder, self.remote)):
            return None
        documents = "1 document" if len(paths) == 1 else f"{len(paths)} documents"
        return UsageError(
            f"{folder.path} holds no files, and {documents} would be deleted. Is its disk there? If so, say --yes."
        )

    def allowed(self, result: SyncResult, remote: Mapping[str, RemoteFile]) -> list[str]:
        """Return the source paths whose documents go; note in the result which ones stay, and why."""
        judge = self.judge
        paths = deletable(result.items, self.selection, self.folder, remote)
        whole_of = {path: whole_in(remote, path) for path in paths}
        allowed = set(judge.allow(map(self.folder.place, sorted(set(whole_of.values())))))
        result.withheld, result.emptied = judge.withheld, judge.emptied
        return [path for path in paths if self.folder.place(whole_of[path]) in allowed]


def whole_in(remote: Mapping[str, RemoteFile], path: str) -> str:
    """Return the path of the file that what is at a path came inside, as attachments do; its own if it did not."""
    inside = wholes(path) if remote[path].is_part else ()
    return max(filter(remote.__contains__, inside), key=len, default=path)


def are_same(folder: Folder, items: Iterable[FileItem], remote: Mapping[str, RemoteFile], digests: DigestCache) -> bool:
    """Return whether at least half of a folder's documents are of files that are here, by their paths and content."""
    whole = [path for path in remote if whole_in(remote, path) == path and not archives_above(folder, path)]
    files = {each.source_path: each.path for each in items}
    same = 0
    for path in filter(files.__contains__, whole):
        with suppress(OSError):
            same += remote[path].content_hash == digests.digest(files[path])
    return 0 < same >= len(whole) / 2


async def sync_folder(client: EngineClient, folder: Folder, digests: DigestCache, *, quiet: bool) -> SyncResult:
    """Send what is new or changed, wait until it can be found, then delete what is gone."""
    this = await Round.begin(client, folder, digests)
    items, remote = this.items, this.remote
    if refusal := this.refusal:
        if this.claim.mounts:
            await claim(client, folder, this.devices(items, [], [ITSELF]), this.claim.owner)
        raise refusal
    if this.claim.is_known:
        await claim(client, folder, this.claim.mounts or this.mounts, this.claim.owner)
    await move_documents(client, find_moves(items, this.moved(), remote, digests), remote)
    uploader = Uploader(client, remote, await fetch_rejected(client), digests, quiet=quiet)
    await uploader.upload_all(items)
    await uploader.wait_all(items)
    result = SyncResult(this.selection, items + unreadable_items(this.selection))
    if folder.delete:
        result.deleted = await delete_missing(client, this, result)
    if this.claim.is_known:
        await claim(client, folder, this.devices(result.items, result.deleted, result.emptied))
    return result


async def plan_sync(client: EngineClient, folder: Folder, digests: DigestCache) -> SyncResult:
    """Return what a round would do, as if it were done."""
    this = await Round.begin(client, folder, digests)
    items, remote = this.items, this.remote
    if this.refusal:
        raise this.refusal
    left = this.moved()
    plan_moves(find_moves(items, left, remote, digests), left, remote)
    await Uploader(client, remote, await fetch_rejected(client), digests, quiet=True, is_dry=True).upload_all(items)
    result = SyncResult(this.selection, items + unreadable_items(this.selection))
    if folder.delete:
        result.deleted = sorted(this.allowed(result, remote))
    return result


async def delete_missing(client: EngineClient, this: Round, result: SyncResult) -> list[str]:
    """Delete the documents whose file is gone, those that were on their way in before too; return their paths."""
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


def name_twins(items: list[FileItem]) -> list[FileItem]:
    """Return the files, with an error in each whose name another one has, too, spelled as the engine has it."""
    first: dict[str, FileItem] = {}
    for item in sorted(items, key=lambda each: each.path != composed(each.path)):
        if first.setdefault(item.source_path, item) is not item:
            item.error = OTHER_SPELLING
    return items


def gone(
    items: Iterable[FileItem], selection: Selection, folder: Folder, remote: Mapping[str, RemoteFile]
) -> dict[str, int]:
    """Return the documents whose file is gone, by source path."""
    paths = missing(items, selection, folder, remote)
    return {path: number for path in paths if (number := remote[path].document_id) is not None}


def missing(
    items: Iterable[FileItem], selection: Selection, folder: Folder, remote: Mapping[str, RemoteFile]
) -> list[str]:
    """Return the source paths whose file is gone; what is unreadable or left out is not gone."""
    local = {each.source_path for each in items}
    disk = DiskView(folder.path)
    unreadable = tuple(f"{folder.source_path(path)}/" for path in selection.unreadable)
    return [
        path
        for path, file in remote.items()
        if not path.startswith(unreadable)
        and not any(each in local or is_on_disk(folder, each, disk) for each in possible_files(path, file))
    ]


def deletable(
    items: Iterable[FileItem], selection: Selection, folder: Folder, remote: Mapping[str, RemoteFile]
) -> list[str]:
    """Return the source paths whose documents go: not those of archives, which no round would add again."""
    return [path for path in missing(items, selection, folder, remote) if not is_from_archive(folder, path)]


def is_from_archive(folder: Folder, path: str) -> bool:
    """Return whether a source path leads into an archive, there or not: into what is named like one and no folder."""
    return any(not is_folder(folder.path / each) for each in archives_above(folder, path))


def archives_above(folder: Folder, path: str) -> list[PurePosixPath]:
    """Return the paths, from the folder, of the archives that a source path may lead into."""
    return [each for each in PurePosixPath(folder.place(path)).parents if is_archive_name(each)]


def is_on_disk(folder: Folder, path: str, disk: DiskView) -> bool:
    """Return whether the file of a source path is there, whatever leaves it out, or the archive that it came in."""
    files = [PurePosixPath(folder.place(path)), *archives_above(folder, path)]
    return any(map(disk.has_file, files))


def is_folder(path: Path) -> bool:
    """Return whether there is a folder, or a link to one, as far as that can be known."""
    try:
        return S_ISDIR(path.stat().st_mode)
    except (OSError, ValueError):
        return False


def possible_files(path: str, file: RemoteFile) -> Iterator[str]:
    """Yield a source path, and what it may have come inside."""
    yield path
    yield from wholes(path) if file.is_part else ()
