"""What was changed since a moment is taken back: every document becomes again what it was then."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Literal, NamedTuple

from kb import clock
from kb.api.errors import Changed, KbError, NotFound, NotInBin, Stopped
from kb.documents.delete import delete
from kb.documents.lookup import check_moment
from kb.documents.restore import is_same_content, restore, revert
from kb.store.rows import NOBODY

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kb.documents.originals import Originals
    from kb.embed.protocol import Embedder
    from kb.store.protocol import Store, Transaction
    from kb.store.rows import Author, Binned, Document, Version

UndoAction = Literal["delete", "restore", "revert", "retag"]

ORDER: dict[UndoAction, int] = {"delete": 0, "restore": 1, "revert": 2, "retag": 2}
"""What was added goes first: it may stand where something else stood."""

ALL = 1 << 62


@dataclass(frozen=True, slots=True)
class Step:
    """What is done to take back the changes of a document: `version` is what it becomes again.

    `skipped` says why nothing is done. `state` is the document's newest version, and whether it is in the bin;
    `part_of` is the document that one in the bin came inside.
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
    """What is known of a document: its versions, newest first, and its place in the bin."""

    versions: list[Version]
    binned: Binned | None

    @property
    def newest(self) -> Document:
        """The document as it stands, or stood when it was deleted."""
        return self.versions[0].document

    @property
    def at(self) -> str:
        """When it was changed last."""
        return self.binned.deleted_at if self.binned else self.versions[0].at

    @property
    def step(self) -> Step:
        """The step that would delete it."""
        state = self.versions[0].number, self.binned is not None
        part_of = self.binned.part_of if self.binned else None
        return Step(self.newest.id, self.newest.title, "delete", state=state, part_of=part_of)


class Change(NamedTuple):
    """A change: the version that it made, which a deletion does not, and who made it."""

    number: int | None
    author: Author


def undo(
    store: Store,
    embedder: Embedder,
    originals: Originals,
    since: datetime,
    key: str | None = None,
    author: Author = NOBODY,
    checkpoint: Callable[[], None] = lambda: None,
) -> list[Step]:
    """Take back what was changed after a moment, or of that what a key changed; return what was done.

    Each document is taken back in a transaction of its own; those that cannot be are skipped. Done again, the same
    finds nothing that is left to do.

    Raises:
        Invalid, HistoryGone: it is not known how things stood at that moment.
    """
    author = replace(author, why=author.why or f"undo since {since.isoformat()}")
    steps = plan(store, since, key)
    together = {step.document_id for step in steps if not step.skipped}

    def done(step: Step) -> Step:
        try:
            # What came inside another document has gone, or come back, with it.
            with suppress(NotFound, NotInBin):
                if step.action == "delete":
                    delete(store, originals, step.document_id, author, _unchanged(step))
                if step.action == "restore":
                    restore(store, embedder, step.document_id, author, checkpoint, _unchanged(step), together)
            if step.version is not None:
                is_as_planned = _unchanged(replace(step, state=_state_of_restored(step)))
                revert(
                    store,
                    embedder,
                    originals,
                    step.document_id,
                    step.version,
                    None,
                    author,
                    checkpoint,
                    is_as_planned,
                    together,
                )
        except Stopped:
            raise
        except KbError as error:
            return replace(step, skipped=error.detail)
        return step

    return _in_turn(steps, done)


def plan(store: Store, since: datetime, key: str | None = None) -> list[Step]:
    """Return what `undo` would do, in its order."""
    with store.read() as tx:
        check_moment(tx, since, "since")
        steps = [_step(tx, document_id, since, key) for document_id in tx.history.changed_since(since)]
    return _in_turn(sorted(filter(None, steps), key=lambda step: ORDER[step.action]), lambda step: step)


def _in_turn(steps: Sequence[Step], act: Callable[[Step], Step]) -> list[Step]:
    """Take the steps one after another; what came inside a document that stays in the bin stays there with it."""
    taken: list[Step] = []
    for step in steps:
        in_bin = {each.document_id for each in taken if each.skipped and each.action == "restore"}
        if not step.skipped and step.part_of in in_bin:
            taken.append(replace(step, skipped=f"Document {step.part_of}, which it came in, stays in the bin."))
        else:
            taken.append(step if step.skipped else act(step))
    return taken


def _unchanged(step: Step) -> Callable[[Transaction], None]:
    """Return what refuses a document that is not as it was when the step was planned."""

    def check(tx: Transaction) -> None:
        [newest] = tx.history.versions(step.document_id, limit=1)
        if (newest.number, tx.history.binned(step.document_id) is not None) != step.state:
            raise Changed("It was changed while this was going on.")

    return check


def _state_of_restored(step: Step) -> tuple[int, bool]:
    number, is_binned = step.state
    return number + is_binned, False


def _step(tx: Transaction, document_id: int, since: datetime, key: str | None) -> Step | None:
    past = Past(tx.history.versions(document_id, limit=ALL), tx.history.binned(document_id))
    if _is_after(past.at, clock.own.now()):
        return replace(past.step, skipped="Its last change lies in the future: a clock was put back.")
    changes = _changes(past, since)
    if key is not None:
        while changes and changes[-1].author.by != key:
            changes.pop()
        if not changes:
            return None
    numbers = [change.number for change in changes if change.number]
    first = min(numbers, default=past.versions[0].number + 1)
    if len([version for version in past.versions if version.number >= first]) <= past.versions[0].number - first:
        return replace(past.step, action="revert", skipped="Changes that this key may not see lie between.")
    step = _back(past, first - 1, since)
    if step and step.action == "delete" and not tx.history.has_bin:
        return replace(step, skipped="There is no bin (KB_BIN_DAYS=0): it would be gone for good.")
    if step and key is not None and any(change.author.by != key for change in changes):
        return replace(step, skipped="Someone else changed it afterwards.")
    return step


def _changes(past: Past, since: datetime) -> list[Change]:
    """Return the changes after a moment, the last one first."""
    deleted = [Change(None, past.binned.author)] if past.binned and _is_after(past.binned.deleted_at, since) else []
    made = [version for version in past.versions if _is_after(version.at, since)]
    return deleted + [Change(version.number, version.author) for version in made]


def _back(past: Past, number: int, since: datetime) -> Step | None:
    """Return the step back to a version; to none if it is 0, or was in the bin at that moment."""
    newest = past.newest
    step = past.step
    target = next((version for version in past.versions if version.number == number), None)
    if number == 0 or (target and target.until and not _is_after(target.until, since)):
        return None if past.binned else step
    if target is None:
        return replace(step, action="revert", skipped=f"Version {number} is not kept any more.")
    is_same = is_same_content(newest, target.document)
    is_changed = not is_same or set(newest.tags) != set(target.document.tags)
    version = number if is_changed else None
    if past.binned:
        return replace(step, action="restore", version=version)
    return replace(step, action="retag" if is_same else "revert", version=version) if is_changed else None


def _is_after(stamp: str, since: datetime) -> bool:
    return datetime.fromisoformat(stamp) > since
