"""One round of keeping a folder and the knowledge base in step."""

from __future__ import annotations

import errno
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from stat import S_ISDIR
from typing import TYPE_CHECKING, Final

from kb.api.errors import NotFound
from kb_cli.runtime.call import run_parallel
from kb_cli.runtime.exit_codes import UsageError
from kb_cli.sync.archive import is_archive_name
from kb_cli.sync.file_item import FileItem
from kb_cli.sync.moves import find_moves, move_documents, plan_moves
from kb_cli.sync.remote import RemoteFile, fetch_extracted, fetch_files_below, fetch_rejected, wholes
from kb_cli.sync.report import unreadable_items
from kb_cli.sync.selection import Selection, select_files
from kb_cli.sync.upload import Uploader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from kb.client.client import EngineClient
    from kb_cli.sync.digests import DigestCache

MAX_DELETIONS: Final = 4
"""At once."""
ABSENT: Final = {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG}
"""What is said of a path where nothing can be."""


@dataclass(frozen=True, slots=True)
class Folder:
    """What to keep in step.

    Args:
        path: the folder.
        prefix: how the source paths of its files begin.
        tags: what its files are tagged with.
        exclude: what is left out.
        delete: whether documents go whose file is gone.
        may_be_empty: whether they go even when there are no files at all.
        follow_links: whether links to files outside of the folder count as files.
    """

    path: Path
    prefix: str
    tags: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    delete: bool = False
    may_be_empty: bool = False
    follow_links: bool = False

    def check(self) -> None:
        """Check that there is such a folder.

        Raises:
            UsageError: there is none.
        """
        if self.path.is_file():
            raise UsageError(f"{self.path} is a file: 'kb add' adds it.")
        if not self.path.is_dir():
            raise UsageError(f"There is no folder {self.path}.")

    async def select(self, client: EngineClient) -> tuple[Selection, list[FileItem]]:
        """Return what is in the folder now that the engine reads.

        Raises:
            UsageError: it is gone.
        """
        self.check()
        selection = select_files([str(self.path)], self.exclude, follow_links=self.follow_links)
        if selection.passed_over:
            selection.take(await fetch_extracted(client))
        return selection, [FileItem(str(file), self.source_path(file), self.tags) for file in selection.files]

    def source_path(self, path: Path) -> str:
        """Return the source path of what is below the folder."""
        return self.prefix + path.relative_to(self.path).as_posix()


@dataclass
class SyncResult:
    """What a round did."""

    selection: Selection
    items: list[FileItem]
    deleted: list[str] = field(default_factory=list)

    @property
    def failed(self) -> list[FileItem]:
        """What did not go in."""
        return [each for each in self.items if each.error]

    @property
    def is_news(self) -> bool:
        """Whether anything was done."""
        return bool(self.deleted) or any(each.is_news for each in self.items)


async def sync_folder(client: EngineClient, folder: Folder, digests: DigestCache, *, quiet: bool) -> SyncResult:
    """Send what is new or changed, wait until it can be found, then delete what is gone."""
    selection, items = await folder.select(client)
    remote = await fetch_files_below(client, folder.prefix)
    if folder.delete:
        refuse_empty(folder, selection, deletable(items, selection, folder, remote))
    await move_documents(client, find_moves(items, gone(items, selection, folder, remote), remote, digests), remote)
    uploader = Uploader(client, remote, await fetch_rejected(client), digests, quiet=quiet)
    await uploader.upload_all(items)
    await uploader.wait_all(items)
    result = SyncResult(selection, items + unreadable_items(selection))
    if folder.delete:
        result.deleted = await delete_missing(client, folder, result, remote)
    return result


async def plan_sync(client: EngineClient, folder: Folder, digests: DigestCache) -> SyncResult:
    """Return what a round would do, as if it were done."""
    selection, items = await folder.select(client)
    remote = await fetch_files_below(client, folder.prefix)
    if folder.delete:
        refuse_empty(folder, selection, deletable(items, selection, folder, remote))
    left = gone(items, selection, folder, remote)
    plan_moves(find_moves(items, left, remote, digests), left, remote)
    await Uploader(client, remote, await fetch_rejected(client), digests, quiet=True, is_dry=True).upload_all(items)
    result = SyncResult(selection, items + unreadable_items(selection))
    if folder.delete:
        result.deleted = sorted(deletable(items, selection, folder, remote))
    return result


async def delete_missing(
    client: EngineClient, folder: Folder, result: SyncResult, remote: Mapping[str, RemoteFile]
) -> list[str]:
    """Delete the documents whose file is gone, those that were on their way in before too; return their paths."""
    for file in remote.values():
        if file.job_id is not None:
            await client.wait_for_job(file.job_id)
    left = await fetch_files_below(client, folder.prefix)
    paths = deletable(result.items, result.selection, folder, left)
    documents = {path: number for path in paths if (number := left[path].document_id) is not None}

    async def delete(path: str) -> None:
        try:
            await client.delete_document(documents[path])
        except NotFound:
            documents.pop(path)

    await run_parallel(delete, list(documents), MAX_DELETIONS)
    return sorted(documents)


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
    unreadable = tuple(f"{folder.source_path(path)}/" for path in selection.unreadable)
    return [
        path
        for path, file in remote.items()
        if not path.startswith(unreadable)
        and not any(each in local or is_on_disk(folder, each) for each in possible_files(path, file))
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
    return [each for each in PurePosixPath(path.removeprefix(folder.prefix)).parents if is_archive_name(each)]


def is_on_disk(folder: Folder, path: str) -> bool:
    """Return whether the file of a source path is there, whatever leaves it out, or the archive that it came in."""
    files = [PurePosixPath(path.removeprefix(folder.prefix)), *archives_above(folder, path)]
    return any(file_exists(folder.path / each) for each in files)


def file_exists(path: Path) -> bool:
    """Return whether there is a file, or a link to whatever; what cannot be looked at is there."""
    try:
        return not S_ISDIR(path.lstat().st_mode)
    except OSError as error:
        return error.errno not in ABSENT
    except ValueError:
        return False


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


def refuse_empty(folder: Folder, selection: Selection, paths: Sequence[str]) -> None:
    """Refuse an empty folder: it is more often a disk that is not there than a wish to lose everything.

    Raises:
        UsageError: the documents at these paths would be deleted.
    """
    if paths and not selection.files and not folder.may_be_empty:
        documents = "1 document" if len(paths) == 1 else f"{len(paths)} documents"
        raise UsageError(
            f"{folder.path} holds no files, and {documents} would be deleted. Is its disk there? If so, say --yes."
        )
