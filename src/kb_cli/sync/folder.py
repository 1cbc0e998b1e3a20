"""A folder that is kept in step with the knowledge base: which files are in it, and what they are called there."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kb.api.stream_safe import composed
from kb_cli.runtime.exit_codes import UsageError
from kb_cli.sync.file_item import FileItem
from kb_cli.sync.file_selection import LEFT_OUT, FileSelection, select_files
from kb_cli.sync.remote_files import fetch_extracted
from kb_cli.sync.timed_reads import ask_folder

if TYPE_CHECKING:
    from kb.client.client import EngineClient

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

    async def select(self, client: EngineClient, left_out: Collection[str]) -> tuple[FileSelection, list[FileItem]]:
        """Return what is in the folder now that the engine reads, but for the source paths that are left out.

        Raises:
            UsageError: it is gone.
        """
        self.check()
        selection = select_files([str(self.path)], self.exclude, follow_links=self.follow_links)
        if selection.passed_over:
            selection.take(await fetch_extracted(client))
        items = [FileItem(str(file), self.source_path(file), self.tags) for file in selection.files]
        if ignored := sum(item.source_path in left_out for item in items):
            selection.ignored[LEFT_OUT] = ignored
        return selection, name_twins([item for item in items if item.source_path not in left_out])

    def place(self, source_path: str) -> str:
        """Return where from the folder a source path leads."""
        return source_path.removeprefix(self.prefix)

    def source_path(self, path: Path) -> str:
        """Return the source path of what is below the folder."""
        return self.prefix + composed(path.relative_to(self.path).as_posix())


def name_twins(items: list[FileItem]) -> list[FileItem]:
    """Return the files, with an error in each whose name another one has, too, spelled as the engine has it."""
    first: dict[str, FileItem] = {}
    for item in sorted(items, key=lambda item: item.path != composed(item.path)):
        if first.setdefault(item.source_path, item) is not item:
            item.error = OTHER_SPELLING
    return items
