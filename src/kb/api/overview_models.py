"""What there is and what goes on, on the wire: the map, the last hour, the care of the data."""

from __future__ import annotations

from typing import Literal

from kb.api.models import Reply, Request, TagCount, Timestamp

MaintenanceAction = Literal["back-up", "verify", "check", "repair"]
Seal = Literal["sealed", "unsealed", "unchecked"]


class MappedDocument(Reply):
    """A document on the map: `x` and `y` from -1 to 1. The title may be cut; `tags` are places in the map's list."""

    id: int
    title: str
    doc_type: str
    tags: list[int]
    x: float
    y: float


class DocumentMap(Reply):
    """Where the documents lie that were changed last: near each other, if they are about the same.

    `total` counts all documents, `tags` are the most used ones. Unless `is_current` another map is being made; ask
    again.
    """

    documents: list[MappedDocument]
    total: int
    tags: list[TagCount]
    is_current: bool


class MaintenanceRequest(Request):
    """The action: make a backup, verify the backups, check the data, or repair faults while the engine runs."""

    action: MaintenanceAction


class Backup(Reply):
    """A backup in KB_BACKUP_DIR. `fault` says why it cannot be used; then the rest is unknown.

    `seal` says whether the backup is sealed with KB_BACKUP_KEY, not sealed, or not checked because no key is set.
    """

    name: str
    made_at: Timestamp | None
    version: str | None
    documents: int | None
    files: int | None
    seal: Seal | None
    fault: str | None


class Finding(Reply):
    """What a check found, and what helps. `is_repairable` says that `repair` does, while the engine runs."""

    check: str
    faults: list[str]
    remedy: str
    is_notice: bool
    is_repairable: bool


class Task(Reply):
    """The last time that something was done.

    `step` says what is done just now, `faults` what was found, `findings` what each check of the data found. `error`
    says why it was not finished.
    """

    action: MaintenanceAction
    begun_at: Timestamp
    ended_at: Timestamp | None
    step: str | None
    faults: list[str]
    findings: list[Finding]
    error: str | None


class Maintenance(Reply):
    """How the data are cared for. Without KB_BACKUP_DIR `backup_dir` is null, and there are no backups here."""

    backup_dir: str | None
    backup_hours: float
    backup_keep: int
    backups: list[Backup]
    tasks: list[Task]


class Storage(Reply):
    """How many bytes the data take. Null is what is not there, has very many files or is slow to look through.

    All of it is null for a key that is limited.
    """

    database: int | None
    originals: int | None
    backups: int | None


class Minute(Reply):
    """How much was done in a minute, and in how many milliseconds: half of it, and 95 % of it, in at most so many."""

    count: int
    p50_ms: float | None
    p95_ms: float | None


class Work(Minute):
    """What was done in the last hour, minute by minute; the one that passes comes last."""

    minutes: list[Minute]


class Activity(Reply):
    """The searches of the last hour, and the documents that came in, each with the time that it took.

    Null for a key that is limited: it is not told of what others do.
    """

    searches: Work | None
    ingestions: Work | None
