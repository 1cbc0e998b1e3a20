"""Verify backups, or restore one.

A restore unpacks next to the data that it will replace, verifies the unpacked data, sets the existing data aside, and
moves the new data into place (`kb.backup.swap`).
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from shutil import disk_usage
from typing import BinaryIO

from pydantic import SecretStr

from kb.api.errors import StoreError
from kb.api.overview_models import Seal
from kb.backup.objects import set_aside
from kb.backup.prune import version_fault
from kb.backup.storage import (
    DATABASE,
    MANIFEST,
    OBJECTS,
    BackupManifest,
    FoundBackup,
    OpenBackup,
    copy,
    known_source,
    object_name,
    opened_backups,
    source_of,
    stream_digest,
)
from kb.backup.swap import PART, RestoreFolders, complete_restore
from kb.backup.verify import verify_data
from kb.blobs.folder import KeptFiles
from kb.filesystem import give_to_owner, make_folder, sync
from kb.running_engine import lock_path
from kb.settings import Settings
from kb.store.engine_lock import database_lock, sole_user
from kb.store.sqlite.backup import Snapshot, find_damage, users_of_files
from kb.store.sqlite.foreign_objects import refuse_foreign
from kb.store.sqlite.probe import probe


@dataclass(frozen=True, slots=True)
class Restored:
    """The result of a restore.

    Args:
        name: the backup.
        manifest: its contents.
        seal: the state of its seal.
        set_aside: the folders with the earlier data.
        left_out: the damaged files that were left out, each with what needed it.
    """

    name: str
    manifest: BackupManifest
    seal: Seal
    set_aside: list[Path]
    left_out: list[str]


def verify_backups(
    path: Path,
    on_step: Callable[[str], None] = lambda _: None,
    scratch: Path | None = None,
    key: SecretStr | None = None,
    files: Path | None = None,
) -> Iterator[str]:
    """Yield the faults of the backups at `path`: checks every digest, and restores the newest one in a scratch folder.

    The scratch folder is in `scratch`, otherwise in the folder for temporary files. A backup with a damaged manifest or
    another key's seal is itself a fault; the other backups are still checked. Damaged files are set aside, so that the
    next backup copies them from `files`, the folder of kept files. Each fault names its remedy.

    Raises:
        StoreError: `path` has no backups.
    """
    seen: dict[str, str | None] = {}
    with opened_backups(path, key) as backups:
        for found_backup in backups:
            try:
                backup = found_backup.open()
            except StoreError as error:
                if found_backup.path.exists():
                    yield str(error)
                continue
            on_step(f"reading {backup.name}")
            faults = [f"{name} is {fault}; {_remedy(name, files)}" for name, fault in _damaged_parts(backup, seen)]
            if backup.is_there():  # the engine may have pruned it while it was read
                yield from (f"{backup.name}: {fault}" for fault in faults)
            if found_backup is backups[-1]:
                on_step(f"restoring {backup.name} in a temporary folder")
                yield from (f"{backup.name}: {fault}" for fault in _tried(backup, scratch))
    if path.is_dir():
        damaged = {
            Path(name).name for name, digest in seen.items() if name.startswith(OBJECTS) and digest != Path(name).name
        }
        set_aside(path.parent if (path / MANIFEST).exists() else path, damaged)


def _remedy(name: str, files: Path | None) -> str:
    """Return what to do about a damaged file of a backup."""
    if not name.startswith(OBJECTS):
        return "make a new backup with 'kb backup'; to restore, choose another backup"
    digest = Path(name).name
    if files and KeptFiles(files).has(digest):
        return "'kb backup' copies it again for all backups"
    return "the data folder does not have it; 'kb backup restore --without-damaged' restores everything else"


def restore_backup(
    settings: Settings,
    path: Path,
    on_step: Callable[[str], None] = lambda _: None,
    *,
    unsealed: bool = False,
    unverified: bool = False,
    without_damaged: bool = False,
) -> Restored:
    """Replace the data with the newest backup at `path`; the existing data is set aside.

    If KB_BACKUP_KEY is set, the backup must be sealed with it, unless `unsealed` is true. A sealed backup needs the
    key, unless `unverified` is true. With `without_damaged`, files that are damaged or missing are left out.

    Raises:
        StoreError: the engine runs, or the backup is damaged, not sealed or of a later kb. The existing data is
            unchanged.
    """
    with opened_backups(path, settings.backup_key) as backups:
        newest = _newest(_own(backups, known_source(settings.data_dir)))
        if settings.backup_key and newest.seal != "sealed" and not unsealed:
            raise StoreError(
                f"The backup {newest.name} has no seal, although KB_BACKUP_KEY is set: it is older than the key, or was"
                " changed. If you trust everybody with write access to it, add --unsealed."
            )
        if newest.seal == "unchecked" and not unverified:
            raise StoreError(
                f"The backup {newest.name} is sealed, but KB_BACKUP_KEY is not set, so kb cannot detect changes by"
                " others. Set KB_BACKUP_KEY. If the key is lost and you trust everybody with write access to the"
                " backup, add --unverified."
            )
        return _restore(settings, newest, on_step, without_damaged=without_damaged)


def _own(backups: Sequence[FoundBackup], source: str | None) -> Sequence[FoundBackup]:
    """Return the backups of this data folder; otherwise all, if they are of one data folder.

    Raises:
        StoreError: they are of several data folders, and nobody said of which one.
    """
    by_source = {source_of(each.path): each for each in backups}
    if own := [each for each in backups if source and source_of(each.path) in ("", source)]:
        return own
    if len(by_source.keys() - {""}) > 1:
        names = " or ".join(str(each.path) for each in by_source.values())
        raise StoreError(f"The folder has backups of {len(by_source)} data folders. Name the one to restore: {names}.")
    return backups


def _newest(backups: Sequence[FoundBackup]) -> OpenBackup:
    try:
        return backups[-1].open()
    except StoreError as error:
        if len(backups) == 1:
            raise
        raise StoreError(f"{error} To restore an earlier backup, name it: {backups[-2].path}.") from error


def seals(path: Path, key: SecretStr | None) -> Iterator[tuple[str, Seal]]:
    """Yield the usable backups at `path` and the state of their seals. Raises the same errors as `verify_backups`."""
    with opened_backups(path, key) as backups:
        for found_backup in backups:
            with suppress(StoreError):
                backup = found_backup.open()
                yield backup.name, backup.seal


def _restore(
    settings: Settings, backup: OpenBackup, on_step: Callable[[str], None], *, without_damaged: bool
) -> Restored:
    if fault := version_fault(backup.manifest, backup.name):
        raise fault
    left_out: list[str] | None = [] if without_damaged else None
    places = RestoreFolders.of(settings)
    for folder in {places.files.parent, places.database.parent, settings.data_dir}:
        make_folder(folder, "KB_DATA_DIR")
    with sole_user(lock_path(settings.data_dir)), sole_user(database_lock(places.database)):
        complete_restore(settings)
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
        try:
            on_step(f"unpacking {backup.name}")
            names = _unpack_beside(places, backup, stamp, left_out)
        except OSError as error:
            raise StoreError(f"kb cannot restore the backup {backup.name}: {error.strerror or error}.") from error
        finally:
            places.remove_parts()
        return Restored(backup.name, backup.manifest, backup.seal, complete_restore(settings), names)


def _unpack_beside(places: RestoreFolders, backup: OpenBackup, stamp: str, left_out: list[str] | None) -> list[str]:
    """Unpack and verify a backup; it is complete when the last folder has its final name.

    Return the documents and jobs whose files were left out.
    """
    parts = [root / f"{places.prefix}{stamp}{PART}" for root in places.roots]
    for part in parts:
        part.mkdir(mode=0o700)
    files, database = parts[0], parts[-1] / places.database.name
    unpack(backup, database, files / places.files.name, files / places.staging.name, left_out)
    if damage := find_damage(database):
        raise StoreError(f"The backup {backup.name} is damaged: {damage}.")
    refuse_foreign(database, f"the backup {backup.name}")
    names = users_of_files(database, left_out or [])
    for root, part in zip(places.roots, parts, strict=True):
        sync(part)
        give_to_owner(root, part)
        part.rename(part.with_suffix(""))
        sync(root)
    return names


def unpack(backup: OpenBackup, database: Path, files: Path, staging: Path, left_out: list[str] | None = None) -> None:
    """Unpack a backup, and compare it with its manifest.

    If `left_out` is given, it receives the digests of files that are damaged or missing, and the rest is unpacked.

    Raises:
        StoreError: the backup is damaged.
    """
    manifest = backup.manifest
    originals = KeptFiles(files)
    if fault := _unpack(backup, DATABASE, manifest.database, database):
        raise StoreError(f"The database of the backup {backup.name} is damaged: {fault}. Choose another backup.")
    targets = [(digest, originals.path(digest)) for digest in manifest.originals]
    targets += [(digest, staging / name) for name, digest in manifest.staged.items()]
    for digest, target in targets:
        if fault := _unpack(backup, object_name(digest), digest, target):
            target.unlink(missing_ok=True)
            if left_out is None:
                raise StoreError(
                    f"The backup {backup.name} is damaged: {object_name(digest)}: {fault}. 'kb backup' copies it again"
                    " if the data folder still has the file. To restore everything else, add --without-damaged."
                )
            left_out.append(digest)
    for folder in (files, staging):
        folder.mkdir(exist_ok=True, mode=0o700)
        for path in (*folder.glob("??/"), folder):
            sync(path)


def _unpack(backup: OpenBackup, name: str, digest: str, target: Path) -> str | None:
    """Unpack a file; return its fault, if it is damaged or missing."""
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        file = backup.open(name)
    except OSError as error:
        return error.strerror or str(error)
    with file:
        check_room(file, target)
        try:
            return None if copy(file, target) == digest else "it was changed"
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return "it cannot be read"


def check_room(file: BinaryIO, target: Path) -> None:
    """Refuse a file that would not fit on the disk, before writing any of it.

    Raises:
        OSError: the file is too large.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    if size > disk_usage(target.parent).free:
        raise OSError(errno.ENOSPC, f"the disk has no space for {target.name} ({size:,} bytes)")


def _damaged_parts(backup: OpenBackup, seen: dict[str, str | None]) -> Iterator[tuple[str, str]]:
    """Yield the names and faults of damaged files of a backup; `seen` has the digests of files already read."""
    objects = {object_name(digest): digest for digest in backup.manifest.objects}
    for name, digest in ({DATABASE: backup.manifest.database} | objects).items():
        key = f"{backup.name}/{name}" if name == DATABASE else name
        if key not in seen:
            seen[key] = _digest(backup, name)
        if seen[key] != digest:
            yield name, "missing" if seen[key] is None else "damaged"


def _digest(backup: OpenBackup, name: str) -> str | None:
    try:
        with backup.open(name) as file:
            return stream_digest(file)
    except OSError:
        return None


def _tried(backup: OpenBackup, place: Path | None) -> Iterator[str]:
    """Yield the faults of a backup by restoring it in a scratch folder."""
    with tempfile.TemporaryDirectory(dir=place) as scratch:
        settings = Settings(data_dir=Path(scratch), model_dir=None)
        database = settings.database_path
        try:
            unpack(backup, database, settings.files_dir, settings.staging_dir)
            refuse_foreign(database, "the database")
            yield from probe(database)
            yield from verify_data(settings)
            with closing(Snapshot(database)) as moment, moment.taken():
                counts = moment.counts()
        except (OSError, StoreError) as error:
            yield str(error)
        else:
            if counts != backup.manifest.counts:
                yield f"it contains {counts}, but its manifest says {backup.manifest.counts}"
