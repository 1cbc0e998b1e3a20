"""The faults and risks that need attention, the same for status, web interface, doctor and metrics."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kb.api.status_models import Attention
from kb.clock import REMEDY as CLOCK_REMEDY
from kb.settings import Settings

LOW_SPACE: Final = 256 << 20
QUEUE_SECONDS: Final = 900
"""The age of a job from which the queue counts as stuck; an import of many files may take longer."""

ENOUGH_DOCUMENTS: Final = 20
"""The number of documents from which their languages say something."""

MOST_LANGUAGES: Final = 3
LATE: Final = 2
"""A backup is late after this number of intervals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupFacts:
    """The state of scheduled backups.

    Args:
        folder: the backup folder; None if kb makes no backups.
        hours: the hours between two backups.
        age: the age of the newest backup in seconds; infinite without one.
        failure: the reason why the last backup failed.
        failures: the number of failed backups since the start.
        good_at: the time of the newest backup that this kb could restore, in seconds since 1970; 0 without one.
    """

    folder: str | None
    hours: float = 24
    age: float = float("inf")
    failure: str | None = None
    failures: int = 0
    good_at: float = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The state of kb and its surroundings.

    Args:
        backups: None for a database that has its own tools for backups.
        free: the free bytes for each folder that kb writes to.
        queue_age: the age of the oldest waiting job in seconds.
        folders: folders that kb does not keep in step, by name, with the reason.
        settings: saved settings that cannot be used, by variable, with the reason.
        clock: the jump of the machine's clock.
        foreign: objects in the database that kb did not create.
        languages: the number of documents in each language, if the model in use knows English alone.
    """

    backups: BackupFacts | None = None
    free: Mapping[str, int] = field(default_factory=dict)
    queue_age: float = 0
    folders: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    clock: str | None = None
    foreign: Sequence[str] = ()
    languages: Mapping[str, int] = field(default_factory=dict)


def attention(facts: Facts) -> list[Attention]:
    """Return what needs attention, the most urgent first."""
    items = [
        *_backups(facts.backups),
        *_space(facts.free),
        *_queue(facts.queue_age),
        *_languages(facts.languages),
        *_others(facts),
    ]
    return sorted(items, key=lambda item: not item.is_urgent)


def free_space(settings: Settings) -> dict[str, int]:
    """Return the free bytes for each folder that kb writes to."""
    database = [] if settings.store_kind.is_shared else [settings.database_path.parent]
    folders = [settings.data_dir, *database, settings.backup_dir, settings.notes_dir]
    free = dict[str, int]()
    for folder in dict.fromkeys(filter(None, folders)):
        with suppress(OSError):
            free[str(folder)] = shutil.disk_usage(_existing(folder)).free
    return free


def _existing(folder: Path) -> Path:
    return folder if folder.exists() or folder == folder.parent else _existing(folder.parent)


def _backups(facts: BackupFacts | None) -> Iterator[Attention]:
    if facts is None:
        return
    if facts.folder is None:
        yield Attention(
            name="newest backup",
            says="no backup is configured",
            remedy="set KB_BACKUP_DIR to a folder on another disk, or enter it on the Settings page",
            is_urgent=False,
        )
    elif facts.failure:
        yield Attention(
            name="newest backup",
            says=f"the last backup failed: {facts.failure}",
            remedy=f"fix that, then run 'kb backup {facts.folder}'",
            is_urgent=True,
        )
    elif facts.age > LATE * facts.hours * 3600:
        yield Attention(
            name="newest backup",
            says=f"{facts.folder} has no backup from the last {LATE * facts.hours:g} hours",
            remedy=f"run 'kb backup {facts.folder}', and look at the engine's log",
            is_urgent=True,
        )


def _space(free: Mapping[str, int]) -> Iterator[Attention]:
    for folder, size in free.items():
        if size < LOW_SPACE:
            yield Attention(
                name="disk space",
                says=f"only {size >> 20} MiB are free for {folder}",
                remedy="free some space: kb refuses changes on a full disk",
                is_urgent=True,
            )


def _queue(age: float) -> Iterator[Attention]:
    if age > QUEUE_SECONDS:
        yield Attention(
            name="queue",
            says=f"a job has waited for {age / 60:.0f} minutes",
            remedy="see 'kb jobs' and the log; after a large import, just wait",
            is_urgent=False,
        )


def _languages(documents: Mapping[str, int]) -> Iterator[Attention]:
    others = {language: count for language, count in documents.items() if language != "en"}
    total = sum(documents.values())
    if total >= ENOUGH_DOCUMENTS and 2 * sum(others.values()) > total:
        most = sorted(others, key=lambda language: -others[language])[:MOST_LANGUAGES]
        yield Attention(
            name="languages",
            says=f"most documents are in {', '.join(most)}, but the model in use only understands English",
            remedy="see 'kb model list', and run 'kb model use multilingual-e5-small'",
            is_urgent=False,
        )


def _others(facts: Facts) -> Iterator[Attention]:
    for name, reason in facts.folders.items():
        yield Attention(name="folders", says=f"{name}: {reason}", remedy="see 'kb watch' and the log", is_urgent=False)
    for variable, reason in facts.settings.items():
        yield Attention(
            name="settings",
            says=f"{variable} cannot be used: {reason}",
            remedy="correct it in the settings of the web interface",
            is_urgent=True,
        )
    if facts.clock:
        yield Attention(
            name="clock",
            says=facts.clock,
            remedy=CLOCK_REMEDY,
            is_urgent=False,
        )
    if facts.foreign:
        yield Attention(
            name="unknown objects",
            says=f"kb did not create {', '.join(facts.foreign)}, which may change saved data",
            remedy="run 'kb doctor'",
            is_urgent=True,
        )
