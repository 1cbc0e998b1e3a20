"""Scheduled backups by the engine."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Final

from kb import clock
from kb.api.errors import Stopped, StoreError
from kb.backup.make import back_up
from kb.backup.record import BackupRecord
from kb.backup.storage import age_of_newest, make_source
from kb.settings import Settings
from kb.threads import BackgroundThread

logger = logging.getLogger(__name__)

RETRY_SECONDS: Final = 300.0
"""The pause after a failed backup."""

WAIT_SECONDS: Final = 3600.0
"""The longest pause between two checks whether a backup is due, because clocks may be changed."""


class BackupSchedule(BackgroundThread):
    """Makes a backup as soon as the newest one is old enough; an unfinished one is discarded at the stop.

    Args:
        settings: the settings of the engine.
        folder: the backup folder.
        record: receives the results.
    """

    def __init__(self, settings: Settings, folder: Path, record: BackupRecord | None = None) -> None:
        super().__init__("kb-backup")
        self._record = record or BackupRecord()
        self._settings = settings
        self._folder = folder

    def _run(self) -> None:
        pause = 0.0
        while not self._stopping.wait(pause):
            try:
                due = self._settings.backup_hours * 3600 - age_of_newest(
                    self._folder, make_source(self._settings.data_dir)
                )
            except OSError as error:
                pause = self._fail(f"{self._folder}: {error.strerror or error}")
                continue
            pause = min(due, WAIT_SECONDS) if due > 0 else self._back_up()

    def _back_up(self) -> float:
        """Make a backup; return the pause after it. While the clock is wrong, no earlier backup is removed."""
        try:
            keep = sys.maxsize if clock.own.look() else self._settings.backup_keep
            made = back_up(self._settings, self._folder, keep, self._checkpoint)
        except Stopped:
            return 0
        except StoreError as error:
            return self._fail(str(error))
        self._record.succeeded()
        for warning in made.warnings:
            logger.warning("%s: %s", made.path.name, warning)
        logger.info("made the backup %s", made.path)
        return 0

    def _fail(self, reason: str) -> float:
        logger.error("could not make a backup: %s", reason)
        self._record.failed(reason)
        return RETRY_SECONDS

    def _checkpoint(self) -> None:
        if self._stopping.is_set():
            raise Stopped
