"""A backup is tried, or takes the place of what is there.

A restore unpacks into folders `restoring-…` beside what it will replace, verifies what it unpacked, sets aside what is
there, and moves. Once everything is unpacked it is finished in any case: by itself, or by the next start of the engine.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kb.api.errors import StoreError
from kb.blobs.folder import KeptFiles
from kb.filesystem import give_to_owner_of, make_folder, sync
from kb.maintenance.archive import DATABASE, copy, digest_of, object_name, opened_backups
from kb.maintenance.doctor import verify_data
from kb.maintenance.inbox import TAKEN
from kb.running import lock_of
from kb.settings import Settings
from kb.store.lock import sole_user
from kb.store.open import database_lock, database_path, is_postgres
from kb.store.sqlite.backup import Moment, damage_of
from kb.store.sqlite.probe import probe
from kb.store.sqlite.schema import SCHEMA_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kb.maintenance.archive import Backup, Manifest

RESTORING: Final = "restoring-"
ASIDE: Final = "before-restore-"
PART: Final = ".part"
LOGS: Final = ("-wal", "-shm", "-journal")


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restore did.

    Args:
        name: the backup.
        manifest: what it is made of.
        set_aside: the folders with what was there before.
    """

    name: str
    manifest: Manifest
    set_aside: list[Path]


def verify_backups(
    path: Path, on_step: Callable[[str], None] = lambda _: None, scratch: Path | None = None
) -> Iterator[str]:
    """Yield what is wrong with the backups at `path`: every digest, and the newest one restored in a scratch place.

    That is a folder of its own in `scratch`, or where temporary files are.

    Raises:
        StoreError: there is none, or the manifest of one is damaged.
    """
    seen: dict[str, str | None] = {}
    with opened_backups(path) as backups:
        for backup in backups:
            on_step(f"reading {backup.name}")
            faults = list(_damaged_parts(backup, seen))
            if backup.is_there():  # and was all the time: the engine makes backups meanwhile
                yield from (f"{backup.name}: {fault}" for fault in faults)
        on_step(f"restoring {backups[-1].name} in a scratch place")
        yield from (f"{backups[-1].name}: {fault}" for fault in _tried(backups[-1], scratch))


def restore_backup(settings: Settings, path: Path, on_step: Callable[[str], None] = lambda _: None) -> Restored:
    """Put the newest backup at `path` in the place of the data that is there, which is set aside.

    Raises:
        StoreError: the engine runs, or the backup is damaged or of a later kb. What was there is untouched.
    """
    with opened_backups(path) as backups:
        return _restore(settings, backups[-1], on_step)


def _restore(settings: Settings, backup: Backup, on_step: Callable[[str], None]) -> Restored:
    if backup.manifest.schema > SCHEMA_VERSION:
        raise StoreError(f"The backup {backup.name} was made by a later kb ({backup.manifest.kb}): use that one.")
    places = _Places.of(settings)
    for folder in {places.files.parent, places.database.parent, settings.data_dir}:
        make_folder(folder, "KB_DATA_DIR")
    with sole_user(lock_of(settings.data_dir)), sole_user(database_lock(places.database)):
        complete_restore(settings)
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
        try:
            on_step(f"unpacking {backup.name}")
            places.unpack(backup, stamp)
        except OSError as error:
            raise StoreError(f"The backup {backup.name} cannot be restored: {error.strerror or error}.") from error
        finally:
            places.remove_parts()
        return Restored(backup.name, backup.manifest, complete_restore(settings))


def complete_restore(settings: Settings) -> list[Path]:
    """Finish a restore that has unpacked and verified everything; return the folders of what was set aside.

    For who has the locks of the data directory and of the database, before the database is opened. What is in
    PostgreSQL is never restored so.
    """
    if is_postgres(settings.database_url):
        return []
    places = _Places.of(settings)
    if places.are_unpacked:  # the database that comes does not hold all that was taken from the inbox
        (settings.data_dir / TAKEN).unlink(missing_ok=True)
    return places.move()


def finish_restore(settings: Settings) -> None:
    """Finish a restore that was cut off, if there is one, for who does not have the locks.

    Raises:
        StoreError: it is under way, or something else uses the data.
    """
    if is_postgres(settings.database_url):
        return
    places = _Places.of(settings)
    if places.are_unpacked:
        with sole_user(lock_of(settings.data_dir)), sole_user(database_lock(places.database)):
            complete_restore(settings)


@dataclass(frozen=True, slots=True)
class _Places:
    """What a restore replaces."""

    database: Path
    files: Path
    staging: Path

    @classmethod
    def of(cls, settings: Settings) -> _Places:
        database = database_path(settings.database_url, settings.data_dir).resolve()
        return cls(database, settings.files_dir, settings.staging_dir)

    @property
    def _roots(self) -> list[Path]:
        """The folders that things move in; that of the database comes last."""
        return list(dict.fromkeys([self.files.parent.resolve(), self.database.parent]))

    @property
    def are_unpacked(self) -> bool:
        """Whether there is something to move in."""
        return any(self._roots[-1].glob(f"{RESTORING}*[0-9]"))

    def unpack(self, backup: Backup, stamp: str) -> None:
        """Unpack and verify a backup; it is complete when the last folder has its name."""
        parts = [root / f"{RESTORING}{stamp}{PART}" for root in self._roots]
        for part in parts:
            part.mkdir(mode=0o700)
        files, database = parts[0], parts[-1] / self.database.name
        unpack(backup, database, files / self.files.name, files / self.staging.name)
        if damage := damage_of(database):
            raise StoreError(f"The backup {backup.name} is damaged: {damage}.")
        for root, part in zip(self._roots, parts, strict=True):
            sync(part)
            give_to_owner_of(root, part)
            part.rename(part.with_suffix(""))
            sync(root)

    def move(self) -> list[Path]:
        """Set aside what is there, and move in what was unpacked."""
        aside: list[Path] = []
        for name in [each.name for each in self._roots[-1].glob(f"{RESTORING}*[0-9]")]:
            for root in self._roots:
                if (root / name).is_dir():
                    aside.append(root / name.replace(RESTORING, ASIDE))
                    _swap(root / name, aside[-1])
        return [folder for folder in aside if folder.exists()]

    def remove_parts(self) -> None:
        """Remove what was not unpacked to its end."""
        for root in self._roots:
            for part in root.glob(f"{RESTORING}*{PART}"):
                shutil.rmtree(part, ignore_errors=True)


def unpack(backup: Backup, database: Path, files: Path, staging: Path) -> None:
    """Write what a backup holds, and compare it with the manifest.

    Raises:
        StoreError: it is not what it was.
    """
    manifest = backup.manifest
    originals = KeptFiles(files)
    _unpack(backup, DATABASE, manifest.database, database)
    for digest in manifest.originals:
        _unpack(backup, object_name(digest), digest, originals.path(digest))
    for name, digest in manifest.staged.items():
        _unpack(backup, object_name(digest), digest, staging / name)
    for folder in (files, staging):
        folder.mkdir(exist_ok=True, mode=0o700)
        for each in (*folder.glob("??/"), folder):
            sync(each)


def _unpack(backup: Backup, name: str, digest: str, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with backup.open(name) as file:
        if copy(file, target) != digest:
            raise StoreError(f"The backup {backup.name} is damaged: {name} is not what it was.")


def _swap(unpacked: Path, aside: Path) -> None:
    """Set aside what is in the places of what was unpacked, and move that in; what was begun before is finished."""
    root = unpacked.parent
    aside.mkdir(exist_ok=True, mode=0o700)
    for new in sorted(unpacked.iterdir()):
        for old in (root / new.name, *(root / f"{new.name}{ending}" for ending in LOGS)):
            if old.exists():
                old.rename(aside / old.name)
        for folder in (aside, root):
            sync(folder)
        new.rename(root / new.name)
    sync(root)
    unpacked.rmdir()
    if not any(aside.iterdir()):
        aside.rmdir()


def _damaged_parts(backup: Backup, seen: dict[str, str | None]) -> Iterator[str]:
    """Yield the parts that are not what they were; `seen` are the files that were read before."""
    objects = {object_name(digest): digest for digest in backup.manifest.objects}
    for name, digest in ({DATABASE: backup.manifest.database} | objects).items():
        key = f"{backup.name}/{name}" if name == DATABASE else name
        if key not in seen:
            seen[key] = _digest(backup, name)
        if seen[key] != digest:
            yield f"{name} is {'not there' if seen[key] is None else 'not what it was'}"


def _digest(backup: Backup, name: str) -> str | None:
    try:
        with backup.open(name) as file:
            return digest_of(file)
    except OSError:
        return None


def _tried(backup: Backup, place: Path | None) -> Iterator[str]:
    """Yield what is wrong with a backup that is restored in a scratch place."""
    with tempfile.TemporaryDirectory(dir=place) as scratch:
        settings = Settings(data_dir=Path(scratch), model_dir=None)
        database = database_path(None, settings.data_dir)
        try:
            unpack(backup, database, settings.files_dir, settings.staging_dir)
            yield from probe(database)
            yield from verify_data(settings)
            with closing(Moment(database)) as moment, moment.taken():
                counts = moment.counts()
        except (OSError, StoreError) as error:
            yield str(error)
        else:
            if counts != backup.manifest.counts:
                yield f"it holds {counts}, and the manifest says {backup.manifest.counts}"
