"""Backups that the engine makes by itself."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Final

from kb import clock
from kb.api.errors import Stopped, StoreError
from kb.maintenance.backup import back_up
from kb.maintenance.backup_storage import age_of_newest
from kb.settings import Settings
from kb.threads import BackgroundThread

logger = logging.getLogger(__name__)

RETRY_SECONDS: Final = 300.0
"""When a backup that failed is tried again."""

WAIT_SECONDS: Final = 3600.0
"""After how long it is looked again whether a backup is due: clocks are put back and forth."""


class BackupSchedule(BackgroundThread):
    """Makes a backup whenever the newest one is old enough; one that is not finished when it stops is none.

    Args:
        settings: those of the engine.
        folder: where the backups are.
    """

    def __init__(self, settings: Settings, folder: Path) -> None:
        super().__init__("kb-backup")
        self._settings = settings
        self._folder = folder

    def _run(self) -> None:
        pause = 0.0
        while not self._stopping.wait(pause):
            due = self._settings.backup_hours * 3600 - age_of_newest(self._folder)
            pause = min(due, WAIT_SECONDS) if due > 0 else self._back_up()

    def _back_up(self) -> float:
        """Make a backup; return for how long to wait then. While a clock is wrong no earlier backup goes."""
        try:
            keep = sys.maxsize if clock.own.look() else self._settings.backup_keep
            made = back_up(self._settings, self._folder, keep, self._checkpoint)
        except Stopped:
            return 0
        except StoreError as error:
            logger.error("no backup was made: %s", error)
            return RETRY_SECONDS
        logger.info("backup %s made", made.path)
        return 0

    def _checkpoint(self) -> None:
        if self._stopping.is_set():
            raise Stopped
