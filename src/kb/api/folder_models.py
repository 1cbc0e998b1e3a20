"""Bodies for synced and watched folders."""

from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field

from kb.api.fields import Label, Like, NotesFolderAction, Reply, Request, SourcePath, Tags, Timestamp
from kb.api.limits import MAX_REASONS

MAX_REASON_CHARS: Final = 2000
WATCH_ID: Final = "^[0-9a-f]{32}$"

Count = Annotated[int, Field(ge=0)]
WatchState = Literal["new", "watching", "syncing", "failing", "stopped"]


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_REASON_CHARS else f"{text[: MAX_REASON_CHARS - 1]}…"


Reason = Annotated[str, Field(min_length=1), AfterValidator(_shortened)]
WatchId = Annotated[str, Like(WATCH_ID, "must be 32 hexadecimal digits")]


class FolderClaim(Request):
    """A folder on a machine that kb will sync, under a name that no other folder has.

    `prefix` is the beginning of its files' source paths. `mounts` names the folder's device, and the folders below it
    on other devices. `take_over` takes the name from another folder.
    """

    prefix: SourcePath
    machine: Label
    host: Label
    path: SourcePath
    mounts: Annotated[str, Field(max_length=100_000)] = ""
    take_over: bool = False


class WatchRequest(Request):
    """How a machine watches a folder that it has registered.

    `tags` and `delete` are the options of `kb watch add`. The machine applies them; kb only shows them. With `both`,
    the engine keeps the folder itself, and also writes changes of its notes there. Then `place` is the folder's number
    and time on the disk, which shows that the engine is on the same machine. `exclude` has patterns of files to skip,
    and later notes without a path get one in the folder `new_notes` of it.
    """

    prefix: SourcePath
    machine: Label
    tags: Annotated[Tags, Field(default_factory=list)]
    delete: bool = False
    both: bool = False
    place: Annotated[str, Field(max_length=100)] = ""
    exclude: Annotated[list[Label], Field(default_factory=list, max_length=1000)]
    new_notes: Label | None = None


class SeenWatch(Request):
    """A watch that runs, and whether it is syncing now."""

    id: WatchId
    is_syncing: bool = False


class SeenWatches(Request):
    """The watches that a program on a machine runs."""

    machine: Label
    watches: Annotated[list[SeenWatch], Field(max_length=200)]


class FailedFile(Request):
    """A file that kb could not add, and the reason."""

    path: SourcePath
    error: Reason


class LeftOutFiles(Request):
    """The number of files or folders that kb leaves out for one reason; `paths` has the first ones, if known."""

    reason: Reason
    count: Count
    paths: Annotated[list[SourcePath], Field(default_factory=list, max_length=MAX_REASONS)]


class SyncReport(Request):
    """The outcome of a round: the number of files, and what changed.

    `failures` has the first failed files. `left_out` has the files that kb does not try to add, by reason. `kept` has
    the reasons for documents that stay although their file is gone.
    """

    files: Count
    added: Count = 0
    changed: Count = 0
    moved: Count = 0
    deleted: Count = 0
    failed: Count = 0
    failures: Annotated[list[FailedFile], Field(default_factory=list, max_length=MAX_REASONS)]
    left_out: Annotated[list[LeftOutFiles], Field(default_factory=list, max_length=MAX_REASONS)]
    kept: Annotated[list[Reason], Field(default_factory=list, max_length=MAX_REASONS)]


class WatchReport(Request):
    """The end of a round: its result, or the error that prevented it.

    `answers` is the `asked_at` of the request that this round followed.
    """

    result: SyncReport | None = None
    error: Reason | None = None
    answers: Annotated[str, Field(max_length=40)] | None = None


class WatchRecord(Reply):
    """A watched folder: its options, and its last rounds.

    `seen_at` is the last time at which its program was seen, `asked_at` the time of an open request to sync now,
    `synced_at` and `result` belong to the last complete round. `error` is the reason why no round was
    complete since `failing_since`. `both`, `exclude` and `new_notes` are as in `WatchRequest`; the engine has kept the
    folder since `kept_since`.
    """

    id: WatchId
    tags: list[str]
    delete: bool
    both: bool = False
    exclude: list[str] = []
    new_notes: str | None = None
    kept_since: Timestamp | None = None
    seen_at: Timestamp | None = None
    is_syncing: bool = False
    asked_at: Timestamp | None = None
    synced_at: Timestamp | None = None
    result: SyncReport | None = None
    error: str | None = None
    failing_since: Timestamp | None = None


class FolderWatch(WatchRecord):
    """A watched folder. `state` is `stopped` if its program was not seen for minutes, and `new` if it never was."""

    state: WatchState


class KnownWatch(Reply):
    """A watch on this machine that kb knows, and the time of an open request to sync now."""

    id: str
    asked_at: Timestamp | None


class KnownWatches(Reply):
    """Those of the watches of a program that kb knows. The program stops the others."""

    watches: list[KnownWatch]


class SyncedFolder(Reply):
    """A synced folder, its machine, and the time of its last sync. `watch` is null for a folder that is not watched."""

    prefix: str
    machine: str
    host: str
    path: str
    mounts: str
    at: Timestamp
    watch: FolderWatch | None = None


class SyncedFolders(Reply):
    """The synced folders, and the source paths of files in them that kb skips."""

    folders: list[SyncedFolder]
    left_out: list[str]


class NotesFolderProblem(Reply):
    """A file or folder that kb skips, or a note that kb cannot write, and the reason."""

    path: str
    reason: str


class NotesFolderStatus(Reply):
    """The notes folder: a Markdown file for each note, kept in sync in both directions.

    `held` is false while another engine of the same database keeps it. `files` counts the Markdown files, `to_read` the
    new and changed files that kb has not read yet, and `waiting` the notes that are not written yet. `trouble` says
    which files cannot be read or written, since when, and the remedy. `stopped` is the reason why kb does not use the
    folder now. `withheld` says why the notes of missing files stay, and `conflicts` lists copies of files that two
    sides changed. `seen_at` is when kb last looked at all files.
    """

    path: str
    held: bool
    files: int
    to_read: int
    waiting: int
    trouble: list[str]
    stopped: str | None
    withheld: list[str]
    conflicts: list[str]
    problems: list[NotesFolderProblem]
    seen_at: Timestamp | None


class NotesFolderRequest(Request):
    """The decision about missing files: `delete` their notes, which go to the bin, or `restore` the files.

    `folder` is the name of a folder that kb also writes to; without it, the decision is about the notes folder.
    """

    action: NotesFolderAction
    folder: Annotated[str, Field(max_length=2000)] = ""
