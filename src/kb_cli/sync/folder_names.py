"""Map local files to source paths: by their absolute path, or by the name of their synced folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from kb.api.stream_safe import composed
from kb.client.client import EngineClient
from kb.folders.timed_reads import ask
from kb_cli.runtime.engine_call import call
from kb_cli.runtime.exit_codes import UsageError
from kb_cli.runtime.files import absolute, to_source_path
from kb_cli.sync.folder_claim import is_from_here, machine_id

if TYPE_CHECKING:
    from kb_cli.sync.folder import Folder


@dataclass(frozen=True, slots=True)
class FolderNames:
    """The synced folders of this machine, and the files to skip.

    Args:
        prefixes: the prefix of the source paths for each folder, as `Path.resolve` returns it.
        left_out: source paths of files to skip.
        names: the folders with every prefix under which they were synced.
    """

    prefixes: Mapping[Path, str] = field(default_factory=dict)
    left_out: frozenset[str] = frozenset()
    names: frozenset[tuple[Path, str]] = frozenset()

    def source_path(self, path: Path | str) -> str:
        """Return the source path of a file or folder, as `kb sync` of the innermost folder around it would."""
        whole = absolute(path)
        for folder in (whole, *whole.parents) if self.prefixes else ():
            if prefix := self.prefixes.get(resolved(folder)):
                return composed(prefix + whole.relative_to(folder).as_posix()).removesuffix("/.")
        return to_source_path(whole)

    def prefix(self, folder: Path) -> str:
        """Return the prefix of the source paths for a folder to sync, the same as before.

        If it was ever synced under its absolute path, that prefix stays, so that a timer keeps working after a rename.
        """
        whole = as_prefix(to_source_path(folder))
        return whole if (resolved(folder), whole) in self.names else as_prefix(self.source_path(folder))

    def place(self, source_path: str) -> str:
        """Return the local file of a source path; the path unchanged if it is in no synced folder."""
        fitting = [(prefix, folder) for folder, prefix in self.prefixes.items() if source_path.startswith(prefix)]
        prefix, folder = max(fitting, key=lambda pair: len(pair[0]), default=("", None))
        return str(folder / source_path.removeprefix(prefix)) if folder else source_path


async def named(client: EngineClient, folder: Folder) -> Folder:
    """Return the folder with its previous prefix, or with its absolute path if it has none yet."""
    return folder if folder.prefix else replace(folder, prefix=(await fetch_names(client)).prefix(folder.path))


async def fetch_names(client: EngineClient) -> FolderNames:
    known, mine = await client.folders(), machine_id()
    here = [folder for folder in known["folders"] if is_from_here(folder, mine)]
    names = frozenset((Path(folder["path"]), folder["prefix"]) for folder in here)
    return FolderNames(
        {Path(folder["path"]): folder["prefix"] for folder in sorted(here, key=lambda folder: str(folder["at"]))},
        frozenset(known["left_out"]),
        names,
    )


def chosen_prefix(name: str | None) -> str:
    """Return the prefix for the name that the user chose, or an empty string if there is no choice."""
    if name is not None and not name.strip():
        raise UsageError("The name after --as is empty. Choose a name such as vault.")
    return as_prefix(composed(name.strip())) if name else ""


def as_prefix(source_path: str) -> str:
    return source_path.rstrip("/") + "/"


def meant_path(path: str) -> str:
    """Return the source path that the user means: the one of a local file, or the words unchanged."""
    here = Path(path).expanduser()
    return call(fetch_names).source_path(here) if here.exists() else composed(path)


def meant_prefix(folder: str) -> str:
    """Return the prefix of the source paths below a folder, resolved with `meant_path`."""
    return as_prefix(meant_path(folder))


def local_place(source_path: str | None) -> str:
    return call(fetch_names).place(source_path) if source_path else ""


@lru_cache(maxsize=4096)
def resolved(folder: Path) -> Path:
    """Return a folder without links; unchanged if it does not respond."""
    try:
        return ask(folder, folder.resolve)
    except OSError:
        return folder
