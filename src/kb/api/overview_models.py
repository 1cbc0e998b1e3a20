"""Bodies for overviews and maintenance: the map, the last hour, storage, backups and checks."""

from typing import Literal

from kb.api.document_models import TagCount
from kb.api.fields import Reply, Request, Timestamp

MaintenanceAction = Literal["back-up", "verify", "check", "repair"]
Seal = Literal["sealed", "unsealed", "unchecked"]


class MappedDocument(Reply):
    """A document on the map, with `x` and `y` from -1 to 1. `tags` are indexes into the map's list of tags.

    The title may be cut.
    """

    id: int
    title: str
    doc_type: str
    tags: list[int]
    x: float
    y: float


class DocumentMap(Reply):
    """A map of the most recently changed documents. Documents about the same subject are near each other.

    `total` is the number of all documents; `tags` lists the most used tags. If `is_current` is false, kb is computing a
    new map: request it again later.
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
    """The faults that a check found, and the remedy. `is_repairable`: `repair` fixes them while the engine runs.

    `is_notice` means that the data is sound, but you should know about this.
    """

    check: str
    faults: list[str]
    remedy: str
    is_notice: bool
    is_repairable: bool


class Task(Reply):
    """The last run of an action.

    `step` is the current step, `faults` lists faults of backups, and `findings` has the result of each check of the
    data. `error` is the reason if the action did not finish.
    """

    action: MaintenanceAction
    begun_at: Timestamp
    ended_at: Timestamp | None
    step: str | None
    faults: list[str]
    findings: list[Finding]
    error: str | None


class Maintenance(Reply):
    """The backups, the last runs of each action, and the settings of backups.

    Without KB_BACKUP_DIR, `backup_dir` is null and `backups` is empty.
    """

    backup_dir: str | None
    backup_hours: float
    backup_keep: int
    backups: list[Backup]
    tasks: list[Task]


class Storage(Reply):
    """The size of the data in bytes.

    A size is null if the data does not exist, has too many files or takes too long to measure. For a key with a limit,
    all sizes are null.
    """

    database: int | None
    originals: int | None
    backups: int | None


class Minute(Reply):
    """The number of actions in one minute, and their times: the median and the 95th percentile."""

    count: int
    p50_ms: float | None
    p95_ms: float | None


class Work(Minute):
    """The actions of the last hour. `minutes` has one entry per minute; the current minute comes last."""

    minutes: list[Minute]


class Activity(Reply):
    """The searches and added documents of the last hour, with their times.

    Both are null for a key with a limit, which must not see the activity of others.
    """

    searches: Work | None
    ingestions: Work | None
