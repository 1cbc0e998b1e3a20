"""What files on this machine are called in the knowledge base: by their whole path, or by the name of their folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kb.api.stream_safe import composed
from kb_cli.runtime.engine_call import call
from kb_cli.runtime.source_paths import absolute, to_source_path
from kb_cli.sync.folder_claim import is_from_here, machine_id
from kb_cli.sync.timed_reads import ask

if TYPE_CHECKING:
    from kb.client.client import EngineClient
    from kb_cli.sync.folder import Folder


@dataclass(frozen=True, slots=True)
class FolderNames:
    """The folders of this machine that are kept in step, and the files that stay out.

    Args:
        prefixes: by folder, as `Path.resolve` has it, how the source paths of its files begin.
        left_out: source paths of files that stay out.
        names: the folders with all prefixes that they were kept in step under.
    """

    prefixes: Mapping[Path, str] = field(default_factory=dict)
    left_out: frozenset[str] = frozenset()
    names: frozenset[tuple[Path, str]] = frozenset()

    def source_path(self, path: Path | str) -> str:
        """Return the source path of a file or folder, as `kb sync` of the innermost folder around it has it."""
        whole = absolute(path)
        for folder in (whole, *whole.parents) if self.prefixes else ():
            if prefix := self.prefixes.get(resolved(folder)):
                return composed(prefix + whole.relative_to(folder).as_posix()).removesuffix("/.")
        return to_source_path(whole)

    def prefix(self, folder: Path) -> str:
        """Return how the source paths begin of a folder that is to be kept in step, as they began before.

        Its whole path counts if it was kept in step so, whatever other name it got since: a timer goes on as it began.
        """
        whole = as_prefix(to_source_path(folder))
        return whole if (resolved(folder), whole) in self.names else as_prefix(self.source_path(folder))

    def place(self, source_path: str) -> str:
        """Return where the file of a source path is on this machine; the path as it is if it lies in no such folder."""
        fitting = [(prefix, folder) for folder, prefix in self.prefixes.items() if source_path.startswith(prefix)]
        prefix, folder = max(fitting, key=lambda pair: len(pair[0]), default=("", None))
        return str(folder / source_path.removeprefix(prefix)) if folder else source_path


async def named(client: EngineClient, folder: Folder) -> Folder:
    """Return a folder with the prefix that it had before, or its whole path, if it has none yet."""
    return folder if folder.prefix else replace(folder, prefix=(await fetch_names(client)).prefix(folder.path))


async def fetch_names(client: EngineClient) -> FolderNames:
    """Return what is known of synced folders."""
    known, mine = await client.folders(), machine_id()
    here = [folder for folder in known["folders"] if is_from_here(folder, mine)]
    names = frozenset((Path(folder["path"]), folder["prefix"]) for folder in here)
    return FolderNames(prefixes_here(here), frozenset(known["left_out"]), names)


def prefixes_here(folders: list[dict[str, Any]]) -> dict[Path, str]:
    """Return how the source paths of the folders' files begin, by folder; of two names the newer one counts."""
    return {Path(folder["path"]): folder["prefix"] for folder in sorted(folders, key=lambda folder: str(folder["at"]))}


def as_prefix(source_path: str) -> str:
    """Return how the source paths of what is below a folder begin."""
    return source_path.rstrip("/") + "/"


def meant_path(path: str) -> str:
    """Return the source path that a person means: that of what is here, or else the words as they stand."""
    here = Path(path).expanduser()
    return call(fetch_names).source_path(here) if here.exists() else composed(path)


def meant_prefix(folder: str) -> str:
    """Return how the source paths of what is below a folder begin, as `meant_path` has it."""
    return as_prefix(meant_path(folder))


def local_place(source_path: str | None) -> str:
    """Return where the file of a source path is on this machine, as far as that can be told."""
    return call(fetch_names).place(source_path) if source_path else ""


@lru_cache(maxsize=4096)
def resolved(folder: Path) -> Path:
    """Return what a folder is called without links; as it is where that cannot be known."""
    try:
        return ask(folder, folder.resolve)
    except OSError:
        return folder
