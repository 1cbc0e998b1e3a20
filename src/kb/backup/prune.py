"""Delete old backups."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

from kb.api.errors import StoreError
from kb.backup.storage import NAME, PART, OpenBackup, backup_folders, objects_in

logger = logging.getLogger(__name__)


def prune(root: Path, keep: int) -> None:
    """Remove all backups of a folder but the newest `keep`, then the files that no backup needs."""
    for folder in backup_folders(root)[:-keep]:
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
        if path.name not in needed:
            path.unlink()
