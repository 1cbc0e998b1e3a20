"""What a restore has unpacked takes its place; what is there is set aside.

A restore unpacks into folders `restoring-DATABASE-…` beside what it will replace: a folder may hold several databases.
Once everything is unpacked it is finished in any case: by itself, by the next start of the engine, or by the next
command that works on the data.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kb.api.errors import StoreError
from kb.filesystem import sync
from kb.maintenance.inbox import TAKEN
from kb.running_engine import lock_path
from kb.settings import Settings
from kb.store.engine_lock import sole_user
from kb.store.open import database_lock, database_path, is_postgres

RESTORING: Final = "restoring-"
ASIDE: Final = "before-restore-"
PART: Final = ".part"
STAMP: Final = r"\d{8}T\d{12}"
LOGS: Final = ("-wal", "-shm", "-journal")


def complete_restore(settings: Settings) -> list[Path]:
    """Finish a restore that has unpacked and verified everything; return the folders of what was set aside.

    For who has the locks of the data directory and of the database, before the database is opened. What is in
    PostgreSQL is never restored so.

    Raises:
        StoreError: something came into a place that was cleared before.
    """
    if is_postgres(settings.database_url):
        return []
    places = RestoreFolders.of(settings)
    if places.are_unpacked:  # the database that comes does not hold all that was taken from the inbox
        (settings.data_dir / TAKEN).unlink(missing_ok=True)
    return places.move()


def finish_restore(settings: Settings) -> None:
    """Finish a restore that was cut off, if there is one, for who does not have the locks.

    Raises:
        StoreError: it is under way, or something else uses the data, or came into a place that was cleared before.
    """
    if is_postgres(settings.database_url):
        return
    places = RestoreFolders.of(settings)
    if places.are_unpacked:
        with sole_user(lock_path(settings.data_dir)), sole_user(database_lock(places.database)):
            complete_restore(settings)


@dataclass(frozen=True, slots=True)
class RestoreFolders:
    """What a restore replaces."""

    database: Path
    files: Path
    staging: Path

    @classmethod
    def of(cls, settings: Settings) -> RestoreFolders:
        database = database_path(settings.database_url, settings.data_dir).resolve()
        return cls(database, settings.files_dir, settings.staging_dir)

    @property
    def roots(self) -> list[Path]:
        """The folders that things move in; that of the database comes last."""
        return list(dict.fromkeys([self.files.parent.resolve(), self.database.parent]))

    @property
    def are_unpacked(self) -> bool:
        """Whether there is something to move in."""
        return bool(self._folders(self.roots[-1]))

    @property
    def unfinished(self) -> list[Path]:
        """What was not unpacked to its end."""
        parts = [folder for root in self.roots for folder in self._folders(root, PART)]
        files, database = self.roots[0], self.roots[-1]  # whose folder gets its name last
        return [*parts, *(folder for folder in self._folders(files) if not (database / folder.name).exists())]

    @property
    def prefix(self) -> str:
        """How the names of folders begin that this is unpacked into."""
        return f"{RESTORING}{self.database.name}-"

    def _folders(self, root: Path, ending: str = "") -> list[Path]:
        name = re.compile(f"{re.escape(self.prefix)}{STAMP}{re.escape(ending)}")
        return [path for path in (root.iterdir() if root.is_dir() else ()) if name.fullmatch(path.name)]

    def move(self) -> list[Path]:
        """Set aside what is there, and move in what was unpacked."""
        aside: list[Path] = []
        for name in [folder.name for folder in self._folders(self.roots[-1])]:
            for root in self.roots:
                if (root / name).is_dir():
                    aside.append(root / name.replace(RESTORING, ASIDE, 1))
                    _swap(root / name, aside[-1])
        return [folder for folder in aside if folder.exists()]

    def remove_parts(self) -> None:
        """Remove what was not unpacked to its end."""
        for folder in self.unfinished:
            shutil.rmtree(folder, ignore_errors=True)


def _swap(unpacked: Path, aside: Path) -> None:
    """Set aside what is in the places of what was unpacked, and move that in; what was begun before is finished.

    Raises:
        StoreError: something came into a place that was cleared before.
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
    elif old.is_dir() and not any(old.iterdir()):  # made by a start of an earlier kb
        old.rmdir()
    else:
        raise StoreError(
            f"A restore was cut off when it had set aside {target}, and something else has become {old} since: move"
            " that elsewhere, and the restore is finished."
        )
