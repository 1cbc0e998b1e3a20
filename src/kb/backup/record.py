"""The results of backups, for metrics and messages."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from kb.attention import BackupFacts
from kb.backup.prune import is_good
from kb.backup.storage import age_of_newest, known_source, made_at, own_backups
from kb.settings import Settings


class BackupRecord:
    """The failures of backups since the start, and the newest good backup, whose manifest is read once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._failure: str | None = None
        self._failures = 0
        self._known: dict[Path, float] = {}

    def failed(self, reason: str) -> None:
        """Record a failed backup."""
        with self._lock:
            self._failure = reason
            self._failures += 1

    def succeeded(self) -> None:
        """Record a backup; the earlier failures are over."""
        with self._lock:
            self._failure = None

    def facts(self, settings: Settings) -> BackupFacts | None:
        """Return the state of backups, or None if the database has its own tools for them."""
        if settings.store_kind.is_shared:
            return None
        folder = settings.backup_dir
        age, good_at = float("inf"), 0.0
        try:
            source = known_source(settings.data_dir)
            if folder:
                age, good_at = age_of_newest(folder, source), self._good_at(own_backups(folder, source))
        except OSError as error:
            self._failure = self._failure or f"{folder}: {error.strerror or error}"
        return BackupFacts(
            folder=str(folder) if folder else None,
            hours=settings.backup_hours,
            age=age,
            failure=self._failure,
            failures=self._failures,
            good_at=good_at,
        )

    def _good_at(self, folders: Sequence[Path]) -> float:
        """Return the time of the newest good backup; 0 without one."""
        self._known = {folder: time for folder, time in self._known.items() if folder in folders}
        for folder in reversed(folders):
            if folder not in self._known:
                self._known[folder] = made_at(folder).timestamp() if is_good(folder) else 0.0
            if time := self._known[folder]:
                return time
        return 0.0
