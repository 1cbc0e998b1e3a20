"""Remove old backups of a folder. Only good backups take the place of good ones."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

from kb.api.errors import StoreError
from kb.backup.storage import DAMAGED, NAME, PART, BackupManifest, OpenBackup, backup_folders, objects_in, own_backups
from kb.store.sqlite.migrate import OF_DEVELOPMENT, of_development
from kb.store.sqlite.schema import SCHEMA_VERSION

logger = logging.getLogger(__name__)


def version_fault(manifest: BackupManifest, name: str) -> StoreError | None:
    """Return the error for a backup that this kb cannot restore, because another version made it; otherwise None."""
    if manifest.schema > SCHEMA_VERSION:
        return StoreError(f"A newer version of kb made the backup {name}. Restore it with kb {manifest.kb}.")
    if manifest.schema in OF_DEVELOPMENT:
        return of_development(f"the database of the backup {name}", manifest.schema)
    return None


def is_good(folder: Path) -> bool:
    """Return whether this kb could restore documents from a backup, as its manifest says."""
    try:
        manifest = OpenBackup(folder).manifest
    except StoreError:
        return False
    return not version_fault(manifest, folder.name) and manifest.counts.get("documents", 0) > 0


def prune(root: Path, keep: int, source: str | None = None) -> None:
    """Remove all good backups of a data folder but the newest `keep`, and the same for others; then the unneeded files.

    Backups that this kb cannot restore, and empty ones, may be of another database.
    """
    good, others = list[Path](), list[Path]()
    for folder in own_backups(root, source):
        (good if is_good(folder) else others).append(folder)
    for folder in (*good[:-keep], *others[:-keep]):
        shutil.rmtree(folder.rename(folder.with_name(f"{folder.name}{PART}")))
    for part in root.glob(f"*{PART}"):  # interrupted backups
        if NAME.fullmatch(part.stem):
            shutil.rmtree(part, ignore_errors=True)
    try:
        needed = set().union(*(OpenBackup(folder).manifest.objects for folder in backup_folders(root)))
    except StoreError as error:
        logger.warning("files of old backups are not removed: %s", error)
        return
    for path in objects_in(root):
        is_spare = path.name.endswith(DAMAGED) and not path.with_suffix("").exists()
        if (path.stem if is_spare else path.name) not in needed:
            path.unlink()
