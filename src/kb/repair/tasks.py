"""Backups and checks on request: one at a time, in a process of its own."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, Self

from pydantic import SecretStr

from kb.api.errors import MaintenanceRunning, NoBackupFolder, StoreError
from kb.api.overview_models import Backup, Maintenance, MaintenanceAction, Task
from kb.backup import storage
from kb.backup.record import BackupRecord
from kb.clock import shown
from kb.folders.timed_reads import Latest
from kb.settings import Settings, reveal

logger = logging.getLogger(__name__)

STOP_SECONDS: Final = 2.0
"""The time that the process may take to remove unfinished files."""

LIST_SECONDS: Final = 10.0
"""How long kb waits for the disk of the backups, because somebody waits for the page."""

OF_BACKUPS: Final = ("back-up", "verify")
SECRET: Final = {"api_key", "api_key_file", "backup_key"}
CUT_OFF: Final = "It was interrupted before it finished. Start it again."


class MaintenanceTasks:
    """Runs maintenance tasks, and keeps the result of the last run of each.

    Args:
        settings: the settings of the engine.
        record: receives the results of backups.
    """

    def __init__(self, settings: Settings, record: BackupRecord | None = None) -> None:
        self._settings = settings
        self._record = record or BackupRecord()
        self._lock = threading.Lock()
        self._tasks: dict[str, Task] = {}
        self._known: dict[str, Backup] = {}
        self._listing = Latest(LIST_SECONDS)
        self._process: subprocess.Popen[str] | None = None
        self._thread: threading.Thread | None = None
        self._stopping = False

    def __enter__(self) -> Self:
        """Start nothing until a task is requested."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop an unfinished task."""
        with self._lock:
            self._stopping, thread = True, self._thread
            if self._process:
                self._process.terminate()
        if thread:
            thread.join(STOP_SECONDS)
            with self._lock:
                if self._process:
                    self._process.kill()
            thread.join()

    def use(self, settings: Settings) -> None:
        """Use other settings for the tasks that begin from now on."""
        self._settings = settings

    def state(self) -> Maintenance:
        """Return the backup settings, the existing backups, and the last run of each task."""
        folder = self._settings.backup_dir
        with self._lock:
            tasks = [task.model_copy() for task in self._tasks.values()]
        return Maintenance(
            backup_dir=str(folder) if folder else None,
            backup_hours=self._settings.backup_hours,
            backup_keep=self._settings.backup_keep,
            backups=self._backups(folder) if folder else [],
            tasks=tasks,
        )

    def begin(self, action: MaintenanceAction) -> Maintenance:
        """Start a task; return the state after that.

        Raises:
            MaintenanceRunning: another task is running.
            NoBackupFolder: the task needs a backup folder, and none is set.
        """
        if action in OF_BACKUPS and not self._settings.backup_dir:
            raise NoBackupFolder
        with self._lock:
            if self._thread:
                raise MaintenanceRunning
            task = self._tasks[action] = Task(
                action=action, begun_at=shown(time.time()), ended_at=None, step=None, faults=[], findings=[], error=None
            )
            self._thread = threading.Thread(target=self._run, args=(task,), name="kb-maintenance", daemon=True)
            self._thread.start()
        return self.state()

    def _run(self, task: Task) -> None:
        """Run the process, which ends before this thread, and record its result."""
        try:
            ended = _ended(task, self._outcome(task))
        except OSError as error:
            ended = _ended(task, {"error": f"It could not start: {error.strerror or error}."})
        except ValueError:  # cut off within a word, or mixed with other output
            logger.exception("the output of the maintenance process is not valid")
            ended = _ended(task, {"error": CUT_OFF})
        if task.action == "back-up" and not self._stopping:
            self._record.failed(ended.error) if ended.error else self._record.succeeded()
        with self._lock:
            self._tasks[task.action] = ended
            if task.action == "repair" and not ended.error:
                self._tasks["check"] = ended.model_copy(update={"action": "check"})
            self._process = self._thread = None

    def _outcome(self, task: Task) -> dict[str, Any]:
        """Return the final message of the process."""
        message: dict[str, Any] = {}
        with _started(task.action, self._settings) as process:
            assert process.stdout  # noqa: S101 - it is a pipe
            with self._lock:
                self._process = process
                if self._stopping:  # requested before the process existed
                    process.terminate()
            for line in process.stdout:
                message = json.loads(line)
                with self._lock:
                    task.step = message.get("step")
        return {"error": CUT_OFF} if "step" in message or not message else message

    def _backups(self, folder: Path) -> list[Backup]:
        """Return the backups of a folder, newest first. The content of a backup never changes."""
        try:
            return self._listing.of(partial(self._read_backups, folder, self._settings.backup_key))
        except OSError as error:
            raise StoreError(f"kb cannot read {folder}: {error.strerror or error}.") from error

    def _read_backups(self, folder: Path, key: SecretStr | None) -> list[Backup]:
        names = [backup_folder.name for backup_folder in reversed(storage.backup_folders(folder))]
        backups = {name: self._known.get(name) or _backup_in(folder / name, key) for name in names}
        self._known = {name: backup for name, backup in backups.items() if not backup.fault}  # a fault may pass
        return list(backups.values())


def _started(action: MaintenanceAction, settings: Settings) -> subprocess.Popen[str]:
    told = settings.model_dump(mode="json", exclude=SECRET) | {"backup_key": reveal(settings.backup_key)}
    asked = {"action": action, "settings": told}
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KB_")}  # no keys
    process = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-P", "-m", "kb.repair.child_process", str(os.getpid())],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        start_new_session=True,  # Ctrl-C is for the engine, which stops the process in order
    )
    assert process.stdin  # noqa: S101 - it is a pipe
    with suppress(BrokenPipeError), process.stdin as stdin:  # if the process does not read, it ends without a message
        stdin.write(json.dumps(asked))
    return process


def _ended(task: Task, outcome: dict[str, Any]) -> Task:
    return Task.model_validate(task.model_dump() | outcome | {"ended_at": shown(time.time()), "step": None})


def _backup_in(folder: Path, key: SecretStr | None) -> Backup:
    try:
        backup = storage.OpenBackup(folder, key)
    except StoreError as error:
        unknown = dict.fromkeys(("made_at", "version", "documents", "files", "seal"))
        return Backup(name=folder.name, fault=error.detail, **unknown)
    manifest = backup.manifest
    return Backup(
        name=folder.name,
        made_at=manifest.made_at,
        version=manifest.kb,
        documents=manifest.counts.get("documents"),
        files=len(manifest.objects),
        seal=backup.seal,
        fault=None,
    )
