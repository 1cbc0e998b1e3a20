"""Move restored data into place and set the existing data aside.

A restore unpacks into folders `restoring-DATABASE-…` next to the data that it will replace, because a folder may hold
several databases. Once everything is unpacked, the restore is always completed: by its own command, by the next start
of the engine, or by the next command that works on the data.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kb.api.errors import StoreError
from kb.filesystem import sync
from kb.running_engine import lock_path
from kb.settings import Settings
from kb.store.engine_lock import database_lock, sole_user

RESTORING: Final = "restoring-"
ASIDE: Final = "before-restore-"
PART: Final = ".part"
STAMP: Final = r"\d{8}T\d{12}"
TAKEN: Final = "inbox.json"
"""The files that earlier versions of kb took from the inbox."""

LOGS: Final = ("-wal", "-shm", "-journal")


def complete_restore(settings: Settings) -> list[Path]:
    """Complete a restore that has unpacked and verified everything; return the folders with the data set aside.

    The caller must hold the locks of the data folder and the database, and must not have opened the database. A shared
    database is never restored this way.

    Raises:
        StoreError: a path that was cleared is in use again, or the disk refuses.
    """
    if settings.store_kind.is_shared:
        return []
    places = RestoreFolders.of(settings)
    places.remove_parts()
    if places.are_unpacked:  # the restored database may lack files that were taken from the inbox
        (settings.data_dir / TAKEN).unlink(missing_ok=True)
    try:
        return places.move()
    except OSError as error:
        raise StoreError(
            f"A restore is unpacked, but kb cannot move it into place: {error.strerror or error}. Fix that and"
            " start kb: it then finishes the restore. The previous data is still there."
        ) from error


def finish_restore(settings: Settings) -> None:
    """Complete an interrupted restore, if any; the caller must not hold the locks.

    Raises:
        StoreError: the restore is still running, the data is in use, or a path that was cleared is in use again.
    """
    if settings.store_kind.is_shared:
        return
    places = RestoreFolders.of(settings)
    if places.are_unpacked:
        with sole_user(lock_path(settings.data_dir)), sole_user(database_lock(places.database)):
            complete_restore(settings)


@dataclass(frozen=True, slots=True)
class RestoreFolders:
    """The paths that a restore replaces."""

    database: Path
    files: Path
    staging: Path

    @classmethod
    def of(cls, settings: Settings) -> RestoreFolders:
        database = settings.database_path.resolve()
        return cls(database, settings.files_dir, settings.staging_dir)

    @property
    def roots(self) -> list[Path]:
        """The folders in which data is moved; the one of the database is last."""
        return list(dict.fromkeys([self.files.parent.resolve(), self.database.parent]))

    @property
    def are_unpacked(self) -> bool:
        """Whether unpacked data is ready to move into place."""
        return bool(self._folders(self.roots[-1]))

    @property
    def unfinished(self) -> list[Path]:
        """Folders that were not completely unpacked."""
        parts = [folder for root in self.roots for folder in self._folders(root, PART)]
        files, database = self.roots[0], self.roots[-1]  # the folder of the database is renamed last
        return [*parts, *(folder for folder in self._folders(files) if not (database / folder.name).exists())]

    @property
    def prefix(self) -> str:
        """The prefix of the folders that this database is unpacked into."""
        return f"{RESTORING}{self.database.name}-"

    def _folders(self, root: Path, ending: str = "") -> list[Path]:
        name = re.compile(f"{re.escape(self.prefix)}{STAMP}{re.escape(ending)}")
        return [path for path in (root.iterdir() if root.is_dir() else ()) if name.fullmatch(path.name)]

    def move(self) -> list[Path]:
        """Set the existing data aside, and move the unpacked data into place."""
        aside: list[Path] = []
        for name in [folder.name for folder in self._folders(self.roots[-1])]:
            for root in self.roots:
                if (root / name).is_dir():
                    aside.append(root / name.replace(RESTORING, ASIDE, 1))
                    _swap(root / name, aside[-1])
        return [folder for folder in aside if folder.exists()]

    def remove_parts(self) -> None:
        """Remove folders that were not completely unpacked."""
        for folder in self.unfinished:
            shutil.rmtree(folder, ignore_errors=True)


def _swap(unpacked: Path, aside: Path) -> None:
    """Set aside the existing data, and move the unpacked data into place; complete a swap that has begun.

    Raises:
        StoreError: a path that was cleared is in use again.
    """
    root = unpacked.parent
    aside.mkdir(exist_ok=True, mode=0o700)
    for new in sorted(unpacked.iterdir()):
        for old in (root / new.name, *(root / f"{new.name}{ending}" for ending in LOGS)):
            if old.exists():
                _set_aside(old, aside / old.name)
        for folder in (aside, root):
            sync(folder)
        new.rename(root / new.name)
    sync(root)
    unpacked.rmdir()
    if not any(aside.iterdir()):
        aside.rmdir()


def _set_aside(old: Path, target: Path) -> None:
    if not target.exists():
        old.rename(target)
    elif old.is_dir() and not any(old.iterdir()):  # made by the start of an earlier kb
        old.rmdir()
    else:
        raise StoreError(
            f"An interrupted restore had moved the data to {target}, and since then new data is in {old}. Move {old}"
            " elsewhere and start again: kb then finishes the restore."
        )
