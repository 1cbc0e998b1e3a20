"""A synced folder: its files and their names in the knowledge base."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kb.api.stream_safe import composed
from kb.client.client import EngineClient
from kb.folders.left_out import BY_USER
from kb.folders.own_data import NOTES_MARK, own_folder_around
from kb.folders.timed_reads import ask_folder
from kb_cli.runtime.exit_codes import UsageError
from kb_cli.sync.file_item import FileItem
from kb_cli.sync.file_selection import FileSelection, select_files
from kb_cli.sync.remote_files import fetch_extracted

OTHER_SPELLING: Final = "another file in this folder has the same name in another Unicode spelling; rename one of them"


OWN: Final = "kb keeps its own files in {}. Choose a separate folder."
KEPT: Final = f"{OWN} The engine keeps that folder in sync itself. To only read it, first run 'kb watch remove'."


@dataclass(frozen=True, slots=True)
class Folder:
    """The options of a sync.

    Args:
        prefix: the prefix of its source paths; empty until `named` has looked it up.
        exclude: patterns of files to skip.
        delete: whether to delete documents whose file is gone.
        is_sure: whether to delete them even if that looks like an accident, such as an empty folder.
        follow_links: whether links to files outside the folder count as files.
        take_over: whether the folder may take the name of another one.
        is_watched: whether each change is synced while programs may still be writing.
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
        """Check that the folder exists, and that kb keeps no files of its own there."""
        self.check_is_there()
        if own := ask_folder(self.path, lambda path: own_folder_around(path.resolve())):
            raise UsageError(KEPT.format(own) if (own / NOTES_MARK).exists() else OWN.format(own))

    def check_is_there(self) -> None:
        try:
            is_file, is_there = ask_folder(self.path, lambda path: (path.is_file(), path.is_dir()))
        except OSError:
            raise UsageError(f"{self.path} does not respond. Is its disk connected?") from None
        if is_file:
            raise UsageError(f"{self.path} is a file. To add it, use 'kb add'.")
        if not is_there:
            raise UsageError(f"The folder {self.path} does not exist.")

    async def select(self, client: EngineClient, left_out: Collection[str]) -> tuple[FileSelection, list[FileItem]]:
        """Return the files of the folder that the engine can read, except for the source paths in `left_out`.

        Raises:
            UsageError: the folder does not exist.
        """
        self.check()
        selection = select_files([str(self.path)], self.exclude, follow_links=self.follow_links)
        if selection.passed_over:
            selection.take(await fetch_extracted(client))
        items = [FileItem(str(file), self.source_path(file), self.tags) for file in selection.files]
        if ignored := sum(item.source_path in left_out for item in items):
            selection.ignored[BY_USER] = ignored
        return selection, name_twins([item for item in items if item.source_path not in left_out])

    def place(self, source_path: str) -> str:
        return source_path.removeprefix(self.prefix)

    def source_path(self, path: Path) -> str:
        return self.prefix + composed(path.relative_to(self.path).as_posix())


def name_twins(items: list[FileItem]) -> list[FileItem]:
    """Return the files; a file whose name differs from another one only in spelling gets an error."""
    first: dict[str, FileItem] = {}
    for item in sorted(items, key=lambda item: item.path != composed(item.path)):
        if first.setdefault(item.source_path, item) is not item:
            item.error = OTHER_SPELLING
    return items
