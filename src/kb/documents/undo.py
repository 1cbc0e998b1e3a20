"""Undo an operation, or all changes since a point in time."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import groupby, pairwise
from typing import Literal, NamedTuple

from kb import clock
from kb.api.errors import Changed, HistoryGone, Invalid, KbError, NotFound, NotInBin, Stopped
from kb.api.rights import Caller
from kb.documents.delete import delete
from kb.documents.job_queue import drop
from kb.documents.originals import Originals
from kb.documents.restore_document import is_same_content, restore, revert
from kb.store.protocol import Store, Transaction
from kb.store.rows import NOBODY, Author, Binned, Document, Operation, Version

UndoAction = Literal["delete", "restore", "revert", "retag"]

ORDER: dict[UndoAction, int] = {"delete": 0, "restore": 1, "revert": 2, "retag": 2}
"""The order of undo steps. Deletions come first, because an added document may hold the path of an earlier one."""

ALL = 1 << 62
MOST_EXAMINED = 20
"""The highest number of documents of an operation that is described by its tags."""

MOST_VERSIONS = 20
"""The number of their versions that kb examines."""


@dataclass(frozen=True, slots=True)
class PlannedUndo:
    """The step that undoes the changes of a document; `version` is the version to return to.

    `skipped` is the reason if the step does nothing. `state` is the number of the newest version and whether the
    document is in the bin. `part_of` is the document whose file a document in the bin came from.
    """

    document_id: int
    title: str
    action: UndoAction
    version: int | None = None
    skipped: str | None = None
    state: tuple[int, bool] = 0, False
    part_of: int | None = None


@dataclass(frozen=True, slots=True)
class Past:
    """The history of a document: its versions, newest first, and its entry in the bin."""

    versions: list[Version]
    binned: Binned | None

    @property
    def newest(self) -> Document:
        """The current document, or the document at its deletion."""
        return self.versions[0].document

    @property
    def at(self) -> str:
        """The time of the last change."""
        return self.binned.deleted_at if self.binned else self.versions[0].at

    @property
    def step(self) -> PlannedUndo:
        """The step that would delete the document."""
        state = self.versions[0].number, self.binned is not None
        part_of = self.binned.part_of if self.binned else None
        return PlannedUndo(self.newest.id, self.newest.title, "delete", state=state, part_of=part_of)


class PastChange(NamedTuple):
    """A change: the version that it made (a deletion makes none), its author, operation and time."""

    number: int | None
    author: Author
    operation: int | None
    at: str


@dataclass(frozen=True, slots=True)
class Scope:
    """The changes to undo: all of an operation, or all at or after a point in time, optionally only of one key.

    With an `author`, only changes with its key and program count.

    A change counts from the time of its command, however long its job ran. If `since` is the time that the history
    shows of a change, to the millisecond or second, the changes of its document count from their own times.
    """

    operation: Operation | None = None
    since: datetime | None = None
    key: str | None = None
    author: Author | None = None

    @property
    def reason(self) -> str:
        """The reason that the history gives for the undo."""
        if self.operation:
            return f"undo of operation {self.operation.id}"
        return f"undo of all changes since {self.since:%Y-%m-%d %H:%M} UTC" if self.since else "undo"


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps that undo a scope, one per document, and the jobs to drop before they are done."""

    scope: Scope
    steps: list[PlannedUndo]
    jobs: list[int]


def carry_out(
    store: Store,
    originals: Originals,
    planned: Plan,
    author: Author = NOBODY,
    checkpoint: Callable[[], None] = lambda: None,
) -> list[PlannedUndo]:
    """Carry out a plan; return the steps done.

    Each document has its own transaction; documents that cannot be undone are skipped. A second call with the same
    scope finds nothing left to do.
    """
    author = replace(author, why=author.why or planned.scope.reason)
    for job_id in planned.jobs:
        with suppress(KbError):  # it has ended in the meantime
            drop(store, originals.blobs, job_id)
    if planned.jobs:  # some of them may have ended since the plan was made
        planned = plan(store, planned.scope)
    together = {step.document_id for step in planned.steps if not step.skipped}
    bring_back = partial(restore, store, checkpoint=checkpoint, together=together)
    take_back = partial(revert, store, originals, checkpoint=checkpoint, together=together)

    def done(step: PlannedUndo) -> PlannedUndo:
        try:
            # A part of another document was deleted or restored with that document.
            with suppress(NotFound, NotInBin):
                if step.action == "delete":
                    delete(store, originals, step.document_id, author, _unchanged(step))
                if step.action == "restore":
                    bring_back(step.document_id, author, check=_unchanged(step))
            if step.version is not None:
                is_as_planned = _unchanged(replace(step, state=_state_of_restored(step)))
                take_back(step.document_id, step.version, author=author, check=is_as_planned)
        except Stopped:
            raise
        except KbError as error:
            return replace(step, skipped=error.detail)
        return step

    return _in_turn(planned.steps, done)


def find_operation(store: Store, number: int | None, of: Caller) -> Operation:
    """Return an operation by its number, or failing that, the caller's last operation with something left to undo.

    Raises:
        NotFound: the operation does not exist, or is no longer known.
    """
    with store.read() as tx:
        last = tx.operations.page(limit=1, of=of) if number is None else []
        operation = next(iter(last), None) if number is None else tx.operations.get(number)
    if operation is None:
        raise NotFound("Nothing can be undone." if number is None else f"Operation {number} does not exist.")
    return operation


def plan(store: Store, scope: Scope) -> Plan:
    """Return the plan that undoes the changes of a scope, with its steps in order.

    Raises:
        Invalid, HistoryGone: the state at the requested time is unknown.
    """
    with store.read() as tx:
        if scope.since:
            _check_since(tx, scope.since)
        begun: dict[int, str] = {}
        changed = tx.operations.documents(scope.operation.id) if scope.operation else []
        if scope.since:
            changed = tx.history.changed_since(scope.since)
        steps = [_step(tx, document_id, scope, begun) for document_id in changed]
        jobs = tx.operations.jobs(scope.operation) if scope.operation else []
    ordered = sorted(filter(None, steps), key=lambda step: ORDER[step.action])
    return Plan(scope, _in_turn(ordered, lambda step: step), jobs)


def _in_turn(steps: Sequence[PlannedUndo], act: Callable[[PlannedUndo], PlannedUndo]) -> list[PlannedUndo]:
    """Take the steps in order; parts of a document that stays in the bin also stay there."""
    taken: list[PlannedUndo] = []
    in_bin: set[int | None] = set()
    for step in steps:
        if not step.skipped and step.part_of in in_bin:
            taken.append(replace(step, skipped=f"Document {step.part_of}, which contains it, stays in the bin."))
        else:
            taken.append(step if step.skipped else act(step))
        if taken[-1].skipped and taken[-1].action == "restore":
            in_bin.add(taken[-1].document_id)
    return taken


def _unchanged(step: PlannedUndo) -> Callable[[Transaction], None]:
    """Return a check that refuses a document changed since the step was planned."""

    def check(tx: Transaction) -> None:
        [newest] = tx.history.versions(step.document_id, limit=1)
        if (newest.number, tx.history.binned(step.document_id) is not None) != step.state:
            raise Changed("It changed during the undo.")

    return check


def _state_of_restored(step: PlannedUndo) -> tuple[int, bool]:
    number, is_binned = step.state
    return number + is_binned, False


def _check_since(tx: Transaction, instant: datetime) -> None:
    """Refuse a point in time for which the history has no state."""
    if instant > clock.own.now():
        raise Invalid("since: this time is in the future.")
    begins = tx.history.begins()
    if begins is not None and instant < datetime.fromisoformat(begins):
        raise HistoryGone(f"since: the history goes back only to {begins}.", extra={"begins": begins})


def _step(tx: Transaction, document_id: int, scope: Scope, begun: dict[int, str]) -> PlannedUndo | None:
    """Return the step that undoes the changes of a document; `begun` caches the times of operations."""
    past = Past(tx.history.versions(document_id, limit=ALL), tx.history.binned(document_id))
    if scope.since and datetime.fromisoformat(past.at) > clock.own.now():
        return replace(past.step, skipped="Its last change is in the future: a clock was set back.")
    changes = _changes(past)
    is_meant = partial(_is_meant, tx, scope=scope, begun=None if _is_named(tx, changes, scope.since) else begun)
    while changes and not is_meant(changes[-1]):
        changes.pop()
    if not changes:
        return None
    numbers = [change.number for change in changes if change.number]
    first = min(numbers, default=past.versions[0].number + 1)
    if len([version for version in past.versions if version.number >= first]) <= past.versions[0].number - first:
        return replace(past.step, action="revert", skipped="It has later changes that this key may not see.")
    step = _back(past, first - 1, scope.since)
    if step and step.action == "delete" and not tx.history.has_bin:
        return replace(step, skipped="The bin is off (KB_BIN_DAYS=0), so the undo would delete it for good.")
    others = [
        change
        for is_within, run in groupby(changes, key=is_meant)
        if not is_within
        for change in _remaining(past, list(run))
    ]
    if step and others:
        later = others[0].operation
        who = "Someone else" if later is None else f"Operation {later}"
        return replace(step, skipped=f"{who} changed it afterwards.")
    return step


def _remaining(past: Past, run: list[PastChange]) -> list[PastChange]:
    """Return successive changes without the newest ones that leave the document as before, such as an undone change."""
    versions = {version.number: version.document for version in past.versions}
    newest = versions.get(run[0].number or 0)
    if newest is None:  # it is in the bin
        return run
    before = [versions.get((change.number or 0) - 1) for change in run]
    undone = [size for size, document in enumerate(before, 1) if document and _is_same(document, newest)]
    return run[max(undone, default=0) :]


def _is_same(one: Document, other: Document) -> bool:
    return is_same_content(one, other) and set(one.tags) == set(other.tags)


def changed_tags(tx: Transaction, number: int) -> tuple[list[str], list[str]]:
    """Return the tags that an operation added to and removed from each of its documents; none if it changed more."""
    ids = tx.operations.documents(number)
    changes: set[tuple[frozenset[str], frozenset[str]]] = set()
    for document_id in ids if len(ids) <= MOST_EXAMINED else ():
        for after, before in pairwise(tx.history.versions(document_id, limit=MOST_VERSIONS)):
            if after.operation == number:
                if not is_same_content(before.document, after.document):
                    return [], []
                former, tags = frozenset(before.document.tags), frozenset(after.document.tags)
                changes.add((tags - former, former - tags))
    if len(changes) != 1:
        return [], []
    added, removed = changes.pop()
    return sorted(added), sorted(removed)


def _changes(past: Past) -> list[PastChange]:
    """Return the changes of a document, newest first."""
    binned = past.binned
    deleted = [PastChange(None, binned.author, binned.operation, binned.deleted_at)] if binned else []
    return deleted + [
        PastChange(version.number, version.author, version.operation, version.at) for version in past.versions
    ]


def _is_named(tx: Transaction, changes: Sequence[PastChange], since: datetime | None) -> bool:
    """Return whether a point in time is the time of one of the changes, as the history shows it.

    A whole second is also the beginning of a long operation's part, so that it names only changes of single documents.
    """
    return since is not None and any(
        at == since or (at.replace(microsecond=0) == since and _is_single(tx, change.operation))
        for change in changes
        if (at := datetime.fromisoformat(change.at)) >= since
    )


def _is_single(tx: Transaction, operation: int | None) -> bool:
    return operation is not None and len(tx.operations.documents(operation)) == 1


def _is_meant(tx: Transaction, change: PastChange, scope: Scope, begun: dict[int, str] | None) -> bool:
    """Return whether a change is within the scope; without `begun`, by its own time, not its operation's."""
    if scope.operation:
        return change.operation == scope.operation.id
    if scope.key is not None and change.author.by != scope.key:
        return False
    if scope.author and (change.author.by, change.author.client) != (scope.author.by, scope.author.client):
        return False
    at = change.at
    if begun is not None and change.operation is not None:
        if change.operation not in begun:
            operation = tx.operations.get(change.operation)
            begun[change.operation] = operation.at if operation else at
        at = begun[change.operation]
    return scope.since is not None and _is_since(at, scope.since)


def _back(past: Past, number: int, since: datetime | None) -> PlannedUndo | None:
    """Return the step back to a version: a deletion for 0 or if the document was in the bin; None if unchanged."""
    newest = past.newest
    step = past.step
    target = next((version for version in past.versions if version.number == number), None)
    if number == 0 or (target and _was_in_bin(past, target, since)):
        return None if past.binned else step
    if target is None:
        return replace(step, action="revert", skipped=f"kb no longer keeps version {number}.")
    is_same = is_same_content(newest, target.document)
    is_changed = not _is_same(newest, target.document)
    version = number if is_changed else None
    if past.binned:
        return replace(step, action="restore", version=version)
    return replace(step, action="retag" if is_same else "revert", version=version) if is_changed else None


def _was_in_bin(past: Past, target: Version, since: datetime | None) -> bool:
    """Return whether a document was in the bin after a version: before `since`, otherwise before the next version."""
    following = next((version for version in past.versions if version.number == target.number + 1), None)
    if target.until is None or (following is None and since is None):
        return False
    if since:
        return not _is_since(target.until, since)
    return following is not None and target.until < following.at


def _is_since(stamp: str, since: datetime) -> bool:
    return datetime.fromisoformat(stamp) >= since
